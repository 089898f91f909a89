# SPDX-License-Identifier: Apache-2.0
"""Runs a script and writes down what PyTorch says of GPU memory at the end of each optimizer step: bytes allocated,
and the most that were since the step before.

usage: memory_of_steps.py OUT SCRIPT ARGUMENT..."""
import json
import runpy
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def main():
    out = sys.argv[1]
    sys.argv = sys.argv[2:]
    steps = []

    def at_step(*_):
        steps.append((torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()))
        torch.cuda.reset_peak_memory_stats()

    register_optimizer_step_post_hook(at_step)
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        with open(out, "w", encoding="ascii") as file:
            json.dump(steps, file)


if __name__ == "__main__":
    main()
