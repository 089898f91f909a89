#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest with a real PyTorch, in an environment of its own outside the checkout; makes that first where it
# is missing or made for other versions (a download of 1 GB). CUDA's libraries are those of the toolkit: it must be there.
# usage: tests/torch/run.sh PYTEST_ARGUMENT...     GPUPROF_TORCH: where the environment lies
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${GPUPROF_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/torch}
mkdir -p "$folder"
wanted=$(cat "$here/requirements.txt" "$here/requirements_deps.txt" | sha256sum | cut -c1-16)

make_environment() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))' 2>/dev/null || continue
    rm -rf "$folder/venv"
    "$python" -m venv "$folder/venv" >&2 || continue
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir -r "$here/requirements_deps.txt" >&2
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-deps -r "$here/requirements.txt" >&2
    echo "$wanted" >"$folder/made_for"
    return
  done
  echo "tests/torch/run.sh: no python3 of 3.10 to 3.14 here can make a virtual environment (Debian: python3-venv)" >&2
  return 1
}

(
  flock 9
  [ "$(cat "$folder/made_for" 2>/dev/null || true)" = "$wanted" ] || make_environment
) 9>"$folder/lock"
packages=$(echo "$folder"/venv/lib/python3*/site-packages/nvidia)
export GPUPROF_TORCH_LIBRARIES=$packages/cu13/lib:$packages/cusparselt/lib:$packages/nvshmem/lib:${CUDA_HOME:-/usr/local/cuda}/lib64
exec "$folder/venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
