# SPDX-License-Identifier: Apache-2.0
"""gpuprof report and diff on two real traces of torch.profiler: the same training with the data loaded in the training
process, and by four workers. Skipped where the traces are not."""
import json
import re

import harness
import pytest
import test_kineto

pytestmark = pytest.mark.skipif(not test_kineto.REAL.is_dir(), reason=f"no traces in {test_kineto.REAL}")
ALONE = test_kineto.REAL / "num_workers_0.pt.trace.json.gz"
WORKERS = test_kineto.REAL / "num_workers_4.pt.trace.json.gz"


def cover(intervals):
    out = []
    for begin, end in sorted(intervals):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def idle_in_loader_pct(path):
    """Of the steps' time: no GPU work runs, and a range of the DataLoader is open."""
    events = [e for e in test_kineto.load(path)["traceEvents"] if e.get("ph") == "X"]
    def span(event):
        return event["ts"], event["ts"] + event["dur"]
    steps = [span(e) for e in events if e["name"].startswith("ProfilerStep#")]
    begin, end = min(s[0] for s in steps), max(s[1] for s in steps)
    loading = cover(span(e) for e in events if e["name"].startswith("enumerate(DataLoader)#"))
    edges = [(time, change) for interval in cover(span(e) for e in events if e.get("cat", "").lower() in
             ("kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset")) for time, change in zip(interval, (1, -1))]
    edges += [(time, change) for interval in loading for time, change in zip(interval, (10, -10))]
    total, state, last = 0, 0, begin
    for time, change in sorted(edges):
        time = min(max(time, begin), end)
        if state == 10:
            total += time - last
        state, last = state + change, time
    return 100 * total / (end - begin)


def report(path):
    return json.loads(harness.checked("report", "--format", "json", path).out)


def test_loading_in_the_training_process_is_the_first_cause():
    found = report(ALONE)
    assert found["verdict"][0]["cause"] == "data_loading"
    assert found["breakdown_pct"]["data_loading"] == pytest.approx(idle_in_loader_pct(ALONE), abs=1)
    assert sum(row["count"] for row in found["kernels"]) > 1000


def text_of(*options, columns=80):
    return harness.checked("report", ALONE, *options, env=harness.environment(COLUMNS=str(columns))).out


def operator_rows(text):
    lines = text[text.index("Operators"):].split("\n\n")[0].splitlines()[2:]
    return [line for line in lines if re.match(r"  .{0,80}\d [um]?s  ", line)]


def test_operators_in_the_terminal(tmp_path):
    """Those that JSON has, sorted as asked for; no line is longer than the terminal."""
    rows = {row["name"]: row for row in report(ALONE)["operators"]}
    for columns in (80, 160):
        text = text_of(columns=columns)
        assert max(map(len, text.splitlines())) <= columns
        assert "Operators, sums over 6 steps" in text and "Device memory" in text
    by_count = operator_rows(text_of("--sort", "count", "--top", "3", columns=160))
    most = sorted(rows.values(), key=lambda row: -row["count"])[:3]
    assert [line.split()[-1] for line in by_count] == [row["name"] for row in most]
    some = text_of("--filter", "^aten::conv2d$", columns=160)
    assert [line.split()[-1] for line in operator_rows(some)] == ["aten::conv2d"]
    assert "Verdict" not in some and "aten::add_" not in some
    assert "Nothing matches" in text_of("--filter", "no such name")


def test_operators_by_shape():
    found = json.loads(harness.checked("report", ALONE, "--by", "shape", "--format", "json").out)
    names = {row["name"] for row in found["operators"]}
    assert found["operators_by"]["by"] == "shape" and {row["name"] for row in found["operators_by"]["rows"]} == names
    for row in found["operators"]:
        of_name = [each for each in found["operators_by"]["rows"] if each["name"] == row["name"]]
        assert sum(each["count"] for each in of_name) == row["count"]
        assert sum(each["gpu_self_us"] for each in of_name) == pytest.approx(row["gpu_self_us"], abs=0.1)
    counts = {}
    for event in test_kineto.load(ALONE)["traceEvents"]:
        if event.get("cat") == "Operator" and event["name"] == "aten::conv2d":
            shape = json.dumps(event["args"]["Input Dims"], separators=(",", ":"))
            counts[shape] = counts.get(shape, 0) + 1
    ours = {row["shape"]: row["count"] for row in found["operators_by"]["rows"] if row["name"] == "aten::conv2d"}
    assert ours.keys() == counts.keys() and all(count <= counts[shape] for shape, count in ours.items())
    assert "aten::conv2d  [[32,3,224,224], [64,3,7,7]" in text_of("--by", "shape", "--filter", "conv2d", "--top", "0", columns=200)


def test_options_of_tables_that_are_wrong():
    for options, what in ((("--by", "colour"), "--by"), (("--sort", "size"), "--sort"), (("--filter", "("), "--filter ("),
                          (("--top", "3", "--format", "json"), "--top")):
        done = harness.gpuprof("report", ALONE, *options)
        assert done.code == 2 and what in done.err and len(done.err.splitlines()) == 1, done.err


def test_one_iteration_without_marks_says_the_same(tmp_path):
    document = test_kineto.load(ALONE)
    step = next(e for e in document["traceEvents"] if e["name"] == "ProfilerStep#7" and e["cat"] != "gpu_user_annotation")
    document["traceEvents"] = [e for e in document["traceEvents"] if not e["name"].startswith("ProfilerStep#") and
                               (e["ph"] == "M" or step["ts"] <= e.get("ts", 0) < step["ts"] + step["dur"])]
    (tmp_path / "one.json").write_text(json.dumps(document))
    whole, one = report(ALONE), report(tmp_path / "one.json")
    assert one["whole_windows"] and not whole["whole_windows"]
    assert [each["cause"] for each in one["verdict"]] == [each["cause"] for each in whole["verdict"]]
    assert one["verdict"][0]["saves_pct"] == pytest.approx(whole["verdict"][0]["saves_pct"], abs=5)
    assert one["step_time_us"]["mean"] == pytest.approx(step["dur"], rel=0.01)
    kernels = sum(e.get("cat", "").lower() == "kernel" for e in document["traceEvents"])
    assert sum(row["count"] for row in one["kernels"]) == kernels > 1000


def test_with_workers_it_is_none():
    found = report(WORKERS)
    assert found["verdict"], found["reason"]
    assert "data_loading" not in [each["cause"] for each in found["verdict"]]


def test_diff_names_data_loading_and_gates_one_way():
    done = harness.gpuprof("diff", ALONE, WORKERS, "--fail-over", "5", "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["step_time"]["change_pct"] == pytest.approx(-20, abs=1)
    assert found["step_time"]["significant"]
    loading, = (c for c in found["changes"] if (c["kind"], c["name"]) == ("cause", "data_loading"))
    assert loading["significant"] and loading["change_pct"] < -90
    assert harness.gpuprof("diff", WORKERS, ALONE, "--fail-over", "5").code == 1
