# SPDX-License-Identifier: Apache-2.0
"""A job of several ranks that stands, since one of them was stopped, killed, or sleeps: the report and `info` name it,
and no cause. A job that runs is never said to stand. GPUPROF_LONG_TESTS=1: ten times each, with 2 and 4 ranks."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import harness
import pytest

TIMES = 10 if os.environ.get("GPUPROF_LONG_TESTS") == "1" else 1
RANKS = (2, 4) if TIMES > 1 else (4,)
SCHEDULE = "skip_first=2,wait=0,warmup=1,active=1000000,repeat=1,max_s=0,max_mb=0"
SILENCE_S = 2  # less is no standstill


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def rank_of(pid):
    words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((int(w[5:]) for w in words if w.startswith(b"RANK=")), None)


@contextlib.contextmanager
def job(folder, ranks, *options):
    """The pids of a job's ranks, in order."""
    out = folder / "out"
    environment = harness.preloaded(GPUPROF_OUTPUT=out, GPUPROF_SCHEDULE=SCHEDULE, GPUPROF_STEP="auto", GPUPROF_RUN="job",
                                    GPUPROF_LOG="error", GPUPROF_BUFFER_MB=8)
    launcher = subprocess.Popen([harness.SIMTRAIN, "--ranks", str(ranks), "--steps", "1000000", "--comm-mb", "4", *options],
                                env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while len(list(out.glob("job/*.part"))) < ranks:
            assert launcher.poll() is None and time.monotonic() < deadline, "the windows did not open"
            time.sleep(0.05)
        yield sorted(children(launcher.pid), key=rank_of)
    finally:
        for pid in children(launcher.pid):
            with contextlib.suppress(ProcessLookupError):  # the others' end ends it
                os.kill(pid, signal.SIGKILL)
        launcher.wait(30)


def look(folder):
    out = folder / "out/job"
    report = json.loads(harness.checked("report", "--format", "json", out).out)
    info = json.loads(harness.checked("info", "--format", "json", out).out)
    return report, info, harness.checked("info", out).out


def wait_until_it_stands(folder):
    deadline = time.monotonic() + 60
    while True:
        report, info, text = look(folder)
        if report.get("standstill") or time.monotonic() > deadline:
            return report, info, text
        time.sleep(0.5)


def check(folder, how, rank, ranks):
    report, info, text = wait_until_it_stands(folder)
    found = report["standstill"]
    assert found["ranks"] == [rank]
    # Stopped in the middle of a collective that all had issued, else with fewer than the others.
    if found["counted"] == "collectives":
        assert found["communicator_ranks"] == ranks and found["issued"] < found["others_issued"]
        assert "AllReduce" in found["waiting_in"]
    else:
        assert found["counted"] == "signs of life" and how != "asleep"
    assert found["silent_us"] >= SILENCE_S * 1e6
    assert report["verdict"] == [] and report["reason"] == found["text"]
    begin = f"the job stands: rank {rank} has made no call since"
    assert found["text"].startswith(begin) and begin in text and info["standstill"]["ranks"] == [rank]
    tables = json.loads(harness.checked("report", "--tables", "--format", "json", folder / "out/job").out)
    assert [f["text"][:len(begin)] for f in tables["findings"] if f["kind"] == "job_stands"] == [begin]
    return found


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("how", ("stopped", "killed", "asleep"))
def test_the_rank_that_stands_is_named(tmp_path, how, ranks):
    for i in range(TIMES):
        folder = tmp_path / str(i)
        rank = (i + 1) % ranks
        with job(folder, ranks, *(["--asleep", f"{rank}:60"] if how == "asleep" else [])) as pids:
            if how != "asleep":
                time.sleep(0.5)
                os.kill(pids[rank], signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
            found = check(folder, how, rank, ranks)
            assert found.get("state") == ("stopped" if how == "stopped" else None)
            if how == "asleep":
                assert found["step"] == 60
        found = check(folder, how, rank, ranks)  # of what all left, killed at last
        tables = json.loads(harness.checked("report", folder, "--tables", "--format", "json").out)
        assert [each["text"] for each in tables["findings"] if each["kind"] == "job_stands"] == [found["text"]]


def paused_job(folder, steps):
    """A rank pauses for longer than the window may be, and goes on."""
    schedule = SCHEDULE.replace("max_s=0", "max_s=3")
    out = folder / "out"
    environment = harness.preloaded(GPUPROF_OUTPUT=out, GPUPROF_SCHEDULE=schedule, GPUPROF_STEP="auto", GPUPROF_RUN="job",
                                    GPUPROF_LOG="error", GPUPROF_BUFFER_MB=8)
    return subprocess.Popen([harness.SIMTRAIN, "--ranks", "3", "--steps", str(steps), "--comm-mb", "4", "--asleep", "1:60:7"],
                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def check_past(folder, after):
    report, info, text = look(folder)
    assert "standstill" not in report and "standstill" not in info
    found = report["stood"]
    assert found == info["stood"] and found["ranks"] == [1] and found["ended_by"] == "max_s"
    assert found["text"].startswith("the job stood: rank 1 made no call from ") and found["text"] in text
    assert f"The window was ended by max_s, and {after}" in found["text"]
    assert [f["text"] for f in report["findings"] if f["kind"] == "job_stood"] == [found["text"]]
    assert report["verdict"], report.get("reason")


def test_a_job_that_went_on_stood_and_has_its_verdict(tmp_path):
    job = paused_job(tmp_path, 80)
    assert job.wait(60) == 0
    check_past(tmp_path, "what came after it is not recorded")


def test_the_live_buffers_tell_whether_steps_came_after_the_window(tmp_path):
    job = paused_job(tmp_path, 1000000)
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("out/job/*_w0.gpuprof"))) < 3:
            assert job.poll() is None and time.monotonic() < deadline, "the windows did not close"
            time.sleep(0.05)
        for pid in children(job.pid):
            os.kill(pid, signal.SIGSTOP)
        report, _, _ = look(tmp_path)
        # No assertion on time: that the pause lasts still is seen from the ranks' steps.
        stood_then = report.get("standstill") or report["stood"]
        assert stood_then["ranks"] == [1] and report.get("stood", {"ended_by": "max_s"})["ended_by"] == "max_s"
        for pid in children(job.pid):
            os.kill(pid, signal.SIGCONT)
        while "stood" not in report:
            assert job.poll() is None and time.monotonic() < deadline, "no step came after the pause"
            report, _, _ = look(tmp_path)
        check_past(tmp_path, "more steps came after it")
    finally:
        for pid in children(job.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job.wait(30)
    check_past(tmp_path, "more steps came after it")


@pytest.mark.parametrize("ranks", RANKS)
def test_a_job_that_runs_does_not_stand(tmp_path, ranks):
    for i in range(TIMES):
        folder = tmp_path / str(i)
        with job(folder, ranks):
            for _ in range(3):
                report, info, _ = look(folder)
                assert "standstill" not in report and "standstill" not in info
                time.sleep(1)
        report, info, _ = look(folder)  # all killed at once
        assert "standstill" not in report and "standstill" not in info
