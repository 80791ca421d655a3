#!/usr/bin/env bash
# Real debuggers take what `cublame configure` writes: debugpy (VS Code) and pydevd-pycharm (PyCharm); nbformat, python-dotenv,
# Neovim and Emacs read the rest. usage: run.sh CUBLAME
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cublame=$(realpath "$1")
cache=${CUBLAME_TEST_CACHE:-.cache}
mkdir -p "$cache"
venv=$(realpath "$cache")/debuggers-1
if [ ! -f "$venv/complete" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check \
    debugpy==1.8.22 pydevd-pycharm==263.7307.50 nbformat==5.10.4 python-dotenv==1.2.1 pytest==9.0.1
  touch "$venv/complete"
fi
torch=$(realpath "$cache")/torch-2.11.0/bin/python
exec "$venv/bin/python" "$here/test_debuggers.py" "$cublame" "$torch"
