#!/bin/bash
# Runs every program of this folder on a machine with a GPU, and leaves the results under $OUT.
# Wants python3 with PyTorch (and what the programs import) and nvcc. No Rust: the binary is carried there.
# usage: CUBLAME=cublame OUT=folder tests/gpu/run_all.sh [programs|sanitizer|fuzz|cost]...
set -u
here=$(cd "$(dirname "$0")" && pwd)
CUBLAME=$(realpath "$CUBLAME"); OUT=$(realpath "${OUT:-.}")
work=$(mktemp -d); logs=$work/logs; mkdir -p "$logs"
export EXT_DIR=$work/ext PYTHONUNBUFFERED=1 XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state
mkdir -p "$EXT_DIR/nok"; cp "$here/programs/ext.cu" "$here/programs/nok.cu" "$EXT_DIR/"
summary=$OUT/summary.md; : > "$summary"
say() { echo "$*" | tee -a "$summary"; }
# What was done is kept even if the time runs out.
finish() { tar -C "$work" -cz logs > "$OUT/logs.tar.gz"; rm -rf "$work"; }
trap finish EXIT
trap 'exit 124' TERM INT

facts() {
  say "date $(date -u +%F), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader), $("$CUBLAME" --version)"
  python3 - >> "$summary" 2>&1 <<'P'
import sys, platform, torch
print("python", sys.version.split()[0], "torch", torch.__version__, "libc", platform.libc_ver()[1], "kernel", platform.release())
P
  echo >> "$summary"
}

# Builds the extension once, so that no program's time-out pays for it.
extension() { (cd "$here/programs" && timeout 240 python3 -c "import extlib" > "$logs/extension.txt" 2>&1); say "extension $?"; }

variables() { sed -n 's/^# env: //p' "$1"; }

# one NAME SUFFIX COMMAND...: runs a program with its own variables, behind the command; output and exit code go to the logs.
one() {
  local name=$1 suffix=$2; shift 2
  local file=$here/programs/$name.py
  local launch=(python3 "$file")
  grep -q '^# launch: torchrun' "$file" && launch=(torchrun --standalone --nproc-per-node=2 "$file")
  (cd "$here/programs" && env $(variables "$file") CUBLAME_DIR="$work/runs-$suffix-$name" timeout -s KILL 60 "$@" "${launch[@]}" \
    > "$logs/$name.$suffix.out" 2> "$logs/$name.$suffix.err")
  echo $? > "$logs/$name.$suffix.exit"
}

programs() {
  say "| program | mode | exit | verdict | line | why, other candidates, missing |"; say "|---|---|---|---|---|---|"
  for file in "$here"/programs/*.py; do
    name=$(basename "$file" .py); [ "$name" = extlib ] && continue; [ "$name" = cublas_alloc ] && continue
    while [ "$(jobs -rp | wc -l)" -ge 7 ]; do sleep 0.2; done
    program "$file" "$name" &
  done
  wait
  program "$here/programs/cublas_alloc.py" cublas_alloc
}
program() {
    local file=$1 name=$2 mode
    one "$name" bare
    for mode in ${MODES:-trace core}; do
      one "$name" "$mode" "$CUBLAME" run --mode "$mode" --report "$logs/$name.$mode.json" --
      say "$(python3 "$here/judge.py" "$file" "$mode" "$(cat "$logs/$name.$mode.exit")" "$logs/$name.$mode.json")"
    done
    cmp -s "$logs/$name.bare.out" "$logs/$name.trace.out" || say "$name: stdout differs"
    [ "$(cat "$logs/$name.bare.exit")" = "$(cat "$logs/$name.trace.exit")" ] || say "$name: exit $(cat "$logs/$name.bare.exit") bare"
}
sanitizer() {
  for name in ext_illegal gather_oob ext_misaligned; do
    one "$name" sanitize "$CUBLAME" run --mode sanitize --report "$logs/$name.sanitize.json" --
    say "$(python3 "$here/judge.py" "$here/programs/$name.py" sanitize "$(cat "$logs/$name.sanitize.exit")" "$logs/$name.sanitize.json")"
  done
}

fuzz() {
  nvcc -cubin -arch=native -o "$work/fuzz.cubin" "$here/fuzz/fuzz.cu" > "$logs/nvcc.txt" 2>&1 || { say "nvcc failed: $(head -3 "$logs/nvcc.txt")"; return; }
  FUZZ_CUBIN=$work/fuzz.cubin FUZZ_SECONDS=${FUZZ_SECONDS:-200} python3 "$here/fuzz/run.py" "$CUBLAME" "${FUZZ:-1000}" "${SEED:-1}" 12 > "$logs/fuzz.txt" 2>&1
  say "fuzz $(head -1 "$logs/fuzz.txt")"
}

cost() {
  for round in $(seq "${ROUNDS:-4}"); do
    for how in bare trace; do
      local front=(); [ $how = trace ] && front=("$CUBLAME" run --mode trace --)
      say "$how $round: $(env CUBLAME_DIR="$work" timeout 60 "${front[@]}" python3 "$here/launch_cost.py" 2>/dev/null | tr '\n' ' ')"
      say "$how $round: $(env CUBLAME_DIR="$work" timeout 90 "${front[@]}" python3 "$here/graph_workloads.py" 2>/dev/null | tail -1)"
      say "$how $round: $(env CUBLAME_DIR="$work" timeout 120 "${front[@]}" python3 "$here/workloads.py" 2>/dev/null | tail -1)"
    done
  done
  say "profiler bare $(timeout 60 python3 "$here/profiled.py" 2>/dev/null) traced $(env CUBLAME_DIR="$work" timeout 60 "$CUBLAME" run --mode trace -- python3 "$here/profiled.py" 2>/dev/null)"
}

facts
[ $# -eq 0 ] && set -- programs sanitizer fuzz cost
case " $* " in *programs*|*sanitizer*) extension;; esac
for part in "$@"; do start=$SECONDS; $part; say ""; say "$part took $((SECONDS - start)) s"; done
