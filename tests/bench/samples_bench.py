# SPDX-License-Identifier: Apache-2.0
"""What host samples cost the thread that is sampled: the CPU time of a busy Python loop within one process, in a window
with samples and in one without (two preloaded processes in turns), and what the sampling thread takes. Each process
switches nothing itself: the window is open for the whole loop.

usage: samples_bench.py [--library LIBRARY] [--gpuprof GPUPROF] [--simcuda DIRECTORY] [--rounds N] [--python PYTHON]"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPTH, LOOPS, PIECES = 25, 60000, 600


def loop():
    """CPU time of each of many equal pieces of work, at some depth of the stack; then what was found, in ns."""
    import ctypes
    import time
    cudart = ctypes.CDLL("libcudart.so.13")

    def add(a, b):
        return a + b

    def work(n):
        total = 0
        for i in range(n):
            total = add(total, i)
        return total

    def deep(n, function):
        return deep(n - 1, function) if n else function()

    def pieces():
        times = []
        for _ in range(PIECES):
            begin = time.thread_time_ns()
            work(LOOPS)
            times.append(time.thread_time_ns() - begin)
        return times

    cudart.cudaDeviceSynchronize()
    work(LOOPS)
    print(json.dumps(statistics.median(deep(DEPTH, pieces))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default=str(ROOT / "build/preload/libgpuprof.so"))
    parser.add_argument("--gpuprof", default=str(ROOT / "build/tools/gpuprof"))
    parser.add_argument("--simcuda", default=str(ROOT / "build/simcuda/lib"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    if options.loop:
        return loop()
    times = {"without": [], "with": []}
    sampler = []
    for _ in range(options.rounds):
        for way, activities in (("without", "-samples"), ("with", "+samples")):
            with tempfile.TemporaryDirectory() as folder:
                env = {k: v for k, v in os.environ.items() if not k.startswith("GPUPROF_")}
                env.update(LD_PRELOAD=options.library, LD_LIBRARY_PATH=options.simcuda, GPUPROF_OUTPUT=folder, GPUPROF_STEP="sync:1",
                           GPUPROF_ACTIVITIES=activities, GPUPROF_SCHEDULE="skip_first=0,wait=0,warmup=0,active=1000000,max_s=0")
                done = subprocess.run([options.python, __file__, "--loop"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True, check=True)
                times[way].append(float(done.stdout))
                if way == "with":
                    dumps = [str(p) for p in pathlib.Path(folder).rglob("*.gpuprof") if not p.parent.is_symlink()]
                    found = json.loads(subprocess.run([options.gpuprof, "info", "--format", "json", *dumps], stdout=subprocess.PIPE,
                                                      check=True).stdout)["files"][0]
                    length = found["window_end_mono_ns"] - found["window_begin_mono_ns"]
                    sampler.append((100 * found["own_cost"]["samples_cpu_ns"] / length, found["samples"] / length * 1e9,
                                    found["losses"].get("sample_torn", 0)))
    without, sampled = (statistics.median(times[way]) for way in ("without", "with"))
    print(f"a piece of work: {without / 1e6:.3f} ms of CPU time without samples, {sampled / 1e6:.3f} ms with: {sampled / without:.4f}")
    percent, rate, torn = (statistics.median(column) for column in zip(*sampler))
    print(f"the sampling thread: {percent:.2f} % of a core, {rate:.0f} samples a second, {torn:.0f} torn")


if __name__ == "__main__":
    main()
