# SPDX-License-Identifier: Apache-2.0
"""One job of several processes: each call on a communicator is to be found on all its ranks, whatever was recorded before."""
import collections
import json
import re
import subprocess
import sys

import pytest

import harness

# Ranks of a pipeline that is also split in halves. Calls come before the window, in it, in groups and between peers; the
# window begins at another call on each rank.
PROGRAM = """
import ctypes, os, sys, time
cuda, nccl, own = (ctypes.CDLL(name) for name in ("libcudart.so.13", "libnccl.so.2", None))
P, size = ctypes.c_void_p, ctypes.c_size_t
rank, world, id_file = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1]
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 128)]
def check(result):
    assert result == 0, result
identity = Id()
if rank == 0:
    check(nccl.ncclGetUniqueId(ctypes.byref(identity)))
    open(id_file + ".part", "wb").write(bytes(identity.bytes))
    os.rename(id_file + ".part", id_file)
while not os.path.exists(id_file):
    time.sleep(0.01)
identity.bytes[:] = list(memoryview(open(id_file, "rb").read()).cast("b"))
job, half, rest = P(), P(), P()
check(nccl.ncclCommInitRank(ctypes.byref(job), world, identity, rank))
check(nccl.ncclCommSplit(job, rank % 2, rank, ctypes.byref(half), None))
if rank != world - 1:
    excluded = (ctypes.c_int * 1)(world - 1)
    check(nccl.ncclCommShrink(job, excluded, 1, ctypes.byref(rest), None, 0))
def reduce(comm, count=64):
    check(nccl.ncclAllReduce(None, None, size(count), 7, 0, comm, None))
for step in range(6):
    if rank > 0:
        check(nccl.ncclRecv(None, size(32), 7, rank - 1, job, None))
    if rank < world - 1:
        check(nccl.ncclSend(None, size(32), 7, rank + 1, job, None))
    check(nccl.ncclGroupStart())
    for count in (16, 17, 18, 19):
        reduce(job, count)
    check(nccl.ncclGroupEnd())
    check(nccl.ncclBroadcast(None, None, size(8), 7, 0, job, None))
    reduce(half)
    if rest:
        reduce(rest)
    check(cuda.cudaDeviceSynchronize())
    own.gpuprof_step()
"""
STEPS = 6


def profile(folder, world, late_rank):
    """The dumps of all ranks. The window of `late_rank` begins a step later."""
    children = []
    for rank in range(world):
        first = 3 if rank == late_rank else 2
        env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_RUN="job", GPUPROF_STEP="manual", RANK=rank,
                                WORLD_SIZE=world, SIMCUDA_DEVICES=1,
                                GPUPROF_SCHEDULE=f"skip_first={first},warmup=0,active={STEPS - first},repeat=1")
        children.append(subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder / "id")], env=env,
                                         stderr=subprocess.PIPE))
    errors = [child.communicate(timeout=100)[1].decode() for child in children]
    assert [child.returncode for child in children] == [0] * world, errors
    return harness.dumps(folder / "out")


def calls_of(path):
    """Each recorded call as all ranks name it: identity, from, to, number; and what it is."""
    file, = harness.info(path)["files"]
    identities = {each["handle"]: each["identity"] for each in file["communicators"]}
    assert len(set(identities.values())) == len(identities)
    out = {}
    for record in harness.of_kind(harness.records(path), "collective"):
        own, peer = record["rank"], record.get("peer")
        ends = {"ncclSend": (own, peer), "ncclRecv": (peer, own)}.get(record["name"], (-1, -1))
        handle = record["communicator"]
        handle = int(handle, 16) if isinstance(handle, str) else handle
        name = (identities[handle], *ends, record["sequence"])
        assert name not in out, "no number twice"
        out[name] = ("message" if ends != (-1, -1) else record["name"], record["count"])
    return out


@pytest.mark.parametrize("world", [2, 4])
def test_calls_match_on_all_ranks(tmp_path, world):
    late = world - 1
    ranks = [calls_of(path) for path in profile(tmp_path, world, late)]
    found = collections.defaultdict(list)
    for calls in ranks:
        for name, what in calls.items():
            found[name].append(what)
    assert all(len(set(what)) == 1 for what in found.values()), "the same operation and count on all ranks"
    # What all ranks of it have recorded is found on all of them.
    communicators = {identity for identity, *_ in found}
    assert len(communicators) == 1 + min(world, 2) + 1
    job, = {name[0] for name in found if name[1] >= 0}
    complete = [name for name in found if len(found[name]) == (2 if name[1] >= 0 else world)]
    steps = STEPS - 3  # that all have
    assert len([n for n in complete if n[0] == job and n[1] < 0]) == 5 * steps
    assert len([n for n in complete if n[1] >= 0]) >= (world - 1) * steps
    # Counted over the whole run: two steps of five collectives each come before the window.
    assert min(name[3] for name in ranks[0] if name[0] == job and name[1] < 0) == 2 * 5
    assert min(name[3] for name in ranks[late] if name[0] == job and name[1] < 0) == 3 * 5
    assert {name[3] for name in ranks[0] if name[1] == 0} == set(range(2, STEPS))


def test_report_joins_them(tmp_path):
    profile(tmp_path, 2, 1)
    done = harness.checked("report", "--format", "json", tmp_path / "out")
    rows = {row["name"]: row for row in json.loads(done.out)["collectives"]}
    # Grouped calls count each; messages are there.
    assert rows["ncclAllReduce"]["count"] > rows["ncclBroadcast"]["count"] * 4
    assert rows["ncclSend"]["count"] and rows["ncclRecv"]["count"]
    assert "rank 0 recorded steps 2-5, rank 1 recorded steps 3-5" in done.err, "neither is what most have"


def test_convert_writes_the_ranks_asked_for(tmp_path):
    profile(tmp_path, 2, 1)
    out = tmp_path / "trace.json"
    harness.checked("convert", "--to", "chrome", "--ranks", "1", tmp_path / "out", "-o", out)
    assert json.loads(out.read_text())["distributedInfo"]["rank"] == 1
    refused = harness.gpuprof("convert", "--to", "chrome", "--ranks", "7", tmp_path / "out", "-o", out)
    assert refused.code == 2 and "--ranks 7: none of these ranks is in the input, which has ranks 0-1" in refused.err


@pytest.mark.parametrize("ranks", [2, 4])
def test_bandwidth_is_that_of_the_wires(tmp_path, ranks):
    """The simulated NCCL takes 8 us, and 100 GB/s on the bus; ranks leave within 2 us."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=3,repeat=1")
    harness.run([harness.SIMTRAIN, "--steps", "8", "--comm-mb", "256", "--layers", "4", "--ranks", str(ranks)], env=env)
    found = json.loads(harness.checked("report", "--format", "json", tmp_path / "out").out)
    assert found["collective_calls"]["matched"] == found["collective_calls"]["calls"] > 0
    assert found["collective_calls"]["different"] == 0
    row = max((row for row in found["collective_times"] if row["name"] == "ncclAllReduce"), key=lambda row: row["bytes"])
    factor = 2 * (ranks - 1) / ranks
    each = row["bytes"] / row["calls"]
    truth_us = 8 + each * factor / 100e3
    assert row["transfer_us"] / row["calls"] == pytest.approx(truth_us, rel=0.01)
    assert row["bus_gb_per_s"] == pytest.approx(each * factor / truth_us / 1e3, rel=0.01)
    assert row["algorithm_gb_per_s"] == pytest.approx(row["bus_gb_per_s"] / factor, rel=0.001)
    assert row["exposed_us"] + row["overlapped_us"] == pytest.approx(row["transfer_us"] + row["waiting_us"], rel=0.02)
    waits = found["rank_waits"]
    assert waits["names"] == [f"rank {rank}" for rank in range(ranks)] and all(waits["us"][i][i] == 0 for i in range(ranks))
    text = harness.checked("report", tmp_path / "out").out
    assert "Collectives across their ranks" in text and f"{ranks} ranks: 0-{ranks - 1}" in text
    assert re.search(r"^  most waiting: rank \d for rank \d, [0-9.]+ \w+ in the whole window$", text, re.M), text


def test_waits_of_copy_engines_are_not_known(tmp_path):
    """NCCL's copy engines wait for other ranks without a record: nobody is blamed."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=3,repeat=1", SIMCUDA_NCCL="ce")
    harness.run([harness.SIMTRAIN, "--steps", "8", "--comm-mb", "256", "--layers", "4", "--ranks", "2", "--slow-rank", "1:4", "--gather"], env=env)
    found = json.loads(harness.checked("report", "--format", "json", tmp_path / "out").out)
    row, = found["collective_times"]
    assert row["name"] == "ncclAllGather" and row["matched"] == row["copy_engine_calls"] == row["calls"] > 0
    each = row["bytes"] / row["calls"]
    assert row["transfer_us"] / row["calls"] == pytest.approx(8 + each / 2 / 100e3, abs=15)  # flags, and ranks leave within 2 us
    assert row["waiting_us"] is None and row["between_copies_us"] > row["calls"] * 200
    assert found["rank_waits"]["names"] == []
    assert all(rank["waited_us"] == rank["last_pct"] == 0 for rank in found["stragglers"])
    assert "straggler" not in [cause["cause"] for cause in found["verdict"]]
    text = harness.checked("report", tmp_path / "out").out
    assert f"{row['calls']} calls are done by copy engines" in text
