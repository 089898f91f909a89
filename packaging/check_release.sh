#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks at what packaging/release.sh made for one machine: the wheel (check_wheel.sh), that tarball and .deb hold the
# same files, licences, pages.
# usage: packaging/check_release.sh OUT AUDITWHEEL ARCH     ARCH: x86_64 or aarch64
set -euo pipefail
usage="usage: packaging/check_release.sh OUT AUDITWHEEL ARCH"
out=${1:?$usage} auditwheel=${2:?$usage} arch=${3:?$usage}
debian=${arch/x86_64/amd64} debian=${debian/aarch64/arm64}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bad=0
fail() { echo "check_release: $*" >&2; bad=1; }

floor=$(cat "$(dirname "$0")/newest_glibc.txt")
wheel=$(ls "$out"/gpuprof-*manylinux_"${floor/./_}_$arch".whl)
tarball=$(ls "$out"/gpuprof-*-linux-"$arch".tar.gz)
deb=$(ls "$out"/gpuprof_*_"$debian".deb)
"$(dirname "$0")/check_wheel.sh" "$wheel" "$auditwheel" "$arch" || bad=1

mkdir "$folder/wheel" "$folder/tarball" "$folder/deb"
python3 -m zipfile -e "$wheel" "$folder/wheel"
tar -xf "$tarball" -C "$folder/tarball"
unpacked=$folder/tarball/$(basename "$tarball" .tar.gz)
[ "$(ls -A "$folder/tarball")" = "$(basename "$unpacked")" ] || fail "the tarball does not unpack into $(basename "$unpacked") alone"
dpkg-deb -x "$deb" "$folder/deb"
files=(bin/gpuprof lib/gpuprof/libgpuprof.so lib/gpuprof/gpuprof-probe)
in_wheel=(gpuprof/bin/gpuprof gpuprof/lib/libgpuprof.so gpuprof/lib/gpuprof-probe)
for i in 0 1 2; do
  file=$unpacked/${files[i]}
  cmp -s "$file" "$folder/deb/usr/${files[i]}" || fail "${files[i]} differs between tarball and .deb"
  cmp -s "$file" "$folder/wheel/${in_wheel[i]}" || fail "${files[i]} differs between tarball and wheel"
done
for name in LICENSE NOTICE THIRD-PARTY.txt; do
  [ -s "$unpacked/share/doc/gpuprof/$name" ] || fail "the tarball has no $name"
  [ -s "$folder/deb/usr/share/doc/gpuprof/$name" ] || fail "the .deb has no $name"
done
grep -q 'GNU LESSER GENERAL PUBLIC LICENSE' "$unpacked/share/doc/gpuprof/THIRD-PARTY.txt" || fail "no LGPL text"
for page in share/man/man1/gpuprof.1 share/bash-completion/completions/gpuprof share/zsh/site-functions/_gpuprof \
  share/fish/vendor_completions.d/gpuprof.fish; do
  [ -n "$(find "$unpacked" -path "*$page*" -size +0)" ] || fail "the tarball has no $page"
done
[ -s "$folder/deb/usr/share/zsh/vendor-completions/_gpuprof" ] || fail "the .deb has no completion where Debian's zsh looks"
[ "$bad" -ne 0 ] || echo "check_release: $(basename "$tarball") $(($(stat -c %s "$tarball") / 1000)) kB, $(basename "$deb") $(($(stat -c %s "$deb") / 1000)) kB: as they must be"
exit "$bad"
