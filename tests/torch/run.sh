#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest with a real PyTorch, in an environment of its own outside the checkout; makes that first where it
# is missing or made for other versions (a download of 1 GB). CUDA's libraries are those of the toolkit: it must be there.
# usage: tests/torch/run.sh [--newest] PYTEST_ARGUMENT...     GPUPROF_TORCH: where the environment lies
# --newest: with the versions of requirements_newest.txt, in an environment of their own
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../python_environment.sh
. "$here/../python_environment.sh"
folder=${GPUPROF_TORCH:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuprof/torch}
requirements=$here/requirements.txt
if [ "${1:-}" = --newest ]; then
  shift
  folder=$folder-newest
  requirements=$here/requirements_newest.txt
  nccl=nvidia-nccl-cu13==2.30.7  # it needs a newer one than toolkits have; not beside it, where it would not be simulated
fi
wanted=$({ cat "$requirements" "$here/requirements_deps.txt"; echo "${nccl:-}"; } | sha256sum | cut -c1-16)
install() {
  pip_install "$1" --no-cache-dir -r "$here/requirements_deps.txt"
  pip_install "$1" --no-cache-dir --no-deps -r "$requirements"
  [ -z "${nccl:-}" ] || pip_install "$1" --no-cache-dir --no-deps --target "$1/nccl" "$nccl"
}
python_environment "$folder" "$wanted" 10 14 install
packages=$(echo "$folder"/venv/lib/python3*/site-packages/nvidia)
export GPUPROF_TORCH_LIBRARIES=$packages/cu13/lib:$packages/cusparselt/lib:$packages/nvshmem/lib:$folder/venv/nccl/nvidia/nccl/lib:${CUDA_HOME:-/usr/local/cuda}/lib64
exec "$folder/venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
