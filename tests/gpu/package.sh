#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gathers what tests/gpu/run.sh needs into a folder that travels to a bare GPU machine: the library and the command
# of the release build, stripped (they need glibc only), and, where nvcc is here, the CUDA programs.
# usage: tests/gpu/package.sh FOLDER [BUILD]     BUILD: a build directory; default: build-release, built here
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:?usage: tests/gpu/package.sh FOLDER [BUILD]}
build=${2:-$root/build-release}
if [ $# -lt 2 ]; then
  (cd "$root" && cmake --preset release >/dev/null)
  cmake --build "$build" --parallel "$(nproc)" --target gpuprof gpuprof_preload
fi
mkdir -p "$folder/programs"
strip -o "$folder/libgpuprof.so" "$build/preload/libgpuprof.so"
strip -o "$folder/gpuprof" "$build/tools/gpuprof"
strip -o "$folder/gpuprof-probe" "$build/tools/gpuprof-probe"
python3 -B "$here/build_programs.py" "$folder" || echo "package.sh: the CUDA programs are left to the GPU machine's nvcc"
du -sh "$folder"
