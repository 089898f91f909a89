#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the page of memory_viz into FOLDER, where it is not there yet: MemoryViz.js out of PyTorch's sources and the modules of d3
# that it imports, both as Debian 13 has them (a download of 50 MB, which changes nothing on this machine).
# usage: tests/viewers/memory_viz_page.sh FOLDER
set -euo pipefail
folder=${1:?usage: tests/viewers/memory_viz_page.sh FOLDER}
keys=/usr/share/keyrings/debian-archive-keyring.gpg

die() {
  echo "memory_viz_page.sh: $*" >&2
  exit 1
}

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
[ ! -e "$folder/complete" ] || exit 0
command -v apt-get >/dev/null || die "no apt-get here to get PyTorch's sources and d3 by"
[ -r "$keys" ] || die "no $keys here: Debian's packages could not be checked"
# shellcheck disable=SC2016 # apt-get's own
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/*$') ||
  die "apt-get knows no archive of Debian's packages"

# An apt of its own beside the machine's.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{lists,cache,sources}
printf 'Types: deb deb-src\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: %s\n' "$archive" "$keys" >"$scratch/sources/debian.sources"
cat >"$scratch/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$scratch/sources";
Dir::State::lists "$scratch/lists";
Dir::Cache "$scratch/cache";
APT::Sandbox::User "";
END
export APT_CONFIG=$scratch/apt.conf
cd "$scratch"
apt-get -qq update || die "the list of Debian 13's packages cannot be had"
modules=$(LC_ALL=C apt-cache depends node-d3 | awk '/Depends: node-d3-/ { print $2 }')
# shellcheck disable=SC2086 # a list of names
apt-get -qq download node-d3 $modules || die "d3 cannot be had"
apt-get -qq source --download-only pytorch || die "PyTorch's sources cannot be had"
for package in *.deb; do
  dpkg-deb -x "$package" root
done
cp -a root/usr/share/nodejs "$folder/"
xz -dc pytorch_*.orig.tar.xz | tar -xO --wildcards '*/torch/utils/viz/MemoryViz.js' >"$folder/MemoryViz.js"
touch "$folder/complete"
