#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks at what packaging/release.sh made: sizes, what auditwheel says, glibc's floor, stripped files, licences, and
# that wheel, tarball and .deb hold the same files.
# usage: packaging/check_release.sh OUT AUDITWHEEL
set -euo pipefail
out=${1:?usage: packaging/check_release.sh OUT AUDITWHEEL}
auditwheel=${2:?usage: packaging/check_release.sh OUT AUDITWHEEL}
most_bytes=$((6 << 20)) floor=2.17
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0
fail() { echo "check_release: $*" >&2; bad=1; }

wheel=$(ls "$out"/gpuprof-*-manylinux_2_17_x86_64.whl)
tarball=$(ls "$out"/gpuprof-*-linux-x86_64.tar.gz)
deb=$(ls "$out"/gpuprof_*_amd64.deb)
bytes=$(stat -c %s "$wheel")
[ "$bytes" -le "$most_bytes" ] || fail "the wheel has $bytes bytes, more than $most_bytes"
said=$(PATH="$(dirname "$auditwheel"):$PATH" "$auditwheel" show "$wheel" 2>&1 | tr '\n' ' ')
case $said in *'"manylinux_2_17_x86_64"'* | *'"manylinux_2_5_x86_64"'* | *'"manylinux_2_12_x86_64"'*) ;; *) fail "auditwheel: $said" ;; esac

mkdir "$folder/wheel" "$folder/tarball" "$folder/deb"
python3 -m zipfile -e "$wheel" "$folder/wheel"
tar -xf "$tarball" -C "$folder/tarball" --strip-components=1
dpkg-deb -x "$deb" "$folder/deb"
files=(bin/gpuprof lib/gpuprof/libgpuprof.so lib/gpuprof/gpuprof-probe)
in_wheel=(gpuprof/bin/gpuprof gpuprof/lib/libgpuprof.so gpuprof/lib/gpuprof-probe)
for i in 0 1 2; do
  file=$folder/tarball/${files[i]}
  cmp -s "$file" "$folder/deb/usr/${files[i]}" || fail "${files[i]} differs between tarball and .deb"
  cmp -s "$file" "$folder/wheel/${in_wheel[i]}" || fail "${files[i]} differs between tarball and wheel"
  [ -z "$(nm "$file" 2>/dev/null)" ] || fail "${files[i]} is not stripped"
  # The static command has no dynamic symbols.
  needs=$(objdump -T "$file" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1 || true)
  [ "$(printf '%s\n' "${needs:-0}" "$floor" | sort -V | tail -1)" = "$floor" ] || fail "${files[i]} needs glibc $needs"
done
for name in LICENSE NOTICE THIRD-PARTY.txt; do
  [ -s "$folder/tarball/share/doc/gpuprof/$name" ] || fail "the tarball has no $name"
  [ -s "$folder/deb/usr/share/doc/gpuprof/$name" ] || fail "the .deb has no $name"
  [ -n "$(find "$folder/wheel" -path "*licenses/$name" -size +0)" ] || fail "the wheel has no $name"
done
grep -q 'GNU LESSER GENERAL PUBLIC LICENSE' "$folder/tarball/share/doc/gpuprof/THIRD-PARTY.txt" || fail "no LGPL text"
for page in share/man/man1/gpuprof.1 share/bash-completion/completions/gpuprof share/zsh/site-functions/_gpuprof \
  share/fish/vendor_completions.d/gpuprof.fish; do
  [ -n "$(find "$folder/tarball" -path "*$page*" -size +0)" ] || fail "the tarball has no $page"
done
[ "$bad" -ne 0 ] || echo "check_release: wheel $((bytes / 1000)) kB, $(basename "$tarball") $(($(stat -c %s "$tarball") / 1000)) kB, $(basename "$deb") $(($(stat -c %s "$deb") / 1000)) kB: as they must be"
exit "$bad"
