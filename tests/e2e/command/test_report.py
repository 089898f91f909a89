# SPDX-License-Identifier: Apache-2.0
"""gpuprof report on what simtrain really did: causes that no machine's noise can hide, and the JSON's shape.
Shares and savings are held to a computed truth by tests/unit/tools/analysis/known_causes_test.cpp."""
import json
import re
import subprocess
import time

import harness
from support import kineto_traces
import pytest

pytestmark = pytest.mark.usefixtures("ahead_of_other_tests")
SCHEDULE = "skip_first=3,wait=0,warmup=1,active=8,repeat=1"


def record(folder, *arguments, **settings):
    done = harness.run([harness.BIN, "run", "-o", folder / "out", "--schedule", SCHEDULE, "--", harness.SIMTRAIN,
                        "--steps", "14", *arguments], env=harness.environment(SIMCUDA_TRUTH=folder, **settings))
    assert done.code == 0, done.err
    return folder / "out" / "latest"


def report(path):
    return json.loads(harness.checked("report", "--format", "json", path).out)


def judged(folder, *arguments, **settings):
    """A run and its report: of a few the first one in which the machine is no cause. A busy one may be the first, rightly."""
    for attempt in range(4):
        latest = record(folder / f"judged{attempt}", *arguments, **settings)
        found = report(latest)
        if "machine_busy" not in [each["cause"] for each in found["verdict"]]:
            break
    return latest, found


def truth_kernels(folder, first, last):
    """Kernels by name that the simulator ran for launches of the steps first..last."""
    counts = {}
    for path in folder.glob("truth_*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        calls = {line["corr"]: line for line in lines if line["t"] == "call"}
        steps = {line["n"]: line for line in lines if line["t"] == "step"}
        begin, end = steps[first]["begin"], steps[last]["end"]
        for work in lines:
            if work["t"] != "gpu" or work["type"] != "kernel" or work["corr"] not in calls:  # a killed process's last call
                continue
            if begin <= calls[work["corr"]]["begin"] < end:
                counts[work["name"]] = counts.get(work["name"], 0) + 1
    return counts


@pytest.mark.parametrize("cause,arguments", [
    ("data_loading", ["--data-ms", "40"]),
    ("transfer", ["--h2d-mb", "1000"]),
    ("communication", ["--comm-mb", "8000", "--layers", "4", "--ranks", "2"]),
    ("straggler", ["--comm-mb", "8", "--ranks", "2", "--kernel-us", "2000", "--slow-rank", "1:3"]),
    ("compute", ["--kernel-us", "20000", "--layers", "4"]),
])
def test_a_strong_cause_comes_first(tmp_path, cause, arguments):
    for attempt in range(3):  # of a healthy job, 2 % is a cause: a busy machine takes the processor for as long
        _, found = judged(tmp_path / str(attempt), *arguments)
        assert found["verdict"], found["reason"]
        if cause != "compute" or found["verdict"][0]["cause"] == cause:
            break
    assert found["verdict"][0]["cause"] == cause, found["verdict"]
    assert found["verdict"][0]["evidence"] and found["verdict"][0]["advice"]
    assert 0 < found["verdict"][0]["confidence"] <= 1
    assert abs(sum(found["breakdown_pct"].values()) - 100) < 0.01
    assert found["ranks"] == (2 if "--ranks" in arguments else 1)


def test_ranks_that_no_variable_names(tmp_path):
    """As with torch.multiprocessing.spawn, where they are arguments: NCCL's communicator tells them."""
    latest, found = judged(tmp_path, "--comm-mb", "8", "--ranks", "3", "--kernel-us", "2000", "--slow-rank", "2:2",
                           "--rank-variable", "SIMTRAIN_RANK")
    assert found["ranks"] == 3 and [each["rank"] for each in found["stragglers"]] == [0, 1, 2]
    assert [round(each["compute_factor"]) for each in found["stragglers"]] == [1, 1, 2]
    assert found["verdict"][0]["cause"] == "straggler" and "rank 2 " in found["verdict"][0]["evidence"][0]
    harness.checked("convert", latest, "--to", "kineto", "-o", tmp_path / "kineto")
    assert [each["rank"] for each in harness.info(tmp_path / "kineto")["files"]] == [0, 1, 2]


def test_evidence_names_lines_of_native_code(tmp_path):
    _, found = judged(tmp_path, "--malloc-per-step", "400", "--layers", "2", GPUPROF_STACKS="alloc,sync")
    verdict = {each["cause"]: each for each in found["verdict"]}
    assert "allocation" in verdict, found["verdict"]
    named = [line for line in verdict["allocation"]["evidence"] if re.match(r"at \w+\.(cpp|h):\d+ ", line)]
    assert named and "calls a step" in named[0], verdict["allocation"]["evidence"]


def test_kernels_are_those_of_the_steps(tmp_path):
    latest = record(tmp_path, "--small-kernels", "40")
    found = report(latest)
    steps = sorted(step["step"] for step in found["steps"])
    assert len(steps) == 8
    expected = truth_kernels(tmp_path, steps[0], steps[-1])
    assert sum(expected.values()) > 0
    assert sum(row["count"] for row in found["kernels"]) == sum(expected.values())
    for row in found["kernels"]:
        assert row["mean_us"] == pytest.approx(row["total_us"] / row["count"], rel=1e-3)


@pytest.mark.parametrize("steps", [2, 3, 4, 8, 11])
def test_the_schedule_that_a_short_run_is_told_to_use(tmp_path, steps):
    command = [harness.BIN, "run", "-o", tmp_path / "out", "--step", "nvtx:step"]
    program = ["--", harness.SIMTRAIN, "--steps", steps]
    done = harness.run([*command, *program], env=harness.environment())
    schedules = re.findall(r"GPUPROF_SCHEDULE=([\w=,]*\w)", done.err)
    assert "an early window is all that was recorded: the program ended after" in done.err and len(harness.dumps(tmp_path / "out")) == 1
    assert schedules[0] == "all" and len(schedules) == 2
    for schedule in schedules:
        harness.run([*command, "--schedule", schedule, *program], env=harness.environment())
        found = report(tmp_path / "out/latest")
        assert found["kernels"], schedule
        assert len(found["steps"]) >= min(max(steps - 2, 1), 3), schedule
        few = len(found["steps"]) < 2 and not found["whole_windows"]
        assert ("too few" in found["reason"]) == few, schedule


def test_a_mark_that_never_came_is_said(tmp_path):
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--step", "nvtx:nosuch", "--", harness.SIMTRAIN, "--steps", "8"],
                       env=harness.environment())
    assert "no whole step was seen (nvtx:nosuch" in done.err and "GPUPROF_STEP" in done.err and "SCHEDULE" not in done.err


def test_two_runs_from_one_shell_are_two(tmp_path):
    """They share a folder: the newest is taken, and the other named."""
    for layers in (8, 4):
        done = harness.run([harness.SIMTRAIN, "--steps", "25", "--layers", layers], env=harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out"))
        assert done.code == 0, done.err
    assert len(harness.dumps(tmp_path / "out/latest/")) == 2
    done = harness.checked("report", "--format", "json", tmp_path / "out/latest")
    found = json.loads(done.out)
    assert len(found["steps"]) == 10 and "2 attempts of job" in done.err
    first = json.loads(harness.checked("report", "--format", "json", "--attempt", "0", tmp_path / "out/latest").out)
    # By what each ran: how long that takes is the machine's, too.
    products = [sum(row["count"] for row in each["kernels"] if row["name"].startswith("gemm_fwd")) for each in (first, found)]
    assert products == [10 * 8, 10 * 4]


def test_two_runs_are_not_one(tmp_path):
    both = [record(tmp_path / name) for name in ("one", "other")]
    done = harness.checked("report", *both)
    assert "these are dumps of 2 runs (" in done.err and "gpuprof diff" in done.err
    assert "2 runs" not in harness.checked("report", both[0]).err


def test_without_gpu_times_there_are_no_figures_of_the_gpu(tmp_path):
    path = record(tmp_path, GPUPROF_CUPTI="off")
    found = report(path)
    assert found["verdict"] == [] and "no GPU times" in found["reason"]
    assert set(found["breakdown_pct"].values()) == {0} and found["gpu"]["utilization_pct"] == 0
    text = harness.checked("report", path).out
    assert "GPU busy" not in text and "Where a step's time goes" not in text


def test_a_killed_process_has_whole_steps(tmp_path):
    """GPU times that CUPTI still had are lost; the steps that they are of do not count as idle."""
    (tmp_path / "truth").mkdir()
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="nvtx:step", SIMCUDA_TRUTH=tmp_path / "truth",
                            SIMCUDA_TRUTH_SYNC=1, GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=100000")
    with subprocess.Popen([harness.SIMTRAIN, "--steps", "100000", "--kernel-us", "100"], env=env, stdout=subprocess.DEVNULL) as process:
        log = tmp_path / f"truth/truth_{process.pid}.jsonl"
        while not log.exists() or log.read_text().count('"t":"step"') < 200:
            time.sleep(0.05)
        process.kill()
    found = report(tmp_path / "out")
    steps = [step["step"] for step in found["steps"]]
    assert len(steps) > 50 and steps == list(range(4, 4 + len(steps)))
    said = sum(each["value"] for each in found["findings"] if each["kind"] == "untimed_steps")
    records = harness.records(tmp_path / "out")
    recorded = [record["number"] for record in harness.of_kind(records, "step") if record["in_window"]]
    assert len(recorded) == len(steps) + said
    expected = truth_kernels(tmp_path / "truth", steps[0], steps[-1])
    assert sum(row["count"] for row in found["kernels"]) == sum(expected.values()) > 0


def test_the_first_step_is_as_long_as_its_own_time(tmp_path):
    """It begins with the host's own work, after the wait for CUPTI, which is not the step's."""
    script = tmp_path / "sleeping.py"
    script.write_text(f"""import sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
time.sleep(1)
for _ in range(8):  # a step after the window's last would be in the log where the dump is slow to come
    time.sleep(0.02)
    gpu.work()
""")
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", SIMCUDA_CUPTI="subscribe_ms=2000",
                            GPUPROF_SCHEDULE="skip_first=3,warmup=0,active=5")
    done = harness.run([harness.PYTHON, script], env=env)
    assert done.code == 0, done.err
    lengths = [step["duration_us"] for step in report(tmp_path / "out")["steps"]]
    assert len(lengths) == 5 and all(20_000 <= length < 1_500_000 for length in lengths)
    shown = harness.checked("info", tmp_path / "out").out
    log = re.findall(r"step log +8 steps since the program started, .*, median (\d+\.\d+) ms", shown)
    assert len(log) == 1, shown
    assert 20 <= float(log[0]) < 125  # the program's start alone is an eighth of a second more on average


@pytest.mark.parametrize("first_step, mode", [(0, "node"), (3, "node"), (0, "trace")])
def test_graphs_timed_as_a_whole_are_said(tmp_path, first_step, mode):
    """simtrain captures its graph in step 0."""
    warmup = min(1, first_step)  # where CUPTI is slow to come, it costs the window nothing
    schedule = f"skip_first={first_step - warmup},warmup={warmup},active=8"
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", schedule, "--step", "nvtx:step", "--",
                        harness.SIMTRAIN, "--steps", "14", "--graphs"],
                       env=harness.environment(SIMCUDA_TRUTH=tmp_path, GPUPROF_ACTIVITIES=f"+graph:{mode}"))
    assert done.code == 0, done.err
    found = report(tmp_path / "out/latest")
    said = [each for each in found["findings"] if each["kind"] == "whole_graphs"]
    if mode == "node":
        assert not said and sum(row["count"] for row in found["kernels"]) > 100
        return
    [path] = tmp_path.glob("truth_*.jsonl")
    numbers = {step["step"] for step in found["steps"]}
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    steps = [line for line in lines if line["t"] == "step" and line["n"] in numbers]
    begin, end = min(step["begin"] for step in steps), max(step["end"] for step in steps)
    graphs = [work for work in lines if work["t"] == "gpu" and work["type"] == "graph" and begin <= work["begin"] < end]
    assert len(graphs) == 8 and len(steps) == 8
    # Of the steps as they were recorded: on a busy machine the first one's thread is kept waiting before its own time begins.
    whole = 100 * sum(work["end"] - work["begin"] for work in graphs) / sum(step["duration_us"] * 1000 for step in found["steps"])
    assert [each["value"] for each in said] == [pytest.approx(whole, abs=1)]


def test_a_kineto_export_says_the_same(tmp_path):
    latest, ours = judged(tmp_path, "--data-ms", "20", "--comm-mb", "8", "--ranks", "2", "--malloc-per-step", "3")
    harness.checked("convert", latest, "--to", "kineto", "-o", tmp_path / "kineto")
    theirs = report(tmp_path / "kineto")
    assert [v["cause"] for v in theirs["verdict"]][0] == [v["cause"] for v in ours["verdict"]][0] == "data_loading"
    for part, percent in ours["breakdown_pct"].items():
        assert theirs["breakdown_pct"][part] == pytest.approx(percent, abs=2), part
    assert ours["collectives"] and ours["collectives"][0]["bytes"] > 0
    for table, figures in ("kernels", ["count"]), ("collectives", ["count", "bytes"]), ("copies", ["count", "bytes"]):
        of = [{row["name"]: [row[figure] for figure in figures] for row in each[table]} for each in (ours, theirs)]
        assert of[0] == of[1], table


def test_text_fits_80_columns_and_a_file_is_written(tmp_path):
    latest, _ = judged(tmp_path, "--data-ms", "20", "--comm-mb", "8", "--ranks", "2", "--malloc-per-step", "3")
    text = harness.checked("report", latest).out
    assert "1. data_loading:" in text
    assert "\033" not in text
    assert max(len(line) for line in text.splitlines()) <= 80, text
    harness.checked("report", latest, "-o", tmp_path / "report.txt")
    assert (tmp_path / "report.txt").read_text() == text


def test_traces_of_one_process_are_its_windows_in_order_of_time(tmp_path):
    """As torch.profiler's handler writes them; what is of one time is of two runs, and said to be."""
    for name, later_ms in ("b", 0), ("a", 40), ("copy/of_b", 0):
        document = kineto_traces.training(steps=3).document()
        document["baseTimeNanoseconds"] += later_ms * 1_000_000
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document))
    done = harness.checked("report", "--format", "json", tmp_path / "a.json", tmp_path / "b.json")
    found = json.loads(done.out)
    assert (done.err, found["ranks"]) == ("", 1)
    assert [(row["window"], row["step"]) for row in found["steps"]] == [(window, step) for window in (0, 1) for step in (3, 4, 5)]
    assert [round(curve["begin_us"]) for curve in found["curves"]] == [0, 40_000]
    done = harness.checked("report", "--format", "json", tmp_path / "b.json", tmp_path / "copy/of_b.json")
    assert "2 traces are of rank 0 (" in done.err and "gpuprof diff" in done.err
    for name in "b", "copy/of_b":  # nor is a rank needed
        document = json.loads((tmp_path / f"{name}.json").read_text())
        document.pop("distributedInfo")
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    done = harness.checked("report", tmp_path / "b.json", tmp_path / "copy/of_b.json")
    assert "2 traces are of process 4000 (" in done.err


def window_of(folder, rank, window):
    """The trace of a rank's steps 10 * window and on; each has a kernel, for which rank 1 takes longer, and an all-reduce."""
    trace = kineto_traces.Trace(rank, 2)
    trace.now += window * 50_000_000
    for number in range(10 * window, 10 * window + 5):
        begin = trace.now
        trace.launch("cudaLaunchKernel", "kernel", "gemm", trace.external, length=300_000 + 100_000 * rank)
        trace.launch("cudaLaunchKernel", "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", trace.external, stream=20, length=450_000,
                     **{"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float",
                        "Process Group Name": "0", "Process Group Ranks": "[0, 1]"})
        trace.now = begin + 600_000
        trace.put("X", "user_annotation", f"ProfilerStep#{number}", trace.pid, trace.thread, begin, 600_000, **{"External id": 1})
    (folder / f"rank{rank}.{window}.json").write_text(trace.text())


def test_a_rank_without_its_first_trace_is_compared_where_it_was(tmp_path):
    for rank, window in (0, 0), (0, 1), (1, 1):
        window_of(tmp_path, rank, window)
    found = report(tmp_path)
    assert {(row["rank"], row["window"], row["step"] // 10) for row in found["steps"]} == {(0, 0, 0), (0, 1, 1), (1, 1, 1)}
    assert [row["rank"] for row in found["stragglers"]] == [0, 1] and found["collective_times"]


def test_a_window_within_one_step_is_looked_at_as_a_whole(tmp_path):
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", "skip_first=13,wait=0,warmup=0,active=8,repeat=1",
                        "--", harness.SIMTRAIN, "--steps", "14"], env=harness.environment())
    assert done.code == 0, done.err
    found = report(tmp_path / "out" / "latest")
    assert found["whole_windows"] and found["kernels"] and "whole_windows" in [row["kind"] for row in found["findings"]]


def without_steps(folder, *kept):
    """A trace of ranks that did two steps each, which nobody marked: too few to be found. `kept`: categories."""
    for rank in range(2):
        document = kineto_traces.training(rank, 2, steps=2).document()
        document["traceEvents"] = [e for e in document["traceEvents"] if not e["name"].startswith("ProfilerStep#")
                                   and (not kept or e.get("cat", kept[0]) in kept)]
        (folder / f"rank{rank}.json").write_text(json.dumps(document))
    return document["traceEvents"]


def test_what_has_no_steps_is_looked_at_as_a_whole(tmp_path):
    events = without_steps(tmp_path)
    found, tables = report(tmp_path), json.loads(harness.checked("report", "--tables", "--format", "json", tmp_path).out)
    assert found["whole_windows"] and tables["whole_windows"] and found["findings"][-1]["kind"] == "whole_windows"
    drawn = [e for e in events if e["ph"] == "X"]
    length = max(e["ts"] + e["dur"] for e in drawn) - min(e["ts"] for e in drawn)
    assert [row["duration_us"] for row in found["steps"]] == pytest.approx([length] * 2, rel=0.001)
    kernels = [e["name"] for e in drawn if e["cat"] == "kernel"]
    assert {row["name"]: row["count"] for row in found["kernels"]} == {name: 2 * kernels.count(name) for name in set(kernels)}
    assert tables["kernels"] == found["kernels"] and found["operators"] and found["verdict"][0]["confidence"] < 0.7
    text = harness.checked("report", tmp_path).out
    assert text.startswith("No steps; as a whole on 2 ranks: ") and "per window" in text, text
    own, = [each["text"] for each in found["findings"] if each["kind"] == "whole_windows"]
    assert not re.search("a step|step time|per step", " ".join(text.split()).replace(own, "")), text
    assert max(len(line) for line in text.splitlines()) <= 80, text


def test_a_trace_of_the_host_alone_has_its_operators(tmp_path):
    events = without_steps(tmp_path, "cpu_op")
    found = report(tmp_path)
    assert found["whole_windows"] and found["verdict"] == [] and found["reason"] == "no GPU times: the trace has no GPU events"
    count = sum(e["name"] == "aten::linear" for e in events)
    assert [(row["name"], row["count"]) for row in found["operators"]] == [("aten::linear", 2 * count)] and count == 8


def test_tables_alone_are_those_of_the_whole_report(tmp_path):
    latest = record(tmp_path, "--data-ms", "20", "--comm-mb", "8", "--ranks", "2", "--malloc-per-step", "3")
    whole, tables = report(latest), json.loads(harness.checked("report", "--tables", "--format", "json", latest).out)
    assert tables["tables_only"] and not whole["tables_only"]
    for table in "kernels", "collectives", "copies", "synchronizations", "allocations", "memory", "curves", "step_time_us":
        assert tables[table] and tables[table] == whole[table], table
    assert "verdict" not in tables and "breakdown_pct" not in tables
    text = harness.checked("report", "--tables", latest).out
    assert "Kernels that took longest" in text and "Verdict" not in text and "No verdict" not in text
    harness.checked("report", "--tables", "--format", "html", "-o", tmp_path / "page.html", latest)
    assert "<h2>Verdict" not in (tmp_path / "page.html").read_text()


def test_without_gpu_times_there_is_a_reason_and_no_verdict(tmp_path):
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", SCHEDULE, "--set", "GPUPROF_CUPTI=off",
                        "--", harness.SIMTRAIN, "--steps", "14"], env=harness.environment())
    assert done.code == 0, done.err
    found = report(tmp_path / "out" / "latest")
    assert found["verdict"] == []
    assert "GPU times" in found["reason"]
    assert len(found["steps"]) == 8
    assert "No verdict" in harness.checked("report", tmp_path / "out" / "latest").out


def test_kernels_that_were_not_asked_for_are_no_loss(tmp_path):
    """Nor are they waited for, and copies alone say nothing of how busy the GPU is."""
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", SCHEDULE, "--activities=-kernel",
                        "--", harness.SIMTRAIN, "--steps", "14"], env=harness.environment())
    assert done.code == 0 and "missing" not in done.err, done.err
    found = report(tmp_path / "out" / "latest")
    assert found["verdict"] == [] and found["reason"] == "no GPU times: kernels are not among the activities (GPUPROF_ACTIVITIES)"
    assert not any(found["losses"].values()) and not found["gpu"]["timed"] and not any(found["breakdown_pct"].values())
    assert found["copies"] and not found["kernels"]


def test_nothing_readable_is_an_error(tmp_path):
    (tmp_path / "empty.gpuprof").write_bytes(b"")
    done = harness.gpuprof("report", tmp_path / "empty.gpuprof")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1 and "empty.gpuprof" in done.err
