# SPDX-License-Identifier: Apache-2.0
"""Holistic Trace Analysis says of our traces what it says of the truth."""
import copy
import logging

import pytest
from hta.trace_analysis import TraceAnalysis

import harness
import truth_trace

RANKS = [0, 1]
NEAR = 0.01  # times
CALL_US = truth_trace.CALL_NS / 1000


@pytest.fixture(scope="module")
def both(profiled_plain):
    """HTA on our trace, and on the truth."""
    logging.getLogger().setLevel(logging.ERROR)
    folder = profiled_plain.folder / "hta_truth"
    truth_trace.write(folder, profiled_plain.truths)
    return TraceAnalysis(trace_dir=str(profiled_plain.convert("kineto"))), TraceAnalysis(trace_dir=str(folder))


@pytest.fixture(scope="module")
def with_calls(both, profiled_plain):
    """The same, but for the times of calls: whether a kernel waited for its call, how long, and what a critical path goes
    through, can hang on what the kernel takes away between the hook's reading of the clock and the simulator's."""
    truths = copy.deepcopy(profiled_plain.truths)
    for dump in harness.dumps(profiled_plain.dumps):
        records = harness.records(dump)
        truths[next(r for r in records if r["kind"] == "header")["rank"]].take_calls_as_recorded(records)
    folder = profiled_plain.folder / "hta_calls"
    truth_trace.write(folder, truths)
    return both[0], TraceAnalysis(trace_dir=str(folder))


def near(value, floor=0.01):
    return pytest.approx(value, rel=NEAR, abs=floor)


def assert_same(ours, truth, key, counts, times):
    """Two tables: the same rows by `key`, `counts` equal, `times` near (a microsecond or 1 %)."""
    ours, truth = (frame.set_index(key).sort_index() for frame in (ours, truth))
    assert list(ours.index) == list(truth.index)
    assert len(ours) > 0
    for column in counts:
        assert list(ours[column]) == list(truth[column]), column
    for column in times:
        for row in truth.index:
            assert ours[column][row] == near(truth[column][row], 1), (column, row)


def test_all_ranks_are_found(both):
    assert sorted(both[0].t.traces) == RANKS


def test_temporal_breakdown(both):
    ours, truth = (hta.get_temporal_breakdown(visualize=False) for hta in both)
    assert_same(ours, truth, "rank", [], ["idle_time(us)", "compute_time(us)", "non_compute_time(us)", "kernel_time(us)"])
    assert ours["kernel_time(us)"].min() > 0


def test_idle_time_breakdown(with_calls):
    ours, truth = (hta.get_idle_time_breakdown(ranks=RANKS, visualize=False)[0] for hta in with_calls)
    assert_same(ours, truth, ["rank", "stream", "idle_category"], [], ["idle_time"])


def test_kernel_breakdown(both, profiled_plain):
    frames = [hta.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True, num_kernels=100) for hta in both]
    assert_same(frames[0][0], frames[1][0], "kernel_type", [], ["sum"])
    assert_same(frames[0][1], frames[1][1], ["name", "rank"], [], ["sum (us)", "max (us)", "min (us)", "mean (us)"])
    # The same straight from the log, of the steps that HTA keeps (it leaves out the last one).
    truth = profiled_plain.truths[0]
    until = truth.steps[max(truth.steps)][0]
    kept = {call["corr"] for call in truth.calls if call["begin"] < until}
    gemms = [w["end"] - w["begin"] for w in truth.work if w["corr"] in kept and w["name"].startswith("_Z8gemm_fwd")]
    row = frames[0][1].query("rank == 0 and name.str.startswith('gemm_fwd')")
    assert len(gemms) == 9 * 4
    assert row["sum (us)"].item() == near(sum(gemms) / 1000)


def test_communication_overlap(both):
    ours, truth = (hta.get_comm_comp_overlap(visualize=False) for hta in both)
    assert_same(ours, truth, "rank", [], ["comp_comm_overlap_pctg"])
    assert ours["comp_comm_overlap_pctg"].min() > 1


def test_launch_statistics(both, with_calls):
    found = [hta.get_cuda_kernel_launch_stats(ranks=RANKS, visualize=False) for hta in (*both, with_calls[1])]
    for rank in RANKS:
        ours, truth, as_recorded = (stats[rank].set_index("correlation").sort_index() for stats in found)
        assert list(ours.index) == list(truth.index)
        assert len(ours) > 100
        assert ours["gpu_duration"].sum() == near(truth["gpu_duration"].sum())
        # Begin and end are rounded to 1 ns each.
        assert (ours["gpu_duration"] - truth["gpu_duration"]).abs().max().round(6) <= 0.002
        assert ours["launch_delay"].sum() == near(as_recorded["launch_delay"].sum())
        # A hook's record encloses the call; HTA has floating-point microseconds since last quarter.
        assert ((ours["cpu_duration"] - truth["cpu_duration"]) > -0.002).all()
        assert (ours["cpu_duration"] - truth["cpu_duration"]).median() < CALL_US


def test_queue_length(with_calls):
    ours, truth = (hta.get_queue_length_time_series(ranks=RANKS) for hta in with_calls)
    for rank in RANKS:
        assert len(ours[rank]) == len(truth[rank]) > 100
        assert ours[rank]["queue_length"].max() == truth[rank]["queue_length"].max()
        assert ours[rank]["queue_length"].mean() == near(truth[rank]["queue_length"].mean())


def test_memory_bandwidth(both):
    ours, truth = (hta.get_memory_bw_summary(ranks=RANKS)["memory_bw_gbps"] for hta in both)
    assert list(ours.index) == list(truth.index)
    assert list(ours["count"]) == list(truth["count"])
    for name in ours.index:
        assert ours["mean"][name] == near(truth["mean"][name], 0)
        assert ours["max"][name] == near(truth["max"][name], 0)


def critical_path(hta, rank, step):
    """Microseconds on the critical path of one step, by what they are bound by."""
    graph, found = hta.critical_path_analysis(rank=rank, annotation="ProfilerStep", instance_id=step)
    assert found
    return graph.get_critical_path_breakdown().groupby("bound_by").duration.sum()


def test_critical_path(with_calls):
    compute = 0
    for rank in RANKS:
        for step in range(1, 6):
            ours, truth = (critical_path(hta, rank, step) for hta in with_calls)
            compute += ours.get("gpu_compute_bound", 0)
            for kind in set(truth.index) | set(ours.index):
                assert ours.get(kind, 0) == near(truth.get(kind, 0), truth.sum() * NEAR), (rank, step, kind)
    assert compute > 0


def test_gpu_annotations(both):
    """Each NVTX range has its twin on each stream that it had work on."""
    table = both[0].get_gpu_user_annotation_breakdown(visualize=False)
    steps = table[table["name"].str.fullmatch(r"step [0-9]+")]
    assert sorted(set(steps["name"])) == sorted(f"step {n}" for n in range(12, 21))
    kernels = both[0].get_gpu_kernels_with_user_annotations(rank=0)
    gemms = kernels[kernels["s_name"].str.startswith("gemm_fwd")]
    assert len(gemms) == 9 * 4
    assert gemms["s_user_annotation"].str.fullmatch(r"step [0-9]+").all()
