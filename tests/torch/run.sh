#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest with a real PyTorch, in an environment of its own outside the checkout; makes that first where it
# is missing or made for other versions (a download of 1 GB). CUDA's libraries are those of the toolkit: it must be there.
# usage: tests/torch/run.sh [--newest] PYTEST_ARGUMENT...     GPUPROF_TORCH: where the environment lies
# --newest: with the versions of requirements_newest.txt, in an environment of their own
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${GPUPROF_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/torch}
requirements=$here/requirements.txt
if [ "${1:-}" = --newest ]; then
  shift
  folder=$folder-newest
  requirements=$here/requirements_newest.txt
  nccl=nvidia-nccl-cu13==2.30.7  # it needs a newer one than toolkits have; not beside it, where it would not be simulated
fi
mkdir -p "$folder"
wanted=$({ cat "$requirements" "$here/requirements_deps.txt"; echo "${nccl:-}"; } | sha256sum | cut -c1-16)

make_environment() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))' 2>/dev/null || continue
    rm -rf "$folder/venv"
    "$python" -m venv "$folder/venv" >&2 || continue
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir -r "$here/requirements_deps.txt" >&2
    "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-deps -r "$requirements" >&2
    [ -z "${nccl:-}" ] ||
      "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-deps --target "$folder/venv/nccl" "$nccl" >&2
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
export GPUPROF_TORCH_LIBRARIES=$packages/cu13/lib:$packages/cusparselt/lib:$packages/nvshmem/lib:$folder/venv/nccl/nvidia/nccl/lib:${CUDA_HOME:-/usr/local/cuda}/lib64
exec "$folder/venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
