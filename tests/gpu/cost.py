# SPDX-License-Identifier: Apache-2.0
"""What profiling costs. A step in a window against the steps between windows, in one process, which must keep to a target; and
the median time of a step bare, waiting, in a window, and under torch.profiler, in processes of their own: rounds of all modes in turn,
as many as the time allows; ratios are taken within a round."""
import json
import sys
import time

from figures import median_between, percent, ratio_row, ratio_text, spread, window_ratios
from frameworks import need_torch
from lab import PROGRAMS, Failed
from natives import program

STEPS, WARM, FIRST, LAST = 300, 40, 140, 239  # the window is steps FIRST to LAST
WINDOW = f"skip_first={FIRST - 2},warmup=2,active={LAST - FIRST + 1},repeat=1,max_s=0,max_mb=0"

# In one process: stretches of WAIT steps, each followed by a window of ACTIVE steps.
WINDOWS, WAIT, ACTIVE = 8, 38, 20
TARGET = 1.02  # of a step with operators and tensors
ALTERNATING = f"skip_first={WARM},wait={WAIT},warmup=2,active={ACTIVE},repeat={WINDOWS},max_s=0,max_mb=0"
ALTERNATING_STEPS = WARM + WINDOWS * (WAIT + 2 + ACTIVE) + WAIT
RECORDED = {"operators": {"GPUPROF_ACTIVITIES": "step,kernel,memcpy,memset,op,tensor"}, "default": {},
            "taken-down": {"GPUPROF_CUPTI_TEARDOWN": "1"}}
PARTS = {"waits": {"GPUPROF_ACTIVITIES": "+sync:gpu"}, "steps": {"GPUPROF_ACTIVITIES": "step"}, "kernels": {"GPUPROF_ACTIVITIES": "step,kernel"},
         "hooks": {"GPUPROF_CUPTI": "off"}}  # what of a window's cost is whose

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


def torch_command(lab, steps, *arguments):
    def command():
        need_torch(lab)
        return [sys.executable, PROGRAMS / "train.py", "--steps", steps, *arguments]

    return command


def windows_of(lab, folder):
    """First and last step of each dump in a folder."""
    told = lab.run([lab.gpuprof, "info", "--format", "json", folder], limit=60)
    if told.code != 0:
        raise Failed(f"gpuprof info: {told.why()}")
    return sorted((each["steps"]["first"], each["steps"]["last"]) for each in json.loads(told.out)["files"])


def alternating(lab, name, command, step, settings):
    """Windows and the stretches between them in one run: a row with what a window adds to a step, and whether that is in the target."""
    def run():
        folder = lab.folder(name)
        env = lab.settings(folder, **{"GPUPROF_STEP": step, "GPUPROF_SCHEDULE": ALTERNATING, "GPUPROF_LOG": "warn"}, **settings)
        done = lab.run(command(), env, limit=90)
        if done.code != 0:
            raise Failed(done.why())
        found = windows_of(lab, folder)
        if len(found) != WINDOWS:
            raise Failed(f"{len(found)} windows, not {WINDOWS}")
        times = done.result()["step_ms"]
        row = spread(window_ratios(times, found))
        before, after = median_between(times, WARM // 2, found[0][0] - 6), median_between(times, found[-1][1] + WAIT // 4, len(times))
        lab.add(name, "ok" if row["median"] <= TARGET else "OVER",
                f"{ratio_text(row, 'windows')}, at most {percent(TARGET)}; {before:.4f} ms a step before the first, after the last "
                f"{percent(after / before)}", before=before, after=after, **row)

    return name, run


def windows(lab):
    """The GPT, ResNet-50, the GPT as a CUDA graph and under FSDP, with operators and tensors alone, with all that is recorded by default, and that
    with CUPTI taken down after each window. Of the GPT also each part of it alone."""
    models = {"gpt": ["--model", "gpt"], "resnet50": ["--model", "resnet50"], "gpt-graph": ["--model", "gpt", "--graph"],
              "fsdp": ["--model", "gpt", "--fsdp"]}
    lab.cases([alternating(lab, f"{model}-{name}", torch_command(lab, ALTERNATING_STEPS, *arguments), "nvtx:step", settings)
               for model, arguments in models.items()
               for name, settings in {**RECORDED, **(PARTS if model == "gpt" else {})}.items()])


def cost(lab):
    """All that the whole test has left, shared between three programs."""
    native = [m for m in MODES if not m.startswith("torch")]
    begun = time.monotonic()

    def share(part):
        return lambda: begun + part * (lab.deadline - 5 - begun)

    lab.cases([
        measure(lab, "launches", lambda: [program(lab, "ways_shared"), STEPS, 500], "sync:1", native, share(0.15)),
        measure(lab, "gpt", torch_command(lab, STEPS, "--model", "gpt"), "nvtx:step", list(MODES), share(0.6)),
        measure(lab, "resnet50", torch_command(lab, STEPS, "--model", "resnet50"), "nvtx:step", list(MODES), share(1.0)),
    ])
