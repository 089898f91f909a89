#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks C, C++ and CUDA files against .clang-format and for what Clang 14 cannot compile, and runs shellcheck on shell
# scripts. Exits with 77 (skipped) and a reason where the tool is missing; tools/setup.sh installs both.
# usage: tests/check_format.sh format|shell [FOLDER] | --self-test     FOLDER: the tree to check (default: this one)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
readonly skipped=77
# Releases of clang-format break lines in different places. The tree is formatted with Debian 12's.
readonly release=14
# With libstdc++ 12, Clang 14, which builds the fuzz targets, compiles no view and no algorithm that returns a subrange.
readonly no_views='std::(views|ranges::(views|subrange|equal_range|search|find_end|unique|remove(_if)?|partition|stable_partition|rotate))\b'

skip() { echo "check_format: skipped: $*"; exit $skipped; }

# Files of the tree with one of the endings, and nothing of builds and caches.
find_files() {
  local folder=$1 ending names=()
  shift
  for ending in "$@"; do names+=(-o -name "$ending"); done
  find "$folder" \( -name 'build*' -o -name .git -o -name .deps \) -prune -o -type f \( "${names[@]:1}" \) -print0
}

formatter() {
  local name
  for name in "clang-format-$release" clang-format; do
    if "$name" --version 2>/dev/null | grep -q "version $release\\."; then echo "$name"; return; fi
  done
  return 1
}

check_format() {
  local tool
  tool=$(formatter) || skip "no clang-format $release; 'tools/setup.sh' installs it"
  find_files "$1" '*.h' '*.cpp' '*.c' '*.cu' | sort -z |
    xargs -0 -r -n 40 -P 2 "$tool" --style=file --dry-run --Werror ||
    { echo "check_format: the files above differ from .clang-format; run '$tool -i FILE'"; return 1; }
  local views
  views=$(find_files "$1" '*.h' '*.cpp' | xargs -0 -r grep -nEH "$no_views" || true)
  [ -z "$views" ] ||
    { echo "$views"; echo "check_format: Clang 14 cannot compile the lines above; use an algorithm of namespace std"; return 1; }
}

check_shell() {
  command -v shellcheck >/dev/null || skip "no shellcheck; 'tools/setup.sh' installs it"
  { find_files "$1" '*.sh'; if [ -e "$1/.ci/run" ]; then printf '%s\0' "$1/.ci/run"; fi; } |
    xargs -0 -r shellcheck -x || { echo "check_format: shellcheck has findings"; return 1; }
}

self_test() {
  local folder wrong=0
  formatter >/dev/null || skip "no clang-format $release; 'tools/setup.sh' installs it"
  command -v shellcheck >/dev/null || skip "no shellcheck; 'tools/setup.sh' installs it"
  folder=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$folder'" EXIT
  cp "$here/.clang-format" "$folder"
  mkdir "$folder/build"
  expect() {
    local outcome=passed
    "$0" "$2" "$folder" >/dev/null 2>&1 || outcome=failed
    if [ "$outcome" != "$1" ]; then echo "check_format: self-test: $2: $3: $outcome"; wrong=1; fi
  }
  echo 'int main() { return 0; }' >"$folder/good.c"
  echo 'int main( ) {return 0;}' >"$folder/build/bad.c"
  # shellcheck disable=SC2016  # the text of a script
  printf '#!/bin/sh\necho "$1"\n' >"$folder/good.sh"
  expect passed format "a formatted file, and another one in a build folder"
  expect passed shell "a good script"
  echo 'int main( ) {return 0;}' >"$folder/bad.cpp"
  expect failed format "a file that is not formatted"
  echo 'auto f() { return std::ranges::equal_range(1, 2); }' >"$folder/bad.cpp"
  expect failed format "an algorithm that returns a subrange"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nrm -r $1\n' >"$folder/bad.sh"
  expect failed shell "an expansion without quotes"
  echo "check_format: self-test, 5 cases, $wrong wrong"
  return $wrong
}

case "${1:-}" in
  format) check_format "${2:-$here}" ;;
  shell) check_shell "${2:-$here}" ;;
  --self-test) self_test ;;
  *) echo "usage: tests/check_format.sh format|shell [FOLDER] | --self-test" >&2; exit 2 ;;
esac
