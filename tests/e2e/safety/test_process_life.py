# SPDX-License-Identifier: Apache-2.0
"""A process that changes what it is (root directory, user, namespaces), that has very many threads or children, or several
interpreters, runs as without the library, and what it did is in the dump or its loss is said."""
import concurrent.futures
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

import harness
import truth
from support.pythons import each_python, pythons

PROGRAM = harness.HAZARDS / "process_life"
SCRIPTS = harness.SOURCE / "tests/programs/python"
WITH_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
WITH_SOMEBODY = pytest.mark.skipif(not harness.can_give_files_to_somebody(), reason="needs root and a second user")
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def launches(folder):
    return sum(file["events"].get("launch", 0) for file in harness.info(folder)["files"])


def assert_ours(err):
    """Each line is the library's. Some are not in our_lines: a busy machine makes them."""
    assert all(line.startswith("gpuprof:") for line in err.splitlines()), err


def run(case, folder, *arguments, first=(), **settings):
    """The library's lines; all else is as without it."""
    bare = harness.run([*first, PROGRAM, case, *arguments[:1]])
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_PRESET="full", **{**harness.WHOLE_RUN, **settings})
    done = harness.run([*first, PROGRAM, case, *arguments], env)
    lines = harness.our_lines(done.err)
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    assert_ours(done.err)
    assert bare.code == 3, bare
    return lines


def test_children_load_libraries(tmp_path):
    """glibc gives a child of fork the loader's lock as it is: no thread of ours may hold it then."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_PRESET="full", GPUPROF_STACKS="launch", **harness.WHOLE_RUN)
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_list.so'}"
    done = harness.run([PROGRAM, "children_load"], env)
    assert (done.code, done.out) == (3, "sum 20\n"), done
    assert launches(tmp_path) == 5


@WITH_ROOT
def test_another_root_directory(tmp_path):
    (tmp_path / "jail").mkdir()
    lines = run("chroot", tmp_path, tmp_path / "jail")
    assert len(lines) == 1 and "is written, but this program cannot reach it by that path any more" in lines[0], lines
    assert launches(tmp_path / "out") == 20 and list((tmp_path / "jail").iterdir()) == []


@WITH_SOMEBODY
def test_another_user_while_a_dump_is_written(tmp_path):
    """It may not rename in root's directory: what was written stays there, and is neither lost nor said to be."""
    bare = harness.run([PROGRAM, "setuid"])
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    done = harness.run([PROGRAM, "setuid", tmp_path / "out/*/*.part"], env)
    assert (done.code, done.out) == (bare.code, bare.out) and "user 54321 54321, group 54321" in done.out
    lines = harness.our_lines(done.err)
    assert len(lines) == 3 and "0 lost, 1 cut short" in lines[1] and "Next: gpuprof report" in lines[2], lines
    part, = [path for path in harness.dumps(tmp_path / "out") if path.suffix == ".part"]
    assert launches(part) == 20


@WITH_SOMEBODY
@pytest.mark.parametrize("case", ["setuid", "setuid_first"])
def test_another_user(case, tmp_path):
    """Sooner or later than our first file: the program never waits for a thread of ours to change its user, too."""
    assert len(run(case, tmp_path)) <= 3


@WITH_ROOT
@pytest.mark.parametrize("case, count", [("namespaces", 20), ("child_in_namespaces", 15)])
def test_namespaces_of_its_own(case, count, tmp_path):
    if "unshare: -1" in harness.run([PROGRAM, case]).out:
        pytest.skip("no namespaces of its own: a chroot refuses them")
    run(case, tmp_path)
    assert launches(tmp_path / "out") == count


def test_an_exec_that_fails_leaves_one_dump(tmp_path):
    """What was written of it before is part of it, and its losses count once."""
    done = harness.run([harness.HAZARDS / "exec", "fails"], harness.preloaded(**{**harness.WHOLE_RUN, "GPUPROF_OUTPUT": tmp_path}))
    assert done.code == 5, done.err
    found, = harness.info(tmp_path)["files"]
    assert found["end_reason"] == "exit" and found["events"]["launch"] == found["events"]["gpu_kernel"] == 30


def test_execs_that_fail_beside_a_thread_that_works(tmp_path):
    """What it does while the dump is made ready for the exec is in the dump, once."""
    done = harness.run([harness.HAZARDS / "exec", "fails_beside"], harness.preloaded(
        **{**harness.WHOLE_RUN, "GPUPROF_OUTPUT": tmp_path / "out", "SIMCUDA_TRUTH": tmp_path}))
    assert done.code == 5, done.err
    comparison = truth.Comparison(*harness.dumps(tmp_path / "out"), tmp_path)
    comparison.assert_right("launch", "sync", "gpu_kernel")
    calls = [line["name"] for line in comparison.truth if line["t"] == "call"]
    assert comparison.counts["launch"] == comparison.counts["gpu_kernel"] == calls.count("cudaLaunchKernel") > 1000
    assert comparison.summary["losses"] == {}, done.err


@pytest.mark.parametrize("cupti", ["auto", "off"])
@pytest.mark.parametrize("case", ["raw_exit", "raw_exit_outlived", "main_thread_first"])
def test_the_first_thread_ends_before_ours(case, cupti, tmp_path):
    """Whether or not CUPTI has a thread that stays: the process has the code that it has without the library."""
    command = [harness.HAZARDS / "end", case]
    bare = harness.run(command)
    done = harness.run(command, harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_CUPTI=cupti, **harness.WHOLE_RUN))
    assert (done.code, done.out) == (bare.code, bare.out), done.err


def test_closing_the_library_is_refused(tmp_path):
    run("closes_us", tmp_path)
    assert launches(tmp_path / "out") == 20


def test_a_program_opens_and_closes_the_library():
    done = harness.run([PROGRAM, "opens_and_closes_us", harness.LIB])
    assert (done.code, done.out) == (3, ""), done.err


def test_ten_thousand_threads(tmp_path):
    """Of what finds no buffer, since the drain thread is behind, each record is counted."""
    run("threads", tmp_path)
    file, = harness.info(tmp_path / "out")["files"]
    assert file["events"]["launch"] + file.get("losses", {}).get("buffer_full", 0) >= 10001


@WITH_ROOT
def test_no_thread_of_ours_is_real_time(tmp_path):
    """As the thread is that starts it: RLIMIT_RTTIME would end the program, and others of its threads would wait."""
    if "sched_setscheduler: -1" in harness.run([PROGRAM, "real_time"]).out:
        pytest.skip("no real-time threads here")
    run("real_time", tmp_path)
    assert launches(tmp_path / "out") == 20


def test_errno_is_zero_where_a_program_begins(tmp_path):
    """In a folder that is gone, which has no name to be noted."""
    (tmp_path / "gone").mkdir()
    done = subprocess.run([PROGRAM, "errno"], env=harness.preloaded(), cwd=tmp_path / "gone",
                          preexec_fn=lambda: os.rmdir(tmp_path / "gone"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "errno 0\n", "")


@contextlib.contextmanager
def cgroup(kind, file, value):
    """A control group with a limit; its `enter` puts the calling process into it."""
    for base in (CGROUPS / kind, CGROUPS):
        group = base / f"gpuprof-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / file[base == CGROUPS]).write_text(str(value))
            break
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
    else:
        pytest.skip(f"no control group for {kind} can be made here")
    try:
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()


def in_group(enter, folder, *program):
    """Bare and preloaded in the group; the library's lines."""
    found = []
    for env in (harness.environment(), harness.preloaded(GPUPROF_OUTPUT=folder / "out", **harness.WHOLE_RUN)):
        found.append(subprocess.run(program, env=env, preexec_fn=enter, capture_output=True, text=True, timeout=120, check=False))
    bare, done = found
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) == (0, bare.stdout), done.stderr
    return harness.our_lines(done.stderr)


@WITH_ROOT
@pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitizer's runtime has threads and memory of its own")
def test_no_room_for_a_thread_in_the_control_group(tmp_path):
    with cgroup("pids", ("pids.max", "pids.max"), 1) as enter:
        lines = in_group(enter, tmp_path, PROGRAM.with_name("resources"), "umask")
    assert len(lines) == 1 and "runs unprofiled" in lines[0], lines


@WITH_ROOT
@pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitizer's runtime has threads and memory of its own")
def test_little_memory_in_the_control_group(tmp_path):
    """Less than the buffers would take: they are a file's, which the kernel writes out rather than end the program."""
    with cgroup("memory", ("memory.limit_in_bytes", "memory.max"), 48 << 20) as enter:
        in_group(enter, tmp_path, harness.SIMTRAIN, "--steps", "300", "--markers", "sync")
    assert launches(tmp_path / "out") > 1000


def test_the_wall_clock_is_set(tmp_path):
    """An hour forward, then two hours back: windows and steps go by clocks that nobody sets."""
    command = [harness.SIMTRAIN, "--steps", "400", "--markers", "sync"]
    bare = harness.run(command)
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1",
                            GPUPROF_SCHEDULE="skip_first=0,wait=5,warmup=0,active=50,repeat=0")
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libclock_step.so'}"
    done = harness.run(command, env)
    assert (done.code, done.out) == (bare.code, bare.out) and len(harness.our_lines(done.err)) <= 2, done.err
    files = harness.info(tmp_path / "out")["files"]
    # What ran just then may have no sound GPU time: CUPTI's clock is the one that was set.
    assert len(files) > 3 and all(file["events"]["launch"] > 100 for file in files)
    for dump in harness.dumps(tmp_path / "out"):
        begins = [r["begin_mono_ns"] for r in harness.of_kind(harness.records(dump), "step", "launch")]
        assert max(begins) - min(begins) < 60e9


def test_writes_that_are_short(tmp_path):
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SHORT_WRITES="1000", **harness.WHOLE_RUN)
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    done = harness.run([harness.SIMTRAIN, "--steps", "50", "--markers", "sync"], env)
    file, = harness.info(tmp_path / "out")["files"]
    assert done.code == 0 and file["events"]["gpu_kernel"] == file["events"]["launch"] > 1000, done.err
    assert "missing" not in done.err and len(harness.our_lines(done.err)) == 1, done.err


# Forks all the while; each child says which files of ours it has.
FORKS = """
import os, sys, time, gpu
end, works = time.monotonic() + 3, 0
while time.monotonic() < end or works < 40_000:
    for _ in range(200):
        gpu.work()
    works += 200
    if os.fork() == 0:
        for file in os.listdir("/proc/self/fd"):
            try:
                name = os.readlink(f"/proc/self/fd/{file}")
            except OSError:
                continue
            if ".gpuprof" in name:
                print(name, flush=True)
        os._exit(0)
    os.wait()
"""


def test_children_have_no_file_of_ours_while_room_is_made(tmp_path):
    """The window's dump is written anew without its oldest part."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="all,max_mb=0.2", GPUPROF_BUFFER_MB="8",
                            PYTHONPATH=SCRIPTS, SLOW_COPY_MS="200")
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    done = harness.run([sys.executable, "-c", FORKS], env)
    assert (done.code, done.out) == (0, "") and "oldest" in done.err, done


def ended(folder, case, *arguments, slow=True, **settings):
    """What the program `end` left, and what was said. Its code is 3, or that of the program that took its place."""
    env = harness.preloaded(GPUPROF_OUTPUT=folder, **{**harness.WHOLE_RUN, **settings})
    if slow:
        env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    done = harness.run([harness.HAZARDS / "end", case, *arguments], env)
    assert done.code in ((0, 3) if "exec" in arguments else (3,)), done
    return harness.dumps(folder), done.err


def test_a_handler_jumps_out_of_a_mark(tmp_path):
    """Other threads wait for it once, 10 s, and go on. Their steps are left out, which is said."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="sync:1", SIMCUDA_CUPTI="subscribe_ms=2500",
                            GPUPROF_SCHEDULE="skip_first=2,wait=0,warmup=0,active=5,repeat=1")
    done = harness.run([harness.HAZARDS / "signals", "jumps_out_of_mark"], env, timeout=60)
    assert (done.code, done.out) == (3, "20 steps beside\n"), done
    assert done.err.count("a step's mark has not ended for 10 s") == 1, done.err


@pytest.mark.parametrize("way", ["_exit", "exec"])
def test_two_threads_end_the_program(way, tmp_path):
    """The second one, too, waits for the dump that is being written."""
    found, err = ended(tmp_path, "beside", way, SLOW_DISK_MS="400")
    assert [path.suffix for path in found] == [".gpuprof"] and launches(tmp_path) == 20, (found, err)


def test_the_program_ends_while_a_thread_waits_for_its_window(tmp_path):
    """The window does not begin any more. Several at once: which of both threads is first, is a matter of chance."""
    def end(number):
        return ended(tmp_path / str(number), "while_another_marks", slow=False, SIMCUDA_CUPTI="subscribe_ms=2500", GPUPROF_BUFFER_MB="8",
                     GPUPROF_SCHEDULE="skip_first=2,wait=0,warmup=0,active=100,repeat=1")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for found, err in pool.map(end, range(4)):
            assert found == [] and "could not be ended" not in err, (found, err)


def test_a_handler_ends_the_program_as_a_window_opens(tmp_path):
    """The thread that would end the window does not go on: what was recorded stays in the buffers' file."""
    for attempt in range(5):  # on a busy machine the mark may be over when the signal comes
        out = tmp_path / str(attempt)
        found, err = ended(out, "handler_exits_in_mark", out / "*/*.part", SLOW_DISK_MS="300",
                           GPUPROF_SCHEDULE="skip_first=5,wait=0,warmup=0,active=900,repeat=1")
        if ".gpuprof" not in [path.suffix for path in found]:
            break
    assert sorted(path.suffix for path in found) == [".part", ".ring"] and launches(out) > 5, (found, err)
    assert "window 0 could not be ended" in err and "nothing was recorded" not in err, err


def test_a_disk_that_hangs_costs_the_program_one_wait(tmp_path):
    """A step waits 3 s for the dump of the window before, and later ones do not while that goes on."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SLOW_DISK_MS="60000", GPUPROF_STEP="sync:1",
                            GPUPROF_SCHEDULE="skip_first=2,wait=2,warmup=1,active=2,repeat=0")
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    begin = time.monotonic()
    done = harness.run([harness.SIMTRAIN, "--steps", "100", "--markers", "sync"], env)
    left_out = len(re.findall(r"window \d+ was left out: the dump of the one before is not written yet", done.err))
    assert done.code == 0 and left_out > 10, done.err
    assert time.monotonic() - begin < 3 * left_out, (time.monotonic() - begin, left_out)


# Prints the longest of its marks of steps, in seconds, without those that gpuprof's own clock makes. It ends once a file is
# there.
MARKS = """
import ctypes, glob, sys, time, gpu
mark, longest, end = ctypes.CDLL(None).gpuprof_step, 0, time.monotonic() + 60
while not glob.glob(sys.argv[1]) and time.monotonic() < end:
    gpu.work()
    begin = time.monotonic()
    mark()
    longest = max(longest, time.monotonic() - begin)
    time.sleep(0.002)
print(longest)
"""


@pytest.mark.parametrize("slow", [{"SLOW_DISK_MS": "300"}, {"SIMCUDA_CUPTI": "subscribe_ms=2500"}])
def test_marks_wait_for_no_window_that_begins_by_the_clock(slow, tmp_path):
    """Our thread opens it: a dump that is written, and CUPTI that is attached, hold up nobody."""
    for attempt in range(3):  # a busy machine may hold up the program itself
        out = tmp_path / str(attempt)
        env = harness.preloaded(GPUPROF_OUTPUT=out, GPUPROF_STEP="time:100", PYTHONPATH=SCRIPTS,
                                GPUPROF_SCHEDULE="skip_first=3,wait=0,warmup=0,active=3,repeat=2", **slow)
        env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
        done = harness.run([sys.executable, "-c", MARKS, out / "latest/*_w1.gpuprof"], env)
        steps = [(file["window"], file["steps"]["first"], file["steps"]["last"]) for file in harness.info(out)["files"]]
        assert done.code == 0 and steps == [(0, 3, 5), (1, 6, 8)] and "left out" not in done.err, (steps, done.err)
        if float(done.out) < 1:
            break
    assert float(done.out) < 1, (done.out, done.err)


# How often the thread that writes files went to sleep a second, once the window is over.
LOOKS = """
import glob, sys, time, gpu
def sleeps():
    tasks = [path for path in glob.glob("/proc/self/task/*") if open(f"{path}/comm").read() == "gpuprof\\n"]
    assert tasks
    return sum(int(line.split()[1]) for path in tasks for line in open(f"{path}/status") if line.startswith("voluntary_ctxt"))
while not glob.glob(sys.argv[1]): gpu.work(); time.sleep(0.01)
begin, before = time.monotonic(), sleeps()
time.sleep(2)
print((sleeps() - before) / (time.monotonic() - begin))
"""


def test_steps_by_the_clock_wake_our_thread_when_they_are_due(tmp_path):
    """Ten steps a second, and its other looks."""
    done = harness.run([sys.executable, "-c", LOOKS, tmp_path / "latest/*_w0.gpuprof"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="time:100", PYTHONPATH=SCRIPTS,
        GPUPROF_SCHEDULE="skip_first=1,wait=0,warmup=0,active=2,repeat=1"))
    assert done.code == 0 and 5 < float(done.out) < 100, done


@pytest.mark.parametrize("preset", ["default", "full"])
def test_a_constructor_that_uses_cuda_is_not_held_up(preset, tmp_path):
    """The loader's lock is held meanwhile: what loads CUPTI waits for it, and the program does not wait for that."""
    script = (f"import ctypes, time; begin = time.monotonic(); ctypes.CDLL('{harness.HAZARDS / 'libhazard_early.so'}')\n"
              "print(time.monotonic() - begin, flush=True); import gpu\nfor _ in range(40): gpu.work(); time.sleep(0.02)")
    done = harness.run([sys.executable, "-c", script], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_PRESET=preset, GPUPROF_STEP="sync:1", PYTHONPATH=SCRIPTS))
    assert done.code == 0 and float(done.out.split()[0]) < 1.5, (done.out, done.err)
    assert "CUPTI cannot be loaded while another library is: the window begins without GPU times" in done.err, done.err
    file, = harness.info(tmp_path / "out")["files"]
    assert file["steps"]["count"] == file["events"]["gpu_set"] == 10 and file["gpu_times_missing"] == "", file


def test_a_start_that_takes_too_long_leaves_nothing(tmp_path):
    """The program waits 5 s for the buffers' file, goes on, and is told."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="run", SLOW_CREATE_MS="7000", **harness.WHOLE_RUN)
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libslow_disk.so'}"
    done = harness.run([harness.SIMTRAIN, "--steps", "400", "--markers", "sync", "--data-ms", "10"], env)
    said, = harness.our_lines(done.err)
    assert done.code == 0 and "were not ready within 5 s; this program runs unprofiled" in said, done.err
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


# Each method's children use the GPU, and end as multiprocessing lets them.
CHILDREN = """
import multiprocessing, sys
def child(number):
    import gpu
    for _ in range(number + 1): gpu.work()
    return number * 10
if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool: print(method, pool.map(child, range(4), chunksize=1))
        process = context.Process(target=child, args=(5,))
        process.start(); process.join(); print(process.exitcode)
    sys.exit(7)
"""


@each_python()
def test_children_of_multiprocessing(version, tmp_path):
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    command = [pythons()[version], script]
    bare = harness.run(command, harness.environment(PYTHONPATH=SCRIPTS))
    done = harness.run(command, harness.preloaded(PYTHONPATH=SCRIPTS, GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN))
    assert (done.code, done.out) == (bare.code, bare.out) == (7, bare.out), done.err
    assert_ours(done.err)
    # The single child of each method has a whole dump; a pool's may have been ended by a signal. Those of a fork server have a
    # run of their own, since that is their parent.
    whole = [path for path in harness.dumps(tmp_path / "out") if path.suffix == ".gpuprof"]
    assert [harness.info(path)["files"][0]["events"]["gpu_set"] for path in whole].count(6) >= 3


INTERPRETERS = """
import sys, gpu
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
gpu.work()
for _ in range(20):
    made = interpreters.create()
    interpreters.run_string(made, "import sys, json; sum(range(20000)); [json.dumps(list(range(200))) for _ in range(20)]")
    interpreters.destroy(made)
    gpu.work()
print("20 interpreters")
sys.exit(7)
"""


@each_python()
def test_several_interpreters(version, tmp_path):
    command = [pythons()[version], "-c", INTERPRETERS]
    bare = harness.run(command, harness.environment(PYTHONPATH=SCRIPTS))
    env = harness.preloaded(PYTHONPATH=SCRIPTS, GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_PRESET="full", **harness.WHOLE_RUN)
    done = harness.run(command, env)
    assert (done.code, done.out) == (bare.code, bare.out) == (7, "20 interpreters\n"), done.err
    assert_ours(done.err)
    assert len(harness.info(tmp_path / "out")["files"]) == 1


BESIDE = """
import ctypes, sys, threading, time
ctypes.CDLL(sys.argv[2])  # of PyTorch: the library looks at audit events from then on
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
made = interpreters.create()
text = "import os, time; [open('/dev/null').close() for _ in iter(lambda: os.path.exists(%r), True)]" % sys.argv[1]
thread = threading.Thread(target=interpreters.run_string, args=(made, text))
thread.start()
time.sleep(0.3)
import gpu
def train():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        sum(range(20000))
        gpu.work()
        open("/dev/null").close()  # an event of its own
train()
open(sys.argv[1], "w").close()
thread.join()
print("over")
"""


@each_python()
def test_an_interpreter_beside_the_programs_own(version, tmp_path):
    """Its audit events come first; the stacks that are read are the program's. Up to CPython 3.11 what the library asks the main
    thread to do is now and then lost while another interpreter runs: then there are none."""
    env = harness.preloaded(PYTHONPATH=SCRIPTS, GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_PRESET="full", **harness.WHOLE_RUN)
    done = harness.run([pythons()[version], "-c", BESIDE, tmp_path / "ends", harness.HAZARDS / "torch_like/libtorch_cpu.so"], env)
    assert (done.code, done.out) == (0, "over\n"), done.err
    samples = harness.of_kind(harness.records(*harness.dumps(tmp_path / "out")), "sample")
    own = sum("train" in str(sample["stack"]) for sample in samples)
    assert own > 10 or (not samples and version < (3, 12)), (own, len(samples), done.err)


def test_many_short_children_leave_nothing(tmp_path):
    """As a compiler's, of a program with an open window: their time is tests/bench/children.py's matter."""
    script = "import gpu, subprocess\nfor _ in range(300): subprocess.run(['/bin/true'], check=True)\ngpu.work()\nprint('done')"
    env = harness.preloaded(PYTHONPATH=SCRIPTS, GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    done = harness.run([sys.executable, "-c", script], env, cwd=tmp_path)
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert len(harness.dumps(tmp_path / "out")) == 1 and {path.name for path in tmp_path.iterdir()} == {"out"}
    assert re.search(r"Next: gpuprof report", done.err)
