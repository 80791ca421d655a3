#!/usr/bin/env bash
# Compiles the plugin against signatures, tests its core for real, and runs PyCharm's own debugger in the environment that the
# core computes. No IDE runs here. usage: run.sh CUBLAME
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
plugin=$(dirname "$here")
cublame=$(realpath "$1")
cache=${CUBLAME_TEST_CACHE:-$HOME/.cache/cublame-tests}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0 failed=0

main() {
  install_packages && install_kotlin || exit 1
  local jars=/usr/share/java
  local classes=$jars/gson.jar:$jars/junit4.jar:$lib/annotations-13.0.jar:$lib/kotlin-test.jar:$lib/kotlin-test-junit.jar
  local compiler=$lib/kotlin-compiler.jar:$lib/kotlin-stdlib.jar:$lib/kotlin-script-runtime.jar:$lib/kotlin-reflect.jar
  # A short-lived JVM is done before the second compiler would pay for itself.
  local java=(java -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m)
  "${java[@]}" -cp "$compiler:$lib/kotlinx-coroutines-core-jvm.jar:$lib/annotations-13.0.jar" \
    "$here/Build.java" "$plugin" "$out" "$lib" "$classes" >"$out/log" 2>&1
  count
  [ "$failed" -eq 0 ] || finish

  local core=$out/test:$out/core:$classes:$lib/kotlin-stdlib.jar
  local tests=()
  for file in "$here"/*Test.kt; do
    tests+=("$(sed -n 's/^package //p' "$file").$(basename "$file" .kt)")
  done
  "${java[@]}" -Dcublame="$cublame" -Dplugin="$plugin" -Djava.io.tmpdir="$out" \
    -cp "$core:$jars/hamcrest.jar:$out/ide:$out/stubs:$lib/kotlin-compiler.jar" org.junit.runner.JUnitCore "${tests[@]}" >"$out/junit" 2>&1
  awk '/^OK \(/ { gsub(/[^0-9]/, "", $2); p = $2 } /^Tests run:/ { gsub(/,/, ""); p = $3 - $5; f = $5 }
    END { print p + 0 " passed, " (p + f ? f + 0 : 1) " failed" }' "$out/junit" >"$out/log"
  grep -q ' 0 failed$' "$out/log" || cat "$out/junit"
  count "core, messages and descriptors with JUnit"

  local venv
  venv=$(bash "$plugin/../tests/debuggers/install.sh" "$cache") || exit 1
  "$venv/bin/python" "$here/test_debugger.py" "$cublame" "$core" >"$out/log" 2>&1
  count
  finish
}

# Shows what a part printed and adds up its last line.
count() {
  local p f
  [ $# -eq 0 ] && sed '$d' "$out/log"
  read -r p f < <(awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { print p + 0, f + 0 }' "$out/log")
  [ $# -eq 0 ] || echo "$1: $p passed, $f failed"
  [ $((p + f)) -gt 0 ] || { cat "$out/log" && f=1; }
  passed=$((passed + p)) failed=$((failed + f))
}

finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

install_packages() {
  local missing=()
  for package in default-jdk-headless junit4 libgoogle-gson-java npm python3-venv; do
    case $package in
      default-jdk-headless) command -v javac >/dev/null || missing+=("$package") ;;
      npm) command -v npm >/dev/null || missing+=("$package") ;;
      *) dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package") ;;
    esac
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "install these first, as root: apt-get install ${missing[*]}"
    return 1
  fi
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$out/apt" 2>&1 ||
    { tail -n 20 "$out/apt"; return 1; }
}

# The npm package of the Kotlin compiler: it needs nothing but a JDK, and holds the real core classes of the IntelliJ platform.
install_kotlin() {
  local kotlin=$cache/kotlin-compiler-2.4.20
  lib=$kotlin/node_modules/kotlin-compiler/lib
  [ -f "$kotlin/complete" ] && return
  rm -rf "$kotlin"
  mkdir -p "$kotlin"
  npm install --silent --no-audit --no-fund --prefix "$kotlin" kotlin-compiler@2.4.20 && touch "$kotlin/complete"
}

main
