#!/usr/bin/env bash
# Programs that fail on a GPU, held there by `cublame debug`: is the line right while the program still stands, are the
# tensors named without touching their values, and does the program end as it would have?
#
# usage: CUBLAME=binary OUT=folder DEBUGPY=folder bash tests/gpu/debug.sh
# DEBUGPY is the folder of the package debugpy (`.../site-packages/debugpy`), where the machine's Python has none.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cublame=$(realpath "$CUBLAME") out=$(realpath "$OUT") python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "${DEBUGPY:-}" ]; then
  libs=$scratch/.vscode/extensions/ms-python.debugpy-2026.0.0/bundled/libs
  mkdir -p "$libs"
  cp -r "$DEBUGPY" "$libs/debugpy"
fi
failed=0
{
  printf '%-16s %-9s %-6s %-6s %-9s %-8s %-5s %s\n' program mode fault shown certainty tensors code verdict
  for program in embedding_oob ce_label_oob gather_oob index_oob; do
    fault=$(grep -n '# @fault$' "$here/programs/$program.py" | head -1 | cut -d: -f1)
    for mode in off trace blocking; do
      project=$scratch/$program-$mode
      mkdir -p "$project/.git"
      cp "$here/programs/$program.py" "$project/train.py"
      log=$out/debug-$program-$mode.log
      (cd "$project" && HOME=$scratch timeout 90 "$cublame" debug --mode "$mode" -- "$python" train.py) </dev/null >/dev/null 2>"$log"
      code=$?
      held=$(sed -n '/stands at its failure/,/^Traceback/p' "$log")
      shown=$(grep -oE -- '--> .*train\.py:[0-9]+' <<<"$held" | head -1 | grep -oE '[0-9]+$')
      tensors=$(grep -c ' is torch\..* on cuda' <<<"$held")
      report=$(find "$project/.cublame/runs" -name report.json | head -1)
      certainty=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["verdicts"][0]["certainty"])' "$report" 2>/dev/null)
      verdict=ok
      [ "${shown:-none}" = "$fault" ] || verdict="another line"
      [ "$code" -eq 1 ] || verdict="exit code"
      grep -q 'stands at its failure' "$log" || verdict="not held"
      [ "$verdict" = ok ] || failed=$((failed + 1))
      printf '%-16s %-9s %-6s %-6s %-9s %-8s %-5s %s\n' "$program" "$mode" "$fault" "${shown:-none}" "${certainty:-none}" "$tensors" "$code" "$verdict"
    done
  done
  echo "$failed not ok; certainty is that of the report at the end, tensors counts the lines that name one on the GPU"
} | tee "$out/debug.txt"
