# SPDX-License-Identifier: Apache-2.0
"""What a run says at its end of dumps that are not there, or not whole: the truth, in a few lines, and no next step that
would fail."""
import re
import shlex
import subprocess
import sys

import pytest

import harness

# Windows of one step each, one after the other; calls enough for some tens of kilobytes in each.
PROGRAM = """
import ctypes, os, resource, shutil, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
def steps(count):
    for _ in range(count):
        for _ in range(int(sys.argv[3])):
            cuda.cudaGetLastError()
            cuda.cudaDeviceSynchronize()
        cuda.cudaProfilerStart()
        cuda.cudaProfilerStop()
        time.sleep(0.03)
def delete():  # while another thread may be writing there
    while os.path.exists(folder):
        shutil.rmtree(folder, ignore_errors=True)
way, folder = sys.argv[1:3]
if way == "small_files":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
steps(3)
if way == "deleted":
    delete()
if way == "deleted_after":
    time.sleep(0.5)
    steps(0)
steps(6)
if way == "deleted_after":
    time.sleep(0.5)
    delete()
print("worked")
"""
SETTINGS = {"GPUPROF_STEP": "sync:50", "GPUPROF_SCHEDULE": "skip_first=0,warmup=0,active=1,repeat=0", "GPUPROF_LOG": "info"}


def run(folder, way, **settings):
    out = folder / "out"
    done = harness.run([sys.executable, "-c", PROGRAM, way, out, 100],
                       env=harness.preloaded(GPUPROF_OUTPUT=out, **{**SETTINGS, **settings}))
    assert (done.code, done.out) == (0, "worked\n"), done.err
    return harness.our_lines(done.err), out


def next_command(lines):
    [line] = [line for line in lines if "Next: " in line]
    return shlex.split(line.split("Next: ")[1])


def test_whole_windows_lead_to_the_report(tmp_path):
    lines, _ = run(tmp_path, "whole")
    command = next_command(lines)
    assert command[:2] == ["gpuprof", "report"]
    assert len(harness.info(command[2])["files"]) >= 9
    assert not any("not whole" in line for line in lines)


def test_dumps_that_hit_a_size_limit_are_counted_in_one_line(tmp_path):
    """A window's dump needs more than the limit: what was written before it can be read, and no window is whole."""
    lines, out = run(tmp_path, "small_files")
    [summary] = [line for line in lines if "not whole" in line]
    broken, windows, lost, cut = map(int, re.search(r"(\d+) of (\d+) windows are not whole: (\d+) lost, (\d+) cut", summary).groups())
    assert broken == windows == lost + cut and windows >= 9
    assert "File too large" in summary
    assert cut == len(list(out.rglob("*.gpuprof.part"))) and not list(out.rglob("*.gpuprof"))
    assert sum("cannot write" in line for line in lines) == 1
    assert len(lines) <= 8, lines
    if cut:
        assert harness.gpuprof(*next_command(lines)[1:2], "--format", "json", *next_command(lines)[2:]).code in (0, 2)
    assert not any(re.search(r"\d+ events", line) for line in lines), "of windows that are not there"


def test_a_folder_that_is_deleted_meanwhile(tmp_path):
    lines, out = run(tmp_path, "deleted")
    [summary] = [line for line in lines if "not whole" in line]
    assert "No such file or directory" in summary
    assert sum("cannot " in line for line in lines) == 1
    assert not any("Next:" in line for line in lines), lines


def test_a_folder_that_is_deleted_after_the_last_window(tmp_path):
    lines, out = run(tmp_path, "deleted_after")
    assert any("is gone" in line for line in lines), lines
    assert not any("Next:" in line for line in lines), lines


def test_latest_of_another_run_is_not_named(tmp_path):
    """Somebody else's run became the latest while this one went on."""
    out = tmp_path / "out"
    (out / "other").mkdir(parents=True)
    program = PROGRAM.replace('print("worked")', f'time.sleep(0.5); os.remove("{out}/latest"); os.symlink("other", "{out}/latest"); print("worked")')
    done = harness.run([sys.executable, "-c", program, "whole", out, 100], env=harness.preloaded(GPUPROF_OUTPUT=out, **SETTINGS))
    command = next_command(harness.our_lines(done.err))
    assert not command[2].endswith("latest") and len(harness.info(command[2])["files"]) >= 9
