# SPDX-License-Identifier: Apache-2.0
"""Process groups of four ranks: PyTorch's own name and description of each, and its ranks, in the records, the report, its
comparison with another run, and the exports."""
import collections
import gzip
import json
import pathlib
import sys

import pytest

import harness
from stack import simulated

SCRIPT = pathlib.Path(__file__).resolve().parent / "scripts/groups.py"
# Each group that collectives of the window are of, and its ranks.
EXPECTED = {
    "ddp": {("default_pg", (0, 1, 2, 3))},
    "fsdp": {("default_pg", (0, 1, 2, 3))},
    "mesh": {("mesh_dp", (0, 2)), ("mesh_dp", (1, 3)), ("mesh_tp", (0, 1)), ("mesh_tp", (2, 3))},
}


def run(folder, way):
    """Of four ranks: their dumps, and the groups that PyTorch says there are, by name."""
    told = folder / "told"
    told.mkdir(parents=True)
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="optimizer",
                                      GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=6"))
    done = harness.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", SCRIPT, way, told],
                       env={**env, "SIMCUDA_DEVICES": "4"}, timeout=400)
    assert done.code == 0, done.err
    found = harness.dumps(folder / "out")
    assert len(found) == 4
    by_rank = [json.loads((told / f"{rank}.json").read_text()) for rank in range(4)]
    return found, {name: (description, tuple(ranks)) for groups in by_rank for name, description, ranks in groups}


def collectives(dump):
    return harness.of_kind(harness.records(dump), "collective")


@pytest.mark.parametrize("way", EXPECTED)
def test_groups_have_pytorchs_names(tmp_path, way):
    dumps, told = run(tmp_path, way)
    seen = set()
    for rank, dump in enumerate(dumps):
        for record in collectives(dump):
            group = record["group_description"], tuple(record["group_ranks"])
            assert told[record["group"]] == group and rank in group[1]
            assert group[1][record["rank"]] == rank and len(group[1]) == record["rank_count"]
            seen.add(group)
    assert seen == EXPECTED[way]

    report = json.loads(harness.checked("report", tmp_path / "out", "--format", "json").out)
    assert {(row["description"], tuple(row["ranks"])) for row in report["process_groups"]} == seen
    assert {told[row["name"]] for row in report["process_groups"]} == seen
    labels = {label for label, _ in seen}
    assert {row["group"] for row in report["collectives"]} == labels
    counted = collections.Counter((r["name"], r["group_description"]) for dump in dumps for r in collectives(dump))
    in_steps = {(row["name"], row["group"]): row["count"] for row in report["collectives"]}
    assert in_steps.keys() == counted.keys() and all(0 < n <= counted[key] for key, n in in_steps.items())
    assert {(row["group"], row["members"].startswith(row["group"])) for row in report["collective_times"]} == {(each, True) for each in labels}
    text = harness.checked("report", tmp_path / "out").out
    assert all(f" in {label}\n" in text and f", {label}, " in " ".join(text.split()) for label in labels)
    assert all(f"{label}: ranks [" in text for label in labels)
    assert_exported(tmp_path, seen)
    if way == "mesh":
        assert_compared(tmp_path)


def assert_exported(folder, seen):
    harness.checked("convert", folder / "out", "--to", "kineto", "-o", folder / "kineto")
    found = set()
    for path in (folder / "kineto").glob("*.json.gz"):
        for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
            args = event.get("args", {})
            if event.get("cat") == "kernel" and "Collective name" in args:
                found.add((args["Process Group Description"], tuple(json.loads(args["Process Group Ranks"]))))
    assert found == seen
    again = json.loads(harness.checked("report", folder / "kineto", "--format", "json").out)
    assert {(row["description"], tuple(row["ranks"])) for row in again["process_groups"]} == seen
    harness.checked("convert", folder / "out", "--to", "perfetto", "-o", folder / "trace.pftrace")
    trace = (folder / "trace.pftrace").read_bytes()
    assert all(label.encode() in trace for label, _ in seen)


def assert_compared(folder):
    run(folder / "again", "mesh")
    changes = json.loads(harness.checked("diff", folder / "out", folder / "again/out", "--format", "json").out)["changes"]
    names = {change["name"] for change in changes if change["kind"] == "collective"}
    assert {"ncclAllGather in mesh_dp", "ncclAllReduce in mesh_tp"} <= names
    assert all(not change["gone"] and not change["new"] for change in changes if change["kind"] == "collective")
