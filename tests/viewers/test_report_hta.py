# SPDX-License-Identifier: Apache-2.0
"""The report's figures are those of Holistic Trace Analysis, on a live run and on real traces; where the definitions differ
(docs/REPORT.md), the difference is what it should be."""
import gzip
import json
import logging
import os
import pathlib

import pytest
from hta.trace_analysis import TraceAnalysis

import harness

NEAR = 0.01
# Two traces of torch.profiler, where they are; inside the tree or beside it.
PLACES = [root / "shared/data/kineto_resnet50" for root in (harness.SOURCE, harness.SOURCE.parent)]
REAL = pathlib.Path(os.environ.get("GPUPROF_KINETO_DATA", next(filter(pathlib.Path.is_dir, PLACES), PLACES[0])))


def is_slice(event):
    return event.get("ph") == "X" and "ts" in event


def is_work(event):
    return is_slice(event) and str(event.get("cat")).lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")


def cut(events, begin, end):
    """Without the GPU's work outside of [begin, end), and the calls that issued it; without the host's waits on streams, too, which
    HTA takes for work of those."""
    kept, dropped = [], set()
    for event in events:
        if event.get("cat") == "cuda_sync":
            continue
        if is_work(event):
            first, last = max(event["ts"], begin), min(event["ts"] + event["dur"], end)
            if event["ts"] >= end or last < first:
                dropped.add(event["args"]["correlation"])
                continue
            event = dict(event, ts=first, dur=last - first)
        kept.append(event)
    return [e for e in kept if is_work(e) or e.get("args", {}).get("correlation") not in dropped]


def issued(events, begin, end):
    """Without the work whose call did not begin in [begin, end); work without one counts by its own begin."""
    def correlation(event):
        return event.get("args", {}).get("correlation")
    calls = {correlation(e): e["ts"] for e in events if is_slice(e) and not is_work(e) and correlation(e) is not None}
    return [e for e in events if not is_work(e) or begin <= calls.get(correlation(e), e["ts"]) < end]


class Both:
    """HTA and our report on the same trace. HTA leaves the last step out, so it is given one more, which is empty; and it counts
    work beyond the steps, which is taken away: from `hta` what ran, from `of_steps` what was issued beyond them; `whole` has it."""

    def __init__(self, folder, source, report_of):
        self.ours = json.loads(harness.checked("report", report_of, "--format", "json").out)
        self.work, self.steps = {}, {}
        for name in ("steps", "issued", "whole"):
            (folder / name).mkdir(parents=True)
        for number, path in enumerate(sorted(source)):
            trace = json.loads(gzip.open(path).read())
            rank = trace.get("distributedInfo", {}).get("rank", number)
            events = trace["traceEvents"]
            steps = [e for e in events if is_slice(e) and e["name"].startswith("ProfilerStep#") and e.get("cat") != "gpu_user_annotation"]
            last = max(steps, key=lambda e: e["ts"])
            end = last["ts"] + last["dur"]
            self.steps[rank] = (end - self.parts(rank)[1], end)
            after = max(e["ts"] + e.get("dur", 0) for e in events if is_slice(e))
            events.append(dict(last, name="ProfilerStep#1000000", ts=after + 1, dur=1, args={}))
            (folder / "whole" / f"rank{rank}.json").write_text(json.dumps(trace))
            for name, kept in (("issued", issued(events, *self.steps[rank])), ("steps", cut(events, *self.steps[rank]))):
                (folder / name / f"rank{rank}.json").write_text(json.dumps(dict(trace, traceEvents=kept)))
            self.work[rank] = [(e["ts"], e["ts"] + e["dur"]) for e in kept if is_work(e)]
        logging.getLogger().setLevel(logging.ERROR)
        self.hta = TraceAnalysis(trace_dir=str(folder / "steps"))
        self.of_steps = TraceAnalysis(trace_dir=str(folder / "issued"))
        self.whole = TraceAnalysis(trace_dir=str(folder / "whole"))

    def parts(self, rank):
        steps = [s for s in self.ours["steps"] if s["rank"] in (rank, -1)]
        return {name: sum(s["parts_us"][name] for s in steps) for name in steps[0]["parts_us"]}, sum(s["duration_us"] for s in steps)


@pytest.fixture(scope="module", params=["simtrain", "num_workers_0", "num_workers_4"])
def both(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hta") / "traces"
    if request.param == "simtrain":
        profiled = request.getfixturevalue("profiled")
        return Both(folder, profiled.convert("kineto").glob("*.json.gz"), profiled.dumps)
    path = REAL / f"{request.param}.pt.trace.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}; GPUPROF_KINETO_DATA says where")
    return Both(folder, [path], path)


def test_temporal_breakdown(both):
    table = both.hta.get_temporal_breakdown(visualize=False).set_index("rank")
    for rank in both.work:
        parts, wall = both.parts(rank)
        row, work = table.loc[rank], both.work[rank]
        first, last = min(b for b, _ in work), max(e for _, e in work)
        begin, end = both.steps[rank]
        assert row["compute_time(us)"] == pytest.approx(parts["compute"], rel=NEAR)
        assert row["non_compute_time(us)"] == pytest.approx(parts["communication"] + parts["transfer"], rel=NEAR, abs=NEAR * wall / 10)
        # HTA's time is from the first kernel to the last one's end, ours that of the steps.
        idle = wall - parts["compute"] - parts["communication"] - parts["transfer"]
        outside = (first - begin) + (end - last)
        assert row["idle_time(us)"] == pytest.approx(idle - outside, abs=NEAR * wall)


def test_kernel_sums(both):
    frame = both.of_steps.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True, num_kernels=1000)[1]
    theirs = frame.groupby("name")["sum (us)"].sum()
    ours = {row["name"]: row["total_us"] for row in both.ours["kernels"] + both.ours["copies"]}
    assert sum(ours.values()) == pytest.approx(theirs.sum(), rel=NEAR)
    checked = 0
    for name, total in theirs.items():
        if total < 0.001 * theirs.sum():
            continue
        matching = [value for own, value in ours.items() if own == name]
        if matching:  # HTA has a row "others" for the rest
            checked += 1
            assert matching[0] == pytest.approx(total, rel=NEAR), name
    assert checked >= 5


def test_overlap(both):
    table = both.hta.get_comm_comp_overlap(visualize=False).set_index("rank")["comp_comm_overlap_pctg"]
    hidden, exposed = both.ours["overlapped_pct"]["communication"], both.ours["breakdown_pct"]["communication"]
    if hidden + exposed == 0:
        assert not both.ours["collectives"]
        return
    # HTA's is a rank's share of its communication; ours are shares of all ranks' time.
    share = {rank: 1 - table[rank] / 100 for rank in both.work}
    communication = {rank: both.parts(rank)[0]["communication"] / share[rank] for rank in both.work}
    theirs = sum(communication[rank] * table[rank] for rank in both.work) / sum(communication.values())
    assert 100 * hidden / (hidden + exposed) == pytest.approx(theirs, abs=100 * NEAR)


def test_idle_classes(both):
    """Host wait is all of our idle parts but `device_idle`, up to the launch latency: work that was issued less than that
    before the GPU ran dry could not have begun in time, so it waited for the host; HTA says it waited for a kernel."""
    table = both.hta.get_idle_time_breakdown(ranks=sorted(both.work), visualize=False)[0]
    for rank in both.work:
        curve = next(c for c in both.ours["curves"] if c["rank"] in (rank, -1))
        if len(curve["queues"]) != 1:
            pytest.skip("HTA looks at each stream alone")
        parts, wall = both.parts(rank)
        idle = wall - parts["compute"] - parts["communication"] - parts["transfer"]
        work = both.work[rank]
        outside = (min(b for b, _ in work) - both.steps[rank][0]) + (both.steps[rank][1] - max(e for _, e in work))
        ours = idle - outside - both.ours["device_idle_pct"] / 100 * wall
        row = table[(table["rank"] == rank)].set_index("idle_category")["idle_time"]
        assert row["host_wait"] <= ours + NEAR * wall
        assert row["host_wait"] + row["kernel_wait"] >= ours - NEAR * wall


def test_queue_length(both):
    series = both.whole.get_queue_length_time_series(ranks=sorted(both.work))
    for rank, frame in series.items():
        curve = next(c for c in both.ours["curves"] if c["rank"] in (rank, -1))
        seen = 0
        for queue in curve["queues"]:
            rows = frame[frame["stream"] == queue["stream"]].sort_values("ts")
            if not len(rows):
                continue
            seen += 1
            assert abs(queue["max"] - rows["queue_length"].max()) <= max(1, NEAR * queue["max"])
            begin, end = both.steps[rank]
            times = rows["ts"] + both.whole.t.min_ts
            length = (times.shift(-1).clip(begin, end) - times.clip(begin, end)).fillna(0)
            area = (rows["queue_length"] * length).sum()
            wall = both.parts(rank)[1]
            assert queue["mean"] == pytest.approx(area / wall, rel=NEAR, abs=0.01)
        assert seen >= 1
