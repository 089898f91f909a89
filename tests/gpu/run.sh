#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on a real GPU, with a library and a command that were built elsewhere: CUDA programs in each way
# in, CUDA graphs, PyTorch (ResNet-50, a GPT, with FSDP, as a graph, compiled), Triton, a generation loop, JAX, trainings
# that are slow for a known reason, and what profiling costs, in the window and after it. Leaves dumps, table.txt and table.json. Needs nvidia-smi and python3; what else is missing (nvcc, torch,
# triton, jax) leaves its cases out: the last lines say which, and why. Under 8 minutes, whatever there is; each case has a
# time limit, and one that fails does not stop the others. What finds no time is skipped: name the parts in two or three runs.
# usage: tests/gpu/run.sh DIR [OUT [PART...]] [--seconds N]
#   DIR: holds libgpuprof.so and gpuprof (tests/gpu/package.sh makes one), or is a build directory
#   PART: ways graphs after torch compile triton generate jax slow windows cost; cost fills what time is left with rounds: alone it is exact
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
nvidia-smi -L || { echo "tests/gpu/run.sh: no GPU here (nvidia-smi -L fails)" >&2; exit 2; }
exec python3 -B "$here/run.py" "$@"
