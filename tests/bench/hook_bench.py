#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hook costs, as ratios within one run: child processes (hook_bench) with and without the library
are started in turn, round after round, and the best time of each counts.

usage: hook_bench.py --bench FILE --library FILE --nop FILE --gpuprof FILE [--rounds N] [--check]
--check: exit 1 if a bound is exceeded."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from recorded import losses_of

NO_STEPS = "skip_first=1000000,wait=0,warmup=0,active=1,repeat=1"
# Three steps, one of them recorded, come before each repetition (HOOK_BENCH_STEPS): it runs in the first
# step after a window, while the dump is still being written.
JUST_BEFORE = "skip_first=0,wait=2,warmup=0,active=1,repeat=0"
WHOLE_RUN = "skip_first=0,wait=0,warmup=0,active=1000000,repeat=1,max_s=0,max_mb=0"
VARIANTS = {  # name: what is preloaded, settings
    "plain": (None, {}),
    "nop": ("nop", {}),
    "off": ("library", {"GPUPROF_MODE": "off"}),
    "waiting": ("library", {"GPUPROF_STEP": "manual", "GPUPROF_SCHEDULE": NO_STEPS}),
    "armed": ("library", {"GPUPROF_STEP": "manual", "GPUPROF_MODE": "armed"}),
    "after": ("library", {"GPUPROF_STEP": "manual", "GPUPROF_SCHEDULE": JUST_BEFORE, "HOOK_BENCH_STEPS": "3"}),
    "period": ("library", {"GPUPROF_STEP": "period", "GPUPROF_SCHEDULE": NO_STEPS}),
    "recorded": ("library", {"GPUPROF_STEP": "manual", "GPUPROF_SCHEDULE": WHOLE_RUN}),
    "stacks": ("library", {"GPUPROF_STEP": "manual", "GPUPROF_SCHEDULE": WHOLE_RUN, "GPUPROF_STACKS": "launch"}),
}
BOUNDS = [  # what, variant and benchmark, against which, at most
    ("hook off / plain call", ("off", "event"), ("plain", "event"), 1.6),
    ("hook waiting / plain call", ("waiting", "event"), ("plain", "event"), 1.6),
    ("hook off / plain call, launch", ("off", "launch"), ("plain", "launch"), 1.6),
    ("hook waiting / plain call, launch", ("waiting", "launch"), ("plain", "launch"), 1.6),
    ("armed / off", ("armed", "event"), ("off", "event"), 1.1),
    ("armed / off, launch", ("armed", "launch"), ("off", "launch"), 1.1),
    ("first step after a window / off", ("after", "event"), ("off", "event"), 1.1),
    ("first step after a window / off, launch", ("after", "launch"), ("off", "launch"), 1.1),
    ("recorded / two clock reads", ("recorded", "event"), ("recorded", "clock"), 1.25),
    ("recorded / two clock reads, launch", ("recorded", "launch"), ("recorded", "clock"), 1.25),
    ("two threads recording / reading the clock", ("recorded", "event2"), ("recorded", "clock2"), 1.2),
    ("two threads recording / reading, launch", ("recorded", "launch2"), ("recorded", "clock2"), 1.2),
]
BENCHMARKS = ["event", "launch", "clock", "event2", "launch2", "clock2", "deep", "deep2", "first"]
FIRST_BOUND_NS = 30000  # the first recorded call after 3 ms without one: 1 % of them
STACK_BOUND_NS = 500  # one stack, at a depth of 20 functions and those of the benchmark around them


def run_child(options, variant, folder):
    """{benchmark: best ns per call of one thread}, of one child process."""
    preload, settings = VARIANTS[variant]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPROF_", "LD_PRELOAD", "HOOK_BENCH_"))}
    environment |= settings | {"GPUPROF_CUPTI": "off", "GPUPROF_OUTPUT": str(folder)}
    if preload:
        environment["LD_PRELOAD"] = str(pathlib.Path(getattr(options, preload)).resolve())
    done = subprocess.run([options.bench, "--benchmark_format=json", "--benchmark_enable_random_interleaving=true"],
                          env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"hook_bench ({variant}): exit {done.returncode}: {done.stderr}")
    result = json.loads(done.stdout)
    calls = int(result["context"]["calls_per_iteration"])
    best = {}
    for row in result["benchmarks"]:
        if row.get("run_type") != "iteration":
            continue
        name = row["run_name"].split("/")[0]
        # Google Benchmark divides by the iterations of all threads together.
        taken = row["real_time"] * row.get("threads", 1) / (1 if name == "first" else calls)
        best[name] = min(best.get(name, 1e9), taken)
    return best


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    for name in ("bench", "library", "nop", "gpuprof"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    best = {variant: {} for variant in VARIANTS}
    for _ in range(options.rounds):
        for variant in VARIANTS:
            with tempfile.TemporaryDirectory() as folder:
                for name, time in run_child(options, variant, folder).items():
                    best[variant][name] = min(best[variant].get(name, 1e9), time)
                if variant == "after" and len(list(pathlib.Path(folder).rglob("*.gpuprof"))) < len(BENCHMARKS):
                    sys.exit("hook_bench (after): there were no windows")
                if variant == "recorded":
                    events, losses = losses_of(options.gpuprof, folder)

    print("ns per call        " + "".join(f"{name:>10}" for name in BENCHMARKS))
    for variant, times in best.items():
        print(f"{variant:19}" + "".join(f"{times[name]:10.2f}" for name in BENCHMARKS))
    print(f"records in the last recording run: {events}, losses: {losses or 'none'}")
    failed = 0
    for what, (variant, name), (base_variant, base_name), bound in BOUNDS:
        ratio = best[variant][name] / best[base_variant][base_name]
        failed += ratio > bound
        print(f"{what:45}{ratio:6.2f}  (at most {bound})" + ("  EXCEEDED" if ratio > bound else ""))
    for name, threads in (("deep", "one thread"), ("deep2", "two threads")):
        cost = best["stacks"][name] - best["recorded"][name]
        failed += cost > STACK_BOUND_NS
        print(f"{'one stack, ' + threads:45}{cost:6.0f} ns = {cost / best['recorded']['clock']:.1f} clock reads in pairs"
              f" (at most {STACK_BOUND_NS} ns)" + ("  EXCEEDED" if cost > STACK_BOUND_NS else ""))
    first = best["recorded"]["first"]
    failed += first > FIRST_BOUND_NS
    print(f"{'first recorded call after 3 ms without one':45}{first:6.0f} ns (at most {FIRST_BOUND_NS} ns)" + ("  EXCEEDED" if first > FIRST_BOUND_NS else ""))
    return 1 if options.check and (failed or losses) else 0


if __name__ == "__main__":
    sys.exit(main())
