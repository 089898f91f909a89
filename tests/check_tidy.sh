#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy with the checks of .clang-tidy over the sources that differ from a commit, and over those that the
# compiler read a changed header for. Needs a configured build, for its compile_commands.json.
# usage: tests/check_tidy.sh [COMMIT [BUILD]] | --self-test     COMMIT: default main; BUILD: default build
set -euo pipefail
cd "$(dirname "$0")/.."

# A tree of its own, in which a source and a header change: each with a fault, and without.
self_test() {
  if ! command -v clang-tidy >/dev/null || ! command -v git >/dev/null; then
    echo "check_tidy: no clang-tidy, or no git"
    exit 77
  fi
  local place wrong=0
  place=$(mktemp -d)
  # shellcheck disable=SC2064  # the place of now
  trap "rm -rf '$place'" EXIT
  mkdir "$place/tests" "$place/tools" "$place/build"
  cp .clang-tidy "$place"
  cp tests/check_tidy.sh "$place/tests"
  cd "$place"
  printf 'int* pointer();\n' > tools/a.h
  printf '#include "tools/a.h"\nint* pointer() { return nullptr; }\n' > tools/a.cpp
  printf 'int* other() { return 0; }\n' > tools/unchanged.cpp
  printf '[{"directory": "%s", "file": "tools/a.cpp", "command": "c++ -std=c++20 -I. -c tools/a.cpp"},
          {"directory": "%s", "file": "tools/unchanged.cpp", "command": "c++ -c tools/unchanged.cpp"}]' \
    "$place" "$place" > build/compile_commands.json
  git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -q -m base
  expect() {  # what it is, the exit code that is due: 0, or 1 for any other
    local code=0
    tests/check_tidy.sh HEAD > said 2>&1 || code=1
    # A fault is found if it is named, not if something else goes wrong.
    if [ $code -ne "$2" ] || { [ $code -ne 0 ] && ! grep -q modernize-use-nullptr said; }; then
      echo "check_tidy: $1: exit code $code"
      cat said
      wrong=$((wrong + 1))
    fi
    git checkout -q .
  }
  expect "nothing differs" 0
  echo '// more' >> tools/a.cpp
  expect "a source without a fault" 0
  echo 'int* more() { return 0; }' >> tools/a.cpp
  expect "a source with a fault" 1
  echo 'inline int* more() { return 0; }' >> tools/a.h
  expect "a header with a fault" 1
  echo "check_tidy: self-test, 4 cases, $wrong wrong"
  [ $wrong -eq 0 ]
}
if [ "${1:-}" = --self-test ]; then
  self_test
  exit
fi

commit=${1:-main}
build=${2:-build}
[ -e "$build/compile_commands.json" ] ||
  { echo "check_tidy: no $build/compile_commands.json: run 'cmake --preset dev' first" >&2; exit 2; }
command -v clang-tidy >/dev/null || { echo "check_tidy: no clang-tidy: apt-get install clang-tidy" >&2; exit 2; }

mapfile -t changed < <(git diff --name-only --diff-filter=d "$commit" -- '*.cpp' '*.c' '*.h')
[ ${#changed[@]} -gt 0 ] || { echo "check_tidy: no source differs from $commit"; exit 0; }
# A header is checked through the sources that include it directly.
mapfile -t sources < <(
  for file in "${changed[@]}"; do
    case $file in
      *.h) git grep -l --untracked "#include \"$file\"" -- '*.cpp' '*.c' | head -3 ;;
      *) echo "$file" ;;
    esac
  done | sort -u |
    python3 -c '
import json, os, sys
known = {os.path.realpath(os.path.join(row["directory"], row["file"])) for row in json.load(open(sys.argv[1]))}
for line in sys.stdin:
    if os.path.realpath(line.strip()) in known:
        print(line.strip())
' "$build/compile_commands.json"
)
[ ${#sources[@]} -gt 0 ] || { echo "check_tidy: nothing of what differs from $commit is compiled in $build"; exit 0; }
echo "check_tidy: ${#sources[@]} sources for ${#changed[@]} changed files"
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P 2 clang-tidy -p "$build" --quiet --warnings-as-errors='*'
