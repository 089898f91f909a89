# SPDX-License-Identifier: Apache-2.0
"""torch-tb-profiler (TensorBoard's "PyTorch Profiler") loads our traces, with its own loader, and shows the truth."""
import pathlib

import pytest
from torch_tb_profiler import io
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.event_parser import ProfileRole
from torch_tb_profiler.profiler.loader import RunLoader
from torch_tb_profiler.run import DistributedRunProfile, RunProfile

import truth_trace

RANKS = [0, 1]
NEAR = 0.01


def traces(profiled):
    """Of the log directory the part for this plugin."""
    return next(path for path in profiled.convert("tensorboard").iterdir() if path.name != "plugins")


def profile(path):
    return RunProfileData.parse("worker", None, str(path), None)


@pytest.fixture(scope="module")
def both(profiled):
    """For each rank: what the plugin makes of our file, and of the truth."""
    folder = profiled.folder / "tb_truth"
    truth_trace.write(folder, profiled.truths, "Runtime")  # the plugin knows no cuda_runtime
    ours = [profile(path) for path in traces(profiled).iterdir()]
    ours = {data.distributed_info["rank"]: data for data in ours}
    return {rank: (ours[rank], profile(folder / f"rank{rank}.json")) for rank in RANKS}


def merged(ranges):
    out = []
    for begin, end in sorted(ranges):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


@pytest.mark.parametrize("rank", RANKS)
def test_steps(both, rank, profiled):
    ours, truth = both[rank]
    assert ours.steps_names == [str(n) for n in range(12, 22)] == truth.steps_names
    costs = [data.avg_costs.costs for data in (ours, truth)]
    assert costs[0][ProfileRole.Total] == pytest.approx(costs[1][ProfileRole.Total], rel=NEAR)
    for role in (ProfileRole.Kernel, ProfileRole.Memcpy, ProfileRole.Memset, ProfileRole.DataLoader):
        assert costs[0][role] == pytest.approx(costs[1][role], rel=NEAR, abs=1), role
        assert costs[0][role] > 0, role


@pytest.mark.parametrize("rank", RANKS)
def test_gpu_utilization(both, rank, profiled):
    ours, truth = (data.gpu_metrics_parser.gpu_utilization for data in both[rank])
    assert ours[rank] == pytest.approx(truth[rank], rel=NEAR)
    log = profiled.truths[rank]
    kernels = merged((max(w["begin"], log.begin), min(w["end"], log.end)) for w in log.work if w["type"] == "kernel")
    busy = sum(end - begin for begin, end in kernels if end > begin)
    assert ours[rank] == pytest.approx(busy / (log.end - log.begin), rel=NEAR)


@pytest.mark.parametrize("rank", RANKS)
def test_data_loader_share(both, rank, profiled):
    costs = both[rank][0].avg_costs.costs
    log = profiled.truths[rank]
    loading = merged((load["begin"], load["end"]) for load in log.loads)
    busy = merged((w["begin"], w["end"]) for w in log.work if w["type"] != "sync")
    # What a loader's time overlaps of the GPU's work counts for that.
    overlap = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in loading for b in busy)
    alone = sum(end - begin for begin, end in loading) - overlap
    assert costs[ProfileRole.DataLoader] / costs[ProfileRole.Total] == pytest.approx(alone / (log.end - log.begin), rel=NEAR)


@pytest.mark.parametrize("rank", RANKS)
def test_calls_are_known_and_linked(both, rank, profiled):
    data = both[rank][0]
    assert data.has_runtime and data.avg_costs.costs[ProfileRole.Runtime] > 0
    nodes = list(data.tid2tree.values())
    for node in nodes:
        nodes += node.children
    loaders = [node for node in nodes if node.name.startswith("enumerate(DataLoader)")]
    assert len(loaders) == 10
    assert not any(node.runtimes for node in loaders), "calls of others are not the loader's"


@pytest.mark.parametrize("rank", RANKS)
def test_kernels_and_occupancy(both, rank, profiled):
    kernels = both[rank][0].kernel_stat
    gemm = kernels[kernels.index.str.startswith("gemm_fwd")]
    assert gemm["count"].sum() == 10 * 4
    parser = both[rank][0].gpu_metrics_parser
    assert 0 < parser.avg_occupancy_per_device[rank] <= 100
    assert 0 < parser.avg_approximated_sm_efficiency_per_device[rank] <= 1


def test_all_views_are_there(profiled):
    """As TensorBoard itself loads a run: a process for each file, then what all ranks give together."""
    run = RunLoader("run", str(traces(profiled)), io.Cache()).load()
    alone = [p for p in run.profiles.values() if isinstance(p, RunProfile)]
    together = [p for p in run.profiles.values() if isinstance(p, DistributedRunProfile)]
    assert len(alone) == 2 and len(together) == 1
    views = {view.display_name for p in alone for view in p.views}
    assert {"Overview", "Kernel", "Trace", "Memory"} <= views
    assert together[0].steps_to_overlap and together[0].comm_ops
