#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what packaging/release.sh made and uses it (use.sh): the wheel in an environment of each python3.N that is
# there, the tarball unpacked, and, in a chroot, the .deb. As a user without rights, in a path with blanks, with a home
# that cannot be written to. Prints a line for each.
# usage: packaging/tests/install.sh RELEASE [ROOT...]     ROOT: folders by debootstrap with python3-venv; default: /
# GPUPROF_SIMCUDA: the simulated CUDA stack (B/simcuda/lib), which is used where it can be loaded; elsewhere a stub of a
# CUDA runtime, without GPU times. GPUPROF_PYTHONS: more pythons of a root, with blanks between.
# Needs root, to change it, or a namespace's (packaging/tests/aarch64.sh). Packages come from RELEASE alone: no network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
release=$(realpath "${1:?usage: packaging/tests/install.sh RELEASE [ROOT...]}")
shift
[ "$(id -u)" -eq 0 ] || { echo "install.sh: needs root" >&2; exit 2; }
arch=$(uname -m) debian=$(dpkg --print-architecture)
scratch=$(mktemp -d)
undo=()
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  local i
  for ((i = ${#undo[@]} - 1; i >= 0; i--)); do eval "${undo[i]}"; done
  rm -rf "$scratch"
}
trap clean_up EXIT
"$(command -v cc || echo gcc)" -shared -fPIC -O1 -nostdlib -Wl,-soname,libcudart.so.13 -o "$scratch/libcudart.so.13" "$here/cudart_stub.c"
failed=0
# A namespace may have no user but root. Without capabilities that one has no more rights than nobody.
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups) owner=65534
read -r _ _ users </proc/self/uid_map
if [ "$users" -eq 1 ]; then nobody=(setpriv --bounding-set=-all --inh-caps=-all) owner=0; fi

# Runs a line of shell in a root as nobody.
as_user() {
  local root=$1 line=$2
  chroot "$root" "${nobody[@]}" env -i PATH=/usr/local/bin:/usr/bin:/bin \
    HOME="$place/home" LANG=C.UTF-8 bash -c "$line"
}

# tells what it is that was tried, and keeps its outcome
outcome() {
  local what=$1 log=$2 code=$3
  if [ "$code" -eq 0 ] && [ "$(tail -1 "$log")" = ok ]; then
    echo "passed  $what"
  else
    echo "FAILED  $what: $(tail -2 "$log" | tr '\n' ' ')"
    failed=1
  fi
}

try_root() {
  local root=$1 name python code log=$scratch/log
  # shellcheck disable=SC1091
  name=$(. "$root/etc/os-release" && echo "$ID ${VERSION_ID:-}")
  if [ "$root" != / ]; then
    mount -t proc proc "$root/proc" && undo+=("umount '$root/proc'")
    mount --bind /dev "$root/dev" && undo+=("umount '$root/dev'")
  fi
  place="/tmp/gpuprof install.$$"
  undo+=("rm -rf '$root$place'")
  mkdir -p "$root$place/home" "$root$place/stack"
  cp "$here/program.py" "$here/use.sh" "$root$place/"
  local stack=stub
  if [ -n "${GPUPROF_SIMCUDA:-}" ]; then
    cp -a "$GPUPROF_SIMCUDA"/. "$root$place/stack/"
    if as_user "$root" "cd '$place/stack' && LD_LIBRARY_PATH=. python3 -c 'import ctypes; ctypes.CDLL(\"libcudart.so.13\")'" 2>/dev/null; then
      stack=simulated
    else
      rm -rf "$root$place/stack" && mkdir "$root$place/stack"
    fi
  fi
  [ "$stack" = simulated ] || cp "$scratch/libcudart.so.13" "$root$place/stack/"
  name="$name ($stack stack)"
  cp "$release"/*_"$arch".whl "$release"/gpuprof-*-linux-"$arch".tar.gz "$release"/gpuprof_*_"$debian".deb "$root$place/"
  chown -R "$owner:$owner" "$root$place"
  chmod 0555 "$root$place/home"
  for python in "$root"/usr/bin/python3.[0-9] "$root"/usr/bin/python3.[0-9][0-9] "$root"/usr/local/bin/python3.[0-9]* ${GPUPROF_PYTHONS:-}; do
    if ! [[ -x $python && $python =~ python3\.[0-9]+$ ]]; then continue; fi
    python=${python#"$root"}; python=/${python#/}
    code=0
    as_user "$root" "cd '$place' && rm -rf work venv && mkdir work && cp -r program.py stack work/ &&
      '$python' -m venv 'venv' && venv/bin/python -m pip install -q --no-index --disable-pip-version-check --no-cache-dir ./*.whl &&
      export PATH=\"\$PWD/venv/bin:\$PATH\" && python -m gpuprof --version >/dev/null &&
      test -r \"\$(python -c 'import gpuprof; print(gpuprof.lib())')\" && bash ./use.sh \"\$PWD/work\" gpuprof" >"$log" 2>&1 || code=$?
    outcome "$name: wheel, $(basename "$python")" "$log" "$code"
  done
  code=0
  as_user "$root" "cd '$place' && rm -rf work tree && mkdir work tree && cp -r program.py stack work/ &&
    tar -xf gpuprof-*-linux-*.tar.gz -C tree && bash ./use.sh \"\$PWD/work\" \"\$PWD\"/tree/gpuprof-*-linux-*/bin/gpuprof" >"$log" 2>&1 || code=$?
  outcome "$name: tarball" "$log" "$code"
  # This machine stays as it is, but for the root that tests/aarch64.sh makes.
  [ "$root" != / ] || [ -e /qemu-aarch64-static ] || return 0
  code=0
  chroot "$root" bash -c "dpkg -i '$place'/gpuprof_*.deb" >"$log" 2>&1 || code=$?
  undo+=("chroot '$root' dpkg --purge gpuprof >/dev/null 2>&1")
  [ "$code" -ne 0 ] || as_user "$root" "cd '$place' && rm -rf work && mkdir work && cp -r program.py stack work/ && bash ./use.sh \"\$PWD/work\" gpuprof" >"$log" 2>&1 || code=$?
  outcome "$name: .deb" "$log" "$code"
}

[ $# -gt 0 ] || set -- /
for root in "$@"; do try_root "$root"; done
exit "$failed"
