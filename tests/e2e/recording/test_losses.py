# SPDX-License-Identifier: Apache-2.0
"""Each loss is one window's: what several windows of a process, its children and what a killed one leaves say of NVTX ranges
that lie too deep, of which each step has the same number."""
import json
import re
import signal

import harness

DEEP = [harness.HAZARDS / "names", "deep"]
RANGES, KEPT = 150, 126  # in each other in a step; how many of a thread's open ones are kept track of
OF_A_STEP = RANGES + 1 - KEPT
THREE = "skip_first=2,wait=2,skip_first_wait=1,warmup=1,active=2,repeat=3"


def profile(folder, steps, *what, **settings):
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="nvtx:step", GPUPROF_LOG="info", **settings)
    return harness.run([*DEEP, steps, RANGES, *what], env)


def losses_of(file):
    return harness.info(file)["files"][0]["losses"]


def said(done):
    """By the closing lines of the run."""
    return [int(count) for count in re.findall(r"(\d+) NVTX ranges nested too deep", done.err)]


def told(folder):
    """By info and report, of all windows together."""
    report = json.loads(harness.checked("report", "--format", "json", folder).out)
    return [harness.info(folder)["losses"], report["losses"]]


def test_windows_of_a_process_have_their_own(tmp_path):
    done = profile(tmp_path, 20, GPUPROF_SCHEDULE=THREE)
    dumps = harness.dumps(tmp_path / "out")
    assert done.code == 0 and len(dumps) == 3, done.err
    assert [losses_of(dump) for dump in dumps] == [{"nvtx_depth": 2 * OF_A_STEP}] * 3
    assert told(tmp_path / "out") == [{"nvtx_depth": 6 * OF_A_STEP}] * 2
    assert said(done) == [6 * OF_A_STEP]


def test_an_early_window_takes_its_own_with_it(tmp_path):
    """The default schedule's window makes it needless."""
    done = profile(tmp_path, 40)
    dump, = harness.dumps(tmp_path / "out")
    assert done.code == 0 and "_w0" in dump.name
    steps = {step["number"] for step in harness.of_kind(harness.records(dump), "step") if step["in_window"]}
    assert losses_of(dump) == {"nvtx_depth": len(steps) * OF_A_STEP}
    assert said(done) == [len(steps) * OF_A_STEP]


def test_an_early_window_that_is_left_has_its_own(tmp_path):
    done = profile(tmp_path, 5)
    dump, = harness.dumps(tmp_path / "out")
    assert done.code == 0 and "_early" in dump.name
    lost = losses_of(dump)["nvtx_depth"]
    assert lost > 0 and lost % OF_A_STEP == 0 and said(done) == [lost]


def test_a_child_has_its_own(tmp_path):
    done = profile(tmp_path, 20, "fork", 8, GPUPROF_SCHEDULE=THREE)  # in the second window
    dumps = harness.dumps(tmp_path / "out")
    assert done.code == 0 and len(dumps) == 6, done.err
    assert [losses_of(dump) for dump in dumps] == [{"nvtx_depth": 2 * OF_A_STEP}] * 6
    assert said(done) == [6 * OF_A_STEP] * 2


def test_a_killed_process_leaves_those_of_its_last_window(tmp_path):
    done = profile(tmp_path, 20, "kill", 9, GPUPROF_SCHEDULE="skip_first=2,wait=2,skip_first_wait=1,warmup=1,active=3,repeat=3")
    assert done.code == -signal.SIGKILL
    files = harness.info(tmp_path / "out")["files"]
    assert [file["losses"] for file in files] == [{"nvtx_depth": 3 * OF_A_STEP}, {"nvtx_depth": OF_A_STEP}], files
    assert told(tmp_path / "out") == [{"nvtx_depth": 4 * OF_A_STEP}] * 2
