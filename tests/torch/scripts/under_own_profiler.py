# SPDX-License-Identifier: Apache-2.0
"""A script that has torch.profiler on for all of its steps. Prints the names of what that has listed. Exit code 3."""
import sys
import time

import torch

STEPS = 40


def main():
    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(STEPS):
            weight.sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    print(sorted({event.name for event in profile.events()}))
    time.sleep(0.2)  # as in train.py
    sys.exit(3)


main()
