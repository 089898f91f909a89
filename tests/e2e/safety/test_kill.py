# SPDX-License-Identifier: Apache-2.0
"""A killed process loses nothing that was committed, and nothing of it is read twice."""
import shutil
import socket
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


def test_a_ring_that_is_gone_is_named(tmp_path):
    """Live buffers elsewhere, gone with the container in which the process was killed: its link is all that is left of them."""
    (tmp_path / "scratch").mkdir()
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCRATCH=tmp_path / "scratch", **harness.WHOLE_RUN)
    with subprocess.Popen([harness.SIMTRAIN, "--steps", "1000000"], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        while not list((tmp_path / "out").rglob("*.part")):
            time.sleep(0.01)
        time.sleep(0.5)
        process.kill()
    ring, = (tmp_path / "scratch").iterdir()
    link, = (tmp_path / "out").rglob("*.ring")
    said = f"{link}: leads to {ring}, which is not on this machine: the live buffers of a process on {socket.gethostname()}, "
    assert said not in harness.gpuprof("report", tmp_path / "out").err
    shutil.rmtree(tmp_path / "scratch")
    part, = (tmp_path / "out").rglob("*.part")
    for command in ("report", "info"):
        for given in (tmp_path / "out", part):
            done = harness.gpuprof(command, given)
            assert done.err.count(said) == 1, done.err
        refused = harness.gpuprof(command, link)
        assert refused.code == 2 and said in refused.err
    part.unlink()
    refused = harness.gpuprof("info", tmp_path / "out")
    assert refused.code == 2 and said in refused.err, refused.err
