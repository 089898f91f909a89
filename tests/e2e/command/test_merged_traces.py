# SPDX-License-Identifier: Apache-2.0
"""Several ranks' traces in one file: TraceLens' TraceFuse adds to pids and correlation ids, SGLang's ProfileMerger writes a
label in front of each pid. Each rank's GPU work is its own."""
import gzip
import json

import harness
import pytest
from support.kineto_machine import Machine
from test_real_traces import report

STEPS, KERNEL_US = 6, (4000, 8000)


def rank(kernel_us):
    """Of a job whose ranks have the same pid and the same correlation ids."""
    machine = Machine()

    def body():
        begin = machine.now
        machine.kernel("gemm", kernel_us)
        machine.wait()
        machine.host(10_000 - (machine.now - begin))
    for _ in range(STEPS):
        machine.step(body)
    return machine.events


def named(pid, label):
    return [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": 0, "args": {"labels": label}}]


def fused(number, offset_ids=True):
    offset = number * 10_000_000
    out = named(100 + offset, "CPU") + named(offset, "GPU 0")
    for event in rank(KERNEL_US[number]):
        args = dict(event["args"])
        if offset_ids:
            args["correlation"] = args.get("correlation", 0) + offset
        out.append({**event, "pid": event["pid"] + offset, "args": args})
    return out


def labelled(number):
    return [{**event, "pid": f"[TP0{number}] {event['pid']}"} for event in named(100, "CPU") + named(0, "GPU 0") + rank(KERNEL_US[number])]


def write(path, events):
    text = json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": events})
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("merge", [fused, labelled])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_each_rank_has_its_own_gpu_work(tmp_path, merge, order):
    found = report(write(tmp_path / "merged.json", [event for number in order for event in merge(number)]))
    busy = sorted(sum(step["parts_us"][part] for part in ("compute", "communication", "transfer")) / step["duration_us"]
                  for step in found["steps"])
    assert len(found["processes"]) == 2 and len(busy) == 2 * STEPS
    assert busy[:STEPS] == pytest.approx([0.4] * STEPS, abs=0.01) and busy[STEPS:] == pytest.approx([0.8] * STEPS, abs=0.01)
    assert found["gpu"]["utilization_pct"] == pytest.approx(60, abs=0.5)


def test_work_that_may_be_of_either_is_told(tmp_path):
    path = write(tmp_path / "merged.json", fused(0, False) + fused(1, False))
    done = harness.gpuprof("report", path)
    assert done.code == 0 and "name the ranks' files" in done.err


def test_a_merged_file_beside_its_ranks_is_left_out(tmp_path):
    for number in range(2):
        write(tmp_path / f"1700-TP-{number}.trace.json.gz", [{**e, "pid": e["pid"] + number} for e in rank(KERNEL_US[number])])
    write(tmp_path / "merged-1700.trace.json.gz", labelled(0) + labelled(1))
    done = harness.gpuprof("report", "--format", "json", tmp_path)
    found = json.loads(done.out)
    assert len(found["steps"]) == 2 * STEPS
    assert found["gpu"]["utilization_pct"] == pytest.approx(60, abs=0.5)
    assert "merged-1700.trace.json.gz holds again" in done.err
    alone = report(tmp_path / "merged-1700.trace.json.gz")
    assert alone["gpu"]["utilization_pct"] == pytest.approx(60, abs=0.5)
