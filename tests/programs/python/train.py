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


def _init_optim_state(optimizer):
    """As PyTorch's in torch/distributed/checkpoint/state_dict.py: makes the state by a step of zeros."""
    optimizer.step()


def initialized(steps):
    """Makes the optimizer's state before the first step, and another's in the middle, as loading and saving do."""
    optimizer, other = torch.optim.SGD(), torch.optim.SGD()
    _init_optim_state(optimizer)
    for step in range(steps):
        if step == 5:
            _init_optim_state(optimizer)
            _init_optim_state(other)
        optimizer.step()


class Parameter:
    """Of a model."""


def with_groups(count):
    optimizer = torch.optim.SGD(momentum=0.9)
    optimizer.param_groups = [{"params": [Parameter()]} for _ in range(count)]
    return optimizer


def swap(parameters):
    """As nn.Module does with those of FSDP2 when it moves them: no reference may be weak."""
    for parameter in parameters:
        torch.utils.swap_tensors(parameter, Parameter())


def zero1(steps):
    """As DeepSpeed does in stages 1 and 2: its groups one after another, each as the only one."""
    optimizer = with_groups(3)
    for _ in range(steps):
        groups = optimizer.param_groups
        for group in groups:
            optimizer.param_groups = [group]
            optimizer.step()
        optimizer.param_groups = groups
        swap(group["params"][0] for group in groups)


def zero3(steps):
    """As it does in stage 3: parts of groups one after another; the others are empty meanwhile."""
    optimizer = with_groups(2)
    parts = [(group, [Parameter()]) for group in optimizer.param_groups for _ in range(20)]
    for group in optimizer.param_groups:
        group["params"] = []
    for _ in range(steps):
        for group, part in parts:
            group["params"] = part
            optimizer.step()
            group["params"] = []
            swap(part)


def zero_again(steps):
    """Of two parts, with new ones from the fourth step on: the first one's first comes no more, the second's does."""
    optimizer = with_groups(1)
    parts = [Parameter(), Parameter()]
    for step in range(steps):
        if step == 3:
            parts = [Parameter(), parts[1]]
        for part in parts:
            optimizer.param_groups[0]["params"] = [part]
            optimizer.step()
            swap([part])


def wrapped(steps):
    """Two optimizers of the same parameters, one of which steps the other."""
    outer, inner = with_groups(1), with_groups(1)
    inner.param_groups = outer.param_groups
    for _ in range(steps):
        outer.step(inner.step)
        swap(outer.param_groups[0]["params"])


def thawed(steps):
    """Parameters of before come first from the fourth step on."""
    optimizer, deeper = with_groups(1), Parameter()
    for step in range(steps):
        if step == 3:
            optimizer.param_groups[0]["params"] = [deeper, *optimizer.param_groups[0]["params"]]
        optimizer.step()
        swap(optimizer.param_groups[0]["params"])


def replaced(steps):
    """Each third step has parameters of its own, and the optimizer their state (as Gaussian splatting does)."""
    optimizer = with_groups(1)
    for step in range(steps):
        if step % 3 == 2:
            optimizer.state.clear()
            optimizer.param_groups[0]["params"] = [Parameter()]
        optimizer.step()
        swap(optimizer.param_groups[0]["params"])


def fresh(steps):
    """Each step has parameters of its own, and the optimizer no state."""
    optimizer = torch.optim.SGD()
    for _ in range(steps):
        optimizer.param_groups = [{"params": [Parameter()]}]
        optimizer.step()
        swap(optimizer.param_groups[0]["params"])


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
        ways = (loop, initialized, gan, wgan, trials, zero1, zero3, zero_again, wrapped, thawed, replaced, fresh, gpu, bracket)
        {function.__name__: function for function in ways}[way](steps)
    seen = [name for name in (*sys.modules, *sys.path, *map(repr, sys.meta_path), *os.environ) if "gpuprof" in name.lower()]
    print(way, steps, sys.flags.isolated, sys.flags.no_site, [n for n in seen if not n.startswith("GPUPROF_")])
    sys.exit(3)


if __name__ == "__main__":
    main()
