# SPDX-License-Identifier: Apache-2.0
"""Runs a script under torch.profiler, with a window between the same steps of its optimizer as gpuprof has.

usage: under_profiler.py [--all] TRACE FIRST ACTIVE SCRIPT ARGUMENT...     --all: also shapes and modules"""
import json
import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def main():
    everything = sys.argv[1] == "--all"
    sys.argv[1:] = sys.argv[1 + everything:]
    trace, first, active = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sys.argv = sys.argv[4:]
    schedule = torch.profiler.schedule(skip_first=first - 1, wait=0, warmup=1, active=active, repeat=1)
    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule,
                                     record_shapes=everything, with_stack=everything,
                                     on_trace_ready=lambda p: p.export_chrome_trace(trace))
    with profile:
        register_optimizer_step_post_hook(lambda *_: profile.step())
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
