#!/usr/bin/env bash
# Runs cells in a real ipykernel, driven through jupyter_client as front ends do. usage: run.sh CUBLAME
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cublame=$(realpath "$1")
cache=${CUBLAME_TEST_CACHE:-$HOME/.cache/cublame-tests}
venv=$cache/ipykernel-7.4.0
if [ ! -f "$venv/complete" ]; then
  echo "installing ipykernel 7.4.0 from PyPI into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check ipykernel==7.4.0 ipython==9.18.1 jupyter_client==8.10.0
  touch "$venv/complete"
fi
exec "$venv/bin/python" "$here/test_notebooks.py" "$cublame" "$cache/torch-2.11.0/bin/python"
