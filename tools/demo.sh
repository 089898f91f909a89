#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a trace: installs what is missing, builds, profiles examples/train.py, converts, and
# says what it saw. Uses the GPU where there is one, else the simulated CUDA stack of the tests.
# usage: tools/demo.sh [OUTPUT]     OUTPUT: folder for the traces (default: gpuprof-out/demo of this tree); emptied first,
# and so either new, empty, or an earlier demo's
set -euo pipefail
usage="usage: tools/demo.sh [OUTPUT]"
case ${1:-} in -*) echo "$usage" >&2; exit 2 ;; esac
[ $# -le 1 ] || { echo "$usage" >&2; exit 2; }
output=$(realpath -m "${1:-$(dirname "$0")/../gpuprof-out/demo}")
mark=$output/.gpuprof-demo  # in a folder that the demo made
cd "$(dirname "$0")/.."
if [ -e "$output" ] && [ ! -e "$mark" ] && { [ ! -d "$output" ] || [ -n "$(ls -A "$output")" ]; }; then
  echo "demo: $output holds what no demo wrote; name a new or an empty folder, or delete it" >&2
  exit 2
fi
# shellcheck source=/dev/null  # checked by itself
. tools/progress.sh

tools/setup.sh
echo "demo: building in build/"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
build() { cmake --preset dev && cmake --build build --parallel "$(nproc)" --target gpuprof gpuprof_preload simcuda; }
with_progress "demo: building" "$log" build || { tail -50 "$log"; exit 1; }

# A GPU counts only with a CUDA runtime that a program can load.
find_cudart() {
  python3 - <<'PYTHON'
import ctypes, glob, os, sys
names = ["libcudart.so.13", "libcudart.so.12", "libcudart.so"]
folders = ["", "/usr/local/cuda/lib64", os.path.join(os.environ.get("CUDA_HOME", "/nonexistent"), "lib64")]
for path in sys.path:
    folders += glob.glob(os.path.join(path, "nvidia", "*", "lib"))
for folder in folders:
    for name in names:
        try:
            ctypes.CDLL(os.path.join(folder, name) if folder else name)
        except OSError:
            continue
        print(folder)
        sys.exit(0)
sys.exit(1)
PYTHON
}

if nvidia-smi -L >/dev/null 2>&1 && cudart=$(find_cudart); then
  echo "demo: on the GPU: $(nvidia-smi -L | head -1)"
  [ -z "$cudart" ] || export LD_LIBRARY_PATH="$cudart${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
else
  echo "demo: no GPU (or no libcudart) here: using the simulated CUDA stack, whose times are made up"
  export LD_LIBRARY_PATH="$PWD/build/simcuda/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

rm -rf "$output"
mkdir -p "$output"
: >"$mark"
build/tools/gpuprof run -o "$output" --set GPUPROF_RUN=run --schedule skip_first=5,wait=0,warmup=2,active=10,repeat=1 -- \
  python3 examples/train.py
build/tools/gpuprof report "$output/run"
# The conversions go beside the dump, under names that are easy to find.
build/tools/gpuprof convert "$output/run" --to perfetto -o "$output/train.perfetto-trace"
build/tools/gpuprof convert "$output/run" --to chrome -o "$output/train.json"
build/tools/gpuprof info --format json "$output/run" >"$output/info.json"
for dump in "$output"/run/*.gpuprof; do
  build/tools/gpuprof parse --format json "$dump"
done >"$output/records.jsonl"
python3 tools/demo_summary.py "$output"
