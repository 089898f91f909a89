# SPDX-License-Identifier: Apache-2.0
"""Traces of some steps (`convert --steps`): HTA, torch-tb-profiler and XProf read them as whole ones of these steps."""
import collections
import logging
import shutil

import pytest
from hta.trace_analysis import TraceAnalysis
from torch_tb_profiler.profiler.data import RunProfileData

import harness
from test_xprof import alone, table, tool

STEPS = range(13, 16)
RANKS = [0, 1]


@pytest.fixture(scope="module")
def converted(profiled, tmp_path_factory):
    folder = tmp_path_factory.mktemp("some_steps")

    def convert(to):
        harness.checked("convert", profiled.dumps, "--to", to, "-o", folder / to, "--steps", f"{STEPS[0]}-{STEPS[-1]}")
        return folder / to
    return convert


@pytest.fixture(scope="module")
def kernels(profiled):
    """rank -> how often each kernel was launched in the steps, and for how long they ran (us)."""
    out = {}
    for dump in harness.dumps(profiled.dumps):
        records = harness.records(dump)
        rank = next(r for r in records if r["kind"] == "header")["rank"]
        spans = [(s["begin_mono_ns"], s["end_mono_ns"]) for s in harness.of_kind(records, "step") if s["number"] in STEPS]
        by_index = {r["index"]: r for r in records if "index" in r}
        counts, times = collections.Counter(), collections.Counter()
        for kernel in harness.of_kind(records, "gpu_kernel"):
            begin = by_index[kernel["partner"]]["begin_mono_ns"]
            if any(first <= begin < last for first, last in spans):
                counts[kernel["label"]] += 1
                times[kernel["label"]] += kernel["duration_ns"] / 1000
        assert len(spans) == len(STEPS) and counts
        out[rank] = counts, times
    return out


def test_hta(converted, kernels):
    logging.getLogger().setLevel(logging.ERROR)
    # By default HTA leaves out the last step.
    hta = TraceAnalysis(trace_dir=str(converted("kineto")), include_last_profiler_step=True)
    assert sorted(hta.t.traces) == RANKS
    assert len(hta.get_temporal_breakdown(visualize=False)) == len(RANKS)
    for rank in RANKS:
        frame, names = hta.t.traces[rank], hta.t.symbol_table.get_sym_table()
        found = frame[frame["stream"] >= 0]
        on_gpu = collections.Counter(names[name] for name in found["name"])
        counts, _ = kernels[rank]
        assert {name: on_gpu[name] for name in counts} == counts
        assert (found["index_correlation"] > 0).sum() >= sum(counts.values()), "each has its call"


def test_torch_tb(converted):
    logs = converted("tensorboard")
    files = [path for path in next(p for p in logs.iterdir() if p.name != "plugins").iterdir()]
    assert len(files) == len(RANKS)
    for path in files:
        data = RunProfileData.parse("worker", None, str(path), None)
        assert data.steps_names == [str(step) for step in STEPS]


@pytest.mark.parametrize("rank", RANKS)
def test_xprof(converted, kernels, rank, tmp_path):
    logs = converted("xplane")
    planes = {int(path.name.split("_r")[-1].split(".")[0]): str(shutil.copy(path, tmp_path))
              for path in logs.glob("*.xplane.pb")}
    rows = table(tool(alone(planes, rank, tmp_path), "kernel_stats"))
    counts, times = kernels[rank]
    assert {row["kernel_name"]: row["occurrences"] for row in rows} == counts
    for row in rows:
        assert row["total_duration_us"] == pytest.approx(times[row["kernel_name"]], rel=0.01)
