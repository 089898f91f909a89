# SPDX-License-Identifier: Apache-2.0
"""The way into Python: steps of a look-alike PyTorch's optimizers, seen in unmodified scripts however they are
started, in each CPython that the machine has; scripts behave as without us."""
import functools
import os
import pathlib
import subprocess
import sys

import pytest

import harness

PROGRAM = harness.SOURCE / "tests/programs/python/train.py"
STEPS = 12
SETTINGS = {"GPUPROF_STEP": "optimizer", "GPUPROF_SCHEDULE": "skip_first=2,warmup=1,active=4", "GPUPROF_LOG": "info",
            "PYTHONDONTWRITEBYTECODE": "1"}

pytestmark = pytest.mark.skipif(harness.SANITIZER in ("address", "thread"),
                                reason="pythons are not built for a sanitizer's runtime")


@functools.cache
def pythons():
    """One interpreter of each minor version."""
    candidates = [pathlib.Path(sys.executable), *sorted(pathlib.Path("/usr/bin").glob("python3.[0-9]*")),
                  *sorted((pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions").glob("*/bin/python3"))]
    found = {}
    for candidate in candidates:
        done = subprocess.run([candidate, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout:
            found.setdefault(tuple(map(int, done.stdout.split())), str(candidate))
    return found


def dumps_of(command, folder, cwd=None, **settings):
    """The dumps of a run that must not differ from a bare one."""
    bare = harness.run(command, env=harness.environment(PYTHONDONTWRITEBYTECODE=1, **settings), cwd=cwd)
    seen = harness.run(command, env=harness.preloaded(**{"GPUPROF_OUTPUT": folder / "out", **SETTINGS, **settings}), cwd=cwd)
    assert bare.code == 3, bare.err
    assert (seen.code, seen.out) == (bare.code, bare.out), seen.err
    return harness.dumps(folder / "out"), seen


def assert_steps(dump, steps=STEPS):
    """Boundary 0 is the process's start: as many steps as the optimizer made, to the one that closed the window."""
    records = harness.records(dump)
    assert next(r for r in records if r["kind"] == "header")["step_source"] == "optimizer"
    windows = [r["number"] for r in records if r["kind"] == "step" and r["in_window"]]
    assert windows == [3, 4, 5, 6]
    return records


@pytest.mark.parametrize("version", sorted(v for v in pythons() if v >= (3, 8)), ids=lambda v: ".".join(map(str, v)))
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


@pytest.mark.parametrize("way", ["gan", "accumulate"])
def test_a_step_is_one_step(tmp_path, way):
    """Two optimizers, or several passes: the dump is complete, so the program made at least the window's steps."""
    [dump], _ = dumps_of([sys.executable, PROGRAM, way, STEPS], tmp_path,
                         GPUPROF_SCHEDULE=f"skip_first=2,warmup=1,active={STEPS - 3}")
    steps = [r["number"] for r in harness.records(dump) if r["kind"] == "step"]
    assert steps == list(range(STEPS)), "exactly as many as were made, and the last one closed the window"
    assert harness.info(dump)["files"][0]["completeness"] == "complete"


def test_auto_takes_the_optimizer(tmp_path):
    [dump], done = dumps_of([sys.executable, PROGRAM, "loop", STEPS], tmp_path, GPUPROF_STEP="auto")
    assert_steps(dump)
    assert "gpuprof: steps: optimizer" in done.err


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
