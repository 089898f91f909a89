# SPDX-License-Identifier: Apache-2.0
"""Exported spans and metrics by OpenTelemetry's own messages: each line is one, and its figures are the report's."""
import base64
import collections
import json
import pathlib

import pytest
from google.protobuf import json_format
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

import harness
from conftest import made_job, report
from support import kineto_traces

ROUNDED = 0.0006  # the report's JSON has thousandths
LINE_BYTES = 1 << 20  # what the Collector's readers of files take by default
PARTS = ("compute", "communication", "transfer", "data_loading", "kernel_launch", "allocation", "synchronization", "other",
         "profiler", "unknown")
BUSY = PARTS[:3]
IDLE = PARTS[3:-1]


def near(value):
    return pytest.approx(value, abs=ROUNDED, rel=1e-9)


def messages(path, kind):
    """The messages of a file. A field that they do not have is an error."""
    for line in path.read_bytes().splitlines(keepends=True):
        assert line.endswith(b"\n") and len(line) < LINE_BYTES
        check_numbers(json.loads(line))
        yield json_format.Parse(line.decode("utf-8", errors="strict"), kind())


def check_numbers(value):
    """What is encoded otherwise than protobuf's reader demands: 64 bits as strings, names of fields in camel case."""
    for key, member in value.items() if isinstance(value, dict) else ():
        assert "_" not in key, key
        if key in ("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "asInt", "intValue", "count"):
            assert isinstance(member, str) and member == str(int(member)), key
        if key in ("kind", "aggregationTemporality"):
            assert isinstance(member, int), key
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        check_numbers(member)


def hexadecimal(field):
    """OTLP's JSON has ids in hexadecimal digits, which protobuf's own reader takes for base64."""
    return base64.b64encode(field).decode()


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(each) for each in value.array_value.values]
    return getattr(value, kind)


def attributes(message):
    out = {each.key: plain(each.value) for each in message.attributes}
    assert len(out) == len(message.attributes)  # each key once
    return out


class Exported:
    """What an export wrote: spans with their resources; points of metrics by name, rank (None: of the run) and window."""

    def __init__(self, folder, *inputs, options=()):
        self.folder = folder
        self.done = harness.checked("export", *inputs, "--to", "otlp", "-o", folder, *options)
        self.spans, self.resources, self.versions = [], [], set()
        self.points, self.units, self.shapes = collections.defaultdict(list), {}, {}
        for message in messages(folder / "traces.jsonl", trace_pb2.TracesData):
            for of_resource in message.resource_spans:
                self.resources.append(attributes(of_resource.resource))
                for of_scope in of_resource.scope_spans:
                    self.versions.add((of_scope.scope.name, of_scope.scope.version))
                    self.spans += [(self.resources[-1], span, attributes(span)) for span in of_scope.spans]
        for message in messages(folder / "metrics.jsonl", metrics_pb2.MetricsData):
            for of_resource in message.resource_metrics:
                self.add_metrics(attributes(of_resource.resource), of_resource)

    def add_metrics(self, resource, of_resource):
        for of_scope in of_resource.scope_metrics:
            self.versions.add((of_scope.scope.name, of_scope.scope.version))
            for metric in of_scope.metrics:
                shape = metric.WhichOneof("data")
                assert self.units.setdefault(metric.name, metric.unit) == metric.unit and metric.description
                assert self.shapes.setdefault(metric.name, shape) == shape
                for point in getattr(metric, shape).data_points:
                    more = attributes(point)
                    self.points[metric.name, resource.get("gpuprof.rank"), more.pop("gpuprof.window", None)].append((point, more))

    def point(self, name, rank=None, window=None):
        """The one point there is; None: there is none."""
        points = self.points.get((name, rank, window), [])
        assert len(points) <= 1
        return points[0][0] if points else None

    def value(self, name, rank=None, window=None):
        point = self.point(name, rank, window)
        return None if point is None else getattr(point, point.WhichOneof("value"))


@pytest.fixture(scope="module", params=["job", "run"])
def exported(request, tmp_path_factory):
    """An export, and the report of the same input."""
    source = request.getfixturevalue(request.param)
    return Exported(tmp_path_factory.mktemp("otlp"), source), report(source)


def test_spans(exported):
    """A span for each step of the report, with its parts."""
    otlp, told = exported
    steps = {(step["rank"], step["window"], step["step"]): step for step in told["steps"]}
    assert len(otlp.spans) == len(steps) == len(told["steps"]) > 0
    for resource, span, more in otlp.spans:
        step = steps.pop((resource["gpuprof.rank"], more["gpuprof.window"], more["gpuprof.step"]))
        assert (span.name, span.kind) == ("step", trace_pb2.Span.SPAN_KIND_INTERNAL)
        assert (span.end_time_unix_nano - span.start_time_unix_nano) / 1000 == near(step["duration_us"])
        assert {part: more.pop(f"gpuprof.step.{part}_ns") / 1000 for part in PARTS} == \
            {part: near(step["parts_us"][part]) for part in PARTS}
        assert more.pop("gpuprof.step.gpu_busy_ns") / 1000 == pytest.approx(sum(step["parts_us"][part] for part in BUSY), abs=3 * ROUNDED)
        assert set(more) == {"gpuprof.step", "gpuprof.window"}
    assert not steps


def test_times(run, tmp_path):
    """They are the step log's, in Unix time."""
    otlp = Exported(tmp_path / "out", run)
    for file in harness.info(run)["files"]:
        offset = file["window_begin_unix_ns"] - file["window_begin_mono_ns"]
        log = {r["number"]: (r["begin_mono_ns"] + offset, r["end_mono_ns"] + offset)
               for r in harness.of_kind(harness.records(file["path"]), "step")}
        found = {more["gpuprof.step"]: (span.start_time_unix_nano, span.end_time_unix_nano) for resource, span, more in otlp.spans
                 if resource["process.pid"] == file["pid"]}
        assert found and all(log[step] == times for step, times in found.items())


def test_ids(exported, tmp_path, request):
    """One trace, each span's id once, and the same ids in a second export, and in one of a rank alone."""
    otlp, _ = exported
    traces = {hexadecimal(span.trace_id) for _, span, _ in otlp.spans}
    spans = {(resource["gpuprof.rank"], more["gpuprof.step"]): hexadecimal(span.span_id) for resource, span, more in otlp.spans}
    assert len(traces) == 1 and all(len(trace) == 32 and int(trace, 16) for trace in traces)
    assert len(set(spans.values())) == len(otlp.spans) and all(len(each) == 16 and int(each, 16) for each in spans.values())
    source = request.getfixturevalue(request.node.callspec.params["exported"])
    Exported(tmp_path / "again", source)
    for name in ("traces.jsonl", "metrics.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (otlp.folder / name).read_bytes()
    dump, = [path for path in harness.dumps(source) if "_r1_" in path.name]
    for one in (Exported(tmp_path / "chosen", source, options=["--ranks", "1"]), Exported(tmp_path / "alone", dump)):
        assert one.spans and {hexadecimal(span.trace_id) for _, span, _ in one.spans} == traces
        assert {resource["service.instance.id"] for resource in one.resources} == \
            {resource["service.instance.id"] for resource in otlp.resources if resource["gpuprof.rank"] == 1}
        for resource, span, more in one.spans:
            assert hexadecimal(span.span_id) == spans[1, more["gpuprof.step"]] and resource["gpuprof.rank"] == 1


def test_resources(run, tmp_path):
    otlp = Exported(tmp_path / "out", run)
    headers = {file["rank"]: file for file in harness.info(run)["files"]}
    assert {resource["gpuprof.rank"] for resource in otlp.resources} == set(headers) == {0, 1}
    assert len({resource["service.instance.id"] for resource in otlp.resources}) == 2
    for resource in otlp.resources:
        header = headers[resource["gpuprof.rank"]]
        assert (resource["service.name"], resource["process.command"]) == ("simtrain", header["command"][0])
        assert resource["process.command_args"] == header["command"]
        assert (resource["host.name"], resource["process.pid"]) == (header["host"], header["pid"])
        assert (resource["gpuprof.job"], resource["gpuprof.run"], resource["gpuprof.world_size"]) == (header["job"], header["run"], 2)
    (name, version), = otlp.versions
    assert name == "gpuprof" and version == headers[0]["versions"]["gpuprof"]


def shares(steps):
    """Sums of parts over the sum of the steps."""
    wall = sum(step["duration_us"] for step in steps)
    return {part: sum(step["parts_us"][part] for step in steps) / wall for part in PARTS}


def check_summary(point, steps):
    lengths = sorted(step["duration_us"] / 1e6 for step in steps)
    assert point.count == len(lengths) and point.sum == pytest.approx(sum(lengths), abs=1e-9 * len(lengths))
    return {each.quantile: each.value * 1e6 for each in point.quantile_values}


def test_metrics_of_the_run(exported):
    otlp, told = exported
    summary = otlp.point("gpuprof.run.step.duration")
    assert check_summary(summary, told["steps"]) == {0.5: near(told["step_time_us"]["median"]), 0.95: near(told["step_time_us"]["p95"])}
    breakdown = told["breakdown_pct"]
    assert 100 * otlp.value("gpuprof.run.gpu.idle") == pytest.approx(sum(breakdown[part] for part in IDLE), abs=len(IDLE) * ROUNDED)
    assert breakdown["unknown"] > 0 or \
        100 * otlp.value("gpuprof.run.gpu.idle") == pytest.approx(100 - told["gpu"]["utilization_pct"], abs=2 * ROUNDED)
    assert 100 * otlp.value("gpuprof.run.communication.exposed") == near(breakdown["communication"])
    assert 100 * otlp.value("gpuprof.run.data.wait") == near(breakdown["data_loading"])
    assert 100 * otlp.value("gpuprof.run.own_cost") == near(told["overhead"]["own_cost_pct"])
    assert otlp.value("gpuprof.run.losses") == sum(told["losses"].values())


def test_metrics_of_windows(exported):
    otlp, told = exported
    windows = collections.defaultdict(list)
    for step in told["steps"]:
        windows[step["rank"], step["window"]].append(step)
    for (rank, window), steps in windows.items():
        wanted = shares(steps)
        check_summary(otlp.point("gpuprof.step.duration", rank, window), steps)
        assert otlp.value("gpuprof.gpu.idle", rank, window) == pytest.approx(sum(wanted[part] for part in IDLE), abs=1e-5)
        assert otlp.value("gpuprof.communication.exposed", rank, window) == pytest.approx(wanted["communication"], abs=1e-5)
        assert otlp.value("gpuprof.data.wait", rank, window) == pytest.approx(wanted["data_loading"], abs=1e-5)
    assert {(rank, window) for name, rank, window in otlp.points if name == "gpuprof.step.duration"} == set(windows)


def test_windows(run, tmp_path):
    """A window's points end with it; its own cost and length are those that `info` says."""
    otlp = Exported(tmp_path / "out", run)
    told = {file["rank"]: file for file in harness.info(run)["files"]}
    ends = []
    for rank in (0, 1):
        points = {name: point for (name, of, _), ((point, _),) in otlp.points.items() if of == rank}
        assert {"gpuprof.window.duration", "gpuprof.step.duration", "gpuprof.gpu.idle", "gpuprof.communication.exposed",
                "gpuprof.data.wait", "gpuprof.own_cost", "gpuprof.losses"} == set(points)
        (begin, end), = {(point.start_time_unix_nano, point.time_unix_nano) for point in points.values()}
        ends.append(end)
        assert (end - begin) / 1e9 == pytest.approx(otlp.value("gpuprof.window.duration", rank, 0))
        assert max(span.end_time_unix_nano for resource, span, _ in otlp.spans if resource["gpuprof.rank"] == rank) <= end
        assert 100 * otlp.value("gpuprof.own_cost", rank, 0) == near(told[rank]["own_cost"]["percent"])
    assert otlp.point("gpuprof.run.step.duration").time_unix_nano == max(ends)
    assert otlp.shapes["gpuprof.losses"] == "sum" and otlp.shapes["gpuprof.step.duration"] == "summary"
    assert {otlp.units[name] for name in otlp.units if name.endswith("duration")} == {"s"}


def recorded(folder, *options, **settings):
    """An export of a recorded run, and its report."""
    command = [harness.SIMTRAIN, "--steps", "26", "--layers", "4", "--kernel-us", "100", *options]
    done = harness.gpuprof("run", "-o", folder / "out", "--", *command, env=harness.environment(**settings))
    assert done.code == 0, done.err
    return Exported(folder / "otlp", folder / "out"), report(folder / "out")


def test_losses(tmp_path):
    """By cause, as the report counts them."""
    otlp, told = recorded(tmp_path, SIMCUDA_CUPTI="drop=50")
    causes = {more["gpuprof.loss.cause"]: point.as_int for point, more in otlp.points["gpuprof.run.losses.by_cause", None, None]}
    assert causes == told["losses"] and otlp.value("gpuprof.run.losses") == sum(causes.values()) > 0


def test_cut_dump(job, tmp_path):
    """What a file's end would say is not known, and absent."""
    dump, = job.glob("*_r3_*.gpuprof")
    cut = tmp_path / dump.name
    cut.write_bytes(dump.read_bytes()[:-10])
    otlp, told = Exported(tmp_path / "out", cut), report(cut)
    assert "losses" not in told and "own_cost_pct" not in told["overhead"]
    assert not {name for name, _, _ in otlp.points} & {"gpuprof.losses", "gpuprof.run.losses", "gpuprof.own_cost", "gpuprof.run.own_cost"}
    assert len(otlp.spans) == len(told["steps"]) > 0


@pytest.mark.parametrize("activities", ["-memcpy", "-memset", "-kernel", "step"])
def test_unknown_parts(tmp_path, activities):
    """Where some GPU work was not recorded, no part of a step is known; its time is."""
    otlp, told = recorded(tmp_path, "--h2d-mb", "4", GPUPROF_ACTIVITIES=activities)
    assert len(otlp.spans) == len(told["steps"]) > 0
    assert all(set(more) == {"gpuprof.step", "gpuprof.window"} for _, _, more in otlp.spans)
    assert {name for name, _, _ in otlp.points} == {prefix + name for prefix in ("gpuprof.", "gpuprof.run.") for name in (
        "step.duration", "own_cost", "losses")} | {"gpuprof.window.duration"}
    assert otlp.point("gpuprof.run.step.duration").count == len(told["steps"])


def test_whole_graphs(tmp_path):
    """Nobody sees the collectives in a graph that is timed as a whole; the GPU was busy all the same."""
    for graphs, hidden in (("node", False), ("trace", True)):
        otlp, told = recorded(tmp_path / graphs, "--graphs", "--data-ms", "1", GPUPROF_ACTIVITIES=f"+graph:{graphs}")
        parts = set(PARTS) - ({"compute", "communication"} if hidden else set())
        for _, _, more in otlp.spans:
            assert {key for key in more if key.endswith("_ns")} == {f"gpuprof.step.{part}_ns" for part in ("gpu_busy", *parts)}
            assert more["gpuprof.step.gpu_busy_ns"] > 0
        assert (otlp.value("gpuprof.run.communication.exposed") is None) == hidden
        assert 100 * otlp.value("gpuprof.run.gpu.idle") == pytest.approx(100 - told["gpu"]["utilization_pct"], abs=2 * ROUNDED)


def test_redacted(tmp_path):
    """No argument of a command that GPUPROF_REDACT keeps out."""
    otlp, _ = recorded(tmp_path, GPUPROF_REDACT="command,host")
    assert otlp.resources and all(
        resource["process.command"] == str(harness.SIMTRAIN) and "process.command_args" not in resource and
        resource["host.name"].startswith("host-") for resource in otlp.resources)
    assert "--layers" not in (tmp_path / "otlp/traces.jsonl").read_text() + (tmp_path / "otlp/metrics.jsonl").read_text()


def test_trace_of_torch(tmp_path):
    """A JSON trace: the report's steps; what it does not say of its process is absent."""
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(kineto_traces.training(rank, 2).text())
    traces = sorted(tmp_path.glob("*.json"))
    otlp, told = Exported(tmp_path / "otlp", *traces), report(*traces)
    assert len(otlp.spans) == len(told["steps"]) > 0
    assert len({span.trace_id for _, span, _ in otlp.spans}) == 1
    assert otlp.value("gpuprof.run.losses") is None and otlp.value("gpuprof.run.own_cost") is None
    for resource in otlp.resources:
        assert resource["process.command"] == resource["service.name"] == "python"  # the name in the trace, not a command line
        assert not {"process.command_args", "gpuprof.run", "gpuprof.job", "host.name"} & set(resource)


def test_long_lines(tmp_path):
    """Many steps: several lines, each short enough for the Collector."""
    job = made_job(tmp_path / "job", "ranks=1", "layers=1", "forward=2", "backward=2", "tail=1", "steps=2000")
    otlp = Exported(tmp_path / "otlp", job)
    assert len(otlp.spans) == len(report(job)["steps"]) == 2000
    assert len((tmp_path / "otlp/traces.jsonl").read_bytes().splitlines()) > 2


def test_program_of_the_tables(job, tmp_path):
    """It writes tables alone, and says so."""
    done = harness.run([pathlib.Path(harness.BIN).parent / "gpuprof-parquet", job, "--to", "otlp", "-o", tmp_path / "out"])
    assert done.code == 2 and "gpuprof-parquet writes parquet alone" in done.err and not (tmp_path / "out").exists()
