# SPDX-License-Identifier: Apache-2.0
"""XProf's own converters (TensorBoard's profile plugin) read the planes, and show the truth."""
import collections
import json
import shutil

import pytest
from xprof.convert import raw_to_tool_data

RANKS = [0, 1]
NEAR = 0.01


@pytest.fixture(scope="module")
def planes(profiled, tmp_path_factory):
    """A file for each rank; a copy, because XProf writes beside them."""
    folder = tmp_path_factory.mktemp("logs") / "tb"
    shutil.copytree(profiled.convert("tensorboard"), folder)
    found = sorted(folder.glob("plugins/profile/*/*.xplane.pb"))
    assert len(found) == len(RANKS)
    return {int(path.name.split("_r")[-1].split(".")[0]): str(path) for path in found}


def tool(paths, name):
    data, kind = raw_to_tool_data.xspace_to_tool_data(paths, name, {"use_saved_result": False})
    assert kind == "application/json" and data
    return json.loads(data)


def alone(planes, rank, folder):
    """One rank's file in a run of its own: what XProf sums up, it sums up over a run's directory."""
    target = folder / f"alone{rank}" / "plugins" / "profile" / "run"
    target.mkdir(parents=True)
    shutil.copy(planes[rank], target)
    return [str(path) for path in target.iterdir()]


def table(data):
    columns = [column["id"] for column in data["cols"]]
    return [dict(zip(columns, (cell["v"] for cell in row["c"]))) for row in data["rows"]]


def test_tools_are_offered(planes):
    names = raw_to_tool_data.xspace_to_tool_names(list(planes.values()))
    assert {"trace_viewer@", "overview_page", "kernel_stats", "framework_op_stats", "input_pipeline_analyzer"} <= set(names)


@pytest.mark.parametrize("rank", RANKS)
def test_kernel_stats(planes, rank, profiled, tmp_path):
    truth = profiled.truths[rank]
    counts, times = collections.Counter(), collections.Counter()
    for work in truth.work:
        if work["type"] == "kernel":
            counts[truth.name_of(work)] += 1
            times[truth.name_of(work)] += (work["end"] - work["begin"]) / 1000
    rows = table(tool(alone(planes, rank, tmp_path), "kernel_stats"))
    assert len(rows) > 5
    assert {row["kernel_name"]: row["occurrences"] for row in rows} == counts
    for row in rows:
        assert row["total_duration_us"] == pytest.approx(times[row["kernel_name"]], rel=NEAR)
        assert row["registers_per_thread"] > 0 and 0 < row["occupancy_pct"] <= 100
    gemm = next(row for row in rows if row["kernel_name"].startswith("gemm_fwd"))
    assert (gemm["grid_dim"], gemm["block_dim"]) == ("256,2,1", "256,1,1")


def device_time(truth, step):
    """Of a step, as XProf has it: from the first to the last piece of GPU work that was launched in it; ms."""
    begin, end = truth.steps[step]
    work = [w for w in truth.work if w["type"] != "sync" and begin <= truth.call_of[w["corr"]]["begin"] < end]
    return (max(w["end"] for w in work) - min(w["begin"] for w in work)) / 1e6


@pytest.mark.parametrize("rank", RANKS)
def test_overview_has_the_steps(planes, rank, profiled, tmp_path):
    tables = tool(alone(planes, rank, tmp_path), "overview_page")
    rows = table(next(t for t in tables if any(c["id"] == "stepnum" for c in t["cols"])))
    # XProf counts groups from 0, and leaves out the first and the last, which may be cut.
    assert [int(row["stepnum"]) for row in rows] == list(range(1, 9))
    for row in rows:
        assert row["stepTimeMs"] == pytest.approx(device_time(profiled.truths[rank], 12 + int(row["stepnum"])), rel=NEAR)
        assert row["deviceComputeTimeMs"] > row["infeedTimeMs"] > 0


@pytest.mark.parametrize("rank", RANKS)
def test_trace_viewer_has_the_steps(planes, rank, profiled):
    events = tool([planes[rank]], "trace_viewer")["traceEvents"]
    steps = next(e for e in events if e.get("name") == "thread_name" and e["args"]["name"] == "Steps")
    drawn = {e["name"]: e["dur"] for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) == (steps["pid"], steps["tid"])}
    assert drawn == {f"train {n}": pytest.approx(device_time(profiled.truths[rank], n) * 1000, rel=NEAR) for n in range(12, 22)}


@pytest.mark.parametrize("rank", RANKS)
def test_trace_viewer_has_every_kernel(planes, rank, profiled):
    truth = profiled.truths[rank]
    events = tool([planes[rank]], "trace_viewer")["traceEvents"]
    gpus = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
    assert len(gpus) == 1
    rows = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name" and e["pid"] in gpus}
    drawn = collections.Counter(e["name"] for e in events if e.get("ph") == "X" and e["pid"] in gpus and
                                rows[e["tid"]].startswith("Stream"))
    assert drawn == collections.Counter(truth.name_of(w) for w in truth.work if w["type"] != "sync")
    assert {name.split("(")[0] for name in rows.values() if name.startswith("Stream")} == {
        f"Stream #{w['stream']}" for w in truth.work if w["type"] != "sync"}


def test_all_ranks_together(planes, profiled):
    """A run of two ranks is two hosts: the trace viewer shows both, with names that tell them apart."""
    events = tool(list(planes.values()), "trace_viewer@")["traceEvents"]
    names = {e["args"]["name"] for e in events if e.get("name") == "process_name"}
    assert len([n for n in names if n.endswith("GPU:0") or n.endswith("GPU:1")]) == 2
    assert len([n for n in names if n.endswith("/host:CPU")]) == 2
