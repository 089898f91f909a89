# SPDX-License-Identifier: Apache-2.0
"""cuDNN tries its algorithms in the first forward pass and synchronizes meanwhile (torch.backends.cudnn.benchmark): the
steps are the optimizer's all the same, also where other processes have the processors."""
import os
import pathlib
import re
import sys

import pytest

import harness
import truth
from stack import simulated
from support.busy import busy_loops

SCRIPT = pathlib.Path(__file__).resolve().parent / "scripts/benchmarked.py"


def run(folder, *command, devices=1):
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder / "truth", GPUPROF_LOG="info"))
    (folder / "truth").mkdir(parents=True)
    done = harness.run([sys.executable, *command], env={**env, "SIMCUDA_DEVICES": str(devices)}, timeout=400)
    assert done.code == 0, done.err
    return done, [truth.Comparison(dump, folder / "truth") for dump in harness.dumps(folder / "out")]


def synchronizations_before_the_first_step(comparison):
    first = min(r["end_mono_ns"] for r in comparison.records if r["kind"] == "step" and r["number"] == 0)
    return sum(line["t"] == "call" and bool(re.search("(Device|Ctx)Synchronize", line["name"])) and line["end"] < first
               for line in comparison.truth)


def assert_steps(done, comparison):
    assert done.out.count("30 steps\n") >= 1
    assert synchronizations_before_the_first_step(comparison) > 3, "it tests nothing otherwise"
    assert comparison.header["step_source"] == "optimizer" and "steps: sync" not in done.err, done.err
    assert comparison.window_steps() == list(range(12, 22))
    steps = [r for r in comparison.records if r["kind"] == "step"]
    assert [r["number"] for r in steps] == list(range(len(steps))) and len(steps) >= 22
    comparison.assert_right("launch", "gpu_kernel")
    launches = [sum(s["begin_mono_ns"] <= r["begin_mono_ns"] < s["end_mono_ns"] for r in harness.of_kind(comparison.records, "launch"))
                for s in steps if s["in_window"]]
    assert len(set(launches)) == 1 and launches[0] > 20, "whole iterations, all alike"


MODELS = ["conv", "conv amp", "residual", "dcgan"]
# Each beside busy loops takes minutes: GPUPROF_LONG_TESTS=1 asks for all.
BESIDE_BUSY_LOOPS = MODELS if os.environ.get("GPUPROF_LONG_TESTS") else ["conv"]


@pytest.mark.parametrize("arguments, busy", [*((model, 0) for model in MODELS), *((model, 4) for model in BESIDE_BUSY_LOOPS)])
def test_one_gpu(tmp_path, arguments, busy):
    with busy_loops(busy):
        done, (comparison,) = run(tmp_path, SCRIPT, *arguments.split())
    assert_steps(done, comparison)


@pytest.mark.parametrize("busy", (0, 4) if os.environ.get("GPUPROF_LONG_TESTS") else (0,))
def test_two_ranks(tmp_path, busy):
    with busy_loops(busy):
        done, comparisons = run(tmp_path, "-m", "torch.distributed.run", "--nproc-per-node", "2", SCRIPT, "conv", "ddp", devices=2)
    assert len(comparisons) == 2
    for comparison in comparisons:
        assert_steps(done, comparison)
