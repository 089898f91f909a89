# SPDX-License-Identifier: Apache-2.0
"""The way into Python: steps of a look-alike PyTorch's optimizers, seen in unmodified scripts however they are
started, in each CPython that the machine has; scripts behave as without us."""
import subprocess
import sys

import pytest

import harness
from support.pythons import each_python, pythons

PROGRAM = harness.SOURCE / "tests/programs/python/train.py"
EVALUATE = harness.SOURCE / "tests/programs/python/evaluate.py"
STEPS = 12
SETTINGS = {"GPUPROF_STEP": "optimizer", "GPUPROF_SCHEDULE": "skip_first=2,warmup=1,active=4", "GPUPROF_LOG": "info",
            "PYTHONDONTWRITEBYTECODE": "1"}


def dumps_of(command, folder, cwd=None, **settings):
    """The dumps of a run that must not differ from a bare one."""
    bare = harness.run(command, env=harness.environment(PYTHONDONTWRITEBYTECODE=1, **settings), cwd=cwd)
    seen = harness.run(command, env=harness.preloaded(**{"GPUPROF_OUTPUT": folder / "out", **SETTINGS, **settings}), cwd=cwd)
    assert bare.code == 3, bare.err
    assert (seen.code, seen.out) == (bare.code, bare.out), seen.err
    return harness.dumps(folder / "out"), seen


def numbers_of_steps(dump):
    return [r["number"] for r in harness.records(dump) if r["kind"] == "step"]


def assert_steps(dump):
    """Steps 3 to 6 were recorded. Nothing counts but the optimizer's steps: the log goes from the process's start, step 0,
    at least to the end of the window, and not beyond what the program made."""
    records = harness.records(dump)
    assert next(r for r in records if r["kind"] == "header")["step_source"] == "optimizer"
    steps = [r for r in records if r["kind"] == "step"]
    assert [r["number"] for r in steps if r["in_window"]] == [3, 4, 5, 6]
    assert [r["number"] for r in steps] == list(range(len(steps))) and 7 <= len(steps) <= STEPS


@each_python()
@pytest.mark.parametrize("torch", ["2", "1.13"])
def test_each_python(tmp_path, version, torch):
    [dump], done = dumps_of([pythons()[version], PROGRAM, "loop", STEPS], tmp_path, LOOKALIKE_TORCH=torch)
    assert_steps(dump)
    assert "steps 3-6 (optimizer)" in done.err


@pytest.mark.parametrize("options", [["-I"], ["-S"], ["-I", "-S"], ["-E", "-s"], ["-O"]], ids="".join)
def test_interpreter_options(tmp_path, options):
    [dump], _ = dumps_of([sys.executable, *options, PROGRAM, "loop", STEPS], tmp_path)
    assert_steps(dump)


def test_run_as_a_module(tmp_path):
    [dump], _ = dumps_of([sys.executable, "-m", "train", "loop", STEPS], tmp_path, cwd=PROGRAM.parent)
    assert_steps(dump)


def test_in_a_virtual_environment(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    [dump], _ = dumps_of([tmp_path / "venv/bin/python", PROGRAM, "loop", STEPS], tmp_path)
    assert_steps(dump)


def test_behind_a_shell_script_that_chooses_the_python(tmp_path):
    shim = tmp_path / "python3"
    shim.write_text(f'#!/usr/bin/env bash\nset -e\nprogram="${{0##*/}}"\nhash -r\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    [dump], _ = dumps_of([shim, PROGRAM, "loop", STEPS], tmp_path)
    assert_steps(dump)


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_children_that_train_have_a_dump_each_and_others_none(tmp_path, start):
    [dump], _ = dumps_of([sys.executable, PROGRAM, start, STEPS], tmp_path)
    assert_steps(dump)


@pytest.mark.parametrize("way", ["initialized", "gan", "zero1", "zero3", "zero_again", "wrapped", "thawed", "replaced", "fresh"])
def test_a_step_is_one_step(tmp_path, way):
    """Of several optimizers, or one that steps its groups in turn: the window ends with the program's last step, so there was
    none more and none less."""
    [dump], _ = dumps_of([sys.executable, PROGRAM, way, STEPS], tmp_path,
                         GPUPROF_SCHEDULE=f"skip_first=2,warmup=1,active={STEPS - 3}")
    assert numbers_of_steps(dump) == list(range(STEPS)), "exactly as many as were made, and the last one closed the window"
    assert harness.info(dump)["files"][0]["completeness"] == "complete"


@pytest.mark.parametrize("way, count, steps", [
    ("wgan", 12, 20 + 20 + 11),  # the critic's until the generator's second
    ("trials", 30, 30 + 13 + 13),  # the first 17 of another show that the one before is gone
])
def test_several_optimizers(tmp_path, way, count, steps):
    """The window ends with the last step that should count; one step less would leave it open, and the dump partial."""
    [dump], _ = dumps_of([sys.executable, PROGRAM, way, count], tmp_path,
                         GPUPROF_SCHEDULE=f"skip_first={steps - 4},warmup=1,active=3")
    assert numbers_of_steps(dump) == list(range(steps))
    assert harness.info(dump)["files"][0]["completeness"] == "complete"


def test_auto_takes_the_optimizer(tmp_path):
    [dump], done = dumps_of([sys.executable, PROGRAM, "gpu", STEPS], tmp_path, GPUPROF_STEP="auto")
    assert_steps(dump)
    assert "gpuprof: steps: optimizer" in done.err


def test_auto_leaves_a_process_without_cuda_asleep(tmp_path):
    dumps, done = dumps_of([sys.executable, PROGRAM, "loop", STEPS], tmp_path, GPUPROF_STEP="auto")
    assert (dumps, done.err) == ([], "") and not (tmp_path / "out").exists()


def dumps_by_source(dumps):
    headers = [next(r for r in harness.records(dump) if r["kind"] == "header") for dump in dumps]
    return sorted((header["window"], header["step_source"]) for header in headers)


def test_auto_takes_the_programs_own_window(tmp_path):
    """Although the optimizer has stepped before, and is chosen: before the schedule's window, and after it."""
    dumps, _ = dumps_of([sys.executable, PROGRAM, "bracket", STEPS], tmp_path / "before", GPUPROF_STEP="auto",
                        GPUPROF_SCHEDULE="skip_first=50,warmup=1,active=4")
    assert dumps_by_source(dumps) == [(0, "profiler")]
    summary = next(r for r in harness.records(dumps[0]) if r["kind"] == "summary")
    assert (summary["end_reason"], summary["partial"]) == ("cudaProfilerStop", False)
    dumps, _ = dumps_of([sys.executable, PROGRAM, "bracket", STEPS], tmp_path / "after", GPUPROF_STEP="auto",
                        GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=2")
    assert dumps_by_source(dumps) == [(0, "optimizer"), (1, "profiler")]


def test_a_start_within_a_window_is_ignored_and_named(tmp_path):
    [dump], done = dumps_of([sys.executable, PROGRAM, "bracket", STEPS], tmp_path, GPUPROF_STEP="auto")
    assert_steps(dump)
    assert done.err.count("cudaProfilerStart is ignored") == 1 and "GPUPROF_STEP=profiler" in done.err


def evaluated(way, tmp_path, schedule, source="auto"):
    done = harness.run([sys.executable, EVALUATE, harness.HAZARDS / "torch_like/libc10.so", *way.split()],
                       env=harness.preloaded(**SETTINGS | {"GPUPROF_OUTPUT": tmp_path / "out", "GPUPROF_STEP": source,
                                                           "GPUPROF_SCHEDULE": schedule}))
    assert done.code == 0, done.err
    return harness.dumps(tmp_path / "out"), done


def test_an_evaluation_within_the_first_steps_is_no_training(tmp_path):
    dumps, done = evaluated("silence", tmp_path, "skip_first=14,warmup=2,active=8")
    assert "steps: none by optimizer for 5 s, looking for others" in done.err
    assert dumps_by_source(dumps) == [(0, "optimizer")]
    assert [r["number"] for r in harness.records(dumps[0]) if r["kind"] == "step" and r["in_window"]] == list(range(16, 24))


def test_an_evaluation_before_the_training_is_none(tmp_path):
    dumps, done = evaluated("first", tmp_path, "skip_first=4,warmup=2,active=8")
    assert dumps_by_source(dumps) == [(0, "optimizer")], done.err
    assert "steps: forward" not in done.err


def test_calls_of_modules_while_the_main_thread_waits_for_another(tmp_path):
    [dump], done = evaluated("thread", tmp_path, "skip_first=4,warmup=2,active=8", "forward")
    assert dumps_by_source([dump]) == [(0, "forward")]
    assert harness.info(dump)["files"][0]["completeness"] == "complete"


def test_calls_before_all_graphs_are_made_are_no_steps(tmp_path):
    """Of an inference engine: before, the window held five batch sizes that were captured."""
    [dump], done = evaluated("engine", tmp_path, "skip_first=10,warmup=2,active=8")
    records = harness.records(dump)
    assert dumps_by_source([dump]) == [(0, "forward")] and done.err.count("steps: forward was start-up") == 1, done.err
    assert done.err.count("steps: forward\n") == 2, "once more when the last graph was made"
    assert [r["number"] for r in records if r["kind"] == "step" and r["in_window"]] == list(range(12, 20))
    assert not [r for r in records if "Capture" in r.get("name", "")]


@pytest.mark.parametrize("meanwhile", ["busy", "idle"])
def test_requests_that_come_late_are_steps(meanwhile, tmp_path):
    """Before, the clock took the steps over for good after 30 s, also where nothing was done on the GPU."""
    [dump], done = evaluated("late " + meanwhile, tmp_path, "skip_first=20,warmup=2,active=8")
    assert dumps_by_source([dump]) == [(0, "forward")], done.err
    assert ("steps: time:1000" in done.err) == (meanwhile == "busy"), done.err
    assert done.err.count("steps: forward\n") == 1


def test_classes_of_modules_that_are_imported_late(tmp_path):
    """Before, those of after a minute were not seen, and the modules inside counted."""
    [dump], done = evaluated("imported", tmp_path, "all", "forward")
    steps = [r for r in harness.records(dump) if r["kind"] == "step"]
    assert len(steps) == 39, (len(steps), done.err)


def test_an_interrupt_reaches_the_program_wherever_it_arrives(tmp_path):
    [dump], done = evaluated("interrupted", tmp_path, "skip_first=4,warmup=2,active=8", "forward")
    assert done.out == "interrupted ['builtins.id']\n"
    assert harness.info(dump)["files"][0]["completeness"] == "complete", "gpuprof looks again"


def test_a_script_without_torch_leaves_nothing(tmp_path):
    done = harness.run([sys.executable, "-c", "import json, subprocess; subprocess.run(['true'])"],
                       env=harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_LOG="debug"))
    assert (done.code, done.out, done.err, harness.dumps(tmp_path)) == (0, "", "", [])


def test_switched_off(tmp_path):
    dumps, done = dumps_of([sys.executable, PROGRAM, "loop", STEPS], tmp_path, GPUPROF_MODE="off")
    assert (dumps, done.err) == ([], "")


@pytest.mark.skipif(not any(v < (3, 8) for v in pythons()), reason="no Python before 3.8 here")
def test_a_python_without_audit_hooks_says_so_once_and_the_rest_works(tmp_path):
    python = next(p for v, p in pythons().items() if v < (3, 8))
    script = f"import ctypes\nstep = ctypes.CDLL({harness.LIB!r}).gpuprof_step\nfor _ in range(9): step()\nraise SystemExit(3)"
    for steps, lines in (("auto", 1), ("manual", 0)):
        [dump], done = dumps_of([python, "-c", script], tmp_path / steps, GPUPROF_STEP=steps)
        assert harness.info(dump)["files"][0]["completeness"] == "complete"
        assert done.err.count("no audit hooks") == lines
