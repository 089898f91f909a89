# SPDX-License-Identifier: Apache-2.0
"""What the step source `forward` adds to a call of a PyTorch module from outside of any, and to one of a module inside:
processor time of this thread in one process, of stretches that alternate between the slot as it was and the slot as
gpuprof has it. A window is far away, so a call is a mark and nothing is recorded.

usage: forward_cost.py --library LIBRARY [--calls N]     (python and LD_LIBRARY_PATH of tests/torch/run.sh, and the simulated
stack before it)"""
import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

CALL_SLOT = 128  # of tp_call in a type object; collector/python/forward.cpp
ROUNDS = 60
INSIDE = 100


def slots(classes):
    return [ctypes.c_void_p.from_address(id(each) + CALL_SLOT) for each in classes]


def measure(calls):
    import torch
    from torch import nn

    class Leaf(nn.Module):
        def forward(self, x):
            return x

    class Outer(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.inside = [Leaf() for _ in range(count)]

        def forward(self, x):
            for each in self.inside:
                each(x)
            return x

    classes = slots([nn.Module, Leaf, Outer])
    before = [slot.value for slot in classes]
    torch.zeros(8, device="cuda")  # the session begins
    torch.cuda.synchronize()
    for _ in range(300):
        time.sleep(0.01)
        sum(range(1000))  # pending calls are made here
        if all(slot.value != old for slot, old in zip(classes, before)):
            break
    else:
        sys.exit("forward_cost: the slots were not changed")
    ours = [slot.value for slot in classes]

    def stretch(module, values):
        for slot, value in zip(classes, values):
            slot.value = value
        begin = time.thread_time_ns()
        for _ in range(calls):
            module(None)
        return (time.thread_time_ns() - begin) / calls

    def added(module):
        pairs = [(stretch(module, ours), stretch(module, before)) for _ in range(ROUNDS)]
        return statistics.median(a - b for a, b in pairs)

    own = added(Leaf())
    print(f"added to a call from outside {own:.0f} ns, to a call inside {(added(Outer(INSIDE)) - own) / INSIDE:.1f} ns")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--library")
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    if not options.library:
        return measure(options.calls)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "LD_PRELOAD": options.library, "GPUPROF_OUTPUT": folder, "GPUPROF_STEP": "forward",
               "GPUPROF_SCHEDULE": "skip_first=1000000000,max_s=0", "GPUPROF_LOG": "error"}
        return subprocess.run([sys.executable, __file__, "--calls", str(options.calls)], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
