#!/bin/bash
# Runs every program of this folder bare and traced on a machine with a GPU, and leaves the results under $OUT.
# Wants: python3 with PyTorch (and what the programs import), nvcc for the extension.
# usage: TRACER=libcublame_tracer.so DUMP=dump OUT=folder tests/gpu/run_all.sh [programs|cores|cost]...
set -u
here=$(cd "$(dirname "$0")" && pwd)
TRACER=$(realpath "$TRACER"); DUMP=$(realpath "$DUMP"); OUT=$(realpath "${OUT:-.}")
work=$(mktemp -d); logs=$work/logs; mkdir -p "$logs"
export EXT_DIR=$work/ext PYTHONUNBUFFERED=1
mkdir -p "$EXT_DIR/nok"; cp "$here/programs/ext.cu" "$here/programs/nok.cu" "$EXT_DIR/"
summary=$OUT/summary.txt; : > "$summary"
say() { echo "$*" | tee -a "$summary"; }

facts() {
  say "date $(date -u +%F)"; nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >> "$summary"
  python3 - >> "$summary" 2>&1 <<'P'
import sys, platform, torch
print("python", sys.version.split()[0], "torch", torch.__version__, "libc", platform.libc_ver()[1], "kernel", platform.release())
P
  df -h /dev/shm /tmp >> "$summary"; ulimit -a | grep -E "locked|open" >> "$summary"
}

# Builds the extension once, so that no program's time-out pays for it.
extension() { (cd "$here/programs" && timeout 240 python3 -c "import extlib" > "$logs/extension.txt" 2>&1); say "extension $?"; }

variables() { sed -n 's/^# env: //p' "$1"; }

# one NAME SUFFIX COMMAND...: runs a program with its own variables; exit code and output go to the logs.
one() {
  local name=$1 suffix=$2; shift 2
  local file=$here/programs/$name.py
  local launch=(python3 "$file")
  grep -q '^# launch: torchrun' "$file" && launch=(torchrun --standalone --nproc-per-node=2 "$file")
  (cd "$here/programs" && env $(variables "$file") "$@" timeout -s KILL 60 "${launch[@]}" > "$logs/$name.$suffix.out" 2> "$logs/$name.$suffix.err")
  echo $? > "$logs/$name.$suffix.exit"
}

programs() {
  for file in "$here"/programs/*.py; do
    name=$(basename "$file" .py); [ "$name" = extlib ] && continue
    one "$name" bare
    mkdir -p "$work/journal/$name"
    one "$name" traced CUBLAME_JOURNAL=dir:$work/journal/$name LD_PRELOAD=$TRACER
    for journal in "$work/journal/$name"/*.journal; do
      [ -e "$journal" ] && "$DUMP" "$journal" 60 >> "$logs/$name.journal.txt" 2>&1
    done
    same=different; cmp -s "$logs/$name.bare.out" "$logs/$name.traced.out" && same=same
    say "$name bare $(cat "$logs/$name.bare.exit") traced $(cat "$logs/$name.traced.exit") stdout $same journals $(ls "$work/journal/$name" | wc -l) $(grep -h 'first error' "$logs/$name.journal.txt" 2>/dev/null | cut -c1-160)"
    rm -rf "$work/journal/$name"
  done
}

cores() {
  for name in embedding_oob gather_oob ext_illegal ext_trap ext_misaligned two_streams four_threads graph_replay_oob cupy_illegal triton_oob loop_then_illegal threads_same_kernel compiled_oob; do
    folder=$work/core/$name; mkdir -p "$folder"
    one "$name" core CUBLAME_JOURNAL=dir:$folder LD_PRELOAD=$TRACER CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 \
      CUDA_COREDUMP_FILE=$folder/gpu.%p.core CUDA_COREDUMP_SHOW_PROGRESS=0 \
      CUDA_COREDUMP_GENERATION_FLAGS=skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory
    for journal in "$folder"/*.journal; do [ -e "$journal" ] && "$DUMP" "$journal" 60 >> "$logs/$name.core.txt" 2>&1; done
    say "core $name exit $(cat "$logs/$name.core.exit") $(ls -s --block-size=1K "$folder" | tr '\n' ' ')"
  done
  # The grid and exception tables are small; the images of the modules are not needed to match a launch.
  tar -C "$work" -cz core > "$OUT/cores.tar.gz"
}

cost() {
  for round in 1 2 3; do
    for how in bare traced; do
      set -- env TAG=$how.$round
      [ $how = traced ] && set -- "$@" LD_PRELOAD=$TRACER CUBLAME_JOURNAL=dir:$work
      say "launches $how $round"; "$@" timeout 60 python3 "$here/launch_cost.py" 2>&1 | tail -4 >> "$summary"
      "$@" timeout 90 python3 "$here/graph_workloads.py" 2>&1 | tail -1 >> "$summary"
      "$@" timeout 120 python3 "$here/workloads.py" 2>&1 | tail -1 >> "$summary"
      rm -f "$work"/*.journal
    done
  done
  say "profiler bare $(timeout 60 python3 "$here/profiled.py" 2>/dev/null)"
  say "profiler traced $(env LD_PRELOAD=$TRACER CUBLAME_JOURNAL=dir:$work timeout 60 python3 "$here/profiled.py" 2>/dev/null) journal $("$DUMP" "$work"/*.journal 5000 | grep -c ' Kernel ')"
}

# What was done is kept even if the time runs out.
finish() { tar -C "$work" -cz logs > "$OUT/logs.tar.gz"; rm -rf "$work"; }
trap finish EXIT
trap 'exit 124' TERM INT

facts
[ $# -eq 0 ] && set -- programs cores cost
case " $* " in *programs*|*cores*) extension;; esac
for part in "$@"; do start=$SECONDS; $part; say "$part took $((SECONDS - start)) s"; done
