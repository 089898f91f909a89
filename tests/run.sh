#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds, and runs every test that this machine can run; says which it skipped and why. Ends in
# ctest's summary.
# usage: tests/run.sh [--preset NAME] [LEVEL...]     LEVEL: unit sim viewers torch gpu (default: all)
#   unit     one module each                      sim      programs on the simulated CUDA stack
#   viewers  what outside viewers make of it      torch    a real PyTorch, no GPU       gpu   a GPU
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null  # checked by itself
. tools/progress.sh

preset=dev
if [ "${1:-}" = --preset ]; then
  preset=${2:?tests/run.sh: --preset needs a name}
  shift 2
fi
all_levels=(unit sim viewers torch gpu)
levels=("$@")
asked=${1:-}
[ ${#levels[@]} -gt 0 ] || levels=("${all_levels[@]}")
for level in "${levels[@]}"; do
  case " ${all_levels[*]} " in
    *" $level "*) ;;
    *) echo "tests/run.sh: unknown level '$level'; allowed: ${all_levels[*]}" >&2; exit 2 ;;
  esac
done
build=build
[ "$preset" = dev ] || build=build-$preset

case " ${levels[*]} " in
  *" viewers "*) tools/setup.sh --viewers ;;
  *) tools/setup.sh ;;
esac
# What gpuprof-parquet links, before cmake looks for it.
case " ${levels[*]} " in
  *" viewers "*) tests/fleet/run.sh || echo "tests/run.sh: exports are not tested: tests/fleet/run.sh failed" >&2 ;;
esac
cmake --preset "$preset" >"/tmp/gpuprof-configure-$$.log" 2>&1 || { cat "/tmp/gpuprof-configure-$$.log"; exit 1; }
rm -f "/tmp/gpuprof-configure-$$.log"
cmake --build "$build" --parallel "$(nproc)"
# Where it cannot be had it says why, and tests that need it are skipped.
case " ${levels[*]} " in
  *" unit "* | *" sim "*) tests/e2e/newer_python.sh || true ;;
esac

# Why a level cannot run here; prints nothing when it can.
why_not() {
  grep -qx "  $1" <<<"$known" || { echo "no test of this level in this build"; return; }
  case $1 in
    torch)
      [ -e "${CUDA_HOME:-/usr/local/cuda}/lib64/libcublas.so.13" ] ||
        { echo "no CUDA 13 toolkit (${CUDA_HOME:-/usr/local/cuda}/lib64/libcublas.so.13), whose libraries PyTorch needs"; return; }
      # A newcomer's first run of all levels does not download 1 GB unasked.
      [ -n "$asked" ] || [ -e "${GPUPROF_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/torch}/made_for" ] ||
        echo "its PyTorch is not there yet: 'tests/run.sh torch' downloads it (1 GB)"
      ;;
    gpu) nvidia-smi -L >/dev/null 2>&1 || echo "no GPU (nvidia-smi -L fails)" ;;
  esac
}

known=$(ctest --test-dir "$build" --print-labels)
chosen=()
for level in "${levels[@]}"; do
  reason=$(why_not "$level")
  if [ -n "$reason" ]; then
    echo "tests/run.sh: skipped $level: $reason"
  else
    chosen+=("$level")
  fi
done
if [ ${#chosen[@]} -eq 0 ]; then
  echo "tests/run.sh: nothing to run" >&2
  exit 1
fi
echo "tests/run.sh: running ${chosen[*]}"
labels=$(IFS='|'; echo "${chosen[*]}")
scratch=$(mktemp)
tell_of_silence "tests/run.sh: still testing" "$scratch" &
teller=$!
trap 'kill "$teller" 2>/dev/null || true; rm -f "$scratch"' EXIT
ctest --test-dir "$build" --label-regex "^($labels)\$" --output-on-failure --no-tests=error \
  --parallel "$(nproc)" </dev/null 2>&1 | tee "$scratch" && failed=0 || failed=$?
kill "$teller" 2>/dev/null || true
wait "$teller" 2>/dev/null || true

# What pytest and GoogleTest skipped, and why; then ctest's summary once more.
skipped=$(awk '/^SKIPPED \[/ { print } gtest { print "SKIPPED " test ": " $0; gtest = 0 } /: Skipped$/ { gtest = 1 }
               /^\[ RUN / { test = $NF }' "$build/Testing/Temporary/LastTest.log" | sort -u)
if [ -n "$skipped" ]; then
  printf '\ntests/run.sh: skipped within tests:\n%s\n\n' "$skipped"
  awk '/^[0-9]*% tests passed/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$scratch"
fi
exit "$failed"
