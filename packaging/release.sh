#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what a release consists of: wheel, tarball, .deb, the debug information apart, the source of what is linked
# under the LGPL, and SHA256SUMS. Then looks at what came out. --arch: for which machine, x86_64 by default; may come twice.
# usage: packaging/release.sh [--no-sources] [--arch x86_64|aarch64]... [OUT]     OUT: default build-portable/release of this
# tree; replaced once all is made, and so either new, empty, or nothing but files of a release
# A release is a tag vVERSION: with one on this commit, it must name the version in CMakeLists.txt and in CHANGELOG.md.
set -euo pipefail
umask 022  # others read what is made
sources=yes arches=() out=
say() { echo "release: $*" >&2; }
die() { say "$*"; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --no-sources) sources= ;;
    --arch)
      case ${2:-} in x86_64 | aarch64) arches+=("$2") ;; *) die "--arch '${2:-}': allowed are x86_64 and aarch64" ;; esac
      shift ;;
    -*) die "unknown option '$1'; allowed: --no-sources, --arch" ;;
    *)
      [ -z "$out" ] || die "'$1' is one folder too many; give OUT once"
      out=$(realpath -m "$1") ;;
  esac
  shift
done
cd "$(dirname "$0")/.."
[ ${#arches[@]} -gt 0 ] || arches=(x86_64)
[ -n "$out" ] || out=$PWD/build-portable/release
arm64=.deps/aarch64

version=$(sed -n 's/^project(gpuprof VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tag=$(git describe --exact-match --tags --match 'v*' 2>/dev/null || true)
if [ -n "$tag" ]; then
  [ "$tag" = "v$version" ] || die "the tag is $tag, but CMakeLists.txt says $version"
  grep -q "^## $version ([0-9]" CHANGELOG.md ||
    die "CHANGELOG.md has no dated section for $version"
fi

[ ! -e "$out" ] || [ -d "$out" ] || die "$out is no folder"
foreign=
[ ! -d "$out" ] || foreign=$(find "$out" -mindepth 1 -regextype posix-extended ! \( -type f \
  -regex '.*/(SHA256SUMS|gpuprof[-_][^/]*\.(whl|tar\.gz|deb|tar))' \) -print -quit)
[ -z "$foreign" ] || die "$foreign is not of a release, and $out would be replaced; name a new folder or empty it"
# Strays among the sources would be compiled, too.
changes=$(git status --porcelain --untracked-files=no && git status --porcelain -- cmake collector formats packaging preload tools)
if [ -n "$changes" ]; then
  [ -z "$tag" ] || die "the tag is $tag, and the tree differs from it: ${changes%%$'\n'*}; commit, ignore or remove what 'git status' lists"
  say "with changes that are not committed"
fi

# The same bytes from the same commit and packages of Debian, wherever this tree lies; tarballs also name the user.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

tools=$(packaging/release_tools.sh)
stage=$(mktemp -d) made=
trap 'rm -rf "$stage" ${made:+"$made"}' EXIT
mkdir -p "$(dirname "$out")"
made=$(mktemp -d "$out.XXXXXX")  # beside OUT, which stays as it is until all is made
chmod 755 "$made"

# What may be missing here, before the builds, which take long.
for arch in "${arches[@]}"; do
  [ "$arch" = aarch64 ] || continue
  command -v aarch64-linux-gnu-g++ >/dev/null || die "no cross compiler: install g++-aarch64-linux-gnu, or name --arch x86_64"
  [ -e "$arm64/packages" ] || tools/aarch64_sysroot.sh "$arm64" >"$stage/arm64.log" 2>&1 || { tail -3 "$stage/arm64.log"; exit 1; }
done

if [ -n "$sources" ]; then
  say "source of what is under the LGPL"
  mkdir "$stage/sources" "$stage/lists" "$stage/apt"
  # This machine's sources, of source packages; apt tells the two formats by the file's name.
  list='' parts=''
  eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
  for file in "$list" "$parts"/*.list; do
    [ ! -e "$file" ] || sed -nE 's/^[[:blank:]]*deb(-src)?[[:blank:]]/deb-src /p' "$file" | sort -u >"$stage/apt/$(basename "$file" .list).list"
  done
  for file in "$parts"/*.sources; do
    [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$stage/apt/$(basename "$file")"
  done
  apt=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$stage/apt" -o "Dir::State::lists=$stage/lists")
  apt-get "${apt[@]}" update -qq
  for arch in "${arches[@]}"; do
    if [ "$arch" = aarch64 ]; then packaging/third_party.sh --sources "$arm64"; else packaging/third_party.sh --sources; fi
  done >"$stage/wanted"
  mapfile -t wanted < <(sort -u "$stage/wanted")
  (cd "$stage/sources" && apt-get "${apt[@]}" source -qq --download-only "${wanted[@]}" >/dev/null)
  tar -C "$stage" -cf "$made/gpuprof-$version-third-party-sources.tar" sources
fi

make_packages() {
  # A build of its own, from nothing: libraries that are linked into the command are in no rule of an older one.
  local arch=$1 build=build-release-$1 preset=portable targets=(all)
  if [ "$arch" = aarch64 ]; then
    preset=aarch64 targets=(gpuprof_preload gpuprof gpuprof_pages gpuprof_third_party)  # it has tests, too
  fi
  say "$arch: building in $build"
  [ ! -e "$build" ] || [ -e "$build/CMakeCache.txt" ] || die "$PWD/$build is no folder of a build; rename or delete it"
  rm -rf "$build"
  cmake --preset "$preset" -B "$build" >/dev/null
  cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"
  say "$arch: packages"
  (cd "$build" && cpack --config CPackConfig.cmake -B "$stage/$arch" >"$stage/cpack.log") || { cat "$stage/cpack.log"; exit 1; }
  find "$stage/$arch" -maxdepth 1 -type f ! -name '*.sha256' -exec mv -t "$made" {} +
  cmake --install "$build" --prefix "$stage/$arch-installed" --component runtime >/dev/null
  python3 packaging/make_wheel.py "$stage/$arch-installed" "$stage/$arch-wheel" "$version" "$arch"
  find "$stage/$arch-wheel" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
  "$tools/wheel" pack -d "$made" "$stage/$arch-wheel" >/dev/null
}
for arch in "${arches[@]}"; do make_packages "$arch"; done

(cd "$made" && sha256sum -- * >SHA256SUMS)
for arch in "${arches[@]}"; do
  packaging/check_release.sh "$made" "$tools/auditwheel" "$arch" || { kept=$made made=; die "what was made is not as it must be; it is in $kept"; }
done
rm -rf "$out"
mv "$made" "$out"
made=
