# SPDX-License-Identifier: Apache-2.0
"""Training loops as far as a step source sees them. Arguments: way, steps. Exit code 3."""
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


def accumulate(steps):
    """Four passes a step."""
    optimizer = torch.optim.SGD()
    for batch in range(4 * steps):
        if batch % 4 == 3:
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
        {"loop": loop, "gan": gan, "accumulate": accumulate}[way](steps)
    seen = [name for name in (*sys.modules, *sys.path, *map(repr, sys.meta_path), *os.environ) if "gpuprof" in name.lower()]
    print(way, steps, sys.flags.isolated, sys.flags.no_site, [n for n in seen if not n.startswith("GPUPROF_")])
    sys.exit(3)


if __name__ == "__main__":
    main()
