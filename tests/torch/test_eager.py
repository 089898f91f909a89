# SPDX-License-Identifier: Apache-2.0
"""Eager training whose GPU has little to do is bound by the framework's own operators, and nobody is told to take logging
out of the loop. What a step does of its own beside them is named, with its line. Beside busy loops "the machine was busy"
may come first. GPUPROF_LONG_TESTS=1: all of it for each model, and beside busy loops."""
import json
import os
import pathlib
import sys

import pytest

import harness
from stack import simulated
from support.busy import busy_loops

SCRIPT = pathlib.Path(__file__).resolve().parent / "scripts/eager.py"
KERNEL_NS = 2000  # a GPU that waits for the host, however fast that is
LONG = bool(os.environ.get("GPUPROF_LONG_TESTS"))
LOOPS = (0, 4) if LONG else (0,)
MODELS = ("gpt", "cnn", "resnet", "nanogpt", "trainer")


def report(folder, model, what, loops):
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_KERNEL_NS=KERNEL_NS))
    with busy_loops(loops):
        done = harness.run([sys.executable, SCRIPT, model, what], env=env, timeout=400)
    assert done.code == 0, done.err
    return json.loads(harness.checked("report", "--format", "json", folder / "out").out)


def causes_but_the_machine(found):
    return [verdict for verdict in found["verdict"] if verdict["cause"] != "machine_busy"]


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("model", MODELS)
def test_the_framework_is_the_limit(tmp_path, model, loops):
    found = report(tmp_path, model, "nothing", loops)
    assert causes_but_the_machine(found)[0]["cause"] == "kernel_launch", (found["verdict"], found["reason"])
    assert found["gpu"]["utilization_pct"] < 50


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("model", ("gpt", "resnet", "nanogpt", "trainer") if LONG else ("gpt",))
@pytest.mark.parametrize("what, function", (("python", "plain_python"), ("file", "write_file"), ("lock", "wait_for_lock")))
def test_what_the_program_does_is_named(tmp_path, model, what, function, loops):
    found = report(tmp_path, model, what, loops)
    own = [verdict for verdict in found["verdict"] if verdict["cause"] == "host_work"]
    assert own, (found["verdict"], found["reason"])
    assert any(function in line and "eager.py:" in line for line in own[0]["evidence"]), own[0]["evidence"]
