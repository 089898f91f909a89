# SPDX-License-Identifier: Apache-2.0
"""A script that has torch.profiler with CUDA's activities on in its last 20 steps of 29. Writes what that has into the file
given: how many kernels, and the names of all calls of CUDA."""
import json
import sys

import torch

BEFORE, PROFILED = 9, 20


def main():
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step():
        net(torch.randn(64, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()

    for _ in range(BEFORE):
        step()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(PROFILED):
            step()
    profile.export_chrome_trace(sys.argv[1])
    with open(sys.argv[1]) as file:
        events = json.load(file)["traceEvents"]
    kernels = sum(event.get("cat") == "kernel" for event in events)
    calls = sorted({event["name"] for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")})
    with open(sys.argv[1], "w") as file:
        json.dump({"kernels": kernels, "calls": calls}, file)


main()
