# SPDX-License-Identifier: Apache-2.0
"""A window that is cut anywhere gives every table that its events allow: dumps cut at any byte, programs killed and ended at
any moment, with and without marks of steps."""
import json
import random
import signal
import subprocess
import time

import harness
import pytest

# Table of the report: the records it needs.
TABLES = {
    "kernels": ("gpu_kernel",),
    "copies": ("gpu_copy",),
    "synchronizations": ("sync",),
    "collectives": ("collective",),
}
JOB = ["--steps", "400", "--ranks", "1", "--malloc-per-step", "1", "--data-ms", "1"]


def assert_tables(dump, what):
    """Of what was not cut. A report of whole steps leaves out what lies between and around them."""
    done = harness.gpuprof("report", "--format", "json", dump)
    records = harness.gpuprof("parse", "--format", "json", dump)
    if records.code != 0:
        assert done.code == 2, f"{what}: {done.code} {done.err}"
        return 0
    found = [json.loads(line) for line in records.out.splitlines()]
    works = harness.of_kind(found, "gpu_kernel", "gpu_copy", "launch", "sync")
    if not works:
        return 0
    assert done.code == 0, f"{what}: {done.err}"
    report = json.loads(done.out)
    assert report["steps"], f"{what}: neither steps nor the window as a whole: {report['reason']}"
    assert bool(report["verdict"]) != bool(report["reason"]), what
    whole = report["whole_windows"]
    inside = [r for r in found if r["kind"] == "step" and r["in_window"]]
    for table, kinds in TABLES.items():
        there = [r for r in harness.of_kind(found, *kinds)
                 if whole or not inside or inside[0]["begin_mono_ns"] <= r["begin_mono_ns"] < inside[-1]["end_mono_ns"]]
        # Steps at the end of a cut window whose work is missing are left out.
        if there and (whole or len(report["steps"]) > 2):
            assert report[table], f"{what}: {len(there)} records and no table {table}"
    if whole and harness.of_kind(found, "gpu_kernel"):
        assert report["gpu"]["utilization_pct"] > 0, what
    return len(works)


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    harness.checked("run", "-o", folder, "--schedule", "skip_first=2,warmup=1,active=300", "--", harness.SIMTRAIN, *JOB,
                    "--layers", "60", "--kernel-us", "5", env=harness.environment())
    return harness.dumps(folder)[0]


def test_cut_at_any_byte(dump, tmp_path):
    draw = random.Random(25)
    whole = dump.read_bytes()
    with_work = 0
    # Without its last byte it has lost how it ended, and nothing else.
    for at in [len(whole) - 1, *(draw.randrange(1, len(whole)) for _ in range(40))]:
        cut = tmp_path / "cut.gpuprof"
        cut.write_bytes(whole[:at])
        with_work += assert_tables(cut, f"{at} of {len(whole)} bytes") > 0
    assert with_work > 0


@pytest.mark.parametrize("markers", ["nvtx", "none", "sync", "profiler+nvtx"])
@pytest.mark.parametrize("how", ["killed", "ended"])
def test_programs_that_end_at_any_moment(markers, how, tmp_path):
    """Killed while a window is open; or its window ends by the clock, wherever that is. On a machine with other work some
    windows hold nothing yet."""
    draw = random.Random(markers + how)
    with_work = 0
    for number in range(24):
        folder, longest = tmp_path / str(number), 0.3 + 0.2 * number
        flags = ["--profile-steps", "3-399"] if markers.startswith("profiler") else []
        schedule = f"all,max_s={draw.uniform(0.05, longest):.3f}" if how == "ended" else "all"
        env = harness.preloaded(GPUPROF_OUTPUT=folder, GPUPROF_SCHEDULE=schedule)
        program = subprocess.Popen([harness.SIMTRAIN, *JOB, "--layers", "4", "--kernel-us", "60", "--markers", markers, *flags],
                                   env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while how == "killed" and not harness.dumps(folder) and program.poll() is None:
            time.sleep(0.005)
        if how == "killed":
            time.sleep(draw.uniform(0.02, longest))
            program.send_signal(signal.SIGKILL)
        assert program.wait(120) in (0, -signal.SIGKILL)
        if harness.dumps(folder):
            with_work += assert_tables(folder, f"{markers} {how} {number}") > 0
        if with_work == 3:
            return
    assert with_work == 3
