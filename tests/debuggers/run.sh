#!/usr/bin/env bash
# `cublame dap` and `cublame debug` with a real debugpy. Then real debuggers take what `cublame configure` writes: debugpy (VS Code) and
# pydevd-pycharm (PyCharm); nbformat, python-dotenv, Neovim and Emacs read the rest. usage: run.sh CUBLAME
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cublame=$(realpath "$1")
cache=${CUBLAME_TEST_CACHE:-.cache}
venv=$(bash "$here/install.sh" "$cache")
torch=$(realpath "$cache")/torch-2.11.0/bin/python
"$venv/bin/python" "$here/test_dap.py" "$cublame"
"$venv/bin/python" "$here/test_debug.py" "$cublame" "$torch"
exec "$venv/bin/python" "$here/test_debuggers.py" "$cublame" "$torch"
