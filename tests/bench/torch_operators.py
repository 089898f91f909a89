# SPDX-License-Identifier: Apache-2.0
"""What it costs to see PyTorch's operators: the time of a training step of a small model on the CPU, bare, under the
preloaded library, under emit_nvtx with the preloaded library, and under torch.profiler; in turns, ratios of medians.

usage: torch_operators.py [--library LIBRARY] [--rounds N]     (with the python and LD_LIBRARY_PATH of tests/torch/run.sh)"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

STEPS, WINDOW = 300, 280


def train(way):
    import contextlib
    import time

    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(8)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    batch = torch.ones(8, 32)
    times, scope = [], contextlib.nullcontext()
    for step in range(STEPS):
        if step == STEPS - WINDOW and way == "nvtx":
            # Its own switching waits for a GPU that may not be there: the same state without that.
            from torch.autograd.profiler import ProfilerConfig, ProfilerState, _enable_profiler
            _enable_profiler(ProfilerConfig(ProfilerState.NVTX, False, False, False, False, False,
                                            torch._C._profiler._ExperimentalConfig()), set())
        if step == STEPS - WINDOW and way.startswith("profiler"):
            scope = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=way == "profiler+memory")
            scope.__enter__()
        begin = time.perf_counter_ns()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if step >= STEPS - WINDOW + 20:
            times.append(time.perf_counter_ns() - begin)
    print(json.dumps(statistics.median(times) / 1000))
    sys.stdout.flush()
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/preload/libgpuprof.so"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--way")
    options = parser.parse_args()
    if options.way:
        return train(options.way)
    light = "GPUPROF_ACTIVITIES"
    ways = {"bare": None, "op": {light: "op"}, "op,tensor": {light: "op,tensor"}, "nvtx": {light: "nvtx"}, "profiler": None,
            "profiler+memory": None}
    times = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for way, settings in ways.items():
                env = {k: v for k, v in os.environ.items() if not k.startswith("GPUPROF_")}
                if settings:
                    env.update(settings, LD_PRELOAD=options.library, GPUPROF_OUTPUT=folder, GPUPROF_STEP="optimizer",
                               GPUPROF_SCHEDULE=f"skip_first={STEPS - WINDOW},warmup=1,active={WINDOW}")
                done = subprocess.run([sys.executable, __file__, "--way", way], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True, check=True)
                times[way].append(float(done.stdout))
    bare = statistics.median(times["bare"])
    print("way               step us   added us   ratio")
    for way, found in times.items():
        median = statistics.median(found)
        print(f"{way:16} {median:8.1f} {median - bare:10.1f} {median / bare:7.3f}")


if __name__ == "__main__":
    main()
