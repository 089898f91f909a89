# SPDX-License-Identifier: Apache-2.0
"""Windows that are asked for while the program runs, against the simulator's truth."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

import harness
import truth
from test_truth import assert_steps

LONG = ["--steps", "100000", "--layers", "4", "--kernel-us", "40", "--data-ms", "3"]


@contextlib.contextmanager
def running(folder, *flags, ranks=1, seen="*.ring", **settings):
    """simtrain under `gpuprof run`, with no end of its own; yields the Popen once all ranks are there and count steps."""
    settings = {"GPUPROF_MODE": "armed", "GPUPROF_LOG": "info", "SIMCUDA_TRUTH": folder / "truth", **settings}
    log = open(folder / "log", "w")
    process = subprocess.Popen([harness.BIN, "run", "-o", folder / "out", "--", harness.SIMTRAIN, *LONG, "--ranks", str(ranks), *flags],
                               env=harness.environment(**settings), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               start_new_session=True)
    try:
        started = lambda: ("gpuprof: steps: nvtx:step" in (folder / "log").read_text() and  # rank 0 says it for all
                           len(list((folder / "out").rglob(seen))) >= ranks)
        wait_until(lambda: started() or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text()
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        log.close()


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def finished(folder):
    return sorted(path for path in harness.dumps(folder / "out") if path.suffix == ".gpuprof")


def trigger(*arguments):
    """(first, last) as `gpuprof trigger` says, which must succeed."""
    done = harness.checked("trigger", *arguments)
    first, last = re.match(r"steps (\d+)-(\d+) will be recorded in ", done.out).groups()
    return int(first), int(last)


def assert_window(dump, folder, first, last):
    """Once the program has ended: its log grows as quickly as it is read."""
    comparison = truth.Comparison(dump, folder / "truth")
    comparison.assert_right("launch", "gpu_kernel")
    assert_steps(comparison, first, last)
    assert not comparison.summary["partial"]
    return comparison


@pytest.mark.parametrize("ranks", [1, 3])
def test_all_ranks_record_the_same_steps(ranks, tmp_path):
    """Without collectives nothing holds the ranks together: they are at different steps when asked."""
    with running(tmp_path, *(["--slow-rank", "1:4"] if ranks > 1 else []), ranks=ranks) as process:
        first, last = trigger(tmp_path / "out")
        assert last == first + 9
        wait_until(lambda: len(finished(tmp_path)) == ranks)
        # Again, by process, with its own number of steps.
        second, end = trigger(process.pid, "--steps", 4)
        assert second > last and end == second + 3
        wait_until(lambda: len(finished(tmp_path)) == 2 * ranks)
    again = [dump for dump in finished(tmp_path) if dump.name.endswith("_w1.gpuprof")]
    assert len(again) == ranks
    for dump in finished(tmp_path):
        assert_window(dump, tmp_path, *((second, end) if dump in again else (first, last)))


def states(folder):
    """Of armed ranks: the files in which they tell their step, by rank."""
    found = {int(re.search(r"_r(\d+)_", path.name)[1]): path for path in (folder / "out").rglob("*.gpuprof.state")}
    return found


def test_ranks_of_other_machines_by_the_shared_directory(tmp_path):
    """A rank whose ring cannot be seen is as one on another machine: its file says its step and its answer."""
    (tmp_path / "scratch").mkdir()
    with running(tmp_path, "--slow-rank", "1:4", ranks=2, GPUPROF_SCRATCH=tmp_path / "scratch") as process:
        wait_until(lambda: len(states(tmp_path)) == 2)
        [link] = [path for path in (tmp_path / "out").rglob("*_r1_*.ring")]
        hidden = link.resolve(strict=True)
        pid = int(re.search(r"_r1_(\d+)_", link.name)[1])
        os.rename(hidden, hidden.with_suffix(".away"))
        done = harness.checked("trigger", tmp_path / "out")
        first, last, names = re.match(r"steps (\d+)-(\d+) will be recorded in (.*);", done.out).groups()
        assert names.startswith("2 processes, rank 0 (pid ") and f" to rank 1 (pid {pid} on " in names, done.out
        assert "on other machines" not in done.err
        wait_until(lambda: len(finished(tmp_path)) == 2)
        dumps = finished(tmp_path)
        # One that stands is named.
        os.kill(pid, 19)
        silent = harness.gpuprof("trigger", tmp_path / "out", "--steps", "2")
        assert silent.code == 1 and f"rank 1 (pid {pid} on " in silent.err and "gives no sign of life" in silent.err, silent.err
        found = json.loads(harness.gpuprof("trigger", tmp_path / "out", "--steps", "2", "--format", "json").out)
        assert [each["accepted"] for each in found["processes"]][1] is False and found["processes"][1]["host"]
        os.kill(pid, 18)
        assert process.poll() is None
    for dump in dumps:
        assert_window(dump, tmp_path, int(first), int(last))


def test_who_is_not_armed_tells_nothing(tmp_path):
    with running(tmp_path, GPUPROF_MODE="on", GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=5,repeat=1"):
        wait_until(lambda: finished(tmp_path))
        time.sleep(1.5)
        assert not states(tmp_path)


def test_a_window_that_is_over_counts_once(tmp_path):
    """While the program runs on, and when it was killed: what its ring has of that window is in the dump."""
    def seen(path):
        report = json.loads(harness.checked("report", "--format", "json", path).out)
        return [step["step"] for step in report["steps"]], sum(row["count"] for row in report["kernels"]), report.get("losses")

    with running(tmp_path, GPUPROF_MODE="on", GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=5,repeat=1") as process:
        wait_until(lambda: finished(tmp_path))
        time.sleep(1)  # CUPTI's records of its own cost come after the window
        [dump] = finished(tmp_path)
        whole = seen(dump)
        assert len(whole[0]) == 5 and whole[1] > 0
        assert seen(tmp_path / "out") == whole
    [ring] = (tmp_path / "out").rglob("*.ring")
    assert process.returncode == -9 and seen(tmp_path / "out") == whole
    assert seen(ring)[:2] == ([], 0)  # named alone, too
    lone = tmp_path / "lone" / ring.name
    lone.parent.mkdir()
    ring.rename(lone)
    assert seen(lone)[:2] == ([], 0)


def test_steps_that_become_faster_when_asked(tmp_path):
    """All ranks have then passed the first step that was chosen: a later one is."""
    script = tmp_path / "faster.py"
    script.write_text(f"""import pathlib, sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
control = pathlib.Path({str(tmp_path / "out")!r})
while not list(control.glob("*/gpuprof.control")):
    gpu.work()
    time.sleep(0.03)
while True:
    gpu.work()
    time.sleep(0.001)
""")
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_MODE="armed", GPUPROF_STEP="sync:1")
    with subprocess.Popen([harness.PYTHON, script], env=env) as process:
        try:
            wait_until(lambda: list((tmp_path / "out").rglob("*.ring")))
            time.sleep(0.5)  # some steps
            first, last = trigger(tmp_path / "out")
            wait_until(lambda: finished(tmp_path))
        finally:
            process.kill()
    [dump] = finished(tmp_path)
    recorded = [r["number"] for r in harness.of_kind(harness.records(dump), "step") if r["in_window"]]
    assert recorded == list(range(first, last + 1))


def test_ranks_in_step_with_collectives(tmp_path):
    with running(tmp_path, "--comm-mb", "8", ranks=2):
        first, last = trigger(tmp_path / "out", "--steps", 5)
        wait_until(lambda: len(finished(tmp_path)) == 2)
    for dump in finished(tmp_path):
        assert_window(dump, tmp_path, first, last).assert_right("collective")


def test_a_step_that_is_named(tmp_path):
    with running(tmp_path):
        first, _ = trigger(tmp_path / "out", "--steps", 1)
        assert trigger(tmp_path / "out", "--at-step", first + 500, "--steps", 2) == (first + 500, first + 501)
        wait_until(lambda: finished(tmp_path))
        done = harness.gpuprof("trigger", tmp_path / "out", "--at-step", "3")
        assert done.code == 2 and "--at-step 3" in done.err and len(done.err.splitlines()) == 1
    assert_window(finished(tmp_path)[0], tmp_path, first + 500, first + 501)


OWN_MARKS_LATE = """
import ctypes, os, sys, time
cuda, own = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(None)
memory, marks = ctypes.c_void_p(), False
assert cuda.cudaMalloc(ctypes.byref(memory), 4096) == 0
while True:
    assert cuda.cudaMemsetAsync(memory, 7, ctypes.c_size_t(64), None) == 0
    if not marks and SYNCS:
        cuda.cudaDeviceSynchronize()
    marks = marks or os.path.exists(sys.argv[1])
    if marks:
        own.gpuprof_step()
    time.sleep(0.005)
"""


@contextlib.contextmanager
def marking_late(folder, source, syncs=True, **settings):
    """A program whose steps are those of `source` until it marks its own, once the file `marks` is there."""
    program = OWN_MARKS_LATE.replace("SYNCS", str(syncs))
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([sys.executable, "-c", program, folder / "marks"], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   env=harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_LOG="info", SIMCUDA_TRUTH=folder / "truth", **settings))
        try:
            wait_until(lambda: f"steps: {source}" in (folder / "log").read_text())
            yield process
        finally:
            process.kill()
            process.wait()


def window_steps(dump):
    summary = next(r for r in harness.records(dump) if r["kind"] == "summary")
    return summary["steps"]["first"], summary["steps"]["last"]


def test_a_request_goes_along_where_steps_are_counted_anew(tmp_path):
    with marking_late(tmp_path, "sync", GPUPROF_MODE="armed") as process:
        first, last = trigger(process.pid, "--at-step", 1000, "--steps", 5)
        (tmp_path / "marks").touch()
        wait_until(lambda: finished(tmp_path))
        said = re.search(r"request is for steps (\d+)-(\d+) now", (tmp_path / "log").read_text())
        moved, end = map(int, said.groups())
        assert moved < first and end - moved == last - first
        assert window_steps(finished(tmp_path)[0]) == (moved, end)


def test_a_window_that_is_asked_for_is_made_again_if_its_steps_were_none(tmp_path):
    with marking_late(tmp_path, "sync", GPUPROF_MODE="armed") as process:
        trigger(process.pid, "--steps", 2000)
        wait_until(lambda: list((tmp_path / "out").rglob("*.part")))
        (tmp_path / "marks").touch()
        wait_until(lambda: "request is for steps" in (tmp_path / "log").read_text())
        moved, end = map(int, re.search(r"request is for steps (\d+)-(\d+) now", (tmp_path / "log").read_text()).groups())
        assert end - moved == 1999 and moved < 20
        wait_until(lambda: finished(tmp_path))
        assert window_steps(finished(tmp_path)[0]) == (moved, end)


def test_a_request_holds_where_the_programs_marks_follow_the_clock(tmp_path):
    """Else the schedule's window, which is over by the clock, is made again by the marks."""
    with marking_late(tmp_path, "time", syncs=False, GPUPROF_SCHEDULE="skip_first=0,warmup=0,active=1,repeat=1") as process:
        wait_until(lambda: finished(tmp_path))
        asked = trigger(process.pid, "--at-step", 60, "--steps", 3)
        (tmp_path / "marks").touch()
        wait_until(lambda: len(finished(tmp_path)) == 2)
        assert window_steps(finished(tmp_path)[1]) == asked == (60, 62)


def test_answers_for_machines(tmp_path):
    def answer(*arguments):
        return json.loads(harness.checked("trigger", tmp_path / "out", *arguments, "--format", "json").out)

    with running(tmp_path, ranks=2):
        wait_until(lambda: len(answer("--on")["processes"]) == 2)  # both have begun
        asked = answer("--steps", 3)
        assert (asked["schema"], asked["request"], asked["elsewhere"]) == (1, "window", 0)
        assert asked["last_step"] == asked["first_step"] + 2
        assert [(process["accepted"], process["reason"]) for process in asked["processes"]] == [(True, "")] * 2
        wait_until(lambda: len(finished(tmp_path)) == 2)
        off = answer("--off")
        assert off["request"] == "off" and "first_step" not in off
    for dump in finished(tmp_path):
        assert_window(dump, tmp_path, asked["first_step"], asked["last_step"])


def test_off_and_on_again(tmp_path):
    with running(tmp_path):
        assert "recording is off" in harness.checked("trigger", tmp_path / "out", "--off").out
        refused = harness.gpuprof("trigger", tmp_path / "out")
        assert refused.code == 2 and "--on" in refused.err
        assert "recording is on" in harness.checked("trigger", tmp_path / "out", "--on").out
        first, last = trigger(tmp_path / "out")
        wait_until(lambda: finished(tmp_path))
    assert_window(finished(tmp_path)[0], tmp_path, first, last)


def test_a_window_before_the_schedule_goes_on(tmp_path):
    """`--on` names a step that may be further away than the window that is asked for next."""
    with running(tmp_path):
        harness.checked("trigger", tmp_path / "out", "--off")
        file, = (tmp_path / "out").rglob("gpuprof.control")
        file.write_text(f"gpuprof-control-1 {int(file.read_text().split()[1]) + 1} on 1000000 0\n")
        wait_until(lambda: "switched on" in (tmp_path / "log").read_text())
        first, last = trigger(tmp_path / "out")
        assert last < 1000000
        wait_until(lambda: finished(tmp_path))
    assert_window(finished(tmp_path)[0], tmp_path, first, last)


def test_on_where_recording_is_on(tmp_path):
    """Changes nothing: a window that is open goes on to its end."""
    with running(tmp_path, GPUPROF_MODE="on", GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=400,repeat=1"):
        wait_until(lambda: list((tmp_path / "out").rglob("*_w0.gpuprof.part")))
        assert "recording was on" in harness.checked("trigger", tmp_path / "out", "--on").out
        wait_until(lambda: finished(tmp_path))
        assert "switched" not in (tmp_path / "log").read_text()
    assert_window(finished(tmp_path)[0], tmp_path, 2, 401)


def test_off_holds_for_processes_that_start_later(tmp_path):
    settings = {"GPUPROF_RUN": "job7", "GPUPROF_SCHEDULE": "skip_first=400,warmup=1,active=3,repeat=1"}
    with running(tmp_path, **settings):
        harness.checked("trigger", tmp_path / "out", "--off")
    with running(tmp_path, GPUPROF_MODE="on", **settings) as process:
        wait_until(lambda: "switched off" in (tmp_path / "log").read_text())
        assert "--on" in harness.gpuprof("trigger", process.pid).err
        assert finished(tmp_path) == []


@pytest.mark.parametrize("schedule", ["all", "skip_first=0,warmup=0,active=5,repeat=1", ""])
def test_off_holds_for_the_first_window_of_who_starts_later(schedule, tmp_path):
    """Also for one that begins with the process, and for early ones."""
    with running(tmp_path, GPUPROF_RUN="job7"):
        harness.checked("trigger", tmp_path / "out", "--off")
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="job7", GPUPROF_SCHEDULE=schedule)
    done = harness.run([harness.SIMTRAIN, "--steps", "60", "--layers", "4", "--kernel-us", "40"], env)
    assert done.code == 0 and finished(tmp_path) == [], done.err
    assert "recording was switched off by gpuprof trigger --off" in done.err, done.err


def test_off_and_on_where_the_whole_program_is_recorded(tmp_path):
    with running(tmp_path, GPUPROF_MODE="on", GPUPROF_SCHEDULE="all"):
        harness.checked("trigger", tmp_path / "out", "--off")
        wait_until(lambda: finished(tmp_path))
        refused = harness.gpuprof("trigger", tmp_path / "out")
        assert refused.code == 2 and "--on" in refused.err, refused.err
        on = harness.checked("trigger", tmp_path / "out", "--on").out
        from_step = int(re.match(r"recording is on in .* from step (\d+)", on)[1])
        wait_until(lambda: list((tmp_path / "out").rglob("*_w1.gpuprof.part")))
        again = json.loads(harness.checked("trigger", tmp_path / "out", "--format", "json", "--on").out)
        assert again["processes"][0]["accepted"]
        time.sleep(2)
        harness.checked("trigger", tmp_path / "out", "--off")
        wait_until(lambda: len(finished(tmp_path)) == 2)
    first, second = [harness.info(dump)["files"][0] for dump in finished(tmp_path)]
    assert first["end_reason"] == second["end_reason"] == "off"
    assert first["steps"]["last"] < second["steps"]["first"] <= from_step < second["steps"]["last"]
    comparison = truth.Comparison(finished(tmp_path)[1], tmp_path / "truth")
    comparison.assert_right("launch", "gpu_kernel")


def test_buffers_in_memory(tmp_path):
    """Nobody can find them, so the process tells its state in a file of the run's folder."""
    with running(tmp_path, seen="*.state", GPUPROF_SCRATCH="/nonexistent/x") as process:
        first, last = trigger(tmp_path / "out")
        wait_until(lambda: len(finished(tmp_path)) == 1)
        second, end = trigger(process.pid, "--steps", 4)
        wait_until(lambda: len(finished(tmp_path)) == 2)
        assert "recording is off" in harness.checked("trigger", process.pid, "--off").out
    for dump, steps in zip(finished(tmp_path), [(first, last), (second, end)]):
        assert_window(dump, tmp_path, *steps)
    (tmp_path / "on").mkdir()
    with running(tmp_path / "on", seen="*.state", GPUPROF_SCRATCH="/nonexistent/x", GPUPROF_MODE="on",
                 GPUPROF_SCHEDULE="skip_first=100000") as process:
        trigger(process.pid, "--steps", 4)


def test_off_ends_an_open_window(tmp_path):
    with running(tmp_path, GPUPROF_MODE="on", GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=100000,repeat=0,max_s=0"):
        wait_until(lambda: list((tmp_path / "out").rglob("*_w0.gpuprof.part")))
        harness.checked("trigger", tmp_path / "out", "--off")
        wait_until(lambda: finished(tmp_path))
    comparison = truth.Comparison(finished(tmp_path)[0], tmp_path / "truth")
    comparison.assert_right("launch", "gpu_kernel")
    assert comparison.summary["partial"] and comparison.summary["end_reason"] == "off"


def test_a_trigger_besides_the_schedule(tmp_path):
    """Mode `on`: the schedule's window first, then one more."""
    with running(tmp_path, GPUPROF_MODE="on", GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=3,repeat=1"):
        wait_until(lambda: finished(tmp_path))
        first, last = trigger(tmp_path / "out")
        wait_until(lambda: len(finished(tmp_path)) == 2)
    assert_window(finished(tmp_path)[0], tmp_path, 4, 6)
    assert_window(finished(tmp_path)[1], tmp_path, first, last)


def test_a_file_of_doubtful_origin_is_not_read(tmp_path):
    """One that others can write to, or a link, is no request."""
    with running(tmp_path):
        harness.checked("trigger", tmp_path / "out", "--on")
        file, = (tmp_path / "out").rglob("gpuprof.control")
        assert file.stat().st_mode & 0o777 == 0o600
        identifier = int(file.read_text().split()[1])
        for number, place in enumerate(["mode", "link"], 1):
            text = f"gpuprof-control-1 {identifier + number} off 0 0\n"
            file.unlink()
            if place == "mode":
                file.write_text(text)
                file.chmod(0o622)
            else:
                (tmp_path / "elsewhere").write_text(text)
                (tmp_path / "elsewhere").chmod(0o600)
                file.symlink_to(tmp_path / "elsewhere")
            time.sleep(1)  # four looks
        assert "switched off" not in (tmp_path / "log").read_text()
        file.unlink()
        first, _ = trigger(tmp_path / "out", "--steps", 1)
        assert first > 0


def test_a_wall_clock_that_was_set_back(tmp_path):
    """A request of now has a smaller number than the process's start had. One of before that start stays none of its own."""
    with running(tmp_path, LD_PRELOAD=harness.HAZARDS / "libclock_step.so"):
        time.sleep(0.5)  # until that has set the clock
        hour_ago = time.time_ns() - 3600 * 10**9
        folder = next((tmp_path / "out").rglob("*.ring")).parent
        for identifier, step in ((hour_ago - 600 * 10**9, 80000), (hour_ago, 90000)):
            assert "asks for" not in (tmp_path / "log").read_text()
            part = folder / "control.part"
            part.write_text(f"gpuprof-control-1 {identifier} window {step} 4\n")
            part.chmod(0o600)
            part.rename(folder / "gpuprof.control")
            time.sleep(1)  # four looks
        wait_until(lambda: "gpuprof trigger asks for steps 90000-90003" in (tmp_path / "log").read_text())
        assert "80000" not in (tmp_path / "log").read_text()


def room_of(ring):
    return ring.stat().st_blocks * 512


@pytest.mark.parametrize("preset", ["default", "full"])
def test_the_ring_takes_its_room_with_the_first_window(preset, tmp_path):
    with running(tmp_path, GPUPROF_PRESET=preset):
        [ring] = (tmp_path / "out").rglob("*.ring")
        assert room_of(ring) <= 8e6
        first, last = trigger(tmp_path / "out")
        wait_until(lambda: finished(tmp_path))
        assert room_of(ring) >= ring.stat().st_size - 4096
    assert_window(*finished(tmp_path), tmp_path, first, last)


@pytest.fixture(name="small_disk")
def disk_of_100_mb(tmp_path):
    """A folder, and the command that makes it a disk of its own, nearly full, for the program that follows."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    inside = harness.with_mounts(f"mount -t tmpfs -o size=100m tmpfs {folder} && head -c 85m /dev/zero >{folder}/filler")
    return folder, inside or pytest.skip("no user namespaces with mounts of their own")


def test_a_disk_without_room_for_a_window(small_disk, tmp_path):
    """The program goes on, who asked is told, and may ask again when there is room."""
    scratch, inside = small_disk
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_MODE="armed", GPUPROF_SCRATCH=scratch, SIMCUDA_TRUTH=tmp_path / "truth",
                            GPUPROF_LOG="info")
    with open(tmp_path / "log", "w") as log, subprocess.Popen([*inside, harness.SIMTRAIN, *LONG], env=env, stdin=subprocess.DEVNULL, stdout=log,
                                                              stderr=log) as process:
        try:
            wait_until(lambda: "gpuprof: steps: nvtx:step" in (tmp_path / "log").read_text() and list((tmp_path / "out").rglob("*.state")))
            refused = harness.gpuprof("trigger", tmp_path / "out")
            assert refused.code == 2 and "has no room on its disk for the records" in refused.err, refused.err
            lines = harness.our_lines((tmp_path / "log").read_text())
            said = [line for line in lines if "No space left on device; the window that gpuprof trigger asks for is left out" in line]
            assert len(said) == 1 and "cannot allocate" in said[0], lines
            pathlib.Path(f"/proc/{process.pid}/root{scratch}/filler").unlink()
            first, last = map(int, re.match(r"steps (\d+)-(\d+) will", harness.checked("trigger", tmp_path / "out").out).groups())
            wait_until(lambda: finished(tmp_path))
        finally:
            process.kill()
    assert_window(*finished(tmp_path), tmp_path, first, last)


def test_a_disk_without_room_after_an_exec_that_failed(small_disk, tmp_path):
    scratch, inside = small_disk
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_MODE="armed", GPUPROF_SCRATCH=scratch, GPUPROF_STEP="sync:1")
    with open(tmp_path / "log", "w") as log, subprocess.Popen([*inside, harness.HAZARDS / "exec", "fails_and_goes_on"], env=env,
                                                              stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: list((tmp_path / "out").rglob("*.state")))
            refused = harness.gpuprof("trigger", tmp_path / "out")
            assert refused.code == 2 and "has no room on its disk for the records" in refused.err, refused.err
            assert process.poll() is None
            pathlib.Path(f"/proc/{process.pid}/root{scratch}/filler").unlink()
            harness.checked("trigger", tmp_path / "out")
            wait_until(lambda: finished(tmp_path))
        finally:
            process.kill()


def test_armed_and_never_asked(tmp_path):
    env = harness.environment(GPUPROF_MODE="armed", GPUPROF_LOG="info")
    done = harness.gpuprof("run", "-o", tmp_path, "--", harness.SIMTRAIN, "--steps", "40", "--layers", "2", env=env)
    assert done.code == 0 and harness.dumps(tmp_path) == []
    assert "nobody asked for it in 39 steps" in done.err and "gpuprof trigger" in done.err, done.err


def test_a_window_in_the_place_of_one_that_has_not_begun(tmp_path):
    with running(tmp_path):
        assert "not recorded" not in harness.checked("trigger", tmp_path / "out", "--at-step", 90000).err
        done = harness.checked("trigger", tmp_path / "out", "--steps", 3)
        assert "had not begun the window that was asked for before: that one is not recorded" in done.err
        wait_until(lambda: finished(tmp_path))
        assert "not recorded" not in harness.checked("trigger", tmp_path / "out", "--steps", 3).err


def test_json_says_which_window_is_replaced(tmp_path):
    with running(tmp_path):
        for steps, replaced in ((90000, False), (90010, True)):
            asked = json.loads(harness.checked("trigger", tmp_path / "out", "--at-step", steps, "--format", "json").out)
            assert [(process["accepted"], process["replaced"]) for process in asked["processes"]] == [(True, replaced)]


def test_a_window_that_the_program_does_not_reach(tmp_path):
    process = subprocess.Popen([harness.BIN, "run", "-o", tmp_path / "out", "--", harness.SIMTRAIN, "--steps", "300", "--data-ms", "20"],
                               env=harness.environment(GPUPROF_MODE="armed", GPUPROF_STEP="nvtx:step", GPUPROF_LOG="info"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: harness.gpuprof("trigger", tmp_path / "out", "--at-step", 5000).code == 0)
    said = process.communicate(timeout=60)[1]
    assert re.search(r"the program ended after 299 steps \(nvtx:step\), before step 5000, from which on gpuprof trigger asked", said), said
    assert "nobody asked" not in said


def test_a_program_that_is_recorded_as_a_whole(tmp_path):
    with running(tmp_path, GPUPROF_MODE="on", GPUPROF_SCHEDULE="all"):
        done = harness.gpuprof("trigger", tmp_path / "out")
        assert done.code == 2 and "records the whole program (GPUPROF_SCHEDULE=all)" in done.err, done.err


def test_targets_that_are_none(tmp_path):
    for target, hint in [(tmp_path, "no profiled process"), (os.getpid(), "profiled"), ("nonsense", "process id")]:
        done = harness.gpuprof("trigger", target)
        assert done.code == 2 and hint in done.err and len(done.err.splitlines()) == 1, done.err
    done = harness.gpuprof("trigger", tmp_path, "--off", "--steps", "3")
    assert done.code == 2
