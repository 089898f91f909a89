# SPDX-License-Identifier: Apache-2.0
"""What marks steps changes while a program runs: each window keeps the name of what marked its own steps."""
import json

import pytest

import harness

SHARED = f"""import ctypes, sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
from captured_calls import check, cudart, launch
stream, other = ctypes.c_void_p(), ctypes.c_void_p()
for each in (stream, other):
    check(cudart.cudaStreamCreate(ctypes.byref(each)))
def made():
    graph, replay = ctypes.c_void_p(), ctypes.c_void_p()
    check(cudart.cudaStreamBeginCapture(stream, 0))
    launch(stream)
    check(cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    check(cudart.cudaGraphInstantiate(ctypes.byref(replay), graph, ctypes.c_ulonglong(0)))
    return replay
"""

# Steps of a graph. In the window a kernel runs for longer than the program's own marks then need to take the steps over, so that
# the window's end is written later.
PROGRAM = SHARED + """
newest = made()
for step in range(24):
    check(cudart.cudaGraphLaunch(newest, stream))
    check(cudart.cudaStreamSynchronize(stream))
    if step == 16:
        cudart.simcuda_set_next_kernel_ns(ctypes.c_uint64(1500000000))
        launch(other)
for _ in range(8):
    ctypes.CDLL(None).gpuprof_step()
print("given over", flush=True)
check(cudart.cudaStreamSynchronize(other))
time.sleep(1)
"""


def test_a_window_that_is_written_late_keeps_its_source(tmp_path):
    """Before, it had the name of what was chosen until then, and the report judged it by that."""
    done = harness.run([harness.PYTHON, "-c", PROGRAM], harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_LOG="info"))
    assert done.code == 0 and "steps: manual" in done.err, done.err
    first = min(harness.dumps(tmp_path / "out"), key=lambda path: harness.info(path)["files"][0]["window"])
    assert harness.info(first)["files"][0]["step_source"] == "graph:1", done.err
    assert harness.checked("parse", "--format", "json", first).out.count("manual") == 0


# One more graph after every so many steps, for as long as it runs, as for each shape that comes.
GROWTH = SHARED + """
for step in range(int(sys.argv[1])):
    if step % int(sys.argv[2]) == 0:
        newest = made()
    check(cudart.cudaGraphLaunch(newest, stream))
    check(cudart.cudaStreamSynchronize(stream))
"""


def recorded_growth(tmp_path, *arguments):
    done = harness.run([harness.PYTHON, "-c", GROWTH, *arguments], harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_LOG="info"))
    assert done.code == 0, done.err
    return done, harness.info(tmp_path / "out")["files"]


def is_whole(file):
    return not file["partial"] and file["steps"]["last"] - file["steps"]["first"] == 9


@pytest.mark.parametrize("every", [25, 30, 40])
def test_graphs_for_ever_cause_one_more_window_at_most(every, tmp_path):
    """Before, each new graph after a window caused another one."""
    done, files = recorded_growth(tmp_path, 600, every)
    assert 1 <= len(files) <= 2, done.err
    assert any(is_whole(file) for file in files), json.dumps(files)
    assert done.err.count("steps: graph:1\n") <= 2, done.err


@pytest.mark.parametrize("every", [11, 15, 20])
def test_graphs_that_come_closer_than_a_window_do_not_prevent_it(every, tmp_path):
    """Before, each new graph dropped the window, and the program left none, or a step of the last."""
    done, files = recorded_growth(tmp_path, 600, every)
    assert [is_whole(file) for file in files] == [True], done.err


def test_a_program_whose_steps_were_all_taken_for_start_up_says_so(tmp_path):
    """Before, the line had the steps since the last graph alone, and a schedule that would not have helped."""
    done, files = recorded_growth(tmp_path, 300, 6)
    assert [file["early"] for file in files] == [True], done.err
    assert "294 boundaries (graph:1) were taken for start-up" in done.err and "set GPUPROF_STEP" in done.err
