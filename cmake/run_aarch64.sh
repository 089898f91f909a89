#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs an arm64 program that the build or ctest calls: by qemu, or as it is where tests/aarch64.sh has made the arm64
# folder the root.
# usage: cmake/run_aarch64.sh FOLDER PROGRAM [ARGUMENT...]     FOLDER: of tools/aarch64_sysroot.sh
folder=$1
shift
[ ! -e /qemu-aarch64-static ] || exec "$@"
exec "$folder/qemu-aarch64-static" -L "$folder" "$@"
