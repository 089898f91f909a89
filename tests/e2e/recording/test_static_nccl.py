# SPDX-License-Identifier: Apache-2.0
"""NCCL that is linked into the program: no hook sees its calls, its NVTX ranges tell of them."""
import collections
import json
import subprocess

import pytest

import harness

PROGRAM = harness.HAZARDS / "static_nccl"
STEPS, WORLD = 6, 2
SUM, MAX, MIN, AVG = 0, 2, 3, 4
# Of a step: what each call passed, in bytes of one rank.
CALLS = {
    "ncclAllReduce": [(4000, SUM, None), (240, AVG, None)],
    "ncclReduceScatter": [(80, MAX, None)],
    "ncclReduce": [(20, MIN, 1)],
    "ncclAllGather": [(60, None, None)],
    "ncclBcast": [(160, None, WORLD - 1)],
    "ncclSend": [(200, None, "next")],
    "ncclRecv": [(200, None, "next")],
}


def profile(folder, *arguments, world=WORLD, **settings):
    """The dumps of all ranks; the window begins at step 2."""
    children = []
    for rank in range(world):
        env = harness.preloaded(**{"GPUPROF_OUTPUT": folder / "out", "GPUPROF_RUN": "job", "GPUPROF_STEP": "manual", "RANK": rank,
                                   "WORLD_SIZE": world, "SIMCUDA_DEVICES": 1,
                                   "GPUPROF_SCHEDULE": "skip_first=2,warmup=0,active=3,repeat=1", **settings})
        children.append(subprocess.Popen([PROGRAM, folder / "id", *arguments], env=env, stderr=subprocess.PIPE))
    errors = [child.communicate(timeout=100)[1].decode() for child in children]
    assert [child.returncode for child in children] == [0] * world, errors
    return harness.dumps(folder / "out")


def collectives(dump):
    return harness.of_kind(harness.records(dump), "collective")


def report_of(path):
    return json.loads(harness.checked("report", "--format", "json", path).out)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static_nccl")
    return folder, profile(folder)


def test_no_symbol_of_nccl_can_be_interposed():
    symbols = subprocess.run(["nm", "-D", PROGRAM], check=True, capture_output=True, text=True).stdout
    assert "nccl" not in symbols


def test_each_call_with_what_it_passed(job):
    for rank, dump in enumerate(job[1]):
        found = collections.defaultdict(list)
        for record in collectives(dump):
            assert record["flags"] == ["from_nvtx"]
            assert not {"result", "stream", "stream_handle", "count", "data_type"} & record.keys(), "nobody knows them"
            found[record["name"]].append((record["bytes"], record.get("operation"), record.get("peer")))
        expected = {name: [(size, operation, 1 - rank if peer == "next" else peer) for size, operation, peer in calls] * 3
                    for name, calls in CALLS.items()}
        assert found == expected


def test_communicators_are_the_same_on_all_ranks(job):
    calls = collections.defaultdict(list)
    for rank, dump in enumerate(job[1]):
        file, = harness.info(dump)["files"]
        identities = {each["handle"]: each["identity"] for each in file["communicators"]}
        for record in collectives(dump):
            if record["name"] not in ("ncclSend", "ncclRecv"):
                calls[identities[record["communicator"]], record["sequence"]].append((rank, record["name"]))
    whole = {key: made for key, made in calls.items() if len(made) == WORLD}
    assert len(whole) == 3 * 5, "of the job's communicator; those of the halves have one rank each"
    assert all({rank for rank, _ in made} == set(range(WORLD)) and len({name for _, name in made}) == 1 for made in whole.values())
    assert {number for _, number in whole} == set(range(10, 25)), "counted outside the window, too"


def test_place_where_its_making_told_it(job):
    for rank, dump in enumerate(job[1]):
        places = {(record["bytes"] == 240, record.get("rank"), record.get("rank_count")) for record in collectives(dump)}
        assert places == {(False, rank, WORLD), (True, None, None)}, "a split one's range has its parent's place"


def test_report_matches_them_across_ranks(job):
    folder, _ = job
    report = report_of(folder / "out")
    rows = {row["name"]: row for row in report["collectives"]}
    assert rows["ncclAllReduce"]["bytes"] == WORLD * 3 * (4000 + 240)
    times = {(row["name"], row["ranks"]): row for row in report["collective_times"]}
    reduced = times["ncclAllReduce", WORLD]
    assert (reduced["calls"], reduced["matched"], reduced["bytes"]) == (3, 3, 3 * 4000)
    assert report["collective_calls"]["different"] == 0
    messages = times["ncclSend, ncclRecv", WORLD]
    assert (messages["calls"], messages["matched"]) == (6, 6), "of a group, which ends in another call"


def test_ranges_are_not_recorded_besides(job):
    for dump in job[1]:
        assert not [r for r in harness.of_kind(harness.records(dump), "nvtx_range") if r["domain"] == "NCCL"]
        calls = collections.Counter(r["name"] for r in harness.of_kind(harness.records(dump), "call") if r["name"].startswith("nccl"))
        assert calls == {"ncclGroupStart": 3, "ncclGroupEnd": 3}


@pytest.mark.parametrize("release", ["2.28", "2.18", "none"])
def test_exported_and_read_back(tmp_path, release):
    """What is unknown is so in a trace for viewers, too."""
    dump, = profile(tmp_path, world=1, SIMCUDA_NCCL_NVTX=release)
    harness.checked("convert", dump, "--to", "chrome", "-o", tmp_path / "trace.json")

    def told(path):
        # A trace names a communicator by its identity, and has no lane names.
        return [{key: value for key, value in record.items() if key in ("name", "bytes", "count", "operation", "peer", "sequence", "flags")}
                for record in collectives(path)]
    assert told(tmp_path / "trace.json") == told(dump)


def test_ranges_stay_ranges_where_calls_are_not_recorded(tmp_path):
    dump, = profile(tmp_path, world=1, GPUPROF_ACTIVITIES="step,kernel,nvtx")
    records = harness.records(dump)
    assert not harness.of_kind(records, "collective")
    names = collections.Counter(r["message"] for r in harness.of_kind(records, "nvtx_range") if r["domain"] == "NCCL")
    assert names["ncclAllReduce"] == 6 and names["ncclBcast"] == names["ncclBroadcast"] == 3


def test_calls_by_both_ways_are_recorded_once(tmp_path):
    """What comes by a hook has the hook's arguments, also where it is called within what came by its range."""
    dump, = profile(tmp_path, "both", world=1)
    records = collectives(dump)
    names = collections.Counter((r["name"], "from_nvtx" in r["flags"]) for r in records)
    shared = {("ncclAllReduce", False): 3, ("ncclBcast", False): 3}
    of_ranges = collections.Counter({(name, True): 3 * len(calls) for name, calls in CALLS.items()})
    of_ranges["ncclBcast", True] += 3  # pncclBcast, which calls ncclBroadcast, which has a hook
    assert names == {**shared, **of_ranges}
    assert {r["count"] for r in records if not r["flags"]} == {111, 112}
    assert 4 * 113 in {r["bytes"] for r in records if r["flags"]}


def test_several_ranks_of_one_process_are_not_told_apart(tmp_path):
    """All of them have the same hash, and a collective's range does not say whose it is."""
    dump, = profile(tmp_path, "several", world=1, SIMCUDA_DEVICES=2)
    theirs = [r for r in collectives(dump) if r["bytes"] == 4 * 114]
    assert len(theirs) == 3 * 2
    assert not any({"communicator", "sequence", "rank", "rank_count"} & record.keys() for record in theirs)
    assert all(r["rank_count"] == 1 for r in collectives(dump) if r["bytes"] == 4000), "another communicator's are known"


def test_payloads_of_nccl_2_18(tmp_path):
    """No communicator: the report matches the calls by their order."""
    for rank, dump in enumerate(profile(tmp_path, SIMCUDA_NCCL_NVTX="2.18")):
        records = collectives(dump)
        assert len(records) == 3 * 8
        assert not any({"communicator", "sequence", "rank", "rank_count"} & record.keys() for record in records)
        assert {r["bytes"] for r in records if r["name"] == "ncclBcast"} == {160}
        assert {r["peer"] for r in records if r["name"] == "ncclSend"} == {1 - rank}
        assert {r["operation"] for r in records if r["name"] == "ncclReduceScatter"} == {MAX}


def test_ranges_without_payload(tmp_path):
    dump, = profile(tmp_path, world=1, SIMCUDA_NCCL_NVTX="none")
    records = collectives(dump)
    assert len(records) == 3 * 8
    assert not any({"communicator", "sequence", "bytes", "count", "operation", "peer"} & record.keys() for record in records)
    report = report_of(dump)
    assert {row["bytes"] for row in report["collectives"]} == {None}
    assert not report["collective_times"], "no bandwidth of an unknown size"


def test_nvtx_disabled_in_nccl(tmp_path):
    dump, = profile(tmp_path, world=1, NCCL_NVTX_DISABLE=1)
    records = harness.records(dump)
    assert not harness.of_kind(records, "collective")
    assert any(r["label"].startswith("ncclDevKernel") for r in harness.of_kind(records, "gpu_kernel"))
