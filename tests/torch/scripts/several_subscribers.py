# SPDX-License-Identifier: Apache-2.0
"""A training whose steps 6 to 15 PyTorch's own profiler records as one of several subscribers of CUPTI (backend "cuspy").
Writes its trace beside the named file, with .gz."""
import json
import sys
import time

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile


def main():
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batch = torch.randn(64, 256, device="cuda")

    def step():
        net(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    def steps(count):
        for _ in range(count):
            step()
        torch.cuda.synchronize()

    steps(6)
    backend = _ExperimentalConfig(custom_profiler_config=json.dumps({"backend": "cuspy"}))
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], experimental_config=backend) as profiler:
        steps(10)
    profiler.export_chrome_trace(sys.argv[1])
    steps(6)
    time.sleep(0.1)  # an autograd thread that still waits for the GIL then ends the process: pytorch #190489


main()
