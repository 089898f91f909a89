# SPDX-License-Identifier: Apache-2.0
"""Reads what tests/gpu/run.sh left for one program.

usage: summary.py row NAME FOLDER        a line of the table
       summary.py compare FOLDER         kernel names and counts against torch.profiler's"""
import collections
import json
import pathlib
import statistics
import sys


def records(folder):
    with open(folder / "records.jsonl") as file:
        return [json.loads(line) for line in file]


def ms_per_step(folder, which):
    times = [float(line.split()[1]) for path in sorted(folder.glob(which + ".[0-9]"))
             for line in path.read_text().splitlines() if line.startswith("ms_per_step ")]
    return statistics.mean(times) if times else float("nan")


def row(name, folder):
    found = records(folder)
    steps = sum(r["kind"] == "step" and r["in_window"] for r in found)
    launches = [r for r in found if r["kind"] == "launch" and r["result"] == 0]
    kernels = [r for r in found if r["kind"] == "gpu_kernel"]
    joined = sum("partner" in r for r in launches) / max(1, len(launches))
    bare, profiled = ms_per_step(folder, "bare"), ms_per_step(folder, "profiled")
    print(f"{name:8} {steps:6} {len(launches):8} {len(kernels):9} {joined:8.2%} {bare:12.4f} {profiled:12.4f} {profiled / bare:7.3f}")
    info = json.loads((folder / "info.json").read_text())
    for file in info["files"]:
        if file["gpu_times_missing"]:
            print(f"{name}: GPU times missing: {file['gpu_times_missing']}")
    if info["losses"]:
        print(f"{name}: losses: {info['losses']}")
    return 0 if steps and kernels and joined == 1 else 1


def compare(folder):
    theirs = collections.Counter(json.loads((folder / "torch_profiler.json").read_text()))
    ours = collections.Counter(r["label"] for r in records(folder) if r["kind"] == "gpu_kernel")
    print(f"\nkernels by gpuprof: {sum(ours.values())} of {len(ours)} names; by torch.profiler: "
          f"{sum(theirs.values())} of {len(theirs)} names")
    differing = sorted(name for name in ours.keys() | theirs.keys() if ours[name] != theirs[name])
    for name in differing[:20]:
        print(f"  {ours[name]:6} {theirs[name]:6}  {name[:150]}")
    print("same names and counts" if not differing else f"{len(differing)} names differ (ours, torch.profiler's)")
    return 1 if differing else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["row"]:
        sys.exit(row(sys.argv[2], pathlib.Path(sys.argv[3])))
    if sys.argv[1:2] == ["compare"]:
        sys.exit(compare(pathlib.Path(sys.argv[2])))
    sys.exit(__doc__)
