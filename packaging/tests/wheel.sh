#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a wheel of a build that tests run on, with the command linked as it is shipped, and looks at it: what auditwheel
# says, its size, and whether pip installs it and it runs. packaging/release.sh makes the real one. Exit 77 where
# auditwheel cannot be had.
# usage: packaging/tests/wheel.sh BUILD
set -euo pipefail
build=$(realpath "${1:?usage: packaging/tests/wheel.sh BUILD}")
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tools=$(packaging/release_tools.sh 2>"$folder/log") || { echo "skipped: auditwheel cannot be had: $(tail -1 "$folder/log")"; exit 77; }
version=$(sed -n 's/^project(gpuprof VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
arch=$(uname -m)

cmake --install "$build" --prefix "$folder/installed" --component runtime >/dev/null
objcopy --strip-all "$build/tools/gpuprof_static" "$folder/installed/bin/gpuprof"
packaging/third_party.sh "$folder/installed/share/doc/gpuprof/THIRD-PARTY.txt"
python3 packaging/make_wheel.py "$folder/installed" "$folder/tree" "$version" "$arch"
"$tools/wheel" pack -d "$folder" "$folder/tree" >/dev/null
packaging/check_wheel.sh "$folder"/*.whl "$tools/auditwheel" "$arch"

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-index --disable-pip-version-check --no-cache-dir "$folder"/*.whl
[ "$("$folder/venv/bin/gpuprof" --version)" = "gpuprof $version" ]
test -r "$("$folder/venv/bin/python" -c 'import gpuprof; print(gpuprof.lib())')"
