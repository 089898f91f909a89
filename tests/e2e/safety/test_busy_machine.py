# SPDX-License-Identifier: Apache-2.0
"""Another program on the processor of a training: the time without one is measured, told apart and not blamed on the
program."""
import contextlib
import json
import os
import subprocess
import sys

import harness

# Bound by its allocations: the thread always wants to run.
COMMAND = [harness.SIMTRAIN, "--steps", "40", "--layers", "1", "--kernel-us", "20", "--malloc-per-step", "2000"]
SCHEDULE = "skip_first=5,wait=0,warmup=2,active=20,repeat=1"


@contextlib.contextmanager
def one_processor(loops):
    """This process, what it starts, and so many busy loops have one processor between them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
        os.sched_setaffinity(0, before)


def report(folder, loops):
    with one_processor(loops):
        done = harness.run(COMMAND, env=harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_SCHEDULE=SCHEDULE))
    assert done.code == 0, done.err
    return json.loads(harness.checked("report", "--format", "json", folder / "out").out)


def test_time_without_a_processor_is_told_apart(tmp_path):
    for attempt in range(3):  # more than the loop may want this processor
        found = report(tmp_path / str(attempt), 1)
        share = 100 * found["without_processor"]["us_per_step"] / found["step_time_us"]["mean"]
        if 20 < share < 80:
            break
    assert 20 < share < 95, "half of it, and more beside other tests"
    idle = found["without_processor"]["idle_pct"]
    assert 0.5 * share < sum(idle.values()) <= share + 10
    verdicts = {verdict["cause"]: verdict for verdict in found["verdict"]}
    assert {"machine_busy", "allocation"} <= set(verdicts) <= {"machine_busy", "allocation", "kernel_launch"}, found["verdict"]
    said = verdicts["machine_busy"]["evidence"][0]
    assert said.startswith("the machine was busy: ") and "without a processor" in said
    assert abs(verdicts["machine_busy"]["share_pct"] - sum(idle.values())) < 0.1
    own = found["breakdown_pct"]["allocation"] - idle["allocation"]
    assert abs(verdicts["allocation"]["share_pct"] - own) < 0.1

