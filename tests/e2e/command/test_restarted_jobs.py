# SPDX-License-Identifier: Apache-2.0
"""Jobs of several agents of torchrun, each of which counts its own restarts: all ranks of a round are read together. And
ranks that died between two windows are named."""
import json
import re
import subprocess
import time

import harness
import pytest

RANKS = 4


def rank(folder, number, restarts, round_, *, world=RANKS, steps=40, comm=("--comm-mb", "1")):
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_RUN="job", TORCHELASTIC_RUN_ID="job", RANK=number, WORLD_SIZE=world,
                            LOCAL_RANK=number, TORCHELASTIC_RESTART_COUNT=restarts, SIMTRAIN_ID_FILE=folder / f"id.{round_}",
                            GPUPROF_SCHEDULE="skip_first=5,wait=0,warmup=2,active=5")
    return subprocess.Popen([harness.SIMTRAIN, "--steps", str(steps), "--ranks", str(world), "--layers", "2", "--kernel-us", "1000", *comm],
                            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def round_of(folder, name, *restarts):
    """A rank for each."""
    ranks = [rank(folder, number, own, name, world=len(restarts)) for number, own in enumerate(restarts)]
    assert [each.wait(60) for each in ranks] == [0] * len(ranks)


def report(folder, *options):
    out = folder / "out/job"
    found = json.loads(harness.checked("report", "--format", "json", *options, out).out)
    return sorted(row["rank"] for row in found["processes"]), "\n".join(json.loads(
        harness.checked("info", "--format", "json", *options, out).out)["notes"])


@pytest.mark.parametrize("first", (True, False))
def test_a_round_of_agents_that_count_other_restarts_is_whole(tmp_path, first):
    if first:  # else it ends before its windows
        round_of(tmp_path, "a", 0, 0, 0, 0)
    round_of(tmp_path, "b", 1, 1, 0, 0)
    ranks, notes = report(tmp_path)
    assert ranks == [0, 1, 2, 3] and "missing" not in notes
    assert ("taking 1/0, the newest whole one" in notes) == first, notes
    assert len(harness.dumps(tmp_path / "out")) == (8 if first else 4)
    if first:
        assert "2 attempts are read as one: 0 (4 of 4 ranks" in report(tmp_path, "--attempt", "all")[1]
        assert report(tmp_path, "--attempt", "0")[0] == [0, 1, 2, 3]


def test_a_job_that_goes_on_with_more_ranks_is_another_attempt(tmp_path):
    round_of(tmp_path, "a", 0, 0)
    round_of(tmp_path, "b", 0, 0, 0, 0)
    ranks, notes = report(tmp_path)
    assert ranks == [0, 1, 2, 3] and "0 (2 of 2 ranks" in notes and "taking 0#2, the newest whole one" in notes, notes
    assert report(tmp_path, "--attempt", "0")[0] == [0, 1]


def test_a_rank_that_died_between_two_windows_is_named(tmp_path):
    """Without collectives, so that the others go on."""
    ranks = [rank(tmp_path, number, 0, "a", world=3, steps=1000000, comm=()) for number in range(3)]
    job = tmp_path / "out/job"
    deadline = time.monotonic() + 60

    def wait_for(count, window):
        while len(list(job.glob(f"*_{window}.gpuprof"))) < count:
            assert time.monotonic() < deadline, f"no {count} dumps of {window}"
            time.sleep(0.05)

    try:
        wait_for(3, "w0")
        ranks[2].kill()
        ranks[2].wait(10)
        harness.checked("trigger", job)
        wait_for(2, "w1")
    finally:
        for each in ranks:
            each.kill()
            each.wait(10)
    _, notes = report(tmp_path)
    assert re.search(r"window 1 is of 2 of these 3 ranks: rank 2 has no dump of it "
                     r"\(its process was killed or still runs, and its last step so far is \d+\)", notes), notes
    assert "window 0" not in notes
