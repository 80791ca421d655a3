#!/usr/bin/env bash
# Installs what the tests need and runs them all. `bash tests/run.sh [STAGE...]` runs some stages only.
#
# Downloads go to a cache that later runs reuse: $CUBLAME_TEST_CACHE, else ~/.cache/cublame-tests.
# What needs a GPU is not run here (tests/gpu has its own scripts) and is named at the end.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CUBLAME_TEST_CACHE="${CUBLAME_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cublame-tests}"
mkdir -p "$CUBLAME_TEST_CACHE"
# The same random cases every time; another seed by hand explores further.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-7}"
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
passed=0 failed=0
skipped=()
stages=(packages format clippy rust fuzz python wheel clients torch ranks notebooks debuggers vscode pycharm)

main() {
  local wanted=("${@:-${stages[@]}}")
  for stage in "${wanted[@]}"; do
    local start=$SECONDS
    echo "== $stage"
    "stage_$stage"
    printf '== %s took %d:%02d\n' "$stage" $(((SECONDS - start) / 60)) $(((SECONDS - start) % 60))
  done
  for why in "${skipped[@]:-}"; do [ -n "$why" ] && echo "skipped: $why"; done
  echo "skipped: tests/gpu (it needs a CUDA GPU; its results are committed under tests/gpu/results)"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

# Counts one check: check NAME COMMAND...
check() {
  local name=$1
  shift
  if "$@" >"$logs/check" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    tail -n 60 "$logs/check"
  fi
}

# Adds up what a suite printed: `test result: ok. 3 passed; 0 failed` lines of cargo, or one line `3 passed, 0 failed`.
suite() {
  local name=$1 status p f
  shift
  "$@" >"$logs/suite" 2>&1
  status=$?
  read -r p f < <(awk '
    /^test result:/ { for (i = 1; i <= NF; i++) { if ($i ~ /^passed/) p += $(i - 1); if ($i ~ /^failed/) f += $(i - 1) } }
    /^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 }
    END { print p + 0, f + 0 }' "$logs/suite")
  passed=$((passed + p)) failed=$((failed + f))
  if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then failed=$((failed + 1)); fi
  if [ "$status" -ne 0 ] || [ "$p" -eq 0 ]; then
    [ "$p" -eq 0 ] && [ "$status" -eq 0 ] && failed=$((failed + 1)) && echo "FAILED  $name ran no test"
    tail -n 120 "$logs/suite"
  fi
  grep -aE '^skipped' "$logs/suite" | sort -u | while read -r line; do echo "$line"; done
  echo "suite   $name: $p passed, $f failed"
}

# A suite that takes the binary as its last argument.
with_binary() {
  if cargo build --locked -p cublame -q >"$logs/build" 2>&1; then
    suite "$@" target/debug/cublame
  else
    failed=$((failed + 1))
    echo "FAILED  $1: the binary does not build"
    tail -n 40 "$logs/build"
  fi
}

stage_packages() {
  local needed=(neovim lua-check emacs-nox elpa-eglot elpa-lsp-mode zsh fish ripgrep python3-venv openmpi-bin slurmctld slurmd slurm-client munge faketime) missing=()
  for package in "${needed[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$logs/apt" 2>&1 ||
      { tail -n 20 "$logs/apt"; skipped+=("what needs ${missing[*]}: they could not be installed"); }
  else
    skipped+=("what needs ${missing[*]}: install them with apt-get as root")
  fi
}

stage_format() { check "rustfmt" cargo fmt --all --check; }

stage_clippy() { check "clippy, warnings as errors" cargo clippy --workspace --all-targets --locked -- -D warnings; }

stage_rust() { suite "cargo test" cargo test --workspace --locked --no-fail-fast; }

# Twenty seconds of it; longer by hand, with other seeds.
stage_fuzz() {
  suite "fuzz" cargo run --locked -q -p cublame-tests --bin fuzz -- --seconds 20
  suite "fuzz lint" cargo run --locked -q -p cublame-tests --bin fuzz -- lint --seconds 15
}

# The Python package, under every Python of this machine.
stage_python() { suite "Python package" bash tests/python/run.sh; }

# The wheel, built against an old C library, in a clean environment.
stage_wheel() { suite "wheel" bash tests/python/wheel.sh; }

# Real editors as LSP clients, against the binary that cargo built.
stage_clients() {
  with_binary "real LSP clients" bash tests/clients/run.sh
}

# torch from PyPI fails for real on a machine without a driver.
stage_torch() {
  with_binary "torch on the CPU" bash tests/torch/run.sh
}

# Real torchrun, mpirun and Slurm, on this machine alone.
stage_ranks() {
  with_binary "ranks" bash tests/ranks/run.sh
}

# Real Jupyter kernels.
stage_notebooks() {
  with_binary "notebooks" bash tests/notebooks/run.sh
}

stage_debuggers() {
  with_binary "real debuggers" bash tests/debuggers/run.sh
}

# Real VS Code, headless: the extension in its own host, and in the page.
stage_vscode() {
  with_binary "VS Code extension" bash vscode-extension/test/run.sh
}

# The plugin's core for real, its IDE layer against signatures, and PyCharm's own debugger.
stage_pycharm() {
  with_binary "PyCharm plugin" bash pycharm-plugin/test/run.sh
}

main "$@"
