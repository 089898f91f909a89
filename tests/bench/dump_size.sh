#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bytes per event of a dump of simtrain with at least 200,000 events. Exit 1 when over 5.
# usage: tests/bench/dump_size.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

gpuprof="$build/tools/gpuprof"
export LD_LIBRARY_PATH="$build/simcuda/lib"
"$gpuprof" run -o "$scratch/out" \
  --schedule skip_first=2,wait=0,warmup=1,active=400,repeat=1,max_s=0,max_mb=0 -- \
  "$build/tests/programs/simtrain/simtrain" --steps 405 --layers 24 --small-kernels 200 --kernel-us 5 --seed 1 \
  >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }

"$gpuprof" info --format json "$scratch/out" >"$scratch/info.json"
python3 - "$scratch" <<'PYTHON'
import json, pathlib, sys
scratch = pathlib.Path(sys.argv[1])
info = json.loads((scratch / "info.json").read_text())
size = sum(p.stat().st_size for p in (scratch / "out").rglob("*.gpuprof") if not p.is_symlink() and
           not any(parent.is_symlink() for parent in p.parents))
events = info["event_count"]
print(f"{size} bytes, {events} events: {size / events:.2f} bytes per event (at most 5); losses: {info['losses'] or 'none'}")
sys.exit(events < 200000 or size / events > 5)
PYTHON
