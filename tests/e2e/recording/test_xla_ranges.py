# SPDX-License-Identifier: Apache-2.0
"""XLA names its work to NVTX, or, where no tool takes its domain, to its own profiler. The tool that was not asked for takes
nothing from the profiler that was."""
import pytest

import harness

PROGRAM = harness.HAZARDS / "xla_ranges"
MODULE = "XlaModule:#prefix=jit(train_step)/jit(main),hlo_module=jit_train_step,program_id=12#"
SHORT = "skip_first=1,warmup=1,active=2"


def execute(folder, steps=6, **settings):
    done = harness.run([PROGRAM, "steps", steps], harness.preloaded(GPUPROF_OUTPUT=folder, GPUPROF_SCHEDULE=SHORT, **settings))
    assert done.code == 0, done.err
    return done


def ranges(folder):
    return [r["message"] for dump in harness.dumps(folder) for r in harness.of_kind(harness.records(dump), "nvtx_range")]


@pytest.mark.parametrize("settings", (
    {}, {"GPUPROF_MODE": "armed"}, {"GPUPROF_ACTIVITIES": "-nvtx"}, {"GPUPROF_PRESET": "full"}, {"GPUPROF_STEP": "sync:1"},
    {"GPUPROF_STEP": "sync:1", "GPUPROF_ACTIVITIES": "kernel,step"}))
def test_the_annotations_stay_with_xla(tmp_path, settings):
    bare = harness.run([PROGRAM, "steps", "6"])
    assert bare.code == 0 and bare.out == "stack\n"
    assert execute(tmp_path, **settings).out == bare.out
    assert ranges(tmp_path) == []


@pytest.mark.parametrize("settings", ({"GPUPROF_STEP": "sync:1", "GPUPROF_ACTIVITIES": "+nvtx:xla"},
                                      {"GPUPROF_STEP": "sync:1", "GPUPROF_ACTIVITIES": "kernel,nvtx:xla"}))
def test_who_asks_for_them_has_them(tmp_path, settings):
    assert execute(tmp_path, **settings).out == "nvtx\n"
    assert ranges(tmp_path) == [MODULE] * 2


@pytest.mark.parametrize("settings", ({}, {"GPUPROF_ACTIVITIES": "+nvtx:xla"}, {"GPUPROF_MODE": "armed"}))
def test_texts_that_are_registered_for_ever_take_bounded_memory(tmp_path, settings):
    """XLA registers texts of up to 65,330 bytes with each program that it compiles."""
    done = harness.run([PROGRAM, "register", "20000", "20480"], harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="sync:1", **settings))
    assert done.code == 0 and done.out.splitlines()[1] == "bounded", done.out


def test_the_executions_of_a_module_are_steps(tmp_path):
    """A step that is named takes the domain for itself."""
    assert execute(tmp_path, steps=8, GPUPROF_STEP="nvtx:jit_train_step").out == "nvtx\n"
    dump, = harness.dumps(tmp_path)
    steps = [r for r in harness.of_kind(harness.records(dump), "step") if r["in_window"]]
    assert len(steps) == 2 and ranges(tmp_path) == [MODULE] * 2
