# SPDX-License-Identifier: Apache-2.0
"""What tools/demo.sh says at its end.   usage: demo_summary.py FOLDER"""
import collections
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
info = json.loads((folder / "info.json").read_text())
records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]

steps = [r for r in records if r["kind"] == "step" and r["in_window"]]
kernels = [r for r in records if r["kind"] == "gpu_kernel"]
launches = [r for r in records if r["kind"] == "launch"]
joined = sum("partner" in launch for launch in launches)
print()
if steps:
    length = sum(s["end_mono_ns"] - s["begin_mono_ns"] for s in steps) / len(steps) / 1e6
    print(f"demo: {len(steps)} steps ({steps[0]['number']} to {steps[-1]['number']}), {length:.2f} ms each")
print(f"demo: {len(launches)} launches, {len(kernels)} kernels, {joined} launches joined to what they ran")
if info["losses"]:
    print(f"demo: lost: {info['losses']}")
if not kernels and info["files"]:
    print(f"demo: GPU times are missing: {info['files'][0]['gpu_times_missing']}")

total = collections.Counter()
count = collections.Counter()
for kernel in kernels:
    total[kernel["label"]] += kernel["duration_ns"]
    count[kernel["label"]] += 1
if total:
    print("demo: the five kernels that took longest:")
    whole = sum(total.values())
    for name, time in total.most_common(5):
        print(f"  {time / 1e6:9.3f} ms  {100 * time / whole:5.1f} %  {count[name]:6} x  {name[:100]}")

print("demo: the trace, twice:")
print(f"  {folder / 'train.perfetto-trace'}   open it at https://ui.perfetto.dev (Open trace file)")
print(f"  {folder / 'train.json'}             open it at chrome://tracing (Load), or in Perfetto")
print(f"demo: the dump is in {folder / 'run'}; `build/tools/gpuprof info {folder / 'run'}` tells what is in it")
sys.exit(0 if kernels or launches else 1)
