# SPDX-License-Identifier: Apache-2.0
"""The report's page in headless Chromium: its figures are those of the JSON report, tables sort, nothing is loaded from
elsewhere, and names of any sort are shown as they are."""
import json
import os
import pathlib
import re
import sys

import pytest

import browser
import harness
from support import kineto_traces

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="no chromium here")

TABLES = ("kernels", "collectives", "copies", "synchronizations", "allocations", "stragglers", "operators", "modules",
          "memory_owners", "kernel_families", "places", "collective_times")


def open_page(path, page):
    for domain in ("Network", "Runtime", "Log"):
        page.call(f"{domain}.enable")
    page.open(path.as_uri())
    page.wait_for("document.body && document.body.dataset.ready === 'yes'", 60)
    return page


class Report:
    def __init__(self, folder, *inputs, options=()):
        self.path = folder / "report.html"
        harness.checked("report", *inputs, *options, "--format", "html", "-o", self.path)
        self.json = json.loads(harness.checked("report", *inputs, *options, "--format", "json").out)

    def open(self, page):
        return open_page(self.path, page)


def with_report(html, change):
    """The text of a page whose report is what `change` makes of the one in it."""
    begin = html.index(">", html.index('id="report"')) + 1
    end = html.index("</script>", begin)
    return html[:begin] + json.dumps(change(json.loads(html[begin:end]))).replace("<", "\\u003c") + html[end:]


def changed(report, folder, change):
    """The page of a report of which `change` makes another."""
    made = Report.__new__(Report)
    made.path = folder / "report.html"
    made.path.write_text(with_report(report.path.read_text(encoding="utf-8"), change), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def report(profiled):
    return Report(profiled.folder, profiled.dumps)


@pytest.fixture(scope="module")
def page(report):
    page = browser.Page(1280, 2400)
    yield report.open(page)
    page.close()


def texts(page, selector):
    return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(each => each.textContent.trim())")


def assert_quiet(page):
    """Nothing said on the console, nothing asked for but the file itself."""
    for method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
        assert page.events_of(method) == []
    asked = [event["request"]["url"] for event in page.events_of("Network.requestWillBeSent")]
    assert len(asked) == 1 and asked[0].startswith("file:")


def test_a_page_of_tables_alone(profiled, tmp_path):
    found = Report(tmp_path, "--tables", profiled.dumps)
    page = found.open(browser.Page(1280, 2400))
    try:
        assert page.evaluate("document.querySelectorAll('.cause, #breakdown').length") == 0
        rows = page.evaluate("document.querySelectorAll('#kernels tbody tr').length")
        assert 0 < rows <= len(found.json["kernels"])
        assert page.evaluate("document.querySelectorAll('#steps canvas').length") == 1
        assert_quiet(page)
    finally:
        page.close()


def test_tables_that_a_budget_cut_say_so(budget_dump, tmp_path):
    found = Report(tmp_path, budget_dump)
    since = {each["kind"]: each["since"] for each in found.json["left_out_kinds"]}
    page = found.open(browser.Page(1280, 2400))
    try:
        for table, kind in (("synchronizations", "waits"), ("allocations", "calls")):
            title, = texts(page, f"#{table} h2")
            assert title.endswith(f"; not recorded {since[kind]}"), title
        assert "not recorded" not in texts(page, "#kernels h2")[0]
        said, = texts(page, "#unknown-parts")
        assert "kernel_launch, allocation, synchronization, other" in said
        assert_quiet(page)
    finally:
        page.close()


def test_a_page_without_steps(tmp_path):
    """Windows as a whole: no bars, no ranks by steps; all else, and said so."""
    for rank in range(2):
        document = kineto_traces.training(rank, 2, steps=2).document()
        document["traceEvents"] = [e for e in document["traceEvents"] if not e["name"].startswith("ProfilerStep#")]
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(document))
    found = Report(tmp_path, tmp_path / "rank0.json", tmp_path / "rank1.json")
    page = found.open(browser.Page(1280, 2400))
    try:
        assert found.json["whole_windows"] and "2 ranks, 2 windows" in " ".join(texts(page, ".place"))
        assert page.evaluate("document.querySelectorAll('#steps, #heat').length") == 0
        assert page.evaluate("document.querySelectorAll('#utilization canvas').length") == 1
        assert len(texts(page, ".cause")) == len(found.json["verdict"]) > 0
        assert any("window as a whole" in text for text in texts(page, "#findings li"))
        assert_quiet(page)
    finally:
        page.close()


def test_operators_by_shape_and_short_names_of_kernels(tmp_path):
    trace = tmp_path / "trace.json"
    kernel = "void lib::map_kernel<4, lib::Add<float> >(int)"
    events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 0, "dur": 100, "args": {}},
              {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 12, "dur": 2, "args": {"correlation": 1}},
              {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 20, "dur": 30,
               "args": {"correlation": 1, "stream": 7, "device": 0, "context": 1, "grid": [1, 1, 1], "block": [32, 1, 1]}}]
    events += [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 9, "tid": 9, "ts": begin, "dur": 5,
                "args": {"Input Dims": [[begin, 4]]}} for begin in (10, 60)]
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    page = Report(tmp_path, trace, options=("--by", "shape")).open(browser.Page(1280, 2400))
    try:
        assert texts(page, "#operators_grouped tbody td:nth-child(2)") == ["[[10,4]]", "[[60,4]]"]
        assert texts(page, "#kernels tbody td:first-child") == ["map_kernel<4, Add<float>>"]
        assert page.evaluate("document.querySelector('#kernels tbody td').title") == kernel
        assert_quiet(page)
    finally:
        page.close()


def test_host_memory(heap_dump, tmp_path):
    found = Report(tmp_path, heap_dump)
    page = found.open(browser.Page(1280, 2400))
    try:
        places = texts(page, "#host_allocations tbody td:first-child")
        by_bytes = [row["place"] for row in found.json["host_allocations"]]
        assert len(places) >= 8 and places == by_bytes[:len(places)]
        assert any("place_kept" in text for text in texts(page, "#ends li"))
        assert_quiet(page)
    finally:
        page.close()


def test_verdict(page, report):
    shown = page.evaluate("[...document.querySelectorAll('.cause')].map(each => each.dataset.cause)")
    assert shown == [each["cause"] for each in report.json["verdict"]]
    for each, text in zip(report.json["verdict"], texts(page, ".cause")):
        assert f"{each['saves_pct']:.1f} %" in text or each["cause"] == "compute"
        assert f"{each['share_pct']:.1f} %" in text
        assert each["advice"] in text
        assert all(line in text for line in each["evidence"])


def test_breakdown(page, report):
    shown = dict(page.evaluate("[...document.querySelectorAll('.legend li')].map(li => [li.dataset.part, li.querySelector('b').textContent])"))
    expected = {part: f"{value:.1f} %" for part, value in report.json["breakdown_pct"].items() if value >= 0.05}
    assert shown == expected
    assert f"{report.json['gpu']['utilization_pct']:.1f} %" in texts(page, "#gpu-busy b")


def chart(page, section):
    """Its lines or stacks: label -> values."""
    return dict(page.evaluate(f"Chart.getChart(document.querySelector('#{section} canvas')).data.datasets.map(set => [set.label, set.data])"))


def test_step_bars(page, report):
    steps = [step for step in report.json["steps"] if step["rank"] == 1]
    page.evaluate("(() => { const pick = document.querySelector('#steps select'); pick.value = '1'; pick.onchange(); })()")
    shown = chart(page, "steps")
    assert shown["Compute"] == pytest.approx([step["parts_us"]["compute"] / 1000 for step in steps])
    assert shown["Data loading"] == pytest.approx([step["parts_us"]["data_loading"] / 1000 for step in steps])
    labels = page.evaluate("Chart.getChart(document.querySelector('#steps canvas')).data.labels")
    assert labels == [str(step["step"]) for step in steps]


def test_curves(page, report):
    shown = chart(page, "utilization")
    for curve in report.json["curves"]:
        assert [point["y"] for point in shown[f"rank {curve['rank']}"]] == curve["utilization_pct"]
        bins, used = len(curve["utilization_pct"]), curve["utilization_pct"]
        lengths = [s["duration_us"] for s in report.json["steps"] if s["rank"] == curve["rank"]]
        busy = sum(s["parts_us"][part] for s in report.json["steps"] if s["rank"] == curve["rank"]
                   for part in ("compute", "communication", "transfer"))
        assert bins * curve["bin_us"] == pytest.approx(sum(lengths), rel=0.01)
        assert sum(used) / bins == pytest.approx(100 * busy / sum(lengths), abs=1)
    memory = chart(page, "memory")["rank 0"]
    assert max(point["y"] for point in memory) == max(report.json["curves"][0]["device_memory"]["bytes"]) > 0


def test_processes_without_a_rank_are_apart(report, tmp_path):
    """Each has its own bars, line and row; x of a line never goes back."""
    def without_ranks(data):
        rows = {key: [{**row, "rank": -1, "process": row["rank"]} for row in data[key]] for key in ("steps", "curves")}
        return {**data, **rows, "processes": [{"rank": -1, "host": "a", "pid": 70 + number} for number in range(data["ranks"])]}

    ranks = report.json["ranks"]
    names = [f"process {70 + number}" for number in range(ranks)]
    page = changed(report, tmp_path, without_ranks).open(browser.Page(1280, 2400))
    try:
        assert ranks > 1 and texts(page, "#steps option") == ["mean of all processes", *names]
        assert texts(page, "#heat h2") == ["Processes and steps"]
        shown = chart(page, "utilization")
        assert list(shown) == names
        for number, name in enumerate(names):
            curve, = [each for each in report.json["curves"] if each["rank"] == number]
            assert [point["y"] for point in shown[name]] == curve["utilization_pct"]
        page.evaluate("(() => { const pick = document.querySelectorAll('#steps select')[0]; pick.selectedIndex = 2; pick.onchange(); })()")
        steps = [step for step in report.json["steps"] if step["rank"] == 1]
        assert chart(page, "steps")["Compute"] == pytest.approx([step["parts_us"]["compute"] / 1000 for step in steps])
        assert_quiet(page)
    finally:
        page.close()


def test_no_curve_of_a_gpu_whose_work_is_not_known(report, tmp_path):
    page = changed(report, tmp_path, lambda data: {**data, "gpu": {**data["gpu"], "timed": False}}).open(browser.Page())
    try:
        assert page.evaluate("document.querySelectorAll('#utilization').length") == 0
        assert page.evaluate("document.querySelectorAll('#memory canvas').length") == 1
        assert_quiet(page)
    finally:
        page.close()


def test_heat_map(page):
    drawn = page.evaluate("(() => { const c = document.querySelector('#heat canvas'); const data = c.getContext('2d')"
                          ".getImageData(0, 0, c.width, c.height).data; return new Set(data).size; })()")
    assert drawn > 10


@pytest.fixture(scope="module")
def slow_script(tmp_path_factory):
    """A Python program whose GPU waits for one line in a nested function."""
    folder = tmp_path_factory.mktemp("slow")
    script = harness.SOURCE / "tests/programs/python/slow_lines.py"
    done = harness.run([sys.executable, script, "nested_function", 14], harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=10"))
    assert done.code == 0, done.err
    return Report(folder, *harness.dumps(folder / "out"))


def test_flame_graph(slow_script):
    """Each frame as wide as its share of the idle time, below its caller; a click zooms, and back."""
    page = slow_script.open(browser.Page(1280, 1600))
    stacks = slow_script.json["python_stacks"]
    total = sum(stack["idle_us"] for stack in stacks)
    most = max(stacks, key=lambda stack: stack["idle_us"])

    def drawn():
        return page.evaluate("[...document.querySelectorAll('#flame button')].map(each => ({name: each.title.split('\\n')[0], "
                             "us: Number(each.dataset.us), left: parseFloat(each.style.left), width: parseFloat(each.style.width), "
                             "row: Math.round(parseFloat(each.style.top) / 22)}))")

    frames = drawn()
    assert frames[0]["name"] == "all idle time" and frames[0]["width"] == 100
    assert frames[0]["us"] == pytest.approx(total)
    for frame in frames:
        assert frame["width"] == pytest.approx(100 * frame["us"] / total, abs=0.01)
        end = frame["left"] + frame["width"] - 1e-3  # the browser keeps six digits
        assert frame["row"] == 0 or any(caller["row"] == frame["row"] - 1 and caller["left"] <= frame["left"] + 1e-3 and
                                        end <= caller["left"] + caller["width"] for caller in frames)
    for row, name in enumerate(most["frames"], 1):
        assert any(frame["row"] == row and frame["name"] == name and frame["us"] >= most["idle_us"] - 1e-6 for frame in frames), name
    innermost = next(i for i, frame in enumerate(frames) if frame["row"] == len(most["frames"]) and frame["name"] == most["frames"][-1])
    page.evaluate(f"document.querySelectorAll('#flame button')[{innermost}].click()")
    zoomed = drawn()
    assert [frame["name"] for frame in zoomed[:len(most["frames"]) + 1]] == ["all idle time", *most["frames"]]
    assert all(frame["width"] == 100 for frame in zoomed[:len(most["frames"]) + 1])
    page.evaluate("document.querySelector('#flame button').click()")
    assert drawn() == frames
    assert_quiet(page)
    page.close()


def test_no_flame_graph_without_samples(page):
    assert page.evaluate("document.querySelector('#flame') === null")


def rows_of(page, table):
    """The values of a table's cells, as strings."""
    return page.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')].map(row => [...row.children].map(cell => cell.dataset.value))")


def test_tables(page, report):
    seen = 0
    for table in TABLES:
        rows = report.json.get(table) or []
        if not rows:
            assert page.evaluate(f"document.querySelector('#{table}') === null")
            continue
        seen += 1
        page.evaluate(f"document.querySelector('#{table} .more').click()")
        shown = rows_of(page, table)
        assert len(shown) == len(rows)
        values = {json.dumps(value) if not isinstance(value, str) else value for row in rows for value in row.values()}
        values |= {",".join(map(str, value)) for row in rows for value in row.values() if isinstance(value, list)} | {""}
        for row in shown:
            assert {value for value in row if not is_number(value)} <= values, table
        first = [row[0] for row in shown]
        assert sorted(first) == sorted(str(row.get("name", row.get("place", row.get("rank")))) for row in rows)
    assert seen >= 5


def test_what_explains_a_pipelines_slowdown(report, tmp_path):
    def shares(*rows):
        return [dict(zip(("name", "explains", "factor"), row)) for row in rows]

    pipeline = {"by_stage": shares(("stage 0", 1.013, 1.336), ("stage 1", -0.003, 0.886)), "by_kind": shares(("forward-compute", 0.385, 0)),
                "slow_workers": shares(("data-parallel rank 0, stage 0", 1.003, 2.321))}
    page = changed(report, tmp_path, lambda data: {**data, "pipeline": pipeline}).open(browser.Page())
    try:
        shown = page.evaluate("[...document.querySelectorAll('#pipeline_shares tbody tr')].map(row => [...row.children].map(cell => cell.textContent))")
        assert sorted(shown) == [["data-parallel rank 0, stage 0", "slow worker", "100.3 %", "2.32 \u00d7"],
                                 ["forward-compute", "kind of operation", "38.5 %", ""],
                                 ["stage 0", "stage", "101.3 %", "1.34 \u00d7"], ["stage 1", "stage", "-0.3 %", "0.89 \u00d7"]]
        assert_quiet(page)
    finally:
        page.close()


def test_bars_are_shares_of_what_counts_once(report, tmp_path):
    """Of calls that hold others: of the GPU's work. Percentages of several threads have no sum."""
    nested = [{"name": name, "gpu_us": us, "gpu_self_us": us / 3, "count": 1} for name, us in (("outer", 90), ("middle", 90), ("inner", 60))]
    threads = [{"rank": 0, "thread": name, "name": name, "asleep_pct": 80} for name in ("one", "two")]
    works = {"kernels": [{"name": "k", "total_us": 75, "count": 1}, {"name": "l", "total_us": 5, "count": 1}],
             "copies": [{"name": "c", "total_us": 20, "count": 1}]}
    page = changed(report, tmp_path, lambda data: {**data, **works, "operators": nested, "modules": nested, "thread_states": threads,
                                                   "operators_by": {"by": "shape", "rows": nested}}).open(browser.Page())
    try:
        for name in ("operators", "modules", "operators_grouped"):
            assert page.evaluate(f"[...document.querySelectorAll('#{name} .share')].map(bar => bar.title)") == ["90.0 %", "90.0 %", "60.0 %"], name
        assert page.evaluate("[...document.querySelectorAll('#kernels .share')].map(bar => bar.title)") == ["93.8 %", "6.3 %"]
        assert page.evaluate("[...document.querySelectorAll('#thread_states .share')].map(bar => bar.title)") == ["", ""]
        assert_quiet(page)
    finally:
        page.close()


def page_tables():
    """Table -> its columns and their formats, of the page's script."""
    script = (pathlib.Path(__file__).parents[2] / "tools/report/html/page.js").read_text(encoding="utf-8")
    rows = re.findall(r"^  \['(\w+)', (.*?)\]\],?$", script[script.index("const TABLES"):script.index("const sortValue")], re.M | re.S)
    return {name: dict(re.findall(r"\['?([\w.]+)'?, [^,]+, '(\w+)'", columns)) for name, columns in rows}


def test_each_table_has_a_place(report, tmp_path):
    """A row of each table that the page knows, with a value in each column."""
    tables = page_tables()
    assert len(tables) > 15 and all(tables.values())
    values = {"code": "a <name>", "text": "a text", "yes": True, "dims": [2, 3, 4], "list": [0, 2]}

    def fill(data):
        rows = {name: [{column.replace("grouped.by", "shape"): values.get(form, at + 7.5)
                        for at, (column, form) in enumerate(columns.items())}] for name, columns in tables.items()}
        return {**data, **rows, "operators_by": {"by": "shape", "rows": rows["operators_grouped"]}}

    page = changed(report, tmp_path, fill).open(browser.Page())
    try:
        for name, columns in tables.items():
            shown = rows_of(page, name)
            assert len(shown) == 1 and all(shown[0]), f"{name}: {shown}"
            assert len(shown[0]) == len(columns), name
        assert_quiet(page)
    finally:
        page.close()


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


@pytest.mark.parametrize("column, key", [(0, "name"), (1, "total_us"), (2, "count"), (3, "mean_us")])
def test_tables_sort_on_click(page, report, column, key):
    orders = []
    for _ in range(2):
        page.evaluate(f"document.querySelectorAll('#kernels th')[{column}].click()")
        orders.append([row[column] for row in rows_of(page, "kernels")])
    values = [row[key] for row in report.json["kernels"]]
    if key == "name":
        assert [sorted(values, key=str.lower), sorted(values, key=str.lower, reverse=True)] in (orders, orders[::-1])
    else:
        as_numbers = [[float(value) for value in order] for order in orders]
        assert [sorted(values), sorted(values, reverse=True)] in (as_numbers, as_numbers[::-1])


def test_rows_without_a_value_come_last(report, tmp_path):
    values = [5, None, 9, None, 1, None, 7]
    kernels = [{"name": f"k{at}", "total_us": 10 - at, "count": 1, "occupancy_pct": value} for at, value in enumerate(values)]
    del kernels[3]["occupancy_pct"]
    page = changed(report, tmp_path, lambda data: {**data, "kernels": kernels}).open(browser.Page())
    try:
        titles = texts(page, "#kernels th")
        orders = []
        for _ in range(2):
            page.evaluate(f"document.querySelectorAll('#kernels th')[{titles.index('occupancy')}].click()")
            orders.append([row[titles.index("occupancy")] for row in rows_of(page, "kernels")])
        assert orders == [["9", "7", "5", "1", "", "", ""], ["1", "5", "7", "9", "", "", ""]]
        assert "%" not in texts(page, f"#kernels tbody tr:last-child td:nth-child({titles.index('occupancy') + 1})")[0]
        assert_quiet(page)
    finally:
        page.close()


def test_themes(page):
    """Dark and light, by the button."""
    colours = []
    for _ in range(2):
        page.evaluate("document.getElementById('theme').click()")
        colours.append(page.evaluate("[getComputedStyle(document.body).backgroundColor,"
                                     "Chart.getChart(document.querySelector('#steps canvas')).data.datasets[0].backgroundColor]"))
    assert colours[0][0] != colours[1][0] and colours[0][1] != colours[1][1]


def test_nothing_is_loaded_and_nothing_goes_wrong(page):
    assert_quiet(page)


def test_without_javascript(report):
    page = browser.Page()
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(report.path.as_uri())
    page.wait_for("document.readyState === 'complete' && location.protocol === 'file:'", 30)
    shown = page.evaluate("document.querySelector('main').innerText")
    for each in report.json["verdict"]:
        assert each["advice"] in shown
    assert "need JavaScript" in shown
    page.close()


HOSTILE = ["</script><script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 1'>", "<!-- <script>",
           "{{chart}}", "line\u2028separator\u2029", "quotes \" ' ` ${window.hacked = 1}", "\x00\x01nul", "kernel\ud800half", "&amp;lt;"]


def hostile_trace():
    events, begin = [], 1000.0
    for step in range(4):
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": begin, "dur": 1000})
        for i, name in enumerate(HOSTILE):
            number, at = step * 100 + i + 1, begin + 100 * i
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 20,
                           "args": {"External id": number}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 5, "dur": 5,
                           "args": {"correlation": number, "External id": number}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 15, "dur": 60,
                           "args": {"correlation": number, "stream": 7, "device": 0, "context": 1}})
        begin += 1000
    return {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "deviceProperties": [{"id": 0, "name": HOSTILE[0]}],
            "traceEvents": events}


def test_hostile_names(tmp_path):
    text = json.dumps(hostile_trace()).encode()
    (tmp_path / "trace.json").write_bytes(text.replace(b"&amp;lt;", b"bytes \xff\xfe"))
    report = Report(tmp_path, tmp_path / "trace.json")
    page = report.open(browser.Page())
    assert page.evaluate("window.hacked === undefined")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    shown = [row[0] for row in rows_of(page, "kernels")]
    assert sorted(shown) == sorted(row["name"] for row in report.json["kernels"])
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[3], HOSTILE[4]} <= set(shown)
    assert HOSTILE[0] in page.evaluate("document.querySelector('.place').textContent")
    assert_quiet(page)
    page.close()


def test_many_ranks_and_steps(report, tmp_path):
    """More values than a call has room for arguments, and more columns than a canvas has pixels."""
    def many(data):
        steps = [{**data["steps"][0], "rank": rank, "step": step} for rank in range(1024) for step in range(200)]
        return {**data, "steps": steps}

    page = changed(report, tmp_path, many).open(browser.Page())
    assert page.evaluate("Chart.getChart(document.querySelector('#steps canvas')).data.labels.length") == 200
    assert page.evaluate("(() => { const c = document.querySelector('#heat canvas'); return c.getContext('2d')"
                         ".getImageData(0, 0, c.width, 8).data.some(each => each > 0); })()")
    assert page.evaluate("document.querySelectorAll('#kernels tbody tr').length") > 0
    assert_quiet(page)
    page.close()


def test_a_saving_on_a_narrow_screen_is_as_high_as_its_text(report):
    page = report.open(browser.Page(400, 800))
    try:
        page.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
        heights = page.evaluate("[...document.querySelectorAll('.saving')].map(each => [each.offsetHeight, "
                                "[...each.children].reduce((sum, child) => sum + child.getBoundingClientRect().height, 0)])")
        assert heights and all(height <= inside + 8 for height, inside in heights), heights
    finally:
        page.close()


def test_screenshot(report, tmp_path):
    """What a user sees first; kept where GPUPROF_SCREENSHOTS says."""
    page = report.open(browser.Page(1200, 1240))
    folder = pathlib.Path(os.environ.get("GPUPROF_SCREENSHOTS", tmp_path))
    page.screenshot(folder / "report.png")
    assert (folder / "report.png").stat().st_size > 20_000
    page.close()
