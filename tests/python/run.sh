#!/usr/bin/env bash
# The Python package under every Python from 3.8 on that this machine has, without torch. usage: run.sh
# Interpreters are taken from pyenv, from PATH, and from CUBLAME_TEST_PYTHONS (separated by colons).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
passed=0 failed=0
IFS=: read -ra pythons <<<"${CUBLAME_TEST_PYTHONS:-}"
seen=" "
for python in "${pythons[@]}" ~/.pyenv/versions/3.*/bin/python python3; do
  version=$("$python" -c 'import sys; sys.version_info >= (3, 8) and print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
  [ -n "$version" ] && [[ $seen != *" $version "* ]] || continue
  seen+="$version "
  echo "== Python $version: $python"
  if said=$("$python" -B -m unittest discover -v 2>&1); then :; else echo "$said"; fi
  ran=$(sed -n 's/^Ran \([0-9]*\) tests\?.*/\1/p' <<<"$said")
  bad=$(sed -n 's/^FAILED (\(.*\))/\1/p' <<<"$said" | grep -oE '(failures|errors)=[0-9]+' | cut -d= -f2 | paste -sd+)
  bad=$((${bad:-0}))
  [ -n "$ran" ] || { ran=1; bad=1; }
  passed=$((passed + ran - bad)) failed=$((failed + bad))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
