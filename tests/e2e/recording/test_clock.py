# SPDX-License-Identifier: Apache-2.0
"""The clock of a dump: the processor's counter, by its architecture's name, where the kernel trusts it."""
import pathlib
import platform
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
