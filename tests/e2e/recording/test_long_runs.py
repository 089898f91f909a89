# SPDX-License-Identifier: Apache-2.0
"""What a run keeps of its past: every step's time, however many there were, in memory that does not grow with them."""
import re

import pytest

import harness

STEPS = 400_000
PROGRAM = f"""
import ctypes, os, pathlib, re, signal, sys, time
step = ctypes.CDLL({harness.LIB!r}).gpuprof_step
def resident():
    return int(re.search(r"RssAnon:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
def steps(count):
    for _ in range(count // 100000):
        for _ in range(100000): step()
        time.sleep(1.2)  # the drain thread looks once a second
steps(100000)
before = resident()
steps({STEPS} - 100000)
for _ in range(30): step()
time.sleep(0.5)
print(resident() - before)
sys.stdout.flush()
if sys.argv[1] == "killed": os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["whole", "killed"])
@pytest.mark.parametrize("place", ["file", "torn", "memory"])
def test_every_step_is_in_the_log(end, place, tmp_path):
    out = tmp_path / "out"
    if place == "memory" and end == "killed":
        pytest.skip("what is in memory is lost then")
    env = harness.preloaded(GPUPROF_OUTPUT=out, GPUPROF_STEP="manual", GPUPROF_CUPTI="off", GPUPROF_ACTIVITIES="step,api",
                            GPUPROF_SCHEDULE=f"skip_first={STEPS + 5},warmup=0,active=10")
    if place == "memory":  # too small a file for the buffers
        out.mkdir()
        env["GPUPROF_SCRATCH"] = "/proc"
    if place == "torn":  # a write to the file is cut short, once
        env["TORN_WRITE"] = "1"
        env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    done = harness.run([harness.PYTHON, "-c", PROGRAM, end], env)
    assert done.code == (0 if end == "whole" else -9), done.err
    if end == "whole":
        dump, = harness.dumps(out)
    else:
        dump = next(path for path in harness.dumps(out) if path.name.endswith(".gpuprof"))
    text = harness.checked("info", dump).out
    found = re.search(r"step log +(\d+) steps since the program started", text)
    assert found and int(found[1]) >= STEPS + 14, text
    assert re.search(r"^  lost +nothing$", text, re.MULTILINE), text
    if not harness.SANITIZER and place == "file":
        assert int(done.out) < 1500, f"{done.out} kB more"


def test_steps_that_come_without_a_pause_keep_their_numbers(tmp_path):
    """Some 100,000 between two looks of the drain thread, and more. One that finds no room is no step, and counted."""
    script = f"import ctypes\nstep = ctypes.CDLL({harness.LIB!r}).gpuprof_step\nfor _ in range(700000): step()"
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", GPUPROF_CUPTI="off",
                            GPUPROF_SCHEDULE="skip_first=300000,warmup=0,active=50000")
    done = harness.run([harness.PYTHON, "-c", script], env)
    file, = harness.info(tmp_path / "out")["files"]
    steps = file["steps"]
    assert done.code == 0 and (steps["first"], steps["last"], steps["count"]) == (300000, 349999, 50000), (file, done.err)
