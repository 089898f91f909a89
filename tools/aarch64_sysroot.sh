#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks arm64 packages of Debian into a folder that cmake/aarch64.cmake names: what a build for aarch64 links, and
# what its tests run with (tests/aarch64.sh). Beside it lies a qemu that a change of root leaves usable. This machine's
# own packages and apt's lists stay as they are. Needs no rights.
# usage: tools/aarch64_sysroot.sh FOLDER
set -euo pipefail
folder=$(realpath -m "${1:?usage: tools/aarch64_sysroot.sh FOLDER}")
cd "$(dirname "$0")/.."

# The libraries of tools/setup.sh's list, and what its tests call.
mapfile -t packages < <(sed -nE 's/^  "((lib|zlib|nlohmann-)[^|]*-dev|libunwind8)\|.*/\1/p' tools/setup.sh)
packages+=(libc-bin libc6-dev python3 python3-pytest python3-venv gcc binutils bash dash coreutils util-linux findutils grep sed gzip tar
  diffutils procps base-files base-passwd cmake)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{state/lists,cache/archives}/partial
: >"$scratch/status"  # nothing is installed there
cat >"$scratch/apt.conf" <<APT
APT::Architecture "arm64";
APT::Architectures { "arm64"; "amd64"; };
APT::Sandbox::User "";
APT::Install-Recommends "false";
Dir::State "$scratch/state";
Dir::State::status "$scratch/status";
Dir::Cache "$scratch/cache";
APT
export APT_CONFIG=$scratch/apt.conf
apt-get -q update
apt-get -q install -y --download-only -o Debug::NoLocking=true "${packages[@]}"
(cd "$scratch" && apt-get -q download qemu-user-static:amd64)

rm -rf "$folder" "$folder.part"
mkdir -p "$folder.part"/{usr/{bin,sbin,lib},dev,proc,sys,tmp,etc,var/lib/dpkg/info}
for name in bin sbin lib; do ln -s "usr/$name" "$folder.part/$name"; done
ln -s gcc "$folder.part/usr/bin/cc"  # as an installation does
for package in "$scratch"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --no-same-owner --keep-directory-symlink -C "$folder.part"
  # For dpkg there, which packaging/tests/aarch64.sh has install a package.
  { echo "Status: install ok installed"; dpkg-deb -f "$package"; echo; } >>"$folder.part/var/lib/dpkg/status"
  # What packaging/third_party.sh asks dpkg of packages that are installed.
  # shellcheck disable=SC2016  # dpkg-deb's own variables
  dpkg-deb -W --showformat '${Package} ${Version} ${source:Package} ${source:Version} ${source:Upstream-Version}\n' "$package"
done >"$folder.part/packages"
dpkg-deb --fsys-tarfile "$scratch"/qemu-user-static_*.deb |
  tar -x --no-same-owner -C "$folder.part" --strip-components=3 ./usr/bin/qemu-aarch64-static
cp "$folder.part/usr/share/base-passwd/passwd.master" "$folder.part/etc/passwd"
cp "$folder.part/usr/share/base-passwd/group.master" "$folder.part/etc/group"
# Links that name a place of the machine's root: to the same place here.
find "$folder.part" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$folder.part$(readlink "$link")" "$link"
done
mv "$folder.part" "$folder"
