# SPDX-License-Identifier: Apache-2.0
"""How long a thread ran, waited for a processor and slept, against the kernel's counts as the program reads them itself; alone
and beside four busy loops a core. At short steps the program's thread looks seldom."""
import json
import re
import sys

import pytest

import harness
from support.busy import busy_loops

PROGRAMS = harness.SOURCE / "tests/programs/python"
SCRIPT = PROGRAMS / "thread_states.py"
FIRST, STEPS = 3, 24


def record(folder):
    done = harness.run([sys.executable, SCRIPT, str(FIRST + STEPS + 2)], env=harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE=f"skip_first={FIRST},warmup=0,active={STEPS}"))
    assert done.code == 0, done.err
    counts = [tuple(map(int, line.split())) for line in done.out.splitlines()]
    [dump] = harness.dumps(folder / "out")
    begin, end = counts[FIRST - 1], counts[FIRST - 1 + STEPS]  # step n ends with the n-th synchronization, from 0
    length, running, waiting = (after - before for before, after in zip(begin, end))
    return dump, 100 * running / length, 100 * waiting / length


@pytest.mark.parametrize("busy", [0, 4])
def test_shares_are_the_kernels(tmp_path, busy):
    with busy_loops(busy):
        dump, running, waiting = record(tmp_path)
    [row] = json.loads(harness.checked("report", dump, "--format", "json").out)["thread_states"]
    assert row["steps"] and row["thread"] == harness.info(dump)["files"][0]["pid"] and row["covered_pct"] > 80
    assert row["running_pct"] == pytest.approx(running, abs=4) and row["waiting_pct"] == pytest.approx(waiting, abs=4)
    assert row["running_pct"] + row["waiting_pct"] + row["asleep_pct"] == pytest.approx(100, abs=0.2)
    assert running > 5 and (waiting > 10 or not busy), "it tests nothing otherwise"
    said = re.search(r"The thread that steps run on: running ([\d.]+) %", harness.checked("report", dump).out)
    assert float(said[1]) == pytest.approx(row["running_pct"], abs=0.1)  # each is rounded by itself
    assert_track(tmp_path, dump, row)


@pytest.mark.parametrize("busy", [0, 4])
def test_at_short_steps_waits_are_whole_and_reads_few(tmp_path, busy):
    steps = 2000
    with busy_loops(busy):
        done = harness.run([sys.executable, PROGRAMS / "short_steps.py", str(FIRST), str(FIRST + steps), str(FIRST + steps + 5)],
                           env=harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1",
                                                 GPUPROF_SCHEDULE=f"skip_first={FIRST},warmup=1,active={steps}"))
    assert done.code == 0, done.err
    (waited, reads), (waited_then, reads_then) = (map(int, line.split()) for line in done.out.splitlines())
    [dump] = harness.dumps(tmp_path / "out")
    found = json.loads(harness.checked("report", dump, "--format", "json").out)
    seconds = found["step_time_us"]["mean"] * steps / 1e6
    told = found["without_processor"]["us_per_step"] * steps
    assert told == pytest.approx((waited_then - waited) / 1e3, rel=0.1, abs=0.02 * seconds * 1e6)
    # Each look of the thread that writes, every 5 ms, and each silence of 1 ms, the loops' turns, are reads, too.
    assert busy or reads_then - reads < steps / 2
    assert told > 0.1 * seconds * 1e6 or not busy, "it tests nothing otherwise"


def assert_track(folder, dump, row):
    harness.checked("convert", dump, "--to", "chrome", "-o", folder / "trace.json")
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    at = {}
    for event in events:
        if event["ph"] == "C" and event["name"] == f"thread {row['thread']}":
            at.setdefault(event["ts"], {}).update(event["args"])
    assert len(at) > STEPS
    for shares in at.values():
        assert set(shares) == {"running %", "waiting for a processor %", "asleep %"}
        assert sum(map(float, shares.values())) == pytest.approx(100, abs=0.1) and min(map(float, shares.values())) >= 0
