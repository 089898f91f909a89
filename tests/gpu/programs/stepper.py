# SPDX-License-Identifier: Apache-2.0
"""What the PyTorch programs share: the loop over steps, each an NVTX range `step` that ends in a device
synchronization; their times and memory; and torch.profiler over some of them. No torch is imported before it is asked for."""
import argparse
import collections
import contextlib
import json
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import equalities  # noqa: E402


def arguments(description, steps):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--device", default="cuda", help="cpu: only to see that the program runs")
    parser.add_argument("--torch-profiler", metavar="FILE", help="profile steps FIRST to LAST, what it counts to FILE")
    parser.add_argument("--first", type=int, default=12)
    parser.add_argument("--last", type=int, default=21)
    parser.add_argument("--with-cpu", action="store_true", help="torch.profiler records operators, too")
    parser.add_argument("--memory", action="store_true", help="say what PyTorch's allocator had given out at the end of each step")
    return parser


def is_gpu_work(event):
    return "CUDA" in str(event.device_type)


def kernel_counts(events):
    """Kernels by name, of torch.profiler's events; copies and sets apart."""
    kernels, other = collections.Counter(), collections.Counter()
    for event in events:
        if not is_gpu_work(event) or getattr(event, "is_user_annotation", False):
            continue
        if event.name.startswith(("Memcpy", "Memset")):
            other[event.name.split()[0]] += 1
        elif event.name != "step" and not event.name.startswith(("ProfilerStep", "nccl:")):
            kernels[event.name] += 1
    return {"kernels": kernels, "other": other}


class Profiler:
    """torch.profiler over steps first to last."""

    def __init__(self, options):
        self.options = options
        self.active = None

    def before(self, number):
        import torch
        if self.options.torch_profiler and number == self.options.first:
            kinds = [torch.profiler.ProfilerActivity.CUDA] if self.options.device == "cuda" else []
            if self.options.with_cpu or not kinds:
                kinds.append(torch.profiler.ProfilerActivity.CPU)
            self.active = torch.profiler.profile(activities=kinds)
            self.active.start()

    def after(self, number):
        if self.active and number == self.options.last:
            self.active.stop()
            with open(self.options.torch_profiler, "w") as file:
                json.dump({**kernel_counts(self.active.events()), "operators": self.operators()}, file)
            self.active = None

    def operators(self):
        if not self.options.with_cpu:
            return {}
        trace = pathlib.Path(self.options.torch_profiler + ".trace")
        self.active.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
        trace.unlink()
        return equalities.listed_operators(events)


def memory_at_end(options):
    """[bytes allocated, the most that were since it was asked last]."""
    import torch
    if not options.memory or options.device != "cuda":
        return []
    told = [torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()]
    torch.cuda.reset_peak_memory_stats()
    return [told]


def annotated(device):
    import torch
    if device != "cuda":
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def step():
        torch.cuda.nvtx.range_push("step")
        try:
            yield
        finally:
            torch.cuda.synchronize()
            torch.cuda.nvtx.range_pop()

    return step()


def run(options, step):
    """Calls `step(number)` for each step and prints the times, in ms, and the memory, in bytes, as JSON."""
    profiler = Profiler(options)
    times, memory = [], []
    result = None
    for number in range(options.steps):
        profiler.before(number)
        begin = time.perf_counter()
        with annotated(options.device):
            result = step(number)
        times.append(1e3 * (time.perf_counter() - begin))
        memory += memory_at_end(options)
        profiler.after(number)
    print(json.dumps({"result": float(result) if result is not None else None, "step_ms": [round(t, 5) for t in times],
                      "memory": memory}), flush=True)
    # A thread of autograd's that still puts the last backward away when Python ends takes the process down: it wants
    # the GIL, CPython to 3.13 ends it for that, and PyTorch's functions let nothing unwind them (std::terminate).
    time.sleep(0.2)
