# SPDX-License-Identifier: Apache-2.0
"""What it costs to see PyTorch's operators: the time that is added to a training step of a small model on the CPU, under
the preloaded library, under emit_nvtx's ranges with it, and under torch.profiler with the same content. Within one
process stretches of steps with and without recording alternate. Of the stretches' medians the tenth percentile counts,
since shared machines have slow moments: what is added is that of stretches with recording, less that of those without.

usage: torch_operators.py [--library LIBRARY] [--rounds N]     (with the python and LD_LIBRARY_PATH of tests/torch/run.sh)"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

STRETCH, REPEATS = 100, 12  # steps; stretches with recording, each between two without
SETTLE = 10  # steps at a stretch's begin that are left out
SCHEDULE = f"skip_first={STRETCH},wait={STRETCH - 1},skip_first_wait=1,warmup=1,active={STRETCH},repeat={REPEATS},max_s=0,max_mb=0"

# name: what gpuprof records, or what torch.profiler is told
WAYS = {
    "op": "op", "profiler": {},
    "op,op:shapes": "op,op:shapes", "profiler, shapes": {"record_shapes": True},
    "op,module": "op,module", "op,tensor": "op,tensor", "profiler, memory": {"profile_memory": True},
    "op,samples": "op,samples", "profiler, stacks": {"with_stack": True},
    "op,op:shapes,tensor,samples": "op,op:shapes,tensor,samples",
    "profiler, all": {"record_shapes": True, "profile_memory": True, "with_stack": True},
    "emit_nvtx": "nvtx", "nothing": "step",
}


class Nvtx:
    """emit_nvtx's state. Its own switching waits for a GPU that may not be there."""

    def start(self):
        from torch.autograd.profiler import ProfilerConfig, ProfilerState, _enable_profiler
        import torch
        _enable_profiler(ProfilerConfig(ProfilerState.NVTX, False, False, False, False, False,
                                        torch._C._profiler._ExperimentalConfig()), set())

    def stop(self):
        from torch.autograd.profiler import _disable_profiler
        _disable_profiler()


def recorder(way):
    """Starts and stops what the program itself records by; None: gpuprof's schedule does."""
    import torch
    if way == "emit_nvtx":
        return Nvtx()
    if isinstance(WAYS[way], dict):
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **WAYS[way])
    return None


def train(way):
    import time

    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(8)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    batch = torch.ones(8, 32)
    medians, scope = [], None
    for stretch in range(2 * REPEATS + 1):
        if stretch % 2:
            scope = recorder(way)
            if scope:
                scope.start()
        times = []
        for _ in range(STRETCH):
            begin = time.perf_counter_ns()
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            times.append(time.perf_counter_ns() - begin)
        if scope:
            scope.stop()
            scope = None
        medians.append(statistics.median(times[SETTLE:]) / 1000)
    print(json.dumps(medians))
    sys.stdout.flush()
    os._exit(0)


def typical(medians):
    return statistics.quantiles(medians, n=10)[0]


def run(way, library, folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUPROF_")}
    if isinstance(WAYS[way], str):
        env.update(LD_PRELOAD=library, GPUPROF_OUTPUT=folder, GPUPROF_STEP="optimizer", GPUPROF_SCHEDULE=SCHEDULE,
                   GPUPROF_ACTIVITIES=WAYS[way])
    done = subprocess.run([sys.executable, __file__, "--way", way], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/preload/libgpuprof.so"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way")
    options = parser.parse_args()
    if options.way:
        return train(options.way)
    found = {way: ([], []) for way in WAYS}  # without and with recording
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for way, (without, recorded) in found.items():
                medians = run(way, options.library, folder)
                without += medians[::2]
                recorded += medians[1::2]
    print(f"{'way':28} {'bare step us':>12} {'added us':>9} {'ratio':>6}")
    for way, (without, recorded) in found.items():
        bare, step = typical(without), typical(recorded)
        print(f"{way:28} {bare:12.1f} {step - bare:9.1f} {step / bare:6.2f}")


if __name__ == "__main__":
    main()
