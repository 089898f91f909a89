# SPDX-License-Identifier: Apache-2.0
"""The page of `gpuprof diff` in headless Chromium: what it says is what the JSON says, it sorts, and loads nothing."""
import json

import pytest

import browser
import harness
from test_report_html import HOSTILE, assert_quiet, hostile_trace, open_page, rows_of, texts

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="no chromium here")


class Diff:
    def __init__(self, folder, *arguments, code=0):
        self.path = folder / "diff.html"
        done = harness.gpuprof("diff", *arguments, "--format", "html", "-o", self.path)
        assert done.code == code, done.err
        self.json = json.loads(harness.gpuprof("diff", *arguments, "--format", "json").out)

    def open(self):
        return open_page(self.path, browser.Page(1280, 1600))


def record(folder, kernel_us):
    def once(number):
        place = folder / str(number)
        done = harness.gpuprof("run", "-o", place, "--schedule", "skip_first=3,warmup=1,active=20", "--", harness.SIMTRAIN, "--steps", "26",
                               "--layers", "4", "--kernel-us", str(kernel_us))
        assert done.code == 0, done.err
        return place / "latest"
    return harness.steady_run(once)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    return folder, record(folder / "base", 300), record(folder / "new", 2000)


@pytest.fixture(scope="module")
def slower(runs):
    folder, base, new = runs
    diff = Diff(folder, base, new, "--fail-over", "5", code=1)
    page = diff.open()
    yield diff, page
    page.close()


def test_a_regression_and_its_figures(slower):
    diff, page = slower
    step = diff.json["step_time"]
    assert diff.json["regression"] and step["significant"]
    assert texts(page, "#gate h2") == ["Regression: slower by more than 5 %"]
    assert texts(page, ".run code") == [*diff.json["base"], *diff.json["new"]]
    assert page.evaluate("document.title") == f"{diff.json['new'][0]} against {diff.json['base'][0]} - gpuprof diff"
    assert texts(page, "#change b") == [f"{step['change_pct']:.1f} % longer"]
    assert f"{step['ci_low_pct']:+.1f} % to {step['ci_high_pct']:+.1f} %" in texts(page, "#change small")[0]
    assert [text.split()[2] for text in texts(page, "#base small, #new small")] == [str(diff.json["base_steps"]), str(diff.json["new_steps"])]
    assert_quiet(page)


def test_changes_are_those_of_the_json_and_sort(slower):
    diff, page = slower
    page.evaluate("document.querySelector('#changes .more').click()")
    shown = rows_of(page, "changes")
    changes = diff.json["changes"]
    assert len(shown) == len(changes) > 1
    assert any(change["significant"] for change in changes)
    differences = [float(row[4]) for row in shown]
    assert differences == sorted(differences, reverse=True)
    expected = {(each["name"], each["kind"], each["base_us"], each["new_us"]) for each in changes}
    assert {(row[0], row[1], float(row[2]), float(row[3])) for row in shown} == expected
    page.evaluate("document.querySelectorAll('#changes th')[0].click()")
    names = [row[0] for row in rows_of(page, "changes")]
    assert sorted(names, key=str.lower) in (names, names[::-1])


def test_a_run_and_itself(runs):
    """On a busy machine its steps differ so much that the page says what it cannot tell."""
    folder, base, _ = runs
    diff = Diff(folder, base, base)
    page = diff.open()
    try:
        [gate] = texts(page, "#gate h2")
        assert gate.startswith("No regression") and texts(page, "#change b") == ["none beyond noise"]
        assert_quiet(page)
    finally:
        page.close()


def test_without_a_comparison_it_says_why(tmp_path, runs):
    _, base, _ = runs
    trace = tmp_path / "one.json"
    trace.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1,
                                                  "args": {"correlation": 1, "stream": 7, "device": 0}}]}))
    diff = Diff(tmp_path, base, trace, code=2)
    assert diff.json["reason"]
    page = diff.open()
    try:
        assert texts(page, "#gate h2") == [f"No comparison: {diff.json['reason']}"]
        assert page.evaluate("document.querySelector('#figures') === null")
        assert_quiet(page)
    finally:
        page.close()


def test_names_of_any_sort_are_text(tmp_path):
    traces = [tmp_path / "base.json", tmp_path / "new.json"]
    for trace, factor in zip(traces, (1, 3)):
        document = hostile_trace()
        for event in document["traceEvents"]:
            if event.get("cat") == "kernel":
                event["dur"] = 20 * factor
        trace.write_text(json.dumps(document))
    diff = Diff(tmp_path, *traces)
    page = diff.open()
    try:
        page.evaluate("document.querySelector('#changes .more').click()")
        assert page.evaluate("window.hacked === undefined")
        assert len(rows_of(page, "changes")) == len(diff.json["changes"]) >= len(HOSTILE)
        assert_quiet(page)
    finally:
        page.close()
