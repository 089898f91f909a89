# SPDX-License-Identifier: Apache-2.0
"""Kineto's traces as input: every command takes them, and counts, times and arguments are those of the file."""
import collections
import gzip
import json
import os
import pathlib

import harness
from support import kineto_traces
import pytest

# Two traces of torch.profiler, where they are; inside the tree or beside it.
PLACES = [root / "shared/data/kineto_resnet50" for root in (harness.SOURCE, harness.SOURCE.parent)]
REAL = pathlib.Path(os.environ.get("GPUPROF_KINETO_DATA", next(filter(pathlib.Path.is_dir, PLACES), PLACES[0])))

# What is a kind in our trace, by Kineto's category in both spellings.
KINDS = {
    "cpu_op": {"op"}, "operator": {"op"}, "user_annotation": {"annotation"}, "kernel": {"gpu_kernel"},
    "gpu_memcpy": {"gpu_copy"}, "memcpy": {"gpu_copy"}, "gpu_memset": {"gpu_set"}, "memset": {"gpu_set"},
    "cuda_runtime": {"call", "launch", "copy", "set", "alloc", "dealloc", "sync", "event", "stream"},
}
KINDS["runtime"] = KINDS["cuda_runtime"]


def load(path):
    data = pathlib.Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def ranges(document):
    """Events that take time, by category; without the profiler's own span."""
    found = collections.Counter((e.get("cat") or "").lower() for e in document["traceEvents"] if e["ph"] == "X")
    found.pop("trace", None)
    return found


def memory_instants(document):
    return sum(e["ph"] == "i" and e["name"] == "[memory]" for e in document["traceEvents"])


def info(*paths):
    return json.loads(harness.checked("info", *paths, "--format", "json").out)


def parse(path):
    return [json.loads(line) for line in harness.checked("parse", path, "--format", "json").out.splitlines()]


def assert_counts(document, counts):
    for category, count in ranges(document).items():
        assert sum(counts.get(kind, 0) for kind in KINDS[category]) == count, category
    assert counts.get("tensor", 0) == memory_instants(document)


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
@pytest.mark.parametrize("name", ["x.pt.trace.json", "x.json.gz", "no_suffix"])
def test_every_command_takes_it(tmp_path, old, name):
    trace = kineto_traces.training(rank=2, world=4, old=old)
    path = write(tmp_path / name, trace.text())
    said = info(path)
    assert said["problems"] == [] and said["files"][0]["source"] == "kineto"
    assert said["files"][0]["completeness"] == "complete"
    assert said["ranks"] == ([] if old else [2])
    assert said["steps"] == {"count": 5, "first": 3, "last": 7}
    assert_counts(trace.document(), said["events"])
    records = [r for r in parse(path) if r["kind"] not in ("header", "step", "summary")]
    assert collections.Counter(r["kind"] for r in records) == collections.Counter(said["events"])
    for exporter in ("perfetto", "chrome"):
        out = tmp_path / f"out.{exporter}"
        harness.checked("convert", path, "--to", exporter, "-o", out)
        assert out.stat().st_size > 1000
    assert "aten::linear" in harness.checked("parse", path).out


def test_times_arguments_and_links(tmp_path):
    trace = kineto_traces.training()
    path = write(tmp_path / "a.json", trace.text())
    records = {r["index"]: r for r in parse(path) if "index" in r}
    header = parse(path)[0]
    begin = header["window_begin_unix_ns"]
    truth = collections.Counter()
    by_id = {}
    for e in trace.events:
        if e["ph"] == "X":
            when = trace.base + round(e["ts"] * 1000)
            truth[(e["name"], when, round(e["dur"] * 1000))] += 1
        if e["ph"] == "X" and e["cat"] == "cpu_op":
            by_id[e["args"]["External id"]] = e["ts"]
    got = collections.Counter((r["name"], begin + r["begin_ns"], r["duration_ns"]) for r in records.values()
                              if r["kind"] != "tensor")
    assert got == truth
    kernels = [r for r in records.values() if r["kind"] == "gpu_kernel"]
    assert len(kernels) == 20
    for kernel in kernels:
        launch, operator = records[kernel["partner"]], records[kernel["operator"]]
        assert launch["name"] == "cudaLaunchKernel" and launch["partner"] == kernel["index"]
        assert launch["operator"] == kernel["operator"] and operator["name"] == "aten::linear"
        assert operator["begin_ns"] <= launch["begin_ns"] <= kernel["begin_ns"]
        assert (kernel["grid"], kernel["block"], kernel["registers_per_thread"]) == ([132, 2, 1], [256, 1, 1], 168)
        assert kernel["args"]["warps per SM"] == 12.0
        assert operator["input_dims"] == [[32, 1024], [1024, 1024], []]
        assert operator["args"]["Concrete Inputs"][2] == str(operator["sequence_number"])


def test_arguments_come_through(tmp_path):
    """All that an outside trace says of an event is in what is made of it, whether it has a field here or not."""
    trace = kineto_traces.training()
    path = write(tmp_path / "a.json", trace.text())
    drawn = [e for e in trace.events if e["ph"] == "X"]
    first = min(e["ts"] for e in drawn)

    def by_event(events, shift):
        return {(e["name"], round((e["ts"] - shift) * 1000)): e["args"] for e in events if e["ph"] == "X" and e["cat"] != "Trace"}

    wanted = by_event(drawn, first)
    for exporter in "chrome", "kineto":
        out = tmp_path / f"{exporter}.json"
        harness.checked("convert", path, "--to", exporter, "-o", out)
        events = [e for e in load(out)["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
        got = by_event(events, min(e["ts"] for e in events))
        assert got.keys() == wanted.keys()
        for event, arguments in wanted.items():
            if "original_stream" in got[event]:  # work that overlaps has a row of its own
                got[event]["stream"] = got[event]["original_stream"]
            got[event].setdefault("correlation", 0)  # which is none
            assert {key: got[event].get(key) for key in arguments} == arguments, (exporter, event)
    harness.checked("convert", path, "--to", "perfetto", "-o", tmp_path / "out.pftrace")
    native = (tmp_path / "out.pftrace").read_bytes()
    for text in b'"warps per SM":12.0', b'"cbid":211':
        key, value = text.strip(b'"').split(b'":')
        assert native.count(text) == sum(e["args"].get(key.decode()) == json.loads(value) for e in drawn) > 0


def test_ranks_in_a_directory(tmp_path):
    traces = [kineto_traces.training(rank=rank, world=3) for rank in (2, 0, 1)]
    for number, trace in enumerate(traces):
        write(tmp_path / f"host_{number}.1.pt.trace.json.gz", trace.text())
    (tmp_path / "settings.json").write_text('{"lr": 0.1}')
    said = info(tmp_path)
    assert said["ranks"] == [0, 1, 2] and len(said["files"]) == 3 and said["problems"] == []
    harness.checked("convert", tmp_path, "--to", "chrome")  # beside them; not an input the next time
    assert (tmp_path / "trace.json").exists()
    assert info(tmp_path)["ranks"] == [0, 1, 2]
    assert len(info(tmp_path)["files"]) == 3


@pytest.mark.parametrize("ours", [False, True], ids=["torch.profiler's", "our own"])
def test_what_was_made_of_a_directorys_traces_is_no_run_of_it(ours, tmp_path):
    """By each format that is JSON, under the name that it has by default."""
    traces = tmp_path / "torch"
    traces.mkdir()
    for rank in (0, 1):
        write(traces / f"host_{rank}.1.pt.trace.json.gz", kineto_traces.training(rank=rank, world=2).text())
    if ours:
        harness.checked("convert", traces, "--to", "kineto", "-o", tmp_path / "made")
        traces = tmp_path / "made"
    before = info(traces)
    for target in ("kineto", "tensorboard", "chrome"):
        harness.checked("convert", traces, "--to", target, "--ranks", "1", "--steps", "4")
        done = harness.checked("info", "--format", "json", traces)
        assert done.err == "" and json.loads(done.out) == before, (target, done.err)
    for made in ("trace.kineto", "trace.tensorboard"):
        assert info(traces / made)["ranks"] == [1]


# What an export does not say again: kernels go by their demangled name, work without a name by its label, and the
# shape of a launch is the kernel's; of CUPTI's own cost torch.profiler's traces have the label alone.
SAID_ELSEWHERE = {"launch": ["function", "grid", "block", "shared_bytes"], "overhead": ["name", "type", "object", "object_kind"]}


def comparable(line):
    """A record without its place in the file, as text."""
    of_gpu = line["kind"].startswith("gpu_")
    dropped = ["index", "partner", "args", "begin_mono_ns", "end_mono_ns", *SAID_ELSEWHERE.get(line["kind"], [])]
    if of_gpu:
        dropped.append("name")
    if line.get("event") == 0xffffffff:  # CUPTI's word for none
        line["event"] = 0
    line = {key: value for key, value in line.items() if key not in dropped}
    for key in ("name", "label"):
        if key in line:
            line[key] = line[key].replace("__cudaLaunchKernel", "cudaLaunchKernel")
    return json.dumps(line, sort_keys=True)


@pytest.mark.parametrize("arguments", [
    ["--layers", "2", "--comm-mb", "4", "--malloc-per-step", "2", "--h2d-mb", "1", "--data-ms", "1", "--ranks", "2"],
    ["--layers", "2", "--comm-mb", "4", "--overlap", "--graphs", "--sync-every", "1"],
])
def test_an_export_reads_back(tmp_path, arguments):
    schedule = "skip_first=2,wait=0,warmup=1,active=5,repeat=1"
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", schedule, "--", harness.SIMTRAIN,
                        "--steps", "10", *arguments], env=harness.environment(SIMCUDA_TRUTH=tmp_path))
    assert done.code == 0, done.err
    run = tmp_path / "out" / "latest"
    harness.checked("convert", run, "--to", "kineto", "-o", tmp_path / "kineto")
    records, again = parse(run), parse(tmp_path / "kineto")
    counts = [collections.Counter(comparable(line) for line in lines if "index" in line) for lines in (records, again)]
    assert sum(counts[0].values()) > 50
    assert counts[0] - counts[1] == {} and counts[1] - counts[0] == {}
    steps = [[(line["number"], line["end_mono_ns"] - line["begin_mono_ns"]) for line in lines
              if line["kind"] == "step" and line["in_window"]] for lines in (records, again)]
    assert sorted(steps[0]) == sorted(steps[1]) and len(steps[0]) >= 4


def test_what_a_killed_profiler_left(tmp_path):
    trace = kineto_traces.training()
    text = trace.text()
    for cut in range(len(text) // 2, len(text) - 40, len(text) // 9):
        path = write(tmp_path / "cut.json", text[:cut])
        run = harness.gpuprof("info", path, "--format", "json")
        assert run.code == 0
        lines = run.err.splitlines()
        assert len(lines) == 1 and "offset" in lines[0] and "the file ends" in lines[0], run.err
        said = json.loads(run.out)
        assert said["files"][0]["completeness"] == "truncated"
        whole = text[:cut].count('"ph": "X"')
        assert whole - 1 <= said["event_count"] - said["events"].get("tensor", 0) <= whole


def test_faults_are_said_in_one_line_each(tmp_path):
    text = kineto_traces.training().text()
    text = text.replace('"warps per SM": 12.0', '"warps per SM": NaN', 3).replace("aten::linear", "aten\\::linear", 2)
    run = harness.gpuprof("info", write(tmp_path / "a.json", text))
    lines = run.err.splitlines()
    assert run.code == 0 and len(lines) == 2, run.err
    assert any("NaN, Infinity and the like), left out: 3" in line for line in lines), run.err
    assert any("backslashes" in line and ": 2" in line for line in lines), run.err


def test_not_a_trace(tmp_path):
    path = write(tmp_path / "a.json", '{"lr": 0.1}')
    run = harness.gpuprof("info", path)
    assert run.code == 2 and "traceEvents" in run.err and len(run.err.splitlines()) == 1
    run = harness.gpuprof("info", tmp_path)
    assert run.code == 2 and "no JSON trace" in run.err


@pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL}: two traces of torch.profiler")
@pytest.mark.parametrize("name", ["num_workers_0", "num_workers_4"])
def test_real_traces(tmp_path, name):
    path = REAL / f"{name}.pt.trace.json.gz"
    document = load(path)
    said = info(path)
    assert said["problems"] == []
    assert_counts(document, said["events"])
    instants = sum(e["ph"] == "i" for e in document["traceEvents"])
    assert said["events"]["tensor"] + said["events"]["instant"] == instants
    assert said["event_count"] == sum(ranges(document).values()) + instants
    out = tmp_path / "out.json"
    harness.checked("convert", path, "--to", "chrome", "-o", out)
    again = load(out)
    names = {"Operator": "cpu_op", "Runtime": "cuda_runtime", "Kernel": "kernel", "Memcpy": "gpu_memcpy",
             "Memset": "gpu_memset"}
    before = collections.Counter((names.get(e["cat"], e["cat"]), e["name"], e["dur"])
                                 for e in document["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace")
    after = collections.Counter((e["cat"], e["name"], round(e["dur"])) for e in again["traceEvents"]
                                if e["ph"] == "X" and e["cat"] != "Trace")
    assert before == after
    assert memory_instants(again) == memory_instants(document)
    flows = collections.Counter(e["ph"] for e in document["traceEvents"] if e["ph"] in "sf")
    assert collections.Counter(e["ph"] for e in again["traceEvents"] if e["ph"] in "sf") == flows
    assert info(out)["events"] == said["events"]  # and what we write, we read
    for exporter in ("perfetto", "perfetto-ranks", "kineto", "tensorboard", "xplane", "memory-viz", "speedscope"):
        run = harness.checked("convert", path, "--to", exporter, "-o", tmp_path / exporter)
        assert f"{said['event_count']} events in 6 steps" in run.out
    assert info(tmp_path / "kineto")["events"] == said["events"]
