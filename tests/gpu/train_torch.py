# SPDX-License-Identifier: Apache-2.0
"""A small PyTorch training loop; prints its time per step. Each step is an NVTX range `step` and ends in a
device synchronization.

usage: train_torch.py [--steps N] [--torch-profiler FILE]   FILE: kernel counts by torch.profiler, as JSON,
of the steps FIRST to LAST (12 and 21, gpuprof's default window)"""
import argparse
import collections
import json
import time

import torch

FIRST, LAST = 12, 21


def make_step():
    torch.manual_seed(1)
    layers = []
    for _ in range(6):
        layers += [torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.randn(256, 2048).pin_memory()

    def step():
        torch.cuda.nvtx.range_push("step")
        batch = data.cuda(non_blocking=True)
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
        return loss

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--torch-profiler")
    options = parser.parse_args()
    step = make_step()
    times = []
    profiler = None
    for number in range(options.steps):
        if options.torch_profiler and number == FIRST:
            profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
            profiler.start()
        begin = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - begin)
        if profiler and number == LAST:
            profiler.stop()
            kernels = collections.Counter(
                event.name for event in profiler.events()
                if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith(("Mem", "ProfilerStep")))
            with open(options.torch_profiler, "w") as file:
                json.dump(kernels, file)
            profiler = None
    later = sorted(times[30:]) or sorted(times)
    print(f"loss {loss.item():.6f}")
    print(f"ms_per_step {1e3 * later[len(later) // 2]:.4f}")


if __name__ == "__main__":
    main()
