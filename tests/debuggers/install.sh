#!/usr/bin/env bash
# Installs the debuggers into a virtual environment in the cache and prints its folder. usage: install.sh CACHE
set -euo pipefail
mkdir -p "$1"
venv=$(realpath "$1")/debuggers-1
if [ ! -f "$venv/complete" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check \
    debugpy==1.8.22 pydevd-pycharm==263.7307.50 nbformat==5.10.4 python-dotenv==1.2.1 pytest==9.0.1 >&2
  touch "$venv/complete"
fi
echo "$venv"
