#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks arm64 packages of Debian into a folder that cmake/aarch64.cmake names: what a build for aarch64 links, and
# what its tests run with (tests/aarch64.sh). Beside it lies a qemu that a change of root leaves usable. This machine's
# own packages and apt's lists stay as they are. Needs no rights.
# usage: tools/aarch64_sysroot.sh FOLDER     FOLDER is made anew: it is new, empty, or one that this script made
set -euo pipefail
usage="usage: tools/aarch64_sysroot.sh FOLDER"
case ${1:-} in '' | -*) echo "$usage" >&2; exit 2 ;; esac
[ $# -eq 1 ] || { echo "$usage" >&2; exit 2; }
folder=$(realpath -m "$1")
cd "$(dirname "$0")/.."
# Only a folder that this script made has both files at its top.
if [ -e "$folder" ] && ! [[ -e $folder/packages && -e $folder/qemu-aarch64-static ]] &&
  { [ ! -d "$folder" ] || [ -n "$(ls -A "$folder")" ]; }; then
  echo "aarch64_sysroot: $folder holds what this script did not write; name a new or an empty folder, or delete it" >&2
  exit 2
fi

# The libraries of tools/setup.sh's list, and what its tests call.
mapfile -t packages < <(sed -nE 's/^  "((lib|zlib|nlohmann-)[^|]*-dev|libunwind8)\|.*/\1/p' tools/setup.sh)
packages+=(libc-bin libc6-dev python3 python3-pytest python3-venv gcc binutils bash dash coreutils util-linux findutils grep sed gzip tar
  diffutils procps base-files base-passwd cmake)

scratch=$(mktemp -d)
part=
trap 'rm -rf "$scratch" ${part:+"$part"}' EXIT
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

# Beside the folder, which is whole or as it was.
mkdir -p "$(dirname "$folder")"
part=$(mktemp -d "$folder.XXXXXX")
chmod 755 "$part"
mkdir -p "$part"/{usr/{bin,sbin,lib},dev,proc,sys,tmp,etc,var/lib/dpkg/info}
for name in bin sbin lib; do ln -s "usr/$name" "$part/$name"; done
ln -s gcc "$part/usr/bin/cc"  # as an installation does
for package in "$scratch"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --no-same-owner --keep-directory-symlink -C "$part"
  # For dpkg there, which packaging/tests/aarch64.sh has install a package.
  { echo "Status: install ok installed"; dpkg-deb -f "$package"; echo; } >>"$part/var/lib/dpkg/status"
  # What packaging/third_party.sh asks dpkg of packages that are installed.
  # shellcheck disable=SC2016  # dpkg-deb's own variables
  dpkg-deb -W --showformat '${Package} ${Version} ${source:Package} ${source:Version} ${source:Upstream-Version}\n' "$package"
done >"$part/packages"
dpkg-deb --fsys-tarfile "$scratch"/qemu-user-static_*.deb |
  tar -x --no-same-owner -C "$part" --strip-components=3 ./usr/bin/qemu-aarch64-static
cp "$part/usr/share/base-passwd/passwd.master" "$part/etc/passwd"
cp "$part/usr/share/base-passwd/group.master" "$part/etc/group"
# Links that name a place of the machine's root: to the same place here.
find "$part" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$part$(readlink "$link")" "$link"
done
rm -rf "$folder"
mv "$part" "$folder"
