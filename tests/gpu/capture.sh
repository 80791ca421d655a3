#!/bin/bash
# What a run tells beside its line, on a machine with a GPU: tensors, telemetry, who holds the memory, the forward line of a
# failure in backward; and what all that costs. About five minutes; the results are printed and left in $OUT/capture.md.
# Wants python3 with PyTorch (torchvision, CuPy and Triton where there are). No Rust: the binary is carried there.
# usage: CUBLAME=cublame OUT=folder tests/gpu/capture.sh [tensors|telemetry|memory|anomaly|cost]...
set -u
here=$(cd "$(dirname "$0")" && pwd)
CUBLAME=$(realpath "$CUBLAME"); OUT=$(realpath "${OUT:-.}")
export CUBLAME OUT PYTHONUNBUFFERED=1
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export WORK=$work XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state
exec 3>&1
{
  echo "date $(date -u +%F), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1), $("$CUBLAME" --version)"
  python3 "$here/capture/show.py" "${@:-all}"
} 2>&1 | tee "$OUT/capture.md" >&3
