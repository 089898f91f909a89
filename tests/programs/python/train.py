# SPDX-License-Identifier: Apache-2.0
"""Training loops as far as a step source sees them. Arguments: way, steps. Exit code 3."""
import ctypes
import multiprocessing
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch


def loop(steps):
    optimizer = torch.optim.SGD()
    for step in range(steps):
        if optimizer.step(lambda: step) != step:
            sys.exit("the optimizer lost the result")


def gan(steps):
    """Two optimizers a step."""
    generator, discriminator = torch.optim.SGD(), torch.optim.SGD()
    for _ in range(steps):
        discriminator.step()
        generator.step()


def wgan(steps):
    """Twenty steps of one optimizer to one of the other."""
    generator, critic = torch.optim.SGD(), torch.optim.SGD()
    for _ in range(steps):
        for _ in range(20):
            critic.step()
        generator.step()


def trials(steps):
    """One training after another, each with an optimizer of its own that is alive to the end."""
    optimizers = []
    for _ in range(3):
        optimizers.append(torch.optim.SGD())
        for _ in range(steps):
            optimizers[-1].step()


def cuda():
    runtime = ctypes.CDLL("libcudart.so.13")
    if runtime.cudaFree(None) != 0:
        sys.exit("no CUDA")
    return runtime


def gpu(steps):
    """CUDA is used from before the first step on."""
    cuda()
    loop(steps)


def bracket(steps):
    """Steps 5 to 7 stand between cudaProfilerStart and cudaProfilerStop."""
    runtime, optimizer = cuda(), torch.optim.SGD()
    for step in range(steps):
        if step == 5:
            runtime.cudaProfilerStart()
        if step == 8:
            runtime.cudaProfilerStop()
        optimizer.step()


def idle(_):
    """A worker that computes nothing."""


def children(start, steps):
    context = multiprocessing.get_context(start)
    workers = [context.Process(target=work, args=(steps,)) for work in (loop, idle)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(start, [worker.exitcode for worker in workers])


def main():
    way, steps = sys.argv[1], int(sys.argv[2])
    if way in ("fork", "spawn", "forkserver"):
        children(way, steps)
    else:
        {"loop": loop, "gan": gan, "wgan": wgan, "trials": trials, "gpu": gpu, "bracket": bracket}[way](steps)
    seen = [name for name in (*sys.modules, *sys.path, *map(repr, sys.meta_path), *os.environ) if "gpuprof" in name.lower()]
    print(way, steps, sys.flags.isolated, sys.flags.no_site, [n for n in seen if not n.startswith("GPUPROF_")])
    sys.exit(3)


if __name__ == "__main__":
    main()
