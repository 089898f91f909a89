# SPDX-License-Identifier: Apache-2.0
"""What GPUPROF_BUDGET left out, after the recording: comparisons, exports and traces say it, and hold what needs it for unknown.
What the recorder leaves out, and when, is tests/e2e/recording/test_budget.py's; tables are tests/fleet/test_parquet.py's."""
import gzip
import json

import pytest

import harness

KINDS = {"operators": "PyTorch's operators and layers", "calls": "API calls that start no GPU work", "waits": "calls that wait for the GPU"}
ARGUMENTS = ["launches=4", "events=20000", "waits=20000", "allocations=2000", "operators=20000"]
UNKNOWN = {"data_loading", "kernel_launch", "allocation", "synchronization", "other"}


def recorded(folder, budget):
    settings = harness.preloaded(**{"GPUPROF_OUTPUT": folder / "out", "GPUPROF_BUDGET": budget, "GPUPROF_BUFFER_MB": 256, **harness.WHOLE_RUN})
    done = harness.run([harness.HAZARDS / "costly", 1500, 10000, *ARGUMENTS], settings)
    assert done.code == 0, done.err
    dump, = harness.dumps(folder / "out")
    return dump


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same program recorded as a whole, and with a budget that it is above by far."""
    found = {name: recorded(tmp_path_factory.mktemp(name), budget) for name, budget in (("whole", "none"), ("lean", 0.2))}
    assert set(kinds_of(found["lean"])) >= set(KINDS) and not kinds_of(found["whole"])
    return found


def kinds_of(dump):
    return [each["kind"] for each in (harness.info(dump)["files"][0]["budget"] or {"left_out": []})["left_out"]]


def since(dump, kind):
    return next(each for each in harness.info(dump)["files"][0]["budget"]["left_out"] if each["kind"] == kind)


@pytest.mark.parametrize("base, new", [("whole", "lean"), ("lean", "whole"), ("lean", "lean")])
def test_diff_does_not_compare_what_one_run_lacks(runs, base, new):
    done = harness.gpuprof("diff", runs[base], runs[new], "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert {each["name"] for each in found["not_compared"] if each["kind"] == "cause"} == UNKNOWN
    assert {"kind": "operator"} in found["not_compared"]
    assert not [c for c in found["changes"] if c["kind"] == "operator" or c["name"] in UNKNOWN]
    assert {c["kind"] for c in found["changes"]} >= {"kernel", "cause"} and found["step_time"]["base_us"] > 0
    for side, name in (("base", base), ("new", new)):
        told = {each["kind"]: each["since"] for each in found["recording"][side]["left_out_kinds"]}
        assert set(told) == set(kinds_of(runs[name])) and 0 <= found["recording"][side]["cost_pct"] < 100
        for kind in told:
            assert f"since step {since(runs[name], kind)['since_step']} (" in told[kind]
    text = harness.checked("diff", runs[base], runs[new]).out
    assert max(map(len, text.splitlines()[2:])) <= 80, text  # behind the names of the runs
    flat = " ".join(text.split())
    for side, name in (("base", base), ("new", new)):
        assert (f"Not recorded in {side}, by GPUPROF_BUDGET: " in flat) == (name == "lean"), text
    assert "Not compared, since it needs what was not recorded: operators; of a step data_loading, " in flat
    assert "Recording took " in flat and " % of base and " in flat
    notes = [" ".join(line.split()) for line in found["notes"]]
    markdown = harness.checked("diff", runs[base], runs[new], "--format", "markdown").out
    page = harness.checked("diff", runs[base], runs[new], "--format", "html").out
    assert all(note in flat and note in markdown for note in notes) and len(notes) >= 3
    assert all(note.split(",")[0] in page for note in notes)


def test_diff_of_whole_runs_has_none_of_it(runs):
    done = harness.checked("diff", runs["whole"], runs["whole"], "--format", "json")
    found = json.loads(done.out)
    assert not {"recording", "step_time_without_recording"} & set(found) and found["regression"] is False
    assert found["not_compared"] == found["notes"] == found["setup"] == []
    assert {c["name"] for c in found["changes"] if c["kind"] == "cause"} >= UNKNOWN
    assert "GPUPROF_BUDGET" not in harness.checked("diff", runs["whole"], runs["whole"]).out


def test_the_gate_does_not_take_the_recording_for_a_change(runs, tmp_path):
    """JSON traces do not say what their recording took."""
    for name in runs:
        (tmp_path / name).mkdir()
        harness.checked("convert", runs[name], "--to", "kineto", "-o", tmp_path / name / "trace.json")
    for base, new in (("whole", "lean"), ("lean", "whole")):
        done = harness.gpuprof("diff", tmp_path / base, tmp_path / new, "--fail-over", "5")
        assert done.code == 2 and "Not known whether it is a regression" in done.out, done.out + done.err
        assert "What recording took of base is not known" in done.out
        done = harness.gpuprof("diff", tmp_path / base, tmp_path / new, "--format", "json")
        assert done.code == 0 and json.loads(done.out)["regression"] is None
    assert harness.gpuprof("diff", tmp_path / "lean", tmp_path / "lean", "--fail-over", "5").code == 0
    harness.checked("diff", "--baseline", tmp_path / "baseline", "--update", tmp_path / "whole")
    settings = harness.environment(GPUPROF_GATE_BASELINE=tmp_path / "baseline", GPUPROF_GATE_RUN=tmp_path / "lean", GPUPROF_GATE_UPDATE="yes",
                                   GPUPROF_GATE_OUT=tmp_path / "gate", GPUPROF_BIN=harness.BIN)
    done = harness.run([harness.SOURCE / "packaging/ci/gate.sh"], settings)
    comment = (tmp_path / "gate/comment.md").read_text()
    assert done.code == 2 and "**Not known whether it is a regression" in comment and "Not recorded in new, by GPUPROF_BUDGET: " in comment
    assert "NEW was not added to the baseline" in done.err
    assert [path.name for path in (tmp_path / "baseline").iterdir()] == ["0001"]


def test_convert_notes_it(runs, tmp_path):
    done = harness.checked("convert", runs["lean"], "--to", "perfetto", "-o", tmp_path / "lean")
    note, = [line for line in done.err.splitlines() if "GPUPROF_BUDGET" in line]
    for kind, text in KINDS.items():
        assert f"{text} since step {since(runs['lean'], kind)['since_step']} (" in note
    assert "GPUPROF_BUDGET" not in harness.checked("convert", runs["whole"], "--to", "perfetto", "-o", tmp_path / "whole").err


def bytes_of(path):
    """Of a file, or of the one of a directory."""
    if path.is_dir():
        path, = [each for each in path.rglob("*") if each.is_file()]
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


@pytest.mark.parametrize("format", ["perfetto", "chrome", "kineto", "xplane", "speedscope", "memory-viz"])
def test_each_trace_says_what_it_has_not(runs, tmp_path, format):
    for name in runs:
        harness.checked("convert", runs[name], "--to", format, "-o", tmp_path / name)
    lean, whole = bytes_of(tmp_path / "lean"), bytes_of(tmp_path / "whole")
    for text in KINDS.values():
        assert text.encode() in lean and text.encode() not in whole
    assert b"recorded" in lean


@pytest.mark.parametrize("format", ["chrome", "kineto"])
def test_a_json_trace_that_is_read_back_is_judged_as_its_dump(runs, tmp_path, format):
    harness.checked("convert", runs["lean"], "--to", format, "-o", tmp_path / "lean.json")
    told = [json.loads(harness.checked("report", source, "--format", "json").out) for source in (runs["lean"], tmp_path / "lean.json")]
    kinds = [[(each["kind"], each["since"].split("(")[0]) for each in report["left_out_kinds"]] for report in told]
    assert kinds[0] == kinds[1]
    assert told[0]["unknown_causes"] == told[1]["unknown_causes"] and set(told[0]["unknown_parts"]) == set(told[1]["unknown_parts"]) == UNKNOWN
    for report in told:
        assert not {each["cause"] for each in report["verdict"]} & set(report["unknown_causes"])
    # The moments are no events of the program's.
    assert "instant" not in harness.info(tmp_path / "lean.json")["files"][0]["events"]
    events = json.loads((tmp_path / "lean.json").read_text())["traceEvents"]
    moments = [e for e in events if e.get("cat") == "gpuprof"]
    assert len(moments) == len(kinds_of(runs["lean"])) and {e["s"] for e in moments} == {"p"}


def test_report_and_page_say_which_parts_are_not_known(runs):
    text = " ".join(harness.checked("report", runs["lean"]).out.split())
    assert "Not known apart, since GPUPROF_BUDGET left out records: data_loading, kernel_launch, " in text
    page = harness.checked("report", runs["lean"], "--format", "html").out
    assert '<p id="unknown-parts">Not known apart' in page and "not recorded ${found.since}" in page
    assert "Not known apart" not in harness.checked("report", runs["whole"]).out


def attributes(item):
    return {each["key"]: each["value"] for each in item.get("attributes", [])}


def test_opentelemetry_has_no_part_that_is_not_known(runs, tmp_path):
    for name in runs:
        harness.checked("export", runs[name], "--to", "otlp", "-o", tmp_path / name)
    def spans(name):
        lines = (tmp_path / name / "traces.jsonl").read_text().splitlines()
        return [attributes(s) for line in lines for r in json.loads(line)["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
    step = {kind: since(runs["lean"], kind)["since_step"] for kind in KINDS}
    known = lambda a, part: f"gpuprof.step.{part}_ns" in a
    for found in spans("lean"):
        number = int(found["gpuprof.step"]["intValue"])
        left = {value["stringValue"] for value in found.get("gpuprof.left_out", {"arrayValue": {"values": []}})["arrayValue"]["values"]}
        assert left & set(KINDS) == {kind for kind in KINDS if number >= step[kind]}
        assert known(found, "compute") and known(found, "gpu_busy")
        assert known(found, "data_loading") == ("operators" not in left)
        assert known(found, "allocation") == (not left & {"operators", "calls"})
        assert known(found, "other") == known(found, "kernel_launch") == (not left & set(KINDS))
    assert all(known(a, part) for a in spans("whole") for part in UNKNOWN) and not any("gpuprof.left_out" in a for a in spans("whole"))

    def points(name, metric):
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        return [p for line in lines for r in json.loads(line)["resourceMetrics"] for scope in r["scopeMetrics"] for m in scope["metrics"]
                if m["name"] == metric for p in m["gauge"]["dataPoints"]]
    header = harness.info(runs["lean"])["files"][0]
    length = header["window_end_mono_ns"] - header["window_begin_mono_ns"]
    for prefix in ("gpuprof.", "gpuprof.run."):
        shares = {attributes(p)["gpuprof.left_out.kind"]["stringValue"]: p["asDouble"] for p in points("lean", prefix + "left_out")}
        assert set(shares) == set(kinds_of(runs["lean"])) and not points("whole", prefix + "left_out")
        for kind, share in shares.items():
            assert share == pytest.approx((header["window_end_mono_ns"] - since(runs["lean"], kind)["since_mono_ns"]) / length, abs=0.001)
        assert not points("lean", prefix + "data.wait") and points("whole", prefix + "data.wait")
        assert points("lean", prefix + "gpu.idle")
