#!/usr/bin/env bash
# Real torchrun, mpirun and Slurm on one machine, on the CPU. usage: run.sh CUBLAME
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
torch=${CUBLAME_TEST_CACHE:-$HOME/.cache/cublame-tests}/torch-2.11.0/bin/python
exec python3 "$here/test_ranks.py" "$(realpath "$1")" "$torch"
