# SPDX-License-Identifier: Apache-2.0
"""Native frames in host samples (samples:native): below Python's lines, in programs without Python, and with next to
nothing changed for the program: threads that wait get no signal, its own handler of the signal stays alone."""
import json
import os

import pytest

import harness
from support.pythons import each_python, pythons

pytestmark = pytest.mark.usefixtures("ahead_of_other_tests")
PROGRAM = harness.BUILD / "tests/programs/hazards/native_samples"
SETTINGS = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=1,warmup=1,active=20", "PYTHONDONTWRITEBYTECODE": "1",
            "GPUPROF_ACTIVITIES": "+samples:native"}
# main() calls the C library, which calls back.
SCRIPT = f"""import ctypes, sys, time, zlib
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
data = bytes(range(256)) * 60000
def squeeze(a, b):
    zlib.compress(data, 9)
    return 0
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(squeeze)
def main():
    begin, cpu = time.monotonic(), time.thread_time()
    for i in range(24):
        gpu.work()
        ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), ctypes.c_size_t(2), ctypes.c_size_t(4), compare)
    print((time.thread_time() - cpu) / (time.monotonic() - begin))
main()
"""
LINE = 6


def profiled(folder, *command, **settings):
    done = harness.run(command, env=harness.preloaded(**{**SETTINGS, "GPUPROF_OUTPUT": folder / "out", **settings}))
    [dump] = harness.dumps(folder / "out")
    return dump, done


def samples_of(dump):
    return harness.of_kind(harness.records(dump), "sample")


def names(sample):
    return [frame.split(" (")[0] for frame in sample["stack"]]


def one_processor():
    """A command's beginning: where its threads share one, the sampling thread keeps the thread that it looks at from it."""
    return ["taskset", "-c", str(min(os.sched_getaffinity(0)))]


def profiled_with_library(folder, *command):
    """The dump, its samples, those of them that show zlib's deflate: half at least of those that fall into the time that the
    thread has a processor. Without one it answers too late."""
    (folder / "slow.py").write_text(SCRIPT)
    for attempt in range(3):  # on a busy machine other lines wait for the processor, too
        dump, done = profiled(folder / str(attempt), *command, folder / "slow.py")
        assert (done.code, done.err.count("native frames")) == (0, 0), done.err
        samples = samples_of(dump)
        with_library = [s for s in samples if "deflate" in names(s)]
        expected = len(samples) * float(done.out) / 2
        if len(with_library) > expected > 5:
            break
    assert len(with_library) > expected > 5, [names(s) for s in samples]
    return dump, samples, with_library


def test_native_frames_of_a_thread_that_shares_its_processor(tmp_path):
    profiled_with_library(tmp_path, *one_processor(), harness.PYTHON)


@each_python()
def test_native_frames_stand_above_the_line_that_called_them(tmp_path, version):
    dump, samples, with_library = profiled_with_library(tmp_path, pythons()[version])
    for sample in with_library:
        found = [name.split(".")[-1] for name in names(sample)]
        deflate, squeeze, main, module = (found.index(name) for name in ("deflate", "squeeze", "main", "<module>"))
        assert deflate < squeeze < squeeze + 1 < main == module - 1, found  # the C library's stand between
        assert not any("_PyEval" in name for name in found), found
    [first, *_] = json.loads(harness.checked("report", "--format", "json", dump).out)["python_lines"]
    assert (first["file"], first["line"]) == (str(tmp_path / "slow.py"), LINE), first
    # The report names what at least half of a line's time was in; a busy machine may leave less of it.
    share = len(with_library) / sum(any(name.endswith("squeeze") for name in names(s)) for s in samples)
    library = ["deflate", "adler32_z", "zlib_compress_impl"]
    assert first["within"] in (library if share > 0.6 else [*library, ""]), (first, share)


def of_main(dump, found=True):
    """The samples of the main thread, or those of others."""
    [process] = harness.info(dump)["files"]
    return [s for s in samples_of(dump) if (s["tid"] == process["pid"]) == found]


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    for _ in range(3):  # on a busy machine threads wait for a processor as much as they run
        dump, done = profiled(tmp_path_factory.mktemp("native"), PROGRAM, 24)
        main = of_main(dump)
        if sum("spin_here" in names(s) for s in main) > len(main) / 2 > 5:
            break
    return dump, done


def test_a_program_without_python(native, tmp_path):
    dump, done = native
    assert (done.code, done.err.count("native frames")) == (0, 0), done.err
    main, other = of_main(dump), of_main(dump, False)
    assert len({s["tid"] for s in other}) == 1, "neither our own threads nor the one that keeps the signal out"
    spinning = [s for s in main if "spin_here" in names(s)]
    assert len(main) > 10 and len(other) > 10 and len(spinning) > len(main) / 2, [names(s) for s in main]
    waits = {"poll", "nanosleep", "select", "epoll_wait", "futex", "lock_wait"}  # locks: three threads call the simulator
    assert all(any(call in sample["stack"][0] for call in waits) for sample in other if len(sample["stack"]) == 1), other
    for sample in spinning:
        found = names(sample)
        assert found.index("spin_here") + 1 == found.index("run"), found
    report = json.loads(harness.checked("report", "--format", "json", dump).out)
    assert report["python_lines"][0]["function"] == "spin_here", report["python_lines"]
    assert any("spin_here" in frame for stack in report["python_stacks"] for frame in stack["frames"])
    assert "spin_here" in harness.checked("report", dump).out
    harness.checked("convert", dump, "--to", "speedscope", "-o", tmp_path / "scope.json")
    assert any("spin_here" in frame["name"] for frame in json.loads((tmp_path / "scope.json").read_text())["shared"]["frames"])


def test_a_main_thread_that_has_ended_has_no_samples(tmp_path):
    """The kernel says of such a thread that it waits at address 0."""
    for attempt in range(3):  # on a busy machine threads wait for a processor as much as they run
        dump, done = profiled(tmp_path / str(attempt), PROGRAM, 24, "outlived")
        assert (done.code, done.err.count("native frames")) == (0, 0), done.err
        samples = of_main(dump, False)
        if sum("spin_here" in names(s) for s in samples) > 5:
            break
    assert sum("spin_here" in names(s) for s in samples) > 5, [names(s) for s in samples]
    assert of_main(dump) == []
    [header] = harness.info(dump)["files"]
    assert header["executable"] == str(PROGRAM) and header["command"] == [str(PROGRAM), "24", "outlived"]


def told(done):
    words = done.out.split()
    assert words[::2] == ["calls", "early", "handled", "pending", "child", "handler"], done.out
    return {name: int(value) if value.isdigit() else value for name, value in zip(words[::2], words[1::2])}


UNTOUCHED = {"early": 0, "handled": 0, "pending": 0, "child": "default", "handler": "default"}


def test_threads_that_wait_are_left_alone_and_so_is_the_signal(native):
    """A thread that enters a call in the microseconds between look and signal is what may remain."""
    dump, done = native
    found = told(done)
    assert found["calls"] > 200 and found["early"] <= len(samples_of(dump)) / 20, found
    assert {**found, "early": 0} == {**UNTOUCHED, "calls": found["calls"]}


@pytest.mark.parametrize("own, left", [("handler", "own"), ("ignore", "ignored")])
def test_a_handler_of_the_program_stays_alone(tmp_path, own, left):
    dump, done = profiled(tmp_path, PROGRAM, 24, own)
    found = told(done)
    assert found == {**UNTOUCHED, "calls": found["calls"], "child": left, "handler": left}, done.out
    assert done.err.count("no native frames in host samples: the program handles SIGURG in its own way") == 1, done.err
    assert samples_of(dump) == []


def test_off_unless_asked_for(tmp_path):
    dump, done = profiled(tmp_path, PROGRAM, 24, GPUPROF_ACTIVITIES="+samples")
    found = told(done)
    assert found == {**UNTOUCHED, "calls": found["calls"]} and samples_of(dump) == []
