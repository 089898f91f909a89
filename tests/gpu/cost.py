# SPDX-License-Identifier: Apache-2.0
"""What profiling costs: the median time of a step bare, waiting, in a window, and under torch.profiler. Rounds of
all modes in turn, as many as the time allows; ratios are taken within a round."""
import json
import sys
import time

from figures import median_between, percent, ratio_row, ratio_text
from frameworks import need_torch
from lab import PROGRAMS, Failed
from natives import program

STEPS, WARM, FIRST, LAST = 300, 40, 140, 239  # the window is steps FIRST to LAST
WINDOW = f"skip_first={FIRST - 2},warmup=2,active={LAST - FIRST + 1},repeat=1,max_s=0,max_mb=0"

MODES = {
    "bare": None,
    "armed": {"GPUPROF_MODE": "armed"},
    "waiting": {"GPUPROF_SCHEDULE": "skip_first=1000000"},
    "kernels": {"GPUPROF_SCHEDULE": WINDOW, "GPUPROF_ACTIVITIES": "step,kernel"},
    "default": {"GPUPROF_SCHEDULE": WINDOW},
    "full": {"GPUPROF_SCHEDULE": WINDOW, "GPUPROF_PRESET": "full"},
    "torch.profiler": "gpu",
    "torch.profiler+cpu": "cpu",
}


def one(lab, program_name, command, step, mode):
    """Times of one run: {"window": ms, "before": ms, "after": ms}; None where it failed."""
    setting = MODES[mode]
    env, extra = {}, []
    if isinstance(setting, dict):
        env = lab.settings(lab.folder(f"{program_name}-{mode}"), **{"GPUPROF_STEP": step, "GPUPROF_LOG": "warn"}, **setting)
    elif setting:
        extra = ["--torch-profiler", lab.out / "cost.torch.json", "--first", FIRST, "--last", LAST]
        extra += ["--with-cpu"] if setting == "cpu" else []
    begin = time.monotonic()
    done = lab.run([*command, *extra], env, limit=90)
    if done.code != 0:
        raise Failed(f"{mode}: {done.why()}")
    times = done.result()["step_ms"]
    return {"window": median_between(times, FIRST + 1, LAST - 1), "before": median_between(times, WARM, FIRST - 6),
            "after": median_between(times, LAST + 2, len(times) - 1), "wall_s": time.monotonic() - begin}


def rounds_of(lab, name, command, step, modes, until):
    """Rounds of all modes, each in another order, until the moment `until` or ten of them."""
    rounds = []
    took = 0.0
    while len(rounds) < 10 and (not rounds or time.monotonic() + took < until):
        begin = time.monotonic()
        order = modes[len(rounds) % len(modes):] + modes[:len(rounds) % len(modes)]
        rounds.append({mode: one(lab, name, command, step, mode) for mode in order})
        took = time.monotonic() - begin
    return rounds


def report(lab, name, rounds):
    """A row for each mode. Waiting is also what a profiled run did before its window, and after it."""
    (lab.out / f"cost-{name}.json").write_text(json.dumps(rounds, indent=1))
    window = [{mode: r["window"] for mode, r in each.items()} for each in rounds]
    bare = [r["bare"]["window"] for r in rounds]
    lab.add(f"{name}-bare", "ok", f"{sorted(bare)[len(bare) // 2]:.4f} ms a step", ms=bare)
    for mode in rounds[0]:
        if mode == "bare":
            continue
        row = ratio_row(window, mode)
        text = ratio_text(row)
        if mode in ("kernels", "default", "full"):
            inner = ratio_row([r[mode] for r in rounds], "window", "before")
            after = ratio_row([r[mode] for r in rounds], "after", "before")
            text += f"; to its own steps before the window {percent(inner['median'])}, after it {percent(after['median'])}"
        wall = ratio_row([{m: r["wall_s"] for m, r in each.items()} for each in rounds], mode)
        text += f"; whole program {percent(wall['median'])}"
        lab.add(f"{name}-{mode}", "ok", text, wall=wall, **(row or {}))


def measure(lab, name, command, step, modes, until):
    def run():
        report(lab, name, rounds_of(lab, name, command(), step, modes, until()))

    return name, run


def cost(lab):
    """All that the whole test has left, shared between three programs."""
    native = [m for m in MODES if not m.startswith("torch")]
    begun = time.monotonic()

    def share(part):
        return lambda: begun + part * (lab.deadline - 5 - begun)

    def torch_command(model):
        def command():
            need_torch(lab)
            return [sys.executable, PROGRAMS / "train.py", "--model", model, "--steps", STEPS]
        return command

    lab.cases([
        measure(lab, "launches", lambda: [program(lab, "ways_shared"), STEPS, 500], "sync:1", native, share(0.15)),
        measure(lab, "transformer", torch_command("transformer"), "nvtx:step", list(MODES), share(0.6)),
        measure(lab, "conv", torch_command("conv"), "nvtx:step", list(MODES), share(1.0)),
    ])
