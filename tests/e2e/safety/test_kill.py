# SPDX-License-Identifier: Apache-2.0
"""A killed process loses nothing that was committed, and nothing of it is read twice."""
import subprocess
import time

import harness
from support import kill


def test_random_kills():
    compared, problems, phases = kill.soak(60, seed=20)
    assert problems == []
    assert compared > 10000
    assert {"waiting", "active", "ended"} <= set(phases), phases


def test_a_dump_that_was_just_begun_holds_nothing(tmp_path):
    """Killed between windows, with the next one's file made and nothing in it: the ring tells of the process as without it."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_MODE="armed")
    with subprocess.Popen([harness.SIMTRAIN, "--steps", "1000000", "--markers", "sync"], env=env, stdout=subprocess.DEVNULL) as process:
        while not harness.dumps(tmp_path / "out"):
            time.sleep(0.01)
        time.sleep(0.5)
        process.kill()
    ring, = harness.dumps(tmp_path / "out")
    before = harness.info(ring)
    ring.with_name(ring.name.replace(".gpuprof.ring", "_w0.gpuprof.part")).touch(mode=0o600)
    assert harness.info(ring) == before and before["files"][0]["pid"] == process.pid
    assert harness.info(tmp_path / "out")["files"] == before["files"]
