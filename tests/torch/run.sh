#!/usr/bin/env bash
# Runs programs that fail for real with torch from PyPI on a machine without a GPU, and the guard. usage: run.sh CUBLAME
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cublame=$(realpath "$1")
venv=${CUBLAME_TEST_CACHE:-$HOME/.cache/cublame-tests}/torch-2.11.0
if [ ! -f "$venv/complete" ]; then
  echo "installing torch 2.11.0 from PyPI into $venv (about 3.5 GB)"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check torch==2.11.0 numpy==2.3.5
  touch "$venv/complete"
fi
status=0
for suite in test_torch test_package test_repro test_guard; do
  "$venv/bin/python" "$here/$suite.py" "$cublame" || status=1
done
exit $status
