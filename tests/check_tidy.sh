#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy with the checks of .clang-tidy over the sources that differ from a commit, and over those that the
# compiler read a changed header for. Needs a configured build, for its compile_commands.json.
# usage: tests/check_tidy.sh [COMMIT [BUILD]]     COMMIT: default main; BUILD: default build
set -euo pipefail
cd "$(dirname "$0")/.."
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
