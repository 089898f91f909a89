# SPDX-License-Identifier: Apache-2.0
"""Traces that were cut off, in and out of the order of time: what the report still says is as of the whole file, and it says that
the file was cut. Real ones are skipped where they are not."""
import gzip
import json
import random

import harness
import pytest
from test_made_traces import job, plain
from test_real_traces import REAL, WORK, covered_us, report, spans

NAMES = ["hta_negative_queue", "mi300_resnet_act_checkpoint", "h100_qwen_0.5b"]


def busy_pct(events, numbers):
    """Of the marked steps of these numbers."""
    steps = {e["name"]: (e["ts"], e["ts"] + e["dur"]) for e in events
             if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")}
    kept = [steps[f"ProfilerStep#{number}"] for number in numbers]
    work = spans(events, WORK)
    return 100 * sum(covered_us(work, *step) for step in kept) / sum(end - begin for begin, end in kept)


def assert_told(found, path):
    assert any("cut off" in finding["text"] for finding in found["findings"]), found["findings"]
    for form in ("text", "html"):
        assert "cut off" in harness.checked("report", "--format", form, path).out


@pytest.mark.parametrize("share", [70, 85, 98])
@pytest.mark.parametrize("name", NAMES)
def test_figures_of_a_cut_trace_are_those_of_the_whole(tmp_path, name, share):
    if not (REAL / f"{name}.json.gz").exists():
        pytest.skip(f"no {name}.json.gz in {REAL}")
    whole = gzip.decompress((REAL / f"{name}.json.gz").read_bytes())
    path = tmp_path / "trace.json"
    path.write_bytes(whole[:len(whole) * share // 100])
    found = report(path)
    assert_told(found, path)
    if not found["steps"] or not found["gpu"]["timed"]:
        assert "GPU busy" not in harness.checked("report", path).out
        assert "cut off" in found["reason"]
        return
    truth = busy_pct(json.loads(whole)["traceEvents"], [row["step"] for row in found["steps"]])
    assert found["gpu"]["utilization_pct"] == pytest.approx(truth, abs=5)


def cut(machine, path, share):
    path.write_bytes(machine.write(path).read_bytes()[:int(path.stat().st_size * share)])
    return path


def test_what_is_in_no_order_of_time_has_no_whole_step(tmp_path):
    machine = job(plain)
    random.Random(3).shuffle(machine.events)
    machine.events.sort(key=lambda event: event["name"].startswith("ProfilerStep"), reverse=True)
    found = report(cut(machine, tmp_path / "trace.json", 0.7))
    assert found["steps"] == [] and "cut off" in found["reason"]
    assert_told(found, tmp_path / "trace.json")


def test_what_is_in_order_keeps_its_whole_steps(tmp_path):
    machine = job(plain)
    machine.events.sort(key=lambda event: (not event["name"].startswith("ProfilerStep"), event["ts"]))
    found = report(cut(machine, tmp_path / "trace.json", 0.7))
    assert 4 <= len(found["steps"]) <= 6
    assert found["gpu"]["utilization_pct"] == pytest.approx(machine.busy_pct(), abs=0.5)
    assert_told(found, tmp_path / "trace.json")


def test_a_whole_trace_is_not_called_cut(tmp_path):
    machine = job(plain)
    random.Random(3).shuffle(machine.events)
    found = report(machine.write(tmp_path / "trace.json"))
    assert len(found["steps"]) == len(machine.steps) and not any("cut off" in f["text"] for f in found["findings"])
