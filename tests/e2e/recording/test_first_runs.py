# SPDX-License-Identifier: Apache-2.0
"""A first run is never empty: programs that end before the schedule's window leave an early one, marked as such, and
GPUPROF_SCHEDULE=all records all of any."""
import json
import re
import signal
import subprocess
import time

import pytest

import harness
import truth
from test_truth import QUICK

SERVER = f"""import ctypes, sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
def request():  # waits for its stream alone, as many libraries do
    assert gpu._cudart.cudaMemsetAsync(gpu._memory, 0, gpu._BYTES, None) == 0
    assert gpu._cudart.cudaStreamSynchronize(None) == 0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    (gpu.work if sys.argv[2] == "marked" else request)()
    time.sleep(float(sys.argv[3]))
"""


# A window that begins with the program waits 3 s for CUPTI; a busy machine may hold up who waits.
SLOW_ATTACH = "subscribe_ms=6000"


def record(folder, command, *options, **settings):
    env = harness.environment(GPUPROF_LOG="info", SIMCUDA_TRUTH=folder / "truth", **settings)
    (folder / "truth").mkdir(exist_ok=True)
    done = harness.run([harness.BIN, "run", "-o", folder / "out", *options, "--", *command], env)
    assert done.code == 0, done.err
    return done, [truth.Comparison(dump, folder / "truth") for dump in harness.dumps(folder / "out")]


def server(folder, *arguments):
    script = folder / "server.py"
    script.write_text(SERVER)
    return [harness.PYTHON, script, *arguments]


def report(folder):
    return json.loads(harness.checked("report", "--format", "json", folder / "out").out)


def is_early(comparison):
    return comparison.summary["early"]


def said_early(done, what="is all that was recorded"):
    return f"an early window {what}" in done.err and "GPUPROF_SCHEDULE=all" in done.err


@pytest.mark.parametrize("markers", ["nvtx", "sync", "none"])
@pytest.mark.parametrize("steps", [1, 3, 11])
def test_programs_of_few_steps(tmp_path, steps, markers):
    done, comparisons = record(tmp_path, [harness.SIMTRAIN, "--steps", steps, *QUICK, "--markers", markers])
    comparison, = (each for each in comparisons if is_early(each))
    # Of 11 steps the last mark opens the schedule's window, which has no step then.
    has_another = steps == 11 and markers == "sync"
    assert len(comparisons) == 1 + has_another, done.err
    assert said_early(done, "has the most whole steps" if has_another else "is all that was recorded"), done.err
    comparison.assert_right("launch", "gpu_kernel")
    launches = [line for line in comparison.truth if line["t"] == "call" and "LaunchKernel" in line["name"]]
    if steps < 11:
        assert len(harness.of_kind(comparison.records, "launch")) == len(launches), "from the first call to the last"
    found = report(tmp_path)
    assert found["kernels"] and found["copies"] and "early_window" in {row["kind"] for row in found["findings"]}
    info = harness.checked("info", tmp_path / "out").out
    assert "early" in info
    if markers == "nvtx" and steps == 11:
        assert comparison.window_steps() == list(range(10)), "until the schedule's warm-up"


def test_a_window_that_the_end_cuts_after_a_step_is_not_all(tmp_path):
    """Before, it replaced the early one, which has ten steps."""
    done, comparisons = record(tmp_path, [harness.SIMTRAIN, "--steps", 13, *QUICK, "--markers", "sync"])
    assert sorted(len(each.window_steps()) for each in comparisons if not is_early(each)) in ([1], [2])
    assert said_early(done, "has the most whole steps"), done.err
    assert len(report(tmp_path)["steps"]) >= 8, "of the early one"


@pytest.mark.parametrize("options", [[], ["--all"]])
@pytest.mark.parametrize("marks", ["marked", "unmarked"])
def test_a_short_server(tmp_path, marks, options):
    done, (comparison,) = record(tmp_path, server(tmp_path, "2", marks, "0.25"), *options)
    assert is_early(comparison) == said_early(done) == (not options), done.err
    comparison.assert_right("set", "gpu_set")
    assert report(tmp_path)["copies"] and "cut short" not in done.err


LATE = f"""import sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
time.sleep(float(sys.argv[1]))
import gpu
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    gpu.work()
    time.sleep(0.02)
"""


def test_limits_count_from_when_a_window_opened(tmp_path):
    """It may begin with the process, which was there long before its first CUDA call."""
    program = [harness.PYTHON, "-c", LATE]
    done, (comparison,) = record(tmp_path, [*program, "3", "1"], "--schedule", "skip_first=0,warmup=0,active=100000,max_s=2", "--step", "sync:1")
    assert comparison.summary["end_reason"] == "exit" and len(comparison.window_steps()) > 10, done.err
    assert (comparison.end - comparison.begin) / 1e9 > 4, "from the process's start on"


def test_an_early_window_of_a_process_that_is_10_s_old(tmp_path):
    """It has what the program does, not a look's worth of it."""
    done, (comparison,) = record(tmp_path, [harness.PYTHON, "-c", LATE, "11", "1.5"], "--step", "nvtx:never")
    assert is_early(comparison) and "an early window is all that was recorded" in done.err, done.err
    calls = [line for line in comparison.truth if line["t"] == "call" and line["name"] == "cudaMemsetAsync"]
    assert len(harness.of_kind(comparison.records, "set")) == len(calls) > 20


def test_a_server_of_20_s_leaves_its_last_seconds(tmp_path):
    done, (comparison,) = record(tmp_path, server(tmp_path, "20", "unmarked", "0.05"))
    assert is_early(comparison) and said_early(done), done.err
    assert 2 < (comparison.end - comparison.begin) / 1e9 < 12
    calls = [line for line in comparison.truth if line["t"] == "call"]
    assert comparison.end > max(line["end"] for line in calls) - 3e9, "its last seconds"
    assert report(tmp_path)["copies"] and len(harness.dumps(tmp_path / "out")) == 1


def test_the_schedules_window_makes_the_early_one_needless(tmp_path):
    done, (comparison,) = record(tmp_path, [harness.SIMTRAIN, "--steps", "30", *QUICK])
    assert not is_early(comparison) and comparison.header["window"] == 0
    assert comparison.window_steps() == list(range(12, 22)) and "early" not in done.err
    assert "early_window" not in {row["kind"] for row in report(tmp_path)["findings"]}


def test_the_schedules_window_waits_for_a_slow_attach(tmp_path):
    """The end of the early window waits for that, too, which is no reason to leave the schedule's out."""
    done, (comparison,) = record(tmp_path, server(tmp_path, "7", "marked", "0.02"), "--step", "sync:1", SIMCUDA_CUPTI=SLOW_ATTACH)
    assert "attaching CUPTI takes longer than 3 s: window 0 takes as many steps later" in done.err
    assert not is_early(comparison) and len(comparison.window_steps()) == 10, done.err
    comparison.assert_right("set", "gpu_set")
    assert comparison.counts["gpu_set"] == 10 and "left out" not in done.err


def test_a_schedule_of_ones_own_has_no_early_window(tmp_path):
    env = harness.environment(GPUPROF_LOG="info")
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", "skip_first=20", "--", harness.SIMTRAIN, "--steps", "8"], env)
    assert "nothing was recorded" in done.err and harness.dumps(tmp_path / "out") == []


def test_a_process_that_does_nothing_on_the_gpu_leaves_nothing(tmp_path):
    script = tmp_path / "look.py"
    script.write_text("import ctypes\ncount = ctypes.c_int()\nctypes.CDLL('libcudart.so.13').cudaGetDeviceCount(ctypes.byref(count))\n")
    for options in ([], ["--all"]):
        done, comparisons = record(tmp_path, [harness.PYTHON, script], *options)
        assert comparisons == [] and "Next:" not in done.err, done.err


def kill_server(folder, steps, **settings):
    """Kills a server that has waited for its GPU `steps` times, and does not wait for it after that."""
    script = folder / "loop.py"
    script.write_text(SERVER.replace("end = ", f"for _ in range({steps}): gpu.work()\nprint('there', flush=True)\nend = "))
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="sync:1", **settings)
    program = subprocess.Popen([harness.PYTHON, script, "60", "unmarked", "1"], env=env, stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"there\n"
    time.sleep(1.5)
    program.send_signal(signal.SIGKILL)
    program.wait()


def test_a_killed_program_leaves_all_of_it(tmp_path):
    kill_server(tmp_path, 5, GPUPROF_SCHEDULE="all")
    found = report(tmp_path)
    assert found["copies"] and min(row["step"] for row in found["steps"]) <= 1


def test_a_killed_program_leaves_its_early_window(tmp_path):
    """And one that is killed in its own window leaves both, of which the report takes the better one."""
    for steps, active in ((5, None), (17, "own")):
        folder = tmp_path / str(steps)
        folder.mkdir()
        kill_server(folder, steps)
        found = report(folder)
        assert found["copies"]
        kinds = {row["kind"] for row in found["findings"]}
        assert ("early_window" in kinds) == (active is None)
        assert min(row["step"] for row in found["steps"]) == (12 if active else 0)
        trace = folder / "trace.json"
        said = harness.checked("convert", folder / "out", "--to", "chrome", "-o", trace).err
        assert ("left out an early window" in said) == (active is not None), said
        numbers = [int(number) for number in re.findall(r'"ProfilerStep#(\d+)"', trace.read_text())]
        assert min(numbers) == (12 if active else 0)


@pytest.mark.parametrize("markers", ["nvtx", "sync", "none", "profiler"])
@pytest.mark.parametrize("steps", [1, 3, 11, 30])
def test_all(tmp_path, steps, markers):
    done, (comparison,) = record(tmp_path, [harness.SIMTRAIN, "--steps", steps, *QUICK, "--markers", markers], "--all")
    assert comparison.header["schedule"] == "all,max_s=0,max_mb=256" and not is_early(comparison)
    comparison.assert_right("launch", "gpu_kernel")
    launches = [line for line in comparison.truth if line["t"] == "call" and "LaunchKernel" in line["name"]]
    assert len(harness.of_kind(comparison.records, "launch")) == len(launches)
    if steps == 30 and markers == "nvtx":
        assert comparison.window_steps() == list(range(29)), "the last one has no mark of its end"
    assert report(tmp_path)["kernels"] and "cut short" not in done.err


def test_all_says_how_long_it_was_without_cupti(tmp_path):
    """It begins before a slow attach is over: work of until then has no times, and is not what CUPTI fails to record."""
    done, (comparison,) = record(tmp_path, server(tmp_path, "6", "marked", "0.02"), "--all", SIMCUDA_CUPTI=SLOW_ATTACH)
    assert "the window begins without GPU times" in done.err and "no GPU record has come" not in done.err
    file, = harness.info(tmp_path / "out")["files"]
    missing = re.fullmatch(r"for (\d\.\d{3}) s of the window, until CUPTI was attached", file["gpu_times_missing"])
    sets = harness.of_kind(comparison.records, "set")
    timed = ["partner" in each for each in sets]
    first = timed.index(True)
    assert 20 < timed.count(False) == first and all(timed[first:])
    # The window had begun when the first call came. With the last kind that is enabled CUPTI is there.
    least, most = ((sets[at]["begin_mono_ns"] - sets[0]["begin_mono_ns"]) / 1e9 for at in (first - 1, first))
    assert missing and least - 0.001 <= float(missing[1]) < most + 1, (least, most, file["gpu_times_missing"])
    assert missing[0] in harness.checked("info", tmp_path / "out").out and missing[0] in json.dumps(report(tmp_path))


@pytest.mark.parametrize("disk_ms", [0, 15])
def test_all_keeps_the_newest(tmp_path, disk_ms):
    """Beyond max_mb the oldest events go; what the window then holds is there, and nothing else. Also with a slow disk."""
    # `gpuprof run` puts its library before it.
    slow = {"LD_PRELOAD": harness.HAZARDS / "libslow_disk.so", "SLOW_DISK_MS": disk_ms} if disk_ms else {}
    # Whole chunks go, of a quarter of the ring at most: some 0.1 MB. With less than a tenth of the buffers few steps may stay.
    done, (comparison,) = record(tmp_path, [harness.SIMTRAIN, "--steps", "1000", "--layers", "40", "--kernel-us", "2", "--small-kernels", "20"],
                                 "--schedule", "all,max_mb=1", GPUPROF_BUFFER_MB=8, **slow)
    assert comparison.summary["end_reason"] == "exit" and comparison.summary["left_out"] > 50_000
    assert re.search(rf"\(the newest; {comparison.summary['left_out']} before them had to go\)", done.err), done.err
    steps = comparison.window_steps()
    assert steps[0] > 50 and steps[-1] == 998 and steps == list(range(steps[0], 999))
    comparison.assert_right("launch", "gpu_kernel")
    assert comparison.counts["launch"] > 5_000
    found = report(tmp_path)
    assert "left_out" in {row["kind"] for row in found["findings"]} and found["kernels"]
    dump, = harness.dumps(tmp_path / "out")
    assert dump.stat().st_size < 1_200_000 and "the newest events" in harness.checked("info", dump).out


def test_all_ends_where_the_rest_is_too_much(tmp_path):
    """What is no event cannot go: a limit that it alone exceeds ends the window."""
    done, (comparison,) = record(tmp_path, [harness.SIMTRAIN, "--steps", "300", *QUICK], "--schedule", "all,max_mb=0.0005")
    assert comparison.summary["end_reason"] == "max_mb" and "cut short" in done.err


def test_a_killed_program_leaves_the_newest(tmp_path):
    """The file is whole at any moment, also while it is written anew."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="all,max_mb=0.6", GPUPROF_BUFFER_MB=8, GPUPROF_LOG="info")
    child = subprocess.Popen([harness.SIMTRAIN, "--steps", "1000000", "--layers", "40", "--kernel-us", "2", "--small-kernels", "20"],
                             env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for line in child.stderr:
            if "make room" in line:
                break
        time.sleep(0.3)
    finally:
        child.kill()
        child.wait()
    info = harness.info(tmp_path / "out")["files"][0]
    assert info["steps"]["first"] > 0 and info["event_count"] > 10_000


def test_all_and_schedule_exclude_each_other():
    done = harness.gpuprof("run", "--all", "--schedule", "active=3", "--", "true")
    assert done.code == 2 and re.search("--all and --schedule exclude each other", done.err)
    done = harness.gpuprof("run", "--schedule", "all,active=3", "--", "true")
    assert done.code == 2 and "beside it stand max_s and max_mb alone" in done.err
