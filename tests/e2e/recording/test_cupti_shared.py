# SPDX-License-Identifier: Apache-2.0
"""A program with a profiler of its own on CUPTI, which has room for one: the program's gets all it would
get without us, and the dump has the rest and says who had CUPTI."""
import subprocess
import sys
import time

import pytest

import harness
import truth

PROGRAM = harness.HAZARDS / "kineto_like"
WINDOW = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=19,warmup=1,active=20,repeat=1"}
# Up to the program's next session: it leaves CUPTI after 8 steps, and a busy machine may need long to take it again.
LONG_WINDOW = {"GPUPROF_SCHEDULE": "skip_first=19,warmup=1,active=27,repeat=1"}


def profile(folder, *arguments, **settings):
    """Runs the program bare and preloaded; both must say the same. The run, its dump's comparison and info."""
    bare = harness.run([PROGRAM, *arguments])
    assert bare.code == 0, bare.out
    done = harness.run([PROGRAM, *arguments], harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder / "truth", **{**WINDOW, **settings}))
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    dump, = harness.dumps(folder / "out")
    return done, truth.Comparison(dump, folder / "truth"), harness.info(dump)["files"][0]


@pytest.mark.parametrize("style", ["eager", "activity", "clock"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_outside_the_window(style, when, tmp_path):
    """Nothing is missing; a subscription that the program keeps is shared."""
    done, comparison, info = profile(tmp_path, style, when)
    comparison.assert_right("launch", "sync", "gpu_kernel")
    assert comparison.counts["gpu_kernel"] == 200
    assert info["gpu_times_missing"] == "" and comparison.summary["losses"] == {}
    assert len(harness.our_lines(done.err)) == 1, done.err


def test_what_the_program_has_used_is_not_taken_down(tmp_path):
    done, comparison, _ = profile(tmp_path, "eager", "before", GPUPROF_CUPTI_TEARDOWN="1", GPUPROF_LOG="debug")
    comparison.assert_right("launch", "sync", "gpu_kernel")
    assert "attaching CUPTI took" in done.err and "taken down" not in done.err


@pytest.mark.parametrize("style", ["eager", "activity", "clock"])
def test_during_the_window(style, tmp_path):
    done, comparison, info = profile(tmp_path, style, "before", "during", "after", **LONG_WINDOW)
    lines = harness.our_lines(done.err)
    assert "kineto_like uses CUPTI" in lines[0], done.err
    # A clock that was registered again spoils the head of a session (foreign_clock in tests/simcuda/README.md).
    spoiled = comparison.summary["losses"]
    assert spoiled.keys() <= ({"bad_timestamp"} if style == "clock" else set()) and spoiled.get("bad_timestamp", 0) <= 2
    assert len(lines) == 2 + bool(spoiled), done.err
    assert info["gpu_times_missing"].startswith("for ") and "kineto_like" in info["gpu_times_missing"]
    # All calls are there; what is missing is GPU work alone, in one stretch, and what there is is right.
    wrong = [p for p in comparison.problems if not p.startswith(("1 pieces of work, 0 records", "not joined"))]
    untimed = [r for r in harness.of_kind(comparison.records, "gpu_kernel") if "no_time" in r.get("flags", ())]
    assert len(untimed) == spoiled.get("bad_timestamp", 0)
    wrong = [p for p in wrong if not ("differs by" in p and '"no_time"' in p)]
    assert not wrong, wrong[:3]
    assert comparison.counts["launch"] == 270
    launches = harness.of_kind(comparison.records, "launch")
    missing = [i for i, r in enumerate(launches) if "partner" not in r]
    assert missing == list(range(40, 40 + len(missing)))  # from when it began
    assert 40 <= len(missing) < 230  # until it ended at the least, and not to the last step
    # Kernels have their names all through, also one that was loaded while the program had CUPTI.
    names = ["_Z13hazard_kernelPf"] * 10, ["_Z13hazard_kernelPf"] * 9 + ["_Z11late_kernelPf"]
    for i, launch in enumerate(launches):
        name = names[i >= 60][i % 10]
        assert launch["kernel"] == name
        assert "partner" not in launch or comparison.by_index[launch["partner"]]["name"] == name


# What a profiler starts after, while the dump of a window hangs. The process ends as it stands.
WORKS = """
import ctypes, os, time, gpu
for name in ("libcuda.so.1", "libcupti.so.13"):
    ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
for _ in range(8):
    gpu.work()
"""
STARTS = WORKS + """
begin = time.monotonic()
for kind in (1, 2, 3, 4, 5, 10, 18, 37, 39):
    assert ctypes.CDLL(None).cuptiActivityEnable(kind) == 0
print(time.monotonic() - begin, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_profiler_that_starts_waits_once_for_a_disk_that_hangs(tmp_path):
    """Each of its calls asks our thread to give CUPTI up, which is at that dump: one of them waits 3 s."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path, SLOW_DISK_MS="60000", GPUPROF_STEP="sync:1",
                            PYTHONPATH=harness.SOURCE / "tests/programs/python",
                            GPUPROF_SCHEDULE="skip_first=1,wait=0,warmup=1,active=2,repeat=1")
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    done = harness.run([sys.executable, "-c", STARTS], env)
    assert done.code == -9 and float(done.out) < 5, (done.out, done.err)


# XLA's profiler subscribes once, and goes without CUPTI for good where it is refused.
SUBSCRIBES = WORKS + """
handle = ctypes.c_void_p()
on_call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
print(ctypes.CDLL(None).cuptiSubscribe(ctypes.byref(handle), on_call, None), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("disk_ms, answer", ((1500, 0), (60_000, 39)))
def test_a_profiler_that_is_refused_waits_for_the_dump_that_is_written(disk_ms, answer, tmp_path):
    """CUPTI is given back after the dump; a disk that hangs for good is not waited for."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path, SLOW_DISK_MS=disk_ms, GPUPROF_STEP="sync:1",
                            PYTHONPATH=harness.SOURCE / "tests/programs/python",
                            GPUPROF_SCHEDULE="skip_first=1,wait=0,warmup=1,active=2,repeat=1")
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    done = harness.run([sys.executable, "-c", SUBSCRIBES], env)
    assert done.code == -9 and int(done.out) == answer, done.err


def test_graphs_when_cupti_comes_back_within_the_window(tmp_path):
    """They are timed as they were before the program took it."""
    _, comparison, _ = profile(tmp_path, "activity", "during", "graph", **LONG_WINDOW)
    launches = [r for r in harness.of_kind(comparison.records, "launch") if r["name"] == "cudaGraphLaunch"]
    assert len(launches) == 27
    kinds = [comparison.by_index[r["partner"]]["kind"] if "partner" in r else "" for r in launches]
    assert kinds[:4] == ["gpu_kernel"] * 4 and kinds[-4:] == ["gpu_kernel"] * 4 and set(kinds) == {"gpu_kernel", ""}
    losses = comparison.summary["losses"]
    assert losses.keys() <= {"unfinished_gpu", "graph_untimed", "gpu_unjoined"} and 4 <= kinds.count("") < 23


def test_a_session_of_before_that_leaves_cupti_dead(tmp_path):
    """tokenspeed #1348: after a profiler's empty session CUPTI records nothing any more. That is said within a second of the
    launches, once, and each launch is counted."""
    command = [PROGRAM, "activity", "empty"]
    environment = {"GPUPROF_OUTPUT": tmp_path, "GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=8,warmup=2,active=45,repeat=1"}
    for switch in ("dead_after_empty_session", ""):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env=harness.preloaded(SIMCUDA_CUPTI=switch, **environment)) as process:
            told = [(time.monotonic_ns(), line) for line in process.stderr]
        dump = max(harness.dumps(tmp_path), key=lambda path: path.stat().st_mtime)
        losses, file = harness.info(dump)["losses"], harness.info(dump)["files"][0]
        said = [(at, line) for at, line in told if "no GPU record has come for" in line]
        if not switch:
            assert not said and not losses and harness.of_kind(harness.records(dump), "gpu_kernel")
            continue
        # The window takes 45 steps of 40 ms at the least.
        assert len(said) == 1 and "records nothing any more" in said[0][1] and said[0][0] < file["window_end_mono_ns"], (told, file)
        assert losses == {"unfinished_gpu": 450} and not harness.of_kind(harness.records(dump), "gpu_kernel")
        assert "unfinished_gpu" in harness.checked("info", dump).out
        assert "no work on a GPU was recorded" in harness.checked("report", dump).out


def test_taken_by_a_tool_that_is_not_seen(tmp_path):
    """Its subscription came by a way that we do not see; CUPTI 13 tells its name."""
    done = harness.run([harness.HAZARDS / "end", "return"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, SIMCUDA_CUPTI="subscriber_taken", **harness.WHOLE_RUN))
    assert done.code == 3
    lines = harness.our_lines(done.err)
    assert len(lines) == 2 and "another tool uses CUPTI" in lines[0], done.err
    dump, = harness.dumps(tmp_path)
    assert "another tool" in harness.info(dump)["files"][0]["gpu_times_missing"]


@pytest.mark.parametrize("version", ["12.6", "13.0"])
def test_no_more_buffers(version, tmp_path):
    """A CUPTI that holds on to all buffers: before 12.9 it may not be refused one. What is lost is counted."""
    twelve = version.startswith("12")
    program = harness.BUILD / "tests/programs/simtrain" / ("simtrain12" if twelve else "simtrain")
    done = harness.run([program, "--steps", "26", "--layers", "4", "--kernel-us", "40"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="nvtx:step", SIMCUDA_VERSION=version, SIMCUDA_CUPTI="hold_buffers=5000",
        LD_LIBRARY_PATH=str(harness.BUILD / "simcuda/lib12") if twelve else harness.SIMCUDA))
    assert done.code == 0, done.err
    lines = harness.our_lines(done.err)
    assert len(lines) == 2 and "dropped" in lines[0], done.err
    dump, = harness.dumps(tmp_path)
    assert harness.info(dump)["losses"].get("cupti_dropped", 0) > 0
    assert len(harness.of_kind(harness.records(dump), "launch")) > 100


def test_graphs_outlive_the_window_of_an_old_cupti(tmp_path):
    """cuptiFinalize crashed with graphs before 12.6 (the simulator aborts)."""
    done = harness.run([harness.BUILD / "tests/programs/simtrain/simtrain12", "--steps", "40", "--graphs"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="nvtx:step", SIMCUDA_VERSION="12.0",
        GPUPROF_SCHEDULE="skip_first=0,warmup=0,active=5,wait=3,repeat=3",
        LD_LIBRARY_PATH=str(harness.BUILD / "simcuda/lib12")))
    assert done.code == 0, done.err
    assert len(harness.dumps(tmp_path)) == 3
