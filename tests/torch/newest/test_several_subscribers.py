# SPDX-License-Identifier: Apache-2.0
"""gpuprof and PyTorch's own profiler in one process, both subscribers of the simulated CUPTI 13.3: each has all the GPU
work of its steps, as the simulator's log has it."""
import gzip
import json
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import harness  # noqa: E402
import truth  # noqa: E402
from stack import simulated  # noqa: E402

SCRIPT = HERE.parent / "scripts/several_subscribers.py"
KERNELS_PER_STEP = 22
GPU_WORK = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
# Steps of gpuprof's window: around the profiler's, in them, begun before and ended after they do, and after all of them.
WINDOWS = {"around": (2, 18), "within": (8, 4), "over_the_begin": (3, 6), "over_the_end": (12, 7), "after": (17, 3)}


def several(base):
    env = simulated(base)
    return {**env, "SIMCUDA_VERSION": "13.3", "LD_LIBRARY_PATH": env["LD_LIBRARY_PATH"].replace(
        f"{harness.SIMCUDA}:", f"{harness.SIMCUDA}13_3:{harness.SIMCUDA}:", 1)}


def assert_theirs_right(trace, lines):
    """What PyTorch wrote, by correlation id, against the log: how long each piece of work took, to the nanosecond."""
    took = {(line["corr"], line["type"]): line["end"] - line["begin"] for line in lines if line["t"] == "gpu"}
    events = json.loads(gzip.open(trace).read())["traceEvents"]
    seen = [event for event in events if event.get("cat") in GPU_WORK]
    assert sum(event["cat"] == "kernel" for event in seen) == 10 * KERNELS_PER_STEP
    wrong = [event for event in seen
             if abs(event["dur"] * 1000 - took[event["args"]["correlation"], GPU_WORK[event["cat"]]]) > 1]
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("window", WINDOWS)
def test_both_record(window, tmp_path):
    first, count = WINDOWS[window]
    (tmp_path / "truth").mkdir()
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_STEP="optimizer",
                            GPUPROF_SCHEDULE=f"skip_first={first - 1},warmup=1,active={count}")
    done = harness.run([sys.executable, SCRIPT, tmp_path / "theirs.json"], env=several(env), timeout=400)
    assert done.code == 0 and "unavailable" not in done.err, done.err
    dump, = harness.dumps(tmp_path / "out")
    ours = truth.Comparison(dump, tmp_path / "truth")
    ours.assert_right("launch", "copy", "gpu_kernel", "gpu_copy")
    assert ours.summary["losses"] == {}
    assert len(harness.of_kind(ours.records, "gpu_kernel")) == count * KERNELS_PER_STEP
    used = harness.info(dump)["files"][0]["cupti_api"]
    assert used.startswith("V2"), used
    assert_theirs_right(tmp_path / "theirs.json.gz", truth.load(tmp_path / "truth", ours.header["pid"]))
