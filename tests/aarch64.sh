#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cross-compiles what is shipped for aarch64, and the tests, and runs the tests as on an aarch64 machine: the arm64
# folder of tools/aarch64_sysroot.sh is the root, and each of its programs runs under qemu-user. Says what it leaves out.
# Ends in ctest's summary; exit 77 where this machine cannot.
# usage: tests/aarch64.sh [--short | --unit] [REGEX]     REGEX: the tests whose names match
#   --short: the library and its own rules, and the unit tests of what runs in the traced process; --unit: all unit tests
set -euo pipefail
cd "$(dirname "$0")/.."
build=build-aarch64 folder=$PWD/.deps/aarch64
say() { echo "tests/aarch64.sh: $*" >&2; }
skip() { say "skipped: $*"; exit 77; }

# As the root of namespaces of its own, which is where the machine's kernel lets arm64 programs be known by their first
# bytes without a change to the machine. QEMU is found once, so it needs no place in the new root.
if [ "${1:-}" = --inside ]; then
  counter=$2
  shift 2
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  printf '%s' ":gpuprof-aarch64:M::$magic:$mask:$folder/qemu-aarch64-static:PF" >/proc/sys/fs/binfmt_misc/register
  mount -t tmpfs tmpfs "$folder/tmp"
  mount --rbind /dev "$folder/dev"
  mount --rbind /sys "$folder/sys"
  if [ "$counter" = counter ]; then
    # The kernel below is x86-64's, and trusts another counter.
    echo arch_sys_counter >"$folder/tmp/clocksource"
    mount --bind "$folder/tmp/clocksource" "$folder/sys/devices/system/clocksource/clocksource0/current_clocksource"
  fi
  mount -t proc proc "$folder/proc"
  mkdir -p "$folder$PWD"
  mount --rbind "$PWD" "$folder$PWD"
  # shellcheck disable=SC2016  # the shell there expands it
  exec chroot "$folder" /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/root LANG=C.UTF-8 TMPDIR=/tmp \
    /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
fi

part=
case "${1:-}" in --short | --unit) part=$1; shift ;; esac
[ "$(uname -m)" = x86_64 ] || skip "cross-compiles on x86-64; this machine is $(uname -m)"
tools/setup.sh --aarch64 || skip "the cross compiler g++-aarch64-linux-gnu, or what else a build needs, is not here"
inside=(unshare --user --map-root-user --mount --pid --fork --mount-proc --kill-child "$0" --inside)
ctest_there=(ctest --test-dir "$PWD/$build" --output-on-failure --no-tests=error --parallel "$(nproc)")
wanted=$(sha256sum tools/aarch64_sysroot.sh tools/setup.sh | sha256sum | cut -c1-16)
if [ "$(cat "$folder/made_for" 2>/dev/null || true)" != "$wanted" ]; then
  log=$(mktemp)
  tools/aarch64_sysroot.sh "$folder" >"$log" 2>&1 || { tail -3 "$log" >&2; skip "the arm64 packages cannot be had ($log)"; }
  rm -f "$log"
fi
"${inside[@]}" plain true 2>/dev/null || skip "no namespaces with a binfmt_misc of their own (Linux 6.7 or later has them)"
if [ "$(cat "$folder/made_for" 2>/dev/null || true)" != "$wanted" ]; then
  # Tests leave no compiled files of Python behind, and under qemu it takes a second to make them anew.
  "${inside[@]}" plain python3 -m compileall -q -j 0 /usr/lib/python3 /usr/lib/python3.11 >/dev/null
  echo "$wanted" >"$folder/made_for"
fi

log=$(mktemp)
cmake --preset aarch64 >"$log" 2>&1 || { cat "$log"; exit 1; }
rm -f "$log"
targets=(all) labels='^(unit|sim)$' not='^(check_[^l].*|check_library_self_test|cupti_layout|cupti_without_driver)$' only=${1:-.}
if [ "$part" = --unit ]; then targets=(unit_tests gpuprof_preload) labels='^unit$'; fi
if [ "$part" = --short ]; then
  # The tests of in_process_tests (tests/unit/CMakeLists.txt), by the names of their suites, before which parametrized ones have another.
  mapfile -t files < <(grep -rLP '^#include "(?!collector/|formats/core/|tests/unit/support/other_user.h)' tests/unit --include='*_test.cpp')
  only="^([A-Za-z0-9]+/)?($(sed -nE 's/^TEST(_F|_P)?\((\w+),.*/\2/p' "${files[@]}" | sort -u | paste -sd '|'))\.|^check_library\$"
  targets=(in_process_tests gpuprof_preload)
fi
cmake --build "$build" --parallel "$(nproc)" --target "${targets[@]}"
say "left out: rules of the sources, NVIDIA's wheels for x86-64, and what tests/e2e/conftest.py names"
failed=0
# By the clock that the kernel below has. QEMU's counter goes in steps of 1 us: with it only what names it, and the unwinder.
if [ -z "$part" ] && [ "$only" = . ]; then
  "${inside[@]}" counter "${ctest_there[@]}" --tests-regex '^e2e_(clock|stacks)$' </dev/null || failed=1
fi
"${inside[@]}" plain "${ctest_there[@]}" --label-regex "$labels" --tests-regex "$only" --exclude-regex "$not" </dev/null || failed=1
exit "$failed"
