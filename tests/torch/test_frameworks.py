# SPDX-License-Identifier: Apache-2.0
"""Training loops that others wrote: Lightning, Accelerate, the Trainer of transformers, ranks by spawn, and what programs
write themselves. Steps are those that each counts itself, of an unmodified script, and what is recorded of them is what the
simulator says."""
import json
import pathlib
import sys

import pytest

import equalities
import harness
import truth
from stack import profiled, simulated

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
STEPS, WINDOW = 20, range(14, 20)


@pytest.mark.parametrize("script", ["lightning_loop.py", "accelerate_loop.py", "trainer_loop.py"])
def test_steps_are_the_frameworks(tmp_path, script):
    command = [SCRIPTS / script, *([tmp_path / "results"] if script.startswith("trainer") else [])]
    bare = harness.run([sys.executable, *command], env=simulated(harness.environment()), timeout=400)
    assert (bare.code, bare.out.splitlines()[-1]) == (0, f"{STEPS} steps"), bare.err
    seen, comparison = profiled(tmp_path, WINDOW, *command, GPUPROF_STEP="auto")
    assert (seen.code, seen.out) == (bare.code, bare.out), seen.err
    assert f"steps {WINDOW[0]}-{WINDOW[-1]} (optimizer)" in seen.err
    assert [r["number"] for r in comparison.records if r["kind"] == "step"] == list(range(STEPS))
    comparison.assert_right(*equalities.WORK)
    assert comparison.summary["losses"].keys() <= {"sample_torn"}
    assert comparison.window_steps() == list(WINDOW)


@pytest.mark.parametrize("loop", ["adversaries", "policy", "recomputed", "closures", "other_thread"])
def test_plain_loops(tmp_path, loop):
    command = [SCRIPTS / "loops.py", loop]
    bare = harness.run([sys.executable, *command], env=simulated(harness.environment()), timeout=400)
    assert bare.code == 0 and bare.out.endswith(" steps\n"), bare.err
    made = int(bare.out.split()[0])
    window = range(made - 6, made)
    seen, comparison = profiled(tmp_path, window, *command, GPUPROF_STEP="auto")
    assert (seen.code, seen.out) == (bare.code, bare.out), seen.err
    assert f"steps {window[0]}-{window[-1]} (optimizer)" in seen.err
    assert [r["number"] for r in comparison.records if r["kind"] == "step"] == list(range(made))
    comparison.assert_right("launch", "gpu_kernel")
    assert not equalities.without_owner(comparison.records)
    assert comparison.summary["losses"].keys() <= {"sample_torn"}
    assert comparison.window_steps() == list(window)


def test_steps_that_come_late(tmp_path):
    """After 30 s without steps `auto` goes by the clock: a window of seconds 3 to 5, and then one of the program's own steps."""
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_LOG="info",
                                      GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=3"))
    (tmp_path / "truth").mkdir()
    done = harness.run([sys.executable, SCRIPTS / "late_steps.py", "42"], env=env, timeout=400)
    assert done.code == 0, done.err
    assert done.err.index("steps: time:1000") < done.err.index("steps: optimizer"), done.err
    clock, own = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(own, tmp_path / "truth")
    comparison.assert_right("launch", "gpu_kernel")
    assert not equalities.without_owner(comparison.records)
    steps = comparison.window_steps()
    assert len(steps) == 3
    for files, steps_in, said in (([clock], 3, 0), ([own], 3, 0), ([clock, own], 3, 1)):
        report = harness.checked("report", "--format", "json", *files)
        found = json.loads(report.out)
        assert len(found["steps"]) == steps_in and ("of wall time: the program's own steps" in report.err) == said
        assert (found["step_time_us"]["mean"] > 500_000) == (files == [clock])


def test_spawned_ranks(tmp_path):
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_LOG="info",
                                      GPUPROF_SCHEDULE="skip_first=10,warmup=1,active=6"))
    (tmp_path / "truth").mkdir()
    done = harness.run([sys.executable, SCRIPTS / "spawned_ranks.py", tmp_path / "meeting"], env={**env, "SIMCUDA_DEVICES": "2"},
                       timeout=400)
    assert (done.code, done.out) == (0, f"{STEPS} steps\n"), done.err
    dumps = harness.dumps(tmp_path / "out")
    assert len(dumps) == 2 and len({dump.parent for dump in dumps}) == 1
    ranks = {}
    for dump in dumps:
        comparison = truth.Comparison(dump, tmp_path / "truth")
        comparison.assert_right(*equalities.WORK, "collective")
        assert comparison.window_steps() == list(range(11, 17))
        ranks[comparison.header["pid"]] = {line["rank"] for line in comparison.truth if line["t"] == "nccl" and "rank" in line}
    found = json.loads(harness.checked("info", tmp_path / "out", "--format", "json").out)
    assert {each["pid"]: {each["rank"]} for each in found["files"]} == ranks and len(ranks) == 2
