#!/usr/bin/env bash
# Builds the Linux wheel, installs it into a clean environment, uses it, and reads which C library it needs.
#
# usage: wheel.sh [WHEEL]     Without a wheel it is built, in the dev profile: what is linked does not depend on that.
# zig (from PyPI) links against the old C library; maturin makes the wheel. Both go into the cache of the tests.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${CUBLAME_TEST_CACHE:-$HOME/.cache/cublame-tests}
tools=$cache/wheel-tools-1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
unset CUBLAME CUBLAME_RUN CUBLAME_MODE CUBLAME_DIR

main() {
  local wheel=${1:-}
  [ -n "$wheel" ] || wheel=$(build) || { echo "0 passed, 1 failed"; exit 1; }
  python3 -m venv "$work/venv" || exit 1
  export PATH="$work/venv/bin:$PATH" XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state PYTHONDONTWRITEBYTECODE=1
  mkdir "$work/project"
  cd "$work/project"

  check "its name says for what it is" name_is_right "$wheel"
  check "pip installs it, and nothing else" python -m pip install -q --disable-pip-version-check --no-index "$wheel"
  check "the program says its version" program_says_version
  check "python -m is the program" test "$(python -m cublame --version)" = "$(cublame --version)"
  check "the demo runs" demo_runs
  check "a program runs under it, and keeps its exit code" run_keeps_code
  check "the module is typed and has the version" module_is_whole
  check "the module explains" module_explains
  check "the program needs glibc 2.28 at most" needs_at_most "$(command -v cublame)"
  check "the tracer needs glibc 2.28 at most" tracer_needs_at_most
  check "pip removes it whole" removed_whole
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

# Prints the path of the new wheel.
build() {
  if [ ! -f "$tools/complete" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools" && "$tools/bin/pip" install -q --disable-pip-version-check maturin==1.16.0 ziglang==0.17.1 >&2 || return 1
    touch "$tools/complete"
  fi
  (cd "$root" && PATH="$tools/bin:$PATH" maturin build -q --zig --profile "${CUBLAME_WHEEL_PROFILE:-dev}" \
    --target x86_64-unknown-linux-gnu --out "$work/wheels") >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log" >&2; return 1; }
  echo "$work"/wheels/*.whl
}

check() {
  local name=$1
  shift
  if "$@" >"$work/check.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    tail -n 20 "$work/check.log"
  fi
}

name_is_right() { echo "$1"; [[ $(basename "$1") =~ ^cublame-[0-9.]+-py3-none-manylinux_2_(17|28)_x86_64(\.manylinux2014_x86_64)?\.whl$ ]]; }

program_says_version() { cublame --version | tee /dev/stderr | grep -qE '^cublame [0-9]+\.[0-9]+\.[0-9]+$'; }

demo_runs() { python -m cublame demo | tee /dev/stderr | grep -q 'embedding_oob.py'; }

run_keeps_code() {
  cublame run --mode off -- python -c 'print("out"); raise SystemExit(7)' | tee /dev/stderr | grep -qx out
  [ "${PIPESTATUS[0]}" -eq 7 ]
}

module_is_whole() {
  python - <<'P'
import importlib.metadata, os, subprocess, sys
import cublame
assert not {"torch", "ctypes"} & set(sys.modules), "importing it imports what it need not"
assert os.path.exists(os.path.join(os.path.dirname(cublame.__file__), "py.typed"))
assert subprocess.check_output(["cublame", "--version"], text=True).split() == ["cublame", cublame.__version__]
assert importlib.metadata.requires("cublame") is None
with cublame.blocking():
    assert sum([1, 2]) == 3
P
}

module_explains() {
  python - <<'P'
import cublame
try:
    raise RuntimeError("CUDA error: device-side assert triggered")
except RuntimeError as error:
    assert cublame.verdicts(error)[0]["kind"] == "device-assert"
P
}

# Every version of the C library's symbols that a file wants.
needs_at_most() {
  local newest
  newest=$(readelf --version-info --wide "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -u -V | tail -n 1)
  echo "$1 needs $newest"
  [ -n "$newest" ] && [ "$(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -n 1)" = GLIBC_2.28 ]
}

tracer_needs_at_most() {
  cublame run --mode trace -- python -c pass
  local tracer
  tracer=$(find "$XDG_CACHE_HOME" -name '*.so' | head -n 1)
  [ -n "$tracer" ] && needs_at_most "$tracer"
}

removed_whole() {
  python -m pip uninstall -q -y --disable-pip-version-check cublame
  ! find "$work/venv" -name '*cublame*' | grep .
}

main "$@"
