# SPDX-License-Identifier: Apache-2.0
"""What a program says by NVTX beside its ranges: names of threads, categories, streams and GPUs, and ranges that end on
another thread than they began on."""
import json

import pytest

import harness

PROGRAM = harness.HAZARDS / "nvtx_names"


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvtx")
    done = harness.run([PROGRAM], harness.preloaded(**{**harness.WHOLE_RUN, "GPUPROF_OUTPUT": folder}))
    assert done.code == 0, done.err
    found, = harness.dumps(folder)
    return found


def ranges(dump):
    return {r["message"]: r for r in harness.of_kind(harness.records(dump), "nvtx_range", "nvtx_mark")}


def test_categories_have_the_name_of_their_domain(dump):
    found = ranges(dump)
    assert found["load"]["category"] == 7 and found["load"]["category_name"] == "loading"
    assert found["request"]["domain"] == "service" and found["request"]["category_name"] == "requests"
    assert found["nameless"]["category"] == 8 and "category_name" not in found["nameless"]


def test_threads_have_their_newest_name(dump):
    found = ranges(dump)
    assert found["load"]["lane"]["name"] == "dispatcher"
    assert found["own range"]["lane"]["name"] == "finisher of requests"


def test_a_range_from_thread_to_thread_lies_on_neither(dump):
    found = ranges(dump)
    crossing, own = found["request"], found["own start and end"]
    assert crossing["lane"] == {"type": "other", "name": "NVTX ranges from thread to thread"}
    assert crossing["started_on"] == found["load"]["lane"]["tid"]
    assert crossing["ended_on"] == found["own range"]["lane"]["tid"]
    assert own["lane"]["tid"] == found["load"]["lane"]["tid"] and "started_on" not in own


def test_streams_have_names(dump):
    streams = {r["lane"].get("name") for r in harness.of_kind(harness.records(dump), "gpu_kernel")}
    assert streams == {"copies of weights", None}, "the second thread works on the default stream"


def test_viewers_show_the_names(dump, tmp_path):
    """Perfetto's import of the same is tests/viewers/test_perfetto.py's."""
    harness.checked("convert", dump, "--to", "chrome", "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tid = ranges(dump)["load"]["lane"]["tid"]
    assert f"thread {tid} (dispatcher)" in rows.values()
    assert any("(copies of weights)" in name for name in rows.values())
    assert "GPU 0 (the big one)" in [e["args"]["labels"] for e in events if e["name"] == "process_labels"]
    request, = (e for e in events if e["name"] == "request")
    assert rows[request["pid"], request["tid"]] == "NVTX ranges from thread to thread"
    assert request["args"]["nvtx category name"] == "requests"


def test_ranges_that_a_window_leaves_open_give_their_places_back(tmp_path):
    """There are 1,024 places for ranges that have started and not ended."""
    done = harness.run([PROGRAM, "leave", "1000"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="sync:1",
        GPUPROF_SCHEDULE="skip_first=0,skip_first_wait=1,wait=1,warmup=0,active=1,repeat=3"))
    assert done.code == 0, done.err
    dumps = harness.dumps(tmp_path)
    assert len(dumps) == 3
    assert all(harness.info(each)["files"][0]["losses"].get("nvtx_depth", 0) == 0 for each in dumps)


@pytest.mark.parametrize("way, name, schedule, expected", (
    ("leave", "left", "skip_first=0,wait=1,active=1", [0, 3]), ("push", "never popped", "skip_first=1,wait=2,active=3", [3, 0])))
def test_what_is_open_when_a_window_ends_is_recorded_up_to_there(tmp_path, way, name, schedule, expected):
    """Of the one way, from the second step on, ranges end after the step in which they start; of the other, never."""
    done = harness.run([PROGRAM, way, "3"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE=f"skip_first_wait=1,warmup=0,repeat=2,{schedule}"))
    assert done.code == 0, done.err
    seen = []
    for dump in harness.dumps(tmp_path):
        window_end = harness.info(dump)["files"][0]["window_end_mono_ns"]
        found = [r for r in harness.of_kind(harness.records(dump), "nvtx_range") if r["message"] == name]
        assert all("open_end" in r["flags"] and r["end_mono_ns"] == window_end for r in found), found
        seen.append(len(found))
    assert seen == expected


def test_ranges_that_are_never_popped_cost_no_later_window_its_ranges(tmp_path):
    """There is room for 126 in one another."""
    done = harness.run([PROGRAM, "push", "126"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE="skip_first=1,skip_first_wait=1,wait=2,warmup=0,active=3,repeat=3"))
    assert done.code == 0, done.err
    first, *later = harness.dumps(tmp_path)
    assert len(later) == 2 and harness.info(first)["files"][0]["losses"].get("nvtx_depth", 0) > 0
    for dump in later:
        ranges = harness.of_kind(harness.records(dump), "nvtx_range")
        assert [each["message"] for each in ranges] == ["forward"] * 3, done.err
        assert harness.info(dump)["files"][0]["losses"].get("nvtx_depth", 0) == 0
