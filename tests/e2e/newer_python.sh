#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes CPythons that Debian 12 does not have, with their own tests: unpacks the packages of Debian's next release and all that
# they need, the C library too, into a folder of their own. The system stays as it is. Does nothing where they are made.
# usage: tests/e2e/newer_python.sh     GPUPROF_NEWER_PYTHON: the folder
set -euo pipefail
versions=(3.14 3.15)
suites=(forky sid)
folder=${GPUPROF_NEWER_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/newer-python}
scratch=""

die() { echo "tests/e2e/newer_python.sh: no CPython ${versions[*]}: $*" >&2; exit 1; }
# What apt-get or another command says of its failure, in one line.
reason() { grep -m1 -E '^E:' "$1" || tail -n1 "$1"; }

# Where this machine takes its own release from.
find_mirror() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  apt-get indextargets --format "\$(RELEASE) \$(REPO_URI)" 'Created-By: Packages' 2>/dev/null |
    awk -v release="$codename" '$1 == release && !found { print $2; found = 1 }'
}

# apt-get that knows no package but those of the suite, and has none installed. Of the machine's settings it takes those of
# downloads (a proxy, say), not those that run commands. Signatures are checked against Debian's keys.
write_apt_settings() {
  local keys
  for keys in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
    if [ -e "$keys" ]; then break; fi
  done
  [ -e "$keys" ] || die "Debian's keys are not here: install debian-archive-keyring"
  mkdir -p "$scratch"/state/lists/partial "$scratch"/cache/archives/partial
  : >"$scratch/state/status"
  {
    apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets'
    cat <<SETTINGS
Acquire::Languages { "none"; };
Acquire::http::Timeout "20";
Acquire::Retries "1";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Debug::NoLocking "true";
Dir::State "$scratch/state";
Dir::State::status "$scratch/state/status";
Dir::Cache "$scratch/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$scratch/suite.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
SETTINGS
  } >"$scratch/apt.conf"
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$1" "$2" "$keys" >"$scratch/suite.sources"
}

# The packages of one suite, into the scratch folder; of the versions that it has.
download() {
  write_apt_settings "$1" "$2"
  local -x APT_CONFIG=$scratch/apt.conf
  local version packages=(patchelf)
  apt-get update -q --error-on=any >"$scratch/log" 2>&1 || return 1
  for version in "${versions[@]}"; do
    if apt-cache show "python$version-minimal" >/dev/null 2>&1; then
      packages+=("python$version-minimal" "libpython$version-stdlib" "libpython$version-testsuite")
    fi
  done
  [ ${#packages[@]} -gt 1 ] || { echo "E: there is no package of them" >"$scratch/log"; return 1; }
  apt-get install -q -y --download-only "${packages[@]}" >"$scratch/log" 2>&1
}

# Each program asks for its own loader, which finds its own libraries first, for what is preloaded into it, too.
make_interpreters() {
  local package program unpacked=$scratch/root/usr libraries=usr/lib/x86_64-linux-gnu loader=ld-linux-x86-64.so.2
  for package in "$scratch"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$scratch/root" || return 1
  done
  local patch=("$scratch/root/$libraries/$loader" --library-path "$scratch/root/$libraries" "$unpacked/bin/patchelf")
  # In this order: both at once, or the other way round, make a program that does not start.
  for program in "$unpacked"/bin/python3.*; do
    "${patch[@]}" --force-rpath --set-rpath "$folder/$libraries" "$program" || return 1
    "${patch[@]}" --set-interpreter "$folder/$libraries/$loader" "$program" || return 1
  done
  rm -rf "${folder:?}/usr"
  mv "$unpacked" "$folder/usr"
  for program in "$folder"/usr/bin/python3.*; do
    "$program" -c 'import asyncio, ctypes, multiprocessing, subprocess, sys
subprocess.run([sys.executable, "-c", "import ssl"], check=True)' || { echo "E: $program does not start"; return 1; }
  done
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
wanted="$(sha256sum <"$0" | cut -c1-16) $folder"  # its place is written into the interpreter
exec 9>"$folder/lock"
flock 9
[ "$(cat "$folder/made_for" 2>/dev/null || true)" != "$wanted" ] || exit 0
rm -f "$folder/made_for"
for program in apt-get dpkg-deb; do
  command -v "$program" >/dev/null || die "there is no $program here; pythons in pyenv's folder serve as well"
done
mirror=$(find_mirror) || true
[ -n "$mirror" ] || die "apt's sources name no mirror of this machine's release"
scratch=$(mktemp -d -p "$folder")
trap 'rm -rf "$scratch"' EXIT
for suite in "${suites[@]}"; do
  rm -rf "${scratch:?}"/*
  failed=""
  download "$mirror" "$suite" || failed=$(reason "$scratch/log")
  if [ -z "$failed" ]; then break; fi
done
[ -z "$failed" ] || die "the mirror's suites (${suites[*]}) do not give them: $failed"
make_interpreters >"$scratch/log" 2>&1 || die "what the suite '$suite' has does not run here: $(reason "$scratch/log")"
echo "$wanted" >"$folder/made_for"
