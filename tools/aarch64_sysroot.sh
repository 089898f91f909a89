#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks the arm64 packages of Debian that a build for aarch64 links and its tests run with into a folder, which
# cmake/aarch64.cmake names. This machine's own packages and apt's lists stay as they are. Needs no rights.
# usage: tools/aarch64_sysroot.sh FOLDER
set -euo pipefail
folder=$(realpath -m "${1:?usage: tools/aarch64_sysroot.sh FOLDER}")
cd "$(dirname "$0")/.."

# The libraries of tools/setup.sh's list.
mapfile -t packages < <(sed -nE 's/^  "((lib|zlib|nlohmann-)[^|]*-dev|libunwind8)\|.*/\1/p' tools/setup.sh)
packages+=(libc6-dev)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{state/lists,cache/archives}/partial
: >"$scratch/status"  # nothing is installed there
cat >"$scratch/apt.conf" <<APT
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
APT::Install-Recommends "false";
Dir::State "$scratch/state";
Dir::State::status "$scratch/status";
Dir::Cache "$scratch/cache";
APT
export APT_CONFIG=$scratch/apt.conf
apt-get -q update
apt-get -q install -y --download-only -o Debug::NoLocking=true "${packages[@]}"

rm -rf "$folder" "$folder.part"
mkdir -p "$folder.part"
for package in "$scratch"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder.part"; done
# Links that name a place of the machine's root: to the same place here.
find "$folder.part" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$folder.part$(readlink "$link")" "$link"
done
mv "$folder.part" "$folder"
