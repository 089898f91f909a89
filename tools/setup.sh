#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what a build and its tests need and are missing, on Debian 12 (or a relative of it):
# packages by apt, and, where no CUDA toolkit is installed, its headers from the nvidia-* wheels, into
# .deps/cuda/include. Does nothing, and says nothing, when all is there.
# usage: tools/setup.sh [--fuzz | --viewers | --aarch64]
#   --fuzz: clang and its sanitizer runtimes, too; --viewers: Chromium; --aarch64: the cross compiler
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null  # checked by itself
. tools/progress.sh

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# Package, and a shell test that is true where what it brings is there already (perhaps not by apt). No grep -q
# behind a pipe: it leaves early, and what still writes to it fails.
has_header() { echo "#include <$1>" | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1; }
packages=(
  "g++|command -v g++"
  "cmake|command -v cmake"
  "ninja-build|command -v ninja"
  "pkg-config|command -v pkg-config"
  "git|command -v git"
  "binutils|command -v readelf"
  "python3|command -v python3"
  "protobuf-compiler|command -v protoc"
  "libprotobuf-dev|has_header google/protobuf/message.h"
  "libprotozero-dev|has_header protozero/pbf_writer.hpp"
  "libdeflate-dev|has_header libdeflate.h"
  "libfmt-dev|has_header fmt/format.h"
  "libcli11-dev|has_header CLI/CLI.hpp"
  "libboost-dev|has_header boost/version.hpp"
  "nlohmann-json3-dev|has_header nlohmann/json.hpp"
  "libdw-dev|has_header elfutils/libdw.h"
  "libelf-dev|has_header gelf.h"
  "zlib1g-dev|has_header zlib.h"
  "libjs-chart.js|ls /usr/share/javascript/chart.js/chart.min.js"
  "libunwind8|/sbin/ldconfig -p | grep libunwind.so.8"
  "libgtest-dev|has_header gtest/gtest.h"
  "musl-tools|command -v musl-gcc"
  "gcc-multilib|ls /usr/lib/gcc/x86_64-linux-gnu/*/32/libgcc.a"
  "libbenchmark-dev|has_header benchmark/benchmark.h"
  "python3-pytest|has_pytest"
  "python3-venv|has_venv"
  "clang-format|clang-format --version"
  "shellcheck|command -v shellcheck"
)
fuzz_packages=("clang|command -v clang++" "libclang-rt-14-dev|ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-x86_64.a")

# The tests take the first of these that has pytest (tests/CMakeLists.txt looks in the same order).
has_pytest() {
  local python
  for python in .deps/venv/bin/python python3 /usr/bin/python3; do
    if "$python" -c 'import pytest' 2>/dev/null; then return 0; fi
  done
  return 1
}

# The viewers of tests/viewers live in an environment of their own.
has_venv() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then return 0; fi
  done
  return 1
}

missing_packages() {
  local row
  for row in "$@"; do
    eval "${row#*|}" >/dev/null 2>&1 || echo "${row%%|*}"
  done
}

install_packages() {
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "missing: ${missing[*]} (Debian's names), and there is no apt-get here: install them"
  if [ "$(id -u)" -ne 0 ]; then
    { command -v sudo >/dev/null && sudo -n true 2>/dev/null; } ||
      die "missing: ${missing[*]}. Not root: run 'apt-get install ${missing[*]}' as root, then again"
    as_root=(sudo -n)
  fi
  say "installing ${missing[*]}"
  # The lists may be days old on a fresh image; a failing update is the install's to report.
  local log
  log=$(mktemp)
  with_progress "setup: apt-get update" "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq || true
  with_progress "setup: apt-get install" "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}" ||
    { tail -20 "$log" >&2; die "apt-get could not install ${missing[*]}; its output is in $log"; }
  rm -f "$log"
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -eq 0 ] || die "still missing after apt-get: ${missing[*]}"
}

# Where cmake/gpuprof_cuda_headers.cmake looks, in that order.
has_cuda_header() {
  local dir named
  IFS=';' read -ra named <<<"${GPUPROF_CUDA_INCLUDE:-}"
  for dir in ${named[@]+"${named[@]}"} "${CUDA_HOME:-/nonexistent}/include" "${CUDA_PATH:-/nonexistent}/include" \
    /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include .deps/cuda/include \
    /usr/local/include /usr/include; do
    [ -e "$dir/$1" ] && return 0
  done
  return 1
}

# Wheel==version, and a header that it brings. Of CUDA 13.0, the oldest release whose layouts we know.
wheels=(
  "nvidia-cuda-runtime==13.0.96|cuda_runtime_api.h"
  "nvidia-cuda-crt==13.0.88|crt/host_defines.h"
  "nvidia-cuda-cccl==13.0.85|nv/target"
  "nvidia-cuda-cupti==13.0.85|cupti.h"
  "nvidia-nvtx==13.0.85|nvtx3/nvToolsExt.h"
  "nvidia-nccl-cu13==2.28.9|nccl.h"
)

# A python that has pip; on Debian the system's one comes without.
find_pip() {
  local python
  for python in python3 /usr/bin/python3 .deps/venv/bin/python; do
    if "$python" -m pip --version >/dev/null 2>&1; then echo "$python"; return 0; fi
  done
  return 1
}

fetch_wheel_headers() {
  local python=$1 scratch
  shift
  scratch=$(mktemp -d)
  "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_25_x86_64 \
    --platform manylinux_2_18_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --platform manylinux1_x86_64 -d "$scratch" "$@" >&2 || { rm -rf "$scratch"; return 1; }
  "$python" - "$scratch" .deps/cuda/include <<'PYTHON'
import pathlib, sys, zipfile
wheels, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():  # nvidia/<component>/include/<header>
            parts = name.split("/")
            if len(parts) < 4 or parts[2] != "include" or name.endswith("/") or ".." in parts:
                continue
            path = target.joinpath(*parts[3:])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
PYTHON
  rm -rf "$scratch"
}

install_cuda_headers() {
  local row missing=() python log
  for row in "${wheels[@]}"; do
    has_cuda_header "${row#*|}" || missing+=("${row%%|*}")
  done
  [ ${#missing[@]} -eq 0 ] && return
  python=$(find_pip) || { install_packages "python3-pip|find_pip"; python=$(find_pip); }
  say "no CUDA toolkit with these headers: taking them from ${missing[*]} into .deps/cuda/include"
  log=$(mktemp)
  with_progress "setup: pip download" "$log" fetch_wheel_headers "$python" "${missing[@]}" ||
    { tail -20 "$log" >&2; rm -f "$log"; die "could not fetch ${missing[*]} with pip. Install a CUDA 13 toolkit with CUPTI and NCCL, or set GPUPROF_CUDA_INCLUDE to the folders of its headers, with ; between"; }
  rm -f "$log"
  for row in "${wheels[@]}"; do
    has_cuda_header "${row#*|}" || die "${row#*|} is not in ${row%%|*}, which should hold it"
  done
}

[ "$(uname -m)" = x86_64 ] || die "this machine is $(uname -m); gpuprof is for x86-64"
install_packages "${packages[@]}"
case "${1:-}" in
  --fuzz) install_packages "${fuzz_packages[@]}" ;;
  --viewers) install_packages "chromium|command -v chromium" ;;
  --aarch64) install_packages "g++-aarch64-linux-gnu|command -v aarch64-linux-gnu-g++" ;;
  "") ;;
  *) die "unknown option '$1'; allowed: --fuzz, --viewers, --aarch64" ;;
esac
install_cuda_headers
