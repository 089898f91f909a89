#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks at a wheel: its size, what auditwheel says, and of each program in it the machine, glibc's floor and that it is
# stripped; licences.
# usage: packaging/check_wheel.sh WHEEL AUDITWHEEL ARCH     ARCH: x86_64 or aarch64
set -euo pipefail
export LC_ALL=C  # readelf's words are looked for
usage="usage: packaging/check_wheel.sh WHEEL AUDITWHEEL ARCH"
wheel=${1:?$usage} auditwheel=${2:?$usage} arch=${3:?$usage}
case $arch in
  x86_64) machine=X86-64 ;;
  aarch64) machine=AArch64 ;;
  *) echo "check_wheel: ARCH '$arch': allowed are x86_64 and aarch64" >&2; exit 2 ;;
esac
most_bytes=$((6 << 20)) floor=$(cat "$(dirname "$0")/newest_glibc.txt")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0
fail() { echo "check_wheel: $*" >&2; bad=1; }

bytes=$(stat -c %s "$wheel")
[ "$bytes" -le "$most_bytes" ] || fail "the wheel has $bytes bytes, more than $most_bytes"
said=$(PATH="$(dirname "$auditwheel"):$PATH" "$auditwheel" show "$wheel" 2>&1 | tr '\n' ' ')
case $said in *"\"manylinux_${floor/./_}_$arch\""* | *"\"manylinux_2_5_$arch\""* | *"\"manylinux_2_12_$arch\""*) ;; *) fail "auditwheel: $said" ;; esac

python3 -m zipfile -e "$wheel" "$folder"
for name in bin/gpuprof lib/libgpuprof.so lib/gpuprof-probe; do
  file=$folder/gpuprof/$name
  # readelf knows every machine's files; objdump and nm those of this one.
  readelf -hW "$file" | grep "Machine: .*$machine" >/dev/null || fail "$name is not for $machine"
  if readelf -SW "$file" | grep -F ' .symtab ' >/dev/null; then fail "$name is not stripped"; fi
  # The static command has no dynamic symbols.
  needs=$(readelf -VW "$file" | grep -o 'Name: GLIBC_[0-9.]*' | sed 's/.*_//' | sort -uV | tail -1 || true)
  [ "$(printf '%s\n' "${needs:-0}" "$floor" | sort -V | tail -1)" = "$floor" ] || fail "$name needs glibc $needs"
done
for name in LICENSE NOTICE THIRD-PARTY.txt; do
  [ -n "$(find "$folder" -path "*licenses/$name" -size +0)" ] || fail "the wheel has no $name"
done
[ "$bad" -ne 0 ] || echo "check_wheel: $(basename "$wheel") $((bytes / 1000)) kB: as it must be"
exit "$bad"
