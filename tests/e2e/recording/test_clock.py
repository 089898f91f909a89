# SPDX-License-Identifier: Apache-2.0
"""The clock of a dump: the processor's counter, by its architecture's name, where the kernel trusts it."""
import pathlib
import platform
import sys
import time

import pytest

import harness

COUNTER, TRUSTED = {"x86_64": ("tsc", ("tsc", "kvm-clock", "hyperv_clocksource_tsc")),
                    "aarch64": ("cntvct", ("arch_sys_counter",))}[platform.machine()]
SOURCE = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
SLEEP_S = 0.5


@pytest.fixture(name="dump", scope="module")
def fixture_dump(tmp_path_factory):
    """Of a program that sleeps between two steps."""
    folder = tmp_path_factory.mktemp("clock")
    before = time.monotonic_ns()
    program = [harness.SIMTRAIN, "--steps", "2", "--data-ms", str(round(SLEEP_S * 1000))]
    done = harness.run(program, harness.preloaded(GPUPROF_OUTPUT=folder, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    found, = harness.dumps(folder)
    return found, before, time.monotonic_ns()


def test_info_names_the_counter(dump):
    header, = harness.info(dump[0])["files"]
    if SOURCE.read_text().strip() in TRUSTED:
        assert (header["clock"], header["clock_note"]) == (COUNTER, "")
    else:
        assert header["clock"] == "monotonic" and "the kernel does not use" in header["clock_note"]


def test_its_times_are_the_systems(dump):
    path, before, after = dump
    header, = harness.info(path)["files"]
    assert before <= header["window_begin_mono_ns"] < header["window_end_mono_ns"] <= after
    assert header["window_end_mono_ns"] - header["window_begin_mono_ns"] >= SLEEP_S * 1e9


MARKS = """
import ctypes, os, time
own = ctypes.CDLL(None)
def five_steps():
    for _ in range(5):
        own.gpuprof_step()
        time.sleep(0.02)
five_steps()
import gpu
gpu.work()
if os.fork() == 0:
    five_steps()
    os._exit(0)
os.wait()
"""


@pytest.fixture(name="untrusted")
def fixture_untrusted(tmp_path):
    """A command for whose program the kernel has another clock, as where it saw the counters of cores disagree."""
    other = tmp_path / "clocksource"
    other.write_text("hpet\n")
    return harness.with_mounts(f"mount --bind {other} {SOURCE}") or pytest.skip("no user namespaces with mounts of their own")


def test_a_counter_that_the_kernel_does_not_trust(untrusted, tmp_path):
    """The first mark comes before the clock is chosen; a forked child has its parent's."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", GPUPROF_SCHEDULE="all",
                            PYTHONPATH=harness.SOURCE / "tests/programs/python")
    before = time.monotonic_ns()
    done = harness.run_within(untrusted, [sys.executable, "-c", MARKS], env)
    assert done.code == 0, done.err
    found = harness.dumps(tmp_path / "out")
    assert len(found) == 2, found
    for dump in found:
        header, = harness.info(dump)["files"]
        assert header["clock"] == "monotonic" and "the kernel does not use" in header["clock_note"]
        steps = harness.of_kind(harness.records(dump), "step")
        times = [moment for step in steps for moment in (step["begin_mono_ns"], step["end_mono_ns"])]
        assert len(steps) >= 4 and times == sorted(times) and before < times[0] and times[-1] < time.monotonic_ns(), times
        assert before < header["window_begin_mono_ns"] < header["window_end_mono_ns"] < time.monotonic_ns()
