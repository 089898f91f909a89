#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes what is linked into gpuprof and not gpuprof's own: name, version, what links it, and the licence as its
# Debian package states it, then the texts of the GNU licences. Fails where one is missing.
# usage: packaging/third_party.sh FILE [FOLDER]     FOLDER: of tools/aarch64_sysroot.sh, for what is linked for aarch64
# --sources [FOLDER] prints "PACKAGE=VERSION" of what must be shipped as source, too (see NOTICE).
set -euo pipefail

# Debian package, what it is, what links it, "source" where its licence asks for its source beside the program.
components=(
  "libdw-dev|elfutils: libdw, libelf|the command|source"
  "libc6-dev|GNU C library|the command|source"
  "libstdc++-12-dev|GCC: libstdc++, libgcc|the command, the library|"
  "libprotobuf-dev|Protocol Buffers|the command|"
  "libboost-dev|Boost|the command|"
  "libfmt-dev|fmt|the command|"
  "libcli11-dev|CLI11|the command|"
  "nlohmann-json3-dev|JSON for Modern C++|the command|"
  "libprotozero-dev|protozero|the command|"
  "zlib1g-dev|zlib|the command|"
  "libdeflate-dev|libdeflate|the command, the library|"
  "libjs-chart.js|Chart.js|the HTML report|"
)
licences=(GPL-2 GPL-3 LGPL-2.1 LGPL-3)

die() { echo "third_party.sh: $*" >&2; exit 1; }

folder=${2:-}  # with both forms of the command line

package_of() {  # the installed version of a package that has a version in its name
  case $1 in
    libstdc++-*) dpkg-query -W -f '${Package}\n' "libstdc++-[0-9]*-dev${folder:+-arm64-cross}" | sort -V | tail -1 ;;
    *) echo "$1" ;;
  esac
}
# Whether a package was unpacked into the folder; compilers and pages are this machine's.
unpacked() { [ -n "$folder" ] && grep -q "^$1 " "$folder/packages"; }
source_of() {  # "PACKAGE=VERSION"
  # shellcheck disable=SC2016  # dpkg-query's own variables
  if unpacked "$1"; then awk -v package="$1" '$1 == package { print $3 "=" $4 }' "$folder/packages"
  else dpkg-query -W -f '${source:Package}=${source:Version}\n' "$1"; fi
}
upstream_version_of() {
  # shellcheck disable=SC2016
  if unpacked "$1"; then awk -v package="$1" '$1 == package { print $5 }' "$folder/packages"
  elif [[ $1 == *-cross ]]; then dpkg-query -W -f '${Version}' "$1" | sed 's/-.*//'  # its source is a collection
  else dpkg-query -W -f '${source:Upstream-Version}' "$1"; fi
}

if [ "${1:-}" = --sources ]; then
  for row in "${components[@]}"; do
    IFS='|' read -r package _ _ source <<<"$row"
    [ "$source" = source ] || continue
    source_of "$package"
  done
  exit
fi

file=${1:?usage: packaging/third_party.sh FILE [FOLDER]}
trap 'rm -f "$file.new"' EXIT
{
  echo "What the gpuprof packages hold beside gpuprof's own code, with the licence of each."
  echo "NOTICE says how to link gpuprof to another version of what is under the LGPL."
  for row in "${components[@]}"; do
    IFS='|' read -r package name where _ <<<"$row"
    package=$(package_of "$package")
    copyright=/usr/share/doc/$package/copyright
    if unpacked "$package"; then copyright=$folder$copyright; fi
    [ -r "$copyright" ] || die "$copyright is missing: install $package"
    printf '\n%s\n%s\nversion %s; linked into %s\n\n' "$(printf '=%.0s' {1..100})" "$name" "$(upstream_version_of "$package")" "$where"
    cat "$copyright"
  done
  for licence in "${licences[@]}"; do
    [ -r "/usr/share/common-licenses/$licence" ] || die "/usr/share/common-licenses/$licence is missing"
    printf '\n%s\n%s\n\n' "$(printf '=%.0s' {1..100})" "$licence"
    cat "/usr/share/common-licenses/$licence"
  done
} >"$file.new"
mv "$file.new" "$file"
