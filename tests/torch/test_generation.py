# SPDX-License-Identifier: Apache-2.0
"""Inference without any mark of steps: a step is a call of the outermost module, found without a hook of PyTorch's."""
import json
import pathlib
import sys

import pytest

import harness
from stack import simulated

SCRIPT = pathlib.Path(__file__).resolve().parent / "scripts/generation.py"


def run(folder, arguments=(), script=SCRIPT, **settings):
    env = simulated(harness.preloaded(GPUPROF_LOG="info", GPUPROF_OUTPUT=folder / "out", **settings))
    done = harness.run([sys.executable, script, *arguments], env=env, timeout=400)
    assert done.code == 0, done.err
    dumps = harness.dumps(folder / "out")
    assert len(dumps) == 1, done.err
    return done, dumps[0], json.loads(harness.checked("report", "--format", "json", dumps[0]).out)


def steps(dump):
    found = harness.records(dump)
    inside = [r for r in found if r["kind"] == "step" and r["in_window"]]
    launches = harness.of_kind(found, "launch")
    return inside, [sum(s["begin_mono_ns"] <= r["begin_mono_ns"] < s["end_mono_ns"] for r in launches) for s in inside]


ALL, FORWARD = {"GPUPROF_SCHEDULE": "all"}, {"GPUPROF_STEP": "forward"}


@pytest.mark.parametrize("settings", [ALL, {}, FORWARD, {**ALL, **FORWARD}], ids=["all", "default", "forward", "all-forward"])
@pytest.mark.parametrize("arguments", [[], ["grad"]], ids=["no_grad", "grad"])
def test_generation(settings, arguments, tmp_path):
    done, dump, report = run(tmp_path, arguments, **settings)
    assert "184 tokens" in done.out
    assert report["kernels"] and report["operators"]
    source = harness.info(dump)["files"][0]["step_source"]
    assert source == "forward", done.err
    inside, launches = steps(dump)
    if "GPUPROF_SCHEDULE" in settings:
        assert len(inside) in (183, 184)
    else:
        assert len(inside) >= 10
    tokens = sorted(launches)[len(launches) // 2]
    assert tokens > 10 and sum(count == tokens for count in launches) >= 0.9 * len(launches), launches
    assert len(report["steps"]) == len(inside)


ENCODER = """
import torch
from torch import nn
encoder, decoder = nn.Linear(8, 8).cuda(), nn.Sequential(nn.Linear(8, 8), nn.ReLU()).cuda()
with torch.no_grad():
    for request in range(6):
        x = encoder(torch.zeros(4, 8, device="cuda"))
        for token in range(20):
            x = decoder(x)
torch.cuda.synchronize()
"""


def test_the_module_that_is_called_most_makes_the_steps(tmp_path):
    script = tmp_path / "encoder.py"
    script.write_text(ENCODER)
    _, dump, _ = run(tmp_path, script=script, **ALL)
    assert harness.info(dump)["files"][0]["step_source"] == "forward"
    assert 110 <= len(steps(dump)[0]) <= 120, "tokens, not requests"


CHANGES_NOTHING = """
import copy, io, pickle, sys
import torch
from torch import nn

class Own(nn.Module):
    def forward(self, x, *, scale=1):
        return x * scale

class Called(nn.Module):
    def __call__(self, x):
        return "own call"

model = Own()
x = torch.ones(2).cuda()
for _ in range(50):
    model(x)
import time; time.sleep(1.5)  # a look at new classes
class Late(Own):
    def forward(self, x):
        raise ValueError("from forward")
time.sleep(1.5)
print(torch.equal(model(x.cpu(), scale=3), 3 * torch.ones(2)), Called()(x))
for _ in range(3):
    try:
        Late()(x)
    except ValueError as error:
        print(error)
try:
    model(x, 1, 2, 3)
except TypeError as error:
    print("TypeError")
print(len(model._forward_hooks), len(nn.modules.module._global_forward_hooks), nn.Module.__call__.__qualname__, Own.__call__ is nn.Module.__call__)
torch.save(model, io.BytesIO())
pickle.loads(pickle.dumps(copy.deepcopy(model)))(x)
print(sys.getrefcount(Own) < 100)
"""


def test_the_program_sees_nothing_of_it(tmp_path):
    script = tmp_path / "own.py"
    script.write_text(CHANGES_NOTHING)
    bare = harness.run([sys.executable, script], env=simulated(harness.environment()))
    assert bare.code == 0, bare.err
    done, dump, _ = run(tmp_path, script=script, **ALL, **FORWARD)
    assert done.out == bare.out
    assert len(steps(dump)[0]) >= 50, "the calls of one module"
