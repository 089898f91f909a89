# SPDX-License-Identifier: Apache-2.0
"""Small traces of very many steps, processes or streams. If each were compared with each, they would take longer than
a command may here (harness.gpuprof)."""
import json

import pytest

import harness


def event(number, category="cpu_op", name="aten::add", pid=1, tid=1, dur=5, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": number * 10, "dur": dur, "args": args}


def written(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": list(events)}, separators=(",", ":")))
    return path


def overlapping_steps(count):
    for number in range(count):
        yield event(number, "user_annotation", f"ProfilerStep#{number}", dur=count * 10)
        yield event(number, "cuda_runtime", "cudaLaunchKernel", dur=2, correlation=number + 1)
        yield event(number, "kernel", "gemm", pid=0, tid=7, device=0, context=1, stream=7, correlation=number + 1)


def processes(count):
    for number in range(count):
        yield event(number, pid=number + 1, tid=number + 1)


def streams(count):
    for number in range(count):
        yield event(number, "cuda_runtime", "cudaLaunchKernel", dur=2, correlation=number + 1)
        yield event(number, "kernel", "gemm", pid=0, tid=number, device=0, context=number, stream=number, correlation=number + 1)


@pytest.mark.parametrize("make, count", [(overlapping_steps, 200_000), (processes, 150_000), (streams, 350_000)],
                         ids=["steps", "processes", "streams"])
def test_very_many_take_no_square(make, count, tmp_path):
    # A sanitized command takes several times as long, and a square of a fifth would still be too long.
    path = written(tmp_path / "many.json", make(count // 5 if harness.SANITIZER else count))
    report = json.loads(harness.checked("report", path, "--format", "json").out)
    assert report
    if make is streams:
        harness.checked("convert", path, "--to", "tensorboard", "-o", tmp_path / "out")
