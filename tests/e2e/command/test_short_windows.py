# SPDX-License-Identifier: Apache-2.0
"""Steps that take longer than a window may: the report and the closing line name the limit, nobody is told to mark steps,
and less than a step has no verdict."""
import json

import harness
import pytest


def record(folder, limit, steps):
    """Steps of 2 s."""
    env = harness.preloaded(GPUPROF_OUTPUT=folder, GPUPROF_LOG="info", GPUPROF_RUN="job",
                            GPUPROF_SCHEDULE=f"skip_first=1,wait=0,warmup=1,active=5,max_s={limit}")
    done = harness.run([harness.SIMTRAIN, "--steps", str(steps), "--layers", "2", "--kernel-us", "300000"], env)
    assert done.code == 0, done.err
    text = harness.checked("report", folder / "job").out
    return json.loads(harness.checked("report", "--format", "json", folder / "job").out), " ".join(text.split()), done.err


@pytest.mark.parametrize("limit, steps", ((0.5, 4), (3, 5)))
def test_a_limit_below_two_steps_is_named(tmp_path, limit, steps):
    report, text, err = record(tmp_path, limit, steps)
    assert report["verdict"] == []
    assert report["reason"].startswith(f"max_s={limit} ended the window, where a step takes "), report["reason"]
    assert "record a longer window (GPUPROF_SCHEDULE=active=3,max_s=" in report["reason"]
    assert report["reason"] in text and "mark steps" not in text
    assert "cut short by max_s" in err
    dump, = harness.dumps(tmp_path)
    lengths = [row["end_mono_ns"] - row["begin_mono_ns"] for row in harness.of_kind(harness.records(dump), "step")]
    assert float(report["reason"].split("max_s=")[-1].rstrip(")")) > 3 * max(lengths) / 1e9
