# SPDX-License-Identifier: Apache-2.0
"""JSON traces with numbers beyond what can be held, and files that are not what they seem: each gives a clear line or
the right number, within 300 MB."""
import gzip
import json
import resource

import harness
import pytest


def event(name, begin, length, **args):
    gpu = name == "gemm"
    return {"ph": "X", "cat": "kernel" if gpu else "cuda_runtime", "name": name, "pid": 0 if gpu else 9, "tid": 7 if gpu else 9,
            "ts": begin, "dur": length, "args": {**({"device": 0, "stream": 7} if gpu else {}), **args}}


def launches(count, **changes):
    """A launch and its kernel each 100 us, 70 of them busy."""
    out = []
    for i in range(count):
        out += [event("cudaLaunchKernel", 1000 + 100 * i, 5, correlation=i + 1),
                event("gemm", 1010 + 100 * i, 70, correlation=i + 1)]
    for member, value in changes.items():
        for each in out:
            if member == "correlation":
                each["args"][member] += value
            else:
                each[member] = each[member] + value if member == "ts" else value
    return out


def told(path):
    done = harness.gpuprof("report", "--format", "json", path)
    return done, json.loads(done.out) if done.code == 0 else None


def write(path, events, raw=None):
    path.write_text(raw or json.dumps({"traceEvents": events}))
    return path


def test_the_trace_itself_is_right(tmp_path):
    _, found = told(write(tmp_path / "good.json", launches(20)))
    assert found["gpu"]["utilization_pct"] == pytest.approx(70, abs=2)


@pytest.mark.parametrize("changes,line", [
    ({"ts": 2**54}, "more than 73 years"),
    ({"dur": 1e30}, "more than 73 years"),
    ({"correlation": 2**63 + 5}, "beyond 4294967295"),
])
def test_numbers_that_cannot_be_held(tmp_path, changes, line):
    done, _ = told(write(tmp_path / "large.json", launches(20, **changes)))
    assert line in done.err


@pytest.mark.parametrize("value", ["NaN", "1e999"])
def test_a_time_that_is_no_number(tmp_path, value):
    text = json.dumps({"traceEvents": launches(20)}).replace('"ts": 1010,', f'"ts": {value},', 1)
    done, found = told(write(tmp_path / "nan.json", None, text))
    assert "without a time that is a number, left out: 1;" in done.err
    assert sum(kernel["count"] for kernel in found["kernels"]) == 19


@pytest.mark.parametrize("second", ['{"traceEvents": []}', "\n\n  [1]", "x"])
def test_a_second_document_is_said(tmp_path, second):
    text = json.dumps({"traceEvents": launches(20)})
    for whole in (text, json.dumps(launches(20))):
        done, _ = told(write(tmp_path / "two.json", None, whole + second))
        assert "follows the end of the JSON document" in done.err
        done, _ = told(write(tmp_path / "one.json", None, whole + " \n\n"))
        assert "follows" not in done.err


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("contents, what", [
    (json.dumps({"traceEvents": []}).encode("utf-16"), "text in UTF-16"),
    (json.dumps({"traceEvents": []}).encode("utf-16-be"), "text in UTF-16"),
    (b"<!DOCTYPE html><html><body>403 Forbidden</body></html>", "an HTML page"),
    (b"PK\x03\x04" + bytes(60), "a ZIP archive"),
    (b"loss 0.31\n", 'it begins "loss 0.31"'),
    (b" \n" * 4000, "blanks where a document would begin"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS"),
], ids=["utf-16", "utf-16-be", "html", "zip", "text", "blanks", "lfs"])
def test_what_is_no_trace_is_named(tmp_path, contents, what, packed):
    path = tmp_path / ("trace.json.gz" if packed else "trace.json")
    path.write_bytes(gzip.compress(contents) if packed else contents)
    done, _ = told(path)
    assert done.code == 2 and len(done.err.splitlines()) == 1
    assert f"{path}: holds {'gzip of ' if packed else ''}" in done.err and what in done.err
    assert "reads its own dumps, and JSON traces" in done.err


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_trace_of_xla_is_named(tmp_path, packed, separators):
    """Its events have no category: as a trace of Kineto's it would have no step, and no work on a GPU."""
    rows = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
            {"ph": "M", "pid": 1, "tid": 14, "name": "thread_name", "args": {"name": "Stream #14(Compute)"}},
            {"ph": "X", "pid": 1, "tid": 14, "ts": 10.5, "dur": 3.25, "name": "loop_add_fusion", "args": {"hlo_op": "loop_add_fusion"}}]
    text = json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": rows}, separators=separators)
    folder = tmp_path / "plugins/profile/2026_11_30"
    folder.mkdir(parents=True)
    path = folder / ("host.trace.json.gz" if packed else "host.trace.json")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    for named in (path, tmp_path):
        done, _ = told(named)
        assert done.code == 2 and len(done.err.splitlines()) == 1
        assert f"{path}: holds a trace of XLA's profiler" in done.err and "gpuprof run" in done.err


def profiled(pid, **event):
    return {"ph": "X", "ts": 10.5, "dur": 3.25, "tid": 1, "pid": pid, **event}


OTHERS = {
    # jax.profiler's perfetto_trace.json.gz: as above, without "metadata"
    "jax": ({"displayTimeUnit": "ns", "traceEvents": [{"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
                                                      profiled(701, name="PjitFunction(f)"), {}]}, "XLA's profiler"),
    "tensorflow": ({"traceEvents": [{"name": "process_name", "ph": "M", "pid": 1, "args": {
        "name": "/job:localhost/replica:0/task:0/device:GPU:0 Compute"}}, profiled(1, cat="Op", name="MatMul")]}, "TensorFlow's timeline"),
    "autograd": ([profiled("CPU functions", name="aten::mm"), profiled("CUDA functions", name="sgemm")], "PyTorch's autograd profiler"),
}


@pytest.mark.parametrize("writer", OTHERS)
def test_a_trace_of_another_profiler_is_named(tmp_path, writer):
    document, name = OTHERS[writer]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    done, _ = told(path)
    assert done.code == 2 and len(done.err.splitlines()) == 1
    assert f"{path}: holds a trace of {name}" in done.err and "gpuprof run" in done.err


def test_bytes_that_nobody_knows_are_shown(tmp_path):
    (tmp_path / "trace.json").write_bytes(bytes(range(1, 200)))
    done, _ = told(tmp_path / "trace.json")
    assert done.code == 2 and "binary data; it begins 01 02 03 04 05 06 07 08" in done.err


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_blanks_in_front_of_a_trace_are_passed_over(tmp_path, packed):
    path = tmp_path / "trace.json"
    contents = b"\n" * 3_000_000 + json.dumps({"traceEvents": launches(20)}).encode()
    path.write_bytes(gzip.compress(contents, 1) if packed else contents)
    _, found = told(path)
    assert found["gpu"]["utilization_pct"] == pytest.approx(70, abs=2)


def test_gigabytes_of_blanks(tmp_path):
    """A gigabyte, for the test's time: memory must not grow with them."""
    path = tmp_path / "blank.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        text = json.dumps({"traceEvents": launches(20)})
        begin, end = text.split(", ", 1)
        out.write(begin.encode() + b",")
        for _ in range(64):
            out.write(b" " * (16 << 20))
        out.write(end.encode())
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    _, found = told(path)
    assert max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) < 300 << 10
    assert found["gpu"]["utilization_pct"] == pytest.approx(70, abs=2)
