#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on a real GPU, with a library and a command that were built elsewhere: a small CUDA program and
# a PyTorch training loop, bare and profiled. Prints a table; leaves the dumps. Needs nvidia-smi; uses nvcc
# and python3 with torch where they are there, and says what it left out.
# usage: tests/gpu/run.sh DIR [OUTPUT]    DIR: holds libgpuprof.so and gpuprof (or a build directory)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd) || exit 2
prebuilt=$(realpath "${1:?usage: tests/gpu/run.sh DIR [OUTPUT]}")
output=${2:-gpuprof-gpu}
mkdir -p "$output" || exit 2
output=$(realpath "$output")

nvidia-smi -L || { echo "gpu: no GPU here (nvidia-smi -L fails)" >&2; exit 2; }
if [ -x "$prebuilt/gpuprof" ]; then gpuprof=$prebuilt/gpuprof library=$prebuilt/libgpuprof.so; fi
if [ -x "$prebuilt/tools/gpuprof" ]; then gpuprof=$prebuilt/tools/gpuprof library=$prebuilt/preload/libgpuprof.so; fi
if [ -z "${gpuprof:-}" ] || [ ! -r "$library" ]; then
  echo "gpu: no gpuprof and libgpuprof.so in $prebuilt" >&2
  exit 2
fi
failed=0

# profile NAME COMMAND...: twice bare and twice under the library, in turn; checks; a row of the table.
profile() {
  local name=$1 folder=$output/$1 round
  shift
  rm -rf "$folder" && mkdir -p "$folder"
  for round in 1 2; do
    timeout 100 "$@" >"$folder/bare.$round" 2>"$folder/bare.$round.err" ||
      { echo "$name: bare run failed:"; tail -5 "$folder/bare.$round.err"; failed=1; return; }
    LD_PRELOAD=$library GPUPROF_OUTPUT=$folder/out GPUPROF_RUN=round$round \
      timeout 150 "$@" >"$folder/profiled.$round" 2>"$folder/profiled.$round.err" ||
      { echo "$name: profiled run failed with $?:"; tail -5 "$folder/profiled.$round.err"; failed=1; }
  done
  grep -h '^gpuprof:' "$folder"/profiled.*.err | sort -u
  "$gpuprof" info --format json "$folder/out/round1" >"$folder/info.json" || failed=1
  "$gpuprof" parse --format json "$folder/out/round1" >"$folder/records.jsonl" || failed=1
  "$gpuprof" convert "$folder/out/round1" --to perfetto -o "$folder/trace.perfetto-trace" || failed=1
  python3 "$here/summary.py" row "$name" "$folder" || failed=1
}

echo
printf '%-8s %6s %8s %9s %8s %12s %12s %7s\n' program steps launches kernels joined 'bare ms' 'profiled ms' ratio
if command -v nvcc >/dev/null; then
  if nvcc -cudart shared -O2 -std=c++17 -o "$output/small" "$here/small.cu"; then
    profile small "$output/small" 200
  else
    failed=1
  fi
else
  echo "small: left out: no nvcc on the PATH"
fi
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  profile torch python3 "$here/train_torch.py" --steps 200
  # The same kernels, by another instrument: torch.profiler over the same steps.
  if timeout 120 python3 "$here/train_torch.py" --steps 30 --torch-profiler "$output/torch/torch_profiler.json" >/dev/null; then
    python3 "$here/summary.py" compare "$output/torch" || failed=1
  else
    echo "torch: torch.profiler's run failed"
    failed=1
  fi
else
  echo "torch: left out: no python3 with a torch that sees the GPU"
fi
echo
echo "gpu: dumps and traces are in $output"
exit $failed
