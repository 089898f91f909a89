# SPDX-License-Identifier: Apache-2.0
"""Iterations inside a bracket of cudaProfilerStart and Stop are its steps, and the report says by what. (That the verdict
is the one of the same events by their own steps: nested_steps_test.)"""
import json

import harness

def report(folder, *flags, step=None):
    options = ["--step", step] if step else []
    env = harness.environment()
    harness.checked("run", "-o", folder, *options, "--", harness.SIMTRAIN, "--steps", "34", *flags, env=env)
    return json.loads(harness.checked("report", "--format", "json", folder).out)


def finding(found, kind):
    return [each["text"] for each in found["findings"] if each["kind"] == kind]


def test_ranges_inside_a_bracket(tmp_path):
    found = report(tmp_path, "--data-ms", "9", "--markers", "profiler+nvtx", "--profile-steps", "12-21")
    assert [row["step"] for row in found["steps"]] == list(range(12, 22)), "as the ranges are numbered"
    assert "data_loading" in [each["cause"] for each in found["verdict"]]
    line, = finding(found, "nested_steps")
    assert "cudaProfilerStart" in line and "nvtx:step" in line


def test_nothing_but_launches_inside_a_bracket(tmp_path):
    found = report(tmp_path, "--h2d-mb", "100", "--markers", "profiler", "--profile-steps", "12-31", step="profiler")
    assert len(found["steps"]) in (19, 20)
    line, = finding(found, "steps_found")
    assert "cudaProfilerStart" in line


def test_graphs_inside_a_bracket(tmp_path):
    found = report(tmp_path, "--graphs", "--layers", "4", "--markers", "profiler", "--profile-steps", "12-16", step="profiler")
    assert len(found["steps"]) in (4, 5), "too few for a period"
    assert "graph:1" in finding(found, "nested_steps")[0]


def test_one_iteration_in_each_bracket(tmp_path):
    """Nothing inside repeats: the bracket is the step."""
    brackets = ",".join(f"{n}-{n}" for n in range(12, 30, 2))
    found = report(tmp_path, "--markers", "profiler+nvtx", "--profile-steps", brackets)
    assert len(found["steps"]) == 9
    assert finding(found, "nested_steps") == [] and finding(found, "steps_found") == []


def test_a_bracket_in_which_no_steps_are_found_beside_one_in_which_some_are(tmp_path):
    """Its three steps are too few for a period: as one step it would be three times as long as the others, and of the second window."""
    found = report(tmp_path, "--markers", "profiler", "--profile-steps", "5-9,20-22", step="profiler")
    assert [(step["window"], step["step"]) for step in found["steps"]] == [(0, step) for step in range(5)]
    assert finding(found, "undivided") == ["1 window is left out of all figures per step: no steps were found in the order of its work, "
                                           "as they were in others'. Mark steps (GPUPROF_STEP)"]
