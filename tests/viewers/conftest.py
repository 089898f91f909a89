# SPDX-License-Identifier: Apache-2.0
"""A profiled run of simtrain on two ranks, once for all tests, with what the simulator says of it."""
import dataclasses
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # HTA rounds times to microseconds otherwise, and gets negative ones

import pytest

import harness
import truth_trace

TRIES, QUIET_NS = 8, 50_000
SAME_NS = 1  # by which lengths of GPU work differ from the simulator's, each rounded
FIRST, LAST = 12, 21  # the steps that the default schedule records


@dataclasses.dataclass
class Profiled:
    dumps: pathlib.Path
    truths: dict  # rank -> Truth
    folder: pathlib.Path  # for what tests make of it

    def convert(self, to, *options):
        out = self.folder / to
        if not out.exists():
            harness.checked("convert", self.dumps, "--to", to, "-o", out, *options)
        return out


def noise(truth, records):
    """The most, in ns, by which a recorded call differs from the simulator's."""
    most = 0
    for record in records:
        call = truth.call_of.get(record.get("correlation"))
        if call and record["kind"] in truth_trace.CALL_KINDS:
            most = max(most, abs(record["begin_mono_ns"] - call["begin"]), abs(record["end_mono_ns"] - call["end"]))
    return most


def gpu_noise(truth, records):
    """The same of how long kernels took: a clock that is corrected in a kernel's time is some nanoseconds off."""
    lengths = {work["corr"]: work["end"] - work["begin"] for work in truth.work if work["type"] == "kernel"}
    return max(abs(record["duration_ns"] - lengths[record["correlation"]])
               for record in records if record["kind"] == "gpu_kernel" and record.get("correlation") in lengths)


def run_once(folder, options):
    command = [harness.SIMTRAIN, "--ranks", "2", "--steps", "26", "--layers", "4", "--kernel-us", "300", "--comm-mb", "8",
               "--overlap", "--data-ms", "1", "--h2d-mb", "8", *options]
    env = harness.environment(SIMCUDA_TRUTH=folder / "truth", GPUPROF_ACTIVITIES="+sync:gpu")
    done = harness.gpuprof("run", "-o", folder / "out", "--", *command, env=env)
    assert done.code == 0, done.err
    truths, most, gpu = {}, 0, 0
    for dump in harness.dumps(folder / "out"):
        records = harness.records(dump)
        header = next(r for r in records if r["kind"] == "header")
        steps = {r["number"]: (r["begin_mono_ns"], r["end_mono_ns"]) for r in records
                 if r["kind"] == "step" and r["in_window"]}
        assert sorted(steps) == list(range(FIRST, LAST + 1))
        truth = truths[header["rank"]] = truth_trace.Truth(folder / "truth", header["pid"], steps)
        most, gpu = max(most, noise(truth, records)), max(gpu, gpu_noise(truth, records))
    assert sorted(truths) == [0, 1]
    return (gpu > SAME_NS, most), Profiled(folder / "out", truths, folder)


def quiet_run(tmp_path_factory, *options):
    """Where the kernel takes the processor away between a hook's reading of the clock and the simulator's, they
    disagree about who had the time, and both are right: such a run says nothing about what is made of it. Nor does one in
    which the GPU's clock was corrected at that moment."""
    runs = []
    for _ in range(TRIES):
        runs.append(run_once(tmp_path_factory.mktemp("run"), options))
        corrected, most = runs[-1][0]
        if not corrected and most < QUIET_NS:
            break
    chosen = min(runs, key=lambda run: run[0])[1]
    for dump in harness.dumps(chosen.dumps):
        records = harness.records(dump)
        chosen.truths[next(r for r in records if r["kind"] == "header")["rank"]].take_loads_as_recorded(records)
    return chosen


@pytest.fixture(scope="session")
def profiled(tmp_path_factory):
    return quiet_run(tmp_path_factory, "--malloc-per-step", "3")


@pytest.fixture(scope="session")
def profiled_plain(tmp_path_factory):
    """Without cudaFree, which waits for the GPU as long as a critical path over the GPU takes: which of the two is
    longer would be a matter of nanoseconds."""
    return quiet_run(tmp_path_factory)


@pytest.fixture(scope="session")
def budget_dump(tmp_path_factory):
    """Of a program that takes far more to record than it allows."""
    folder = tmp_path_factory.mktemp("budget")
    settings = harness.preloaded(**{"GPUPROF_OUTPUT": folder / "out", "GPUPROF_BUDGET": "0.2", "GPUPROF_BUFFER_MB": 256, **harness.WHOLE_RUN})
    done = harness.run([harness.HAZARDS / "costly", 1000, 10000, "launches=4", "events=10000", "waits=10000", "allocations=1000"], settings)
    assert done.code == 0, done.err
    dump, = harness.dumps(folder / "out")
    assert {"calls", "waits"} <= {each["kind"] for each in harness.info(dump)["files"][0]["budget"]["left_out"]}
    return dump


@pytest.fixture(scope="session")
def heap_dump(tmp_path_factory):
    """Of a program that allocates on the host, with samples of that."""
    folder = tmp_path_factory.mktemp("heap")
    done = harness.run([harness.HAZARDS / "heap", 12, 3, 11, harness.HAZARDS / "libheap_library.so"], harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="manual", GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=9",
        GPUPROF_ACTIVITIES="+malloc:16"))
    assert done.code == 0, done.err
    dump, = harness.dumps(folder / "out")
    return dump
