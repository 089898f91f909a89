# SPDX-License-Identifier: Apache-2.0
"""Unmodified training scripts on a real PyTorch: same output and exit code, the exact number of steps, and each
operator as often as torch.profiler says in a run of its own."""
import collections
import functools
import json
import os
import pathlib
import re
import sys

import pytest

import harness

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "scripts/train.py"
STEPS, FIRST = 40, 28  # the window ends with the script's last step
SETTINGS = {"GPUPROF_SCHEDULE": f"skip_first={FIRST - 2},warmup=2,active={STEPS - FIRST}", "GPUPROF_LOG": "info"}


def environment(**settings):
    return {**settings, "LD_LIBRARY_PATH": os.environ["GPUPROF_TORCH_LIBRARIES"], "PYTHONDONTWRITEBYTECODE": "1"}


def profiled(folder, *command, **settings):
    bare = harness.run(command, env=environment_of(harness.environment(), settings), timeout=400)
    seen = harness.run(command, env=environment_of(harness.preloaded(GPUPROF_OUTPUT=folder / "out", **SETTINGS), settings),
                       timeout=400)
    assert bare.code == 3, bare.err
    assert (seen.code, seen.out) == (bare.code, bare.out), seen.err
    return seen


def environment_of(base, settings):
    return {**base, **environment(**settings)}


@functools.cache
def torch_says(folder, model):
    """Names of what torch.profiler lists in the same steps, with how often."""
    trace = folder / f"{model}.json"
    done = harness.run([sys.executable, HERE / "under_profiler.py", trace, FIRST, STEPS - FIRST, SCRIPT, model],
                       env=environment_of(harness.environment(), {}), timeout=400)
    assert done.code == 3, done.err
    events = json.loads(trace.read_text())["traceEvents"]
    return collections.Counter(e["name"] for e in events if e.get("cat") in ("cpu_op", "user_annotation"))


# What the DataLoader makes of a batch when it comes from a worker, which may be a step earlier or later.
OF_BATCHES = ("aten::empty", "aten::set_")


def is_operator(name):
    return not name.startswith("ProfilerStep#")


@pytest.mark.parametrize("model", ["mlp", "conv", "transformer"])
def test_training(tmp_path, model):
    done = profiled(tmp_path, sys.executable, SCRIPT, model)
    assert f"steps {FIRST}-{STEPS - 1} (optimizer)" in done.err
    [dump] = harness.dumps(tmp_path / "out")
    records = harness.records(dump)
    assert [r["number"] for r in records if r["kind"] == "step"] == list(range(STEPS))
    assert harness.info(dump)["losses"] == {}

    ours = collections.Counter(r["name"] for r in records if r["kind"] in ("op", "annotation"))
    theirs = torch_says(tmp_path, model)
    different = {n: (ours[n], theirs[n]) for n in {*ours, *theirs} if ours[n] != theirs[n] and is_operator(n) and n not in OF_BATCHES}
    assert different == {} and len(ours) > 30
    assert_backward_is_joined(records)
    assert_tensors_add_up(records)
    assert_exported(tmp_path, dump, ours)


def assert_backward_is_joined(records):
    nodes = [r for r in records if r["kind"] == "op" and re.fullmatch(r"\w+Backward\d", r["name"])]
    assert nodes and all("sequence_number" in node and node["forward_thread"] > 0 for node in nodes)


def assert_tensors_add_up(records):
    """A block is given before it is taken back, with the same size, and not given twice."""
    live, back = {}, 0
    tensors = sorted((r for r in records if r["kind"] == "tensor"), key=lambda r: r["begin_mono_ns"])
    for tensor in tensors:
        assert tensor["device_type"] == 0
        if tensor["bytes"] > 0:
            assert tensor["address"] not in live
            live[tensor["address"]] = tensor["bytes"]
        elif tensor["address"] in live:
            back += 1
            assert live.pop(tensor["address"]) == -tensor["bytes"]
        else:
            assert tensor["bytes"] == 0, "given before the window"
    assert back > 100 and len(live) < 100


def assert_exported(folder, dump, ours):
    for form in ("chrome", "perfetto"):
        harness.checked("convert", dump, "--to", form, "-o", folder / form)
    events = json.loads((folder / "chrome").read_text())["traceEvents"]
    exported = collections.Counter(e["name"] for e in events if e.get("cat") in ("cpu_op", "user_annotation"))
    assert {name: exported[name] for name in ours} == dict(ours)
    assert sum(1 for e in events if e.get("cat") == "fwdbwd") > 0
    harness.checked("report", dump)


@pytest.mark.parametrize("way", ["module", "isolated", "torchrun"])
def test_ways_to_start(tmp_path, way):
    if way == "module":
        command = [sys.executable, "-m", "train", "mlp"]
    elif way == "isolated":
        command = [sys.executable, "-I", SCRIPT, "mlp"]
    else:
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--no-python", sys.executable,
                   HERE / "scripts/two_ranks.py"]
    if way == "torchrun":
        seen = harness.run(command, env=environment_of(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **SETTINGS), {}),
                           timeout=500)
        assert (seen.code, sorted(seen.out.split())) == (0, ["rank0", "rank1"]), seen.err
    else:
        profiled(tmp_path, *command, PYTHONPATH=str(SCRIPT.parent))
    found = harness.dumps(tmp_path / "out")
    assert len(found) == (2 if way == "torchrun" else 1)
    for dump in found:
        records = harness.records(dump)
        assert [r["number"] for r in records if r["kind"] == "step"] == list(range(STEPS))
        assert any(r["kind"] == "op" and r["name"] == "aten::addmm" for r in records)


def test_torch_profiler_in_the_script_works_as_without_us(tmp_path):
    """Both see each operator of the steps that both record."""
    trace = tmp_path / "theirs.json"
    command = [sys.executable, HERE / "under_profiler.py", trace, FIRST, STEPS - FIRST, SCRIPT, "mlp"]
    done = harness.run(command, env=environment_of(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **SETTINGS), {}),
                       timeout=400)
    assert done.code == 3, done.err
    events = json.loads(trace.read_text())["traceEvents"]
    theirs = collections.Counter(e["name"] for e in events if e.get("cat") in ("cpu_op", "user_annotation"))
    [dump] = harness.dumps(tmp_path / "out")
    ours = collections.Counter(r["name"] for r in harness.records(dump) if r["kind"] in ("op", "annotation"))
    different = {n: (ours[n], theirs[n]) for n in {*ours, *theirs} if ours[n] != theirs[n] and is_operator(n)}
    assert different == {} and len(theirs) > 30
    alone = torch_says(tmp_path, "mlp")
    assert {n: c for n, c in theirs.items() if n not in OF_BATCHES} == {n: c for n, c in alone.items() if n not in OF_BATCHES}
