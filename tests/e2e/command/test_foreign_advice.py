# SPDX-License-Identifier: Apache-2.0
"""What the report advises of traces that others made is true of them: no setting of gpuprof's, and no silence about what an
event lacks."""
import json

import harness
import pytest
from support.kineto_machine import Machine
from test_real_traces import report


def waiting(keep=lambda event: True, change=lambda event: event):
    """Of a job whose GPU is mostly idle."""
    machine = Machine()

    def body():
        machine.kernel("gemm", 2000)
        machine.wait()
        machine.host(8000, "aten::item")
    for _ in range(8):
        machine.step(body, marked=False)
    return [change(dict(event)) for event in machine.events if keep(event)]


def write(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_calls_that_a_trace_lacks_are_asked_of_its_profiler(tmp_path):
    found = report(write(tmp_path / "trace.json", waiting(lambda event: event["cat"] == "kernel")))
    assert "activities=[CPU, CUDA]" in found["reason"] and "GPUPROF" not in found["reason"]


def test_host_events_that_do_not_join_are_told(tmp_path):
    """As ONNX Runtime writes them: in categories of its own."""
    own = {"cuda_runtime": "Session", "cpu_op": "Node"}
    found = report(write(tmp_path / "trace.json", waiting(change=lambda event: {**event, "cat": own.get(event["cat"], event["cat"])})))
    assert "could not be joined" in found["reason"] and "GPUPROF" not in found["reason"]


@pytest.mark.parametrize("events", [[], [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]])
def test_an_empty_trace_is_not_told_to_mark_by_gpuprof(tmp_path, events):
    found = report(write(tmp_path / "trace.json", events))
    assert "gpuprof run" not in found["reason"] and "prof.step()" in found["reason"]


def test_events_without_a_duration_are_counted(tmp_path):
    def strip(event):
        return {key: value for key, value in event.items() if key != "dur" or event["cat"] != "kernel"}
    done = harness.gpuprof("report", write(tmp_path / "trace.json", waiting(change=strip)))
    assert "events without a duration that is a number, read as of none: 8" in done.err


def test_a_second_cycle_with_the_same_numbers_is_told(tmp_path):
    events = []
    for cycle in range(2):
        machine = Machine()
        machine.now += cycle * 1_000_000
        machine.correlation += cycle * 1000
        for _ in range(3):
            machine.step(lambda: (machine.kernel("gemm", 2000), machine.wait()))
        events += machine.events
    done = harness.gpuprof("report", "--format", "json", write(tmp_path / "trace.json", events))
    assert len(json.loads(done.out)["steps"]) == 3
    assert "3 more steps have the number of an earlier one" in done.err
    once = harness.gpuprof("report", write(tmp_path / "once.json", events[:len(events) // 2]))
    assert "number of an earlier one" not in once.err


@pytest.mark.parametrize("option", [("--attempt", "2"), ("--job", "7")])
def test_a_trace_names_no_attempt(tmp_path, option):
    done = harness.gpuprof("report", *option, write(tmp_path / "trace.json", waiting()))
    assert done.code == 2 and "names no job and no attempt" in done.err and f"leave out {option[0]}" in done.err


def test_times_before_those_of_unix_are_counted(tmp_path):
    def shifted(by):
        return waiting(change=lambda event: {**event, "ts": event["ts"] - by})
    done = harness.gpuprof("report", write(tmp_path / "trace.json", shifted(1_000_000 + 5000)))
    assert "events that begin before 1970, read as beginning then: 1;" not in done.err
    assert "events that begin before 1970, read as beginning then:" in done.err
    assert "before 1970" not in harness.gpuprof("report", write(tmp_path / "trace.json", shifted(1_000_000))).err
