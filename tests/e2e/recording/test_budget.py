# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_BUDGET: programs that are costly to record (tests/programs/costly.c) stay within what it allows, and dump, report
and standard error say what is missing and since when. How much time that saves: tests/bench/budget_bench.py."""
import json
import re
import signal
import subprocess
import sys
import time

import pytest

import harness

STEP_US = 10000
QUICK = {"LD_LIBRARY_PATH": harness.HAZARDS / "quick_cudart", "GPUPROF_CUPTI": "off"}  # its calls take no time
BUDGETS = [2, 5, 10]
PROGRAMS = {  # what is costly in them: how many of it a step, and which records it is
    "calls": ("events", 120000, "event"),
    "operators": ("operators", 20000, "op"),
    "stacks": ("launches", 1500, None),
    "waits": ("waits", 120000, "sync"),
}
AT_ONCE = 50e6  # ns: a call that was being made when its kind was left out has ended


def settings_of(folder, budget, **more):
    return harness.preloaded(**{"GPUPROF_OUTPUT": folder / "out", "GPUPROF_BUDGET": budget, "GPUPROF_BUFFER_MB": 256,
                                **harness.WHOLE_RUN, **more})


def record(folder, budget, *arguments, milliseconds=1500, step_us=STEP_US, program="costly_calls", **more):
    """Dumps of a run of tests/programs/costly.c, and the run."""
    more = {**(QUICK if program == "costly_calls" else {}), **more}
    done = harness.run([harness.HAZARDS / program, milliseconds, step_us, *arguments], settings_of(folder, budget, **more))
    assert done.code == 0, done.err
    return harness.dumps(folder / "out"), done


def budget_of(dump):
    return harness.info(dump)["files"][0]["budget"]


def kinds(budget):
    return [each["kind"] for each in budget["left_out"]]


def said(done):
    return [line for line in done.err.splitlines() if "GPUPROF_BUDGET" in line]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("costly", PROGRAMS)
def test_a_costly_program_stays_within_its_budget(tmp_path, costly, budget):
    argument, each_step, record_kind = PROGRAMS[costly]
    (dump,), done = record(tmp_path, budget, f"{argument}={each_step}", "depth=60", GPUPROF_STACKS="launch")
    found = budget_of(dump)
    assert found["percent"] == budget and found["cost_percent"] <= 1.2 * budget, found
    assert set(kinds(found)) <= {costly, "samples", "stacks"}, found
    if budget == min(BUDGETS):
        assert costly in kinds(found), found
    assert bool(said(done)) == bool(found["left_out"]), done.err
    steps, told = int(done.out.split()[0]), harness.info(dump)["files"][0]
    events, lost = told["events"], told["losses"].get("buffer_full", 0)  # where a busy machine does not write as fast
    launches = steps * (each_step if costly == "stacks" else 2)
    assert launches - lost <= events["launch"] <= launches
    for each in found["left_out"]:
        assert each["cost_percent"] >= 0.05 * budget and 0 < each["since_step"] < steps, each
        if record_kind and each["kind"] == costly:
            # An operator around all of a step, and the wait at its end.
            assert events[record_kind] <= (each_step + 1) * (each["since_step"] + 1), (events, each, steps)


def test_what_a_lost_record_costs_is_counted(tmp_path):
    """Most records of the small buffer are lost: what a call costs there is about what it costs with a large one, whose pages
    are used again (fresh ones cost more). The least of three runs of each: other load only adds."""
    each = {1: [], 32: []}
    for number in range(12):
        for size, costs in each.items():
            if len(costs) == 3:
                continue
            (dump,), _ = record(tmp_path / f"{number}-{size}", "", "events=120000", milliseconds=400, GPUPROF_BUFFER_MB=size)
            found = harness.info(dump)["files"][0]
            kept, lost = sum(found["events"].values()), found["losses"].get("buffer_full", 0)
            if size > 1 or lost > 5 * kept:  # a busy machine makes too few calls in that time
                costs.append(found["own_cost"]["hooks_ns"] / (kept + lost))
    assert each[1], "each run kept too many"
    assert min(each[1]) > min(each[32]) / 3, each


def test_stacks_end_when_they_are_left_out(tmp_path):
    (dump,), done = record(tmp_path, 2, "launches=1500", "depth=60", milliseconds=500, GPUPROF_STACKS="launch")
    since = next(each["since_mono_ns"] for each in budget_of(dump)["left_out"] if each["kind"] == "stacks")
    begins = [r["begin_mono_ns"] for r in harness.of_kind(harness.records(dump), "launch") if r.get("stack")]
    assert begins and max(begins) < since + AT_ONCE


def test_launches_gpu_work_and_steps_are_all_there(tmp_path):
    arguments = ["launches=4", "events=20000", "waits=20000", "allocations=2000"]
    (dump,), done = record(tmp_path, 0.2, *arguments, program="costly")
    assert {"calls", "waits"} <= set(kinds(budget_of(dump))), done.err
    steps = int(done.out.split()[0])
    found = harness.info(dump)["files"][0]
    assert found["events"]["launch"] == found["events"]["gpu_kernel"] == steps * 4
    assert found["losses"] == {} and found["steps"]["log"] >= steps - 1, found["steps"]


def test_operators_that_run_when_they_are_left_out_end_as_usual(tmp_path):
    (dump,), done = record(tmp_path, 2, "operators=20000", milliseconds=500)
    since = next(each["since_mono_ns"] for each in budget_of(dump)["left_out"] if each["kind"] == "operators")
    operators = harness.of_kind(harness.records(dump), "op")
    around = [r for r in operators if r["name"] == "aten::around"]
    within = [r for r in operators if r["name"] == "aten::add"]
    assert around and all(r["begin_mono_ns"] <= since for r in operators)
    last = max(around, key=lambda r: r["begin_mono_ns"])
    assert not [r for r in operators if "open_end" in r["flags"]]
    assert max(r["end_mono_ns"] for r in within) <= last["end_mono_ns"]
    assert len(within) >= 20000 * (len(around) - 1), "those around have theirs"


def test_report_info_and_parse_say_what_is_missing(tmp_path):
    (dump,), done = record(tmp_path, 2, "events=120000")
    found = budget_of(dump)
    line, = said(done)
    assert "API calls that start no GPU work" in line and "GPUPROF_BUDGET allows 2 %" in line
    text = harness.checked("info", dump).out
    row, = [each for each in text.splitlines() if each.startswith("  budget")]
    step = found["left_out"][0]["since_step"]
    assert re.search(rf"2 % of the window: not recorded are API calls that start no GPU work since step {step} ", row), row
    summary = json.loads(harness.checked("parse", "--format", "json", dump).out.splitlines()[-1])
    assert summary["budget"] == found
    report = json.loads(harness.checked("report", "--format", "json", dump).out)
    assert [each["kind"] for each in report["left_out_kinds"]] == kinds(found)
    assert {"allocation", "host_work"} <= set(report["unknown_causes"])
    assert not {each["cause"] for each in report["verdict"]} & set(report["unknown_causes"])
    finding, = [each["text"] for each in report["findings"] if each["kind"] == "left_out_kinds"]
    assert f"since step {step} " in finding and "allocation" in finding
    assert f"since step {step} " in " ".join(harness.checked("report", dump).out.split())


def test_what_is_left_out_stays_so_in_later_windows(tmp_path):
    schedule = "skip_first=2,wait=1,skip_first_wait=1,warmup=1,active=40,repeat=2"
    dumps, done = record(tmp_path, 2, "events=120000", milliseconds=1500, GPUPROF_SCHEDULE=schedule)
    first, second = (budget_of(dump) for dump in dumps)
    assert kinds(first) == kinds(second) == ["calls"], done.err
    header = harness.info(dumps[1])["files"][0]
    assert abs(second["left_out"][0]["since_mono_ns"] - header["window_begin_mono_ns"]) < 1000
    assert second["left_out"][0]["cost_percent"] is None and second["cost_percent"] <= 2.4
    assert "event" not in header["events"] and len(said(done)) == 1
    assert "in the whole window" in harness.checked("info", dumps[1]).out


def test_a_window_too_short_for_a_look_decides_for_those_after_it(tmp_path):
    schedule = "skip_first=2,wait=1,skip_first_wait=1,warmup=1,active=2,repeat=2"
    dumps, done = record(tmp_path, 2, "events=120000", milliseconds=500, GPUPROF_SCHEDULE=schedule)
    first, second = (budget_of(dump) for dump in dumps)
    assert (kinds(first), kinds(second)) == ([], ["calls"]), done.err
    line, = said(done)
    assert "in the windows after this one" in line


@pytest.mark.parametrize("program, budget, events", [("costly_calls", 2, 480000), ("costly", 0.2, 40000)])
def test_an_early_window_decides_for_itself_alone(tmp_path, program, budget, events):
    """The second with CUPTI, which stays on between the two: its callbacks of such calls come back."""
    (dump,), done = record(tmp_path, budget, f"events={events}", milliseconds=3500, step_us=100000, program=program,
                           GPUPROF_SCHEDULE="")
    assert "_w0" in dump.name
    lines = [line for line in said(done) if "no longer recorded" in line]
    assert len(lines) == 2 and "in this window:" in lines[0] and "in this window and those after it" in lines[1], done.err
    header = harness.info(dump)["files"][0]
    assert header["budget"]["left_out"][0]["since_mono_ns"] > header["window_begin_mono_ns"] + 50e6
    assert header["events"]["event"] > 0, "the window began with all kinds"


def test_a_killed_process_tells_it(tmp_path):
    command = [harness.HAZARDS / "costly_calls", "60000", str(STEP_US), "events=120000"]
    with subprocess.Popen(command, env=settings_of(tmp_path, 2, **QUICK), stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "GPUPROF_BUDGET" in line:
                break
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
    part = list((tmp_path / "out").rglob("*.gpuprof.part"))
    found = harness.info(*part)["files"][0]
    assert kinds(found["budget"]) == ["calls"] and found["budget"]["cost_percent"] is None
    assert found["budget"]["left_out"][0]["since_step"] > 0


def test_one_line_says_that_nothing_more_can_be_left_out(tmp_path):
    (dump,), done = record(tmp_path, 0.1, "launches=20000")
    found = budget_of(dump)
    assert found["cost_percent"] > 0.1
    assert len([line for line in said(done) if "nothing more of weight can be left out" in line]) == 1, done.err


def test_host_samples_are_left_out(tmp_path):
    script = tmp_path / "loop.py"
    script.write_text("""
import ctypes, time
cuda = ctypes.CDLL("libcudart.so.13")
def deep(n):
    return deep(n - 1) if n else sum(i * i for i in range(1000))
end = time.monotonic() + 4
while time.monotonic() < end:
    for i in range(50):
        deep(30)
    cuda.cudaDeviceSynchronize()
""")
    done = harness.run([sys.executable, script], settings_of(tmp_path, 0.2))
    dump, = harness.dumps(tmp_path / "out")
    found = budget_of(dump)
    if "no stacks of Python" in done.err:
        pytest.skip("gpuprof does not know this Python's frames")
    assert "samples" in kinds(found), (found, done.err)
    since = next(each["since_mono_ns"] for each in found["left_out"] if each["kind"] == "samples")
    late = [r for r in harness.of_kind(harness.records(dump), "sample") if r["time_mono_ns"] > since + AT_ONCE]
    assert not late and found["cost_percent"] <= 0.24, found


# CUpti_ActivityOverheadKind: what CUDA itself takes, with a profiler or without.
OF_CUDA = {"driver compiler": 1, "module loading": 4 << 16, "lazy function loading": 5 << 16, "command buffer full": 6 << 16,
           "UVM init": 8 << 16}
OF_CUPTI = {"buffer flush": 1 << 16, "instrumentation": 2 << 16, "resource": 3 << 16, "buffer request": 7 << 16}
OVERHEAD_US = STEP_US // 5


def with_overhead(folder, kind):
    """File of `info` of a run whose steps each have such an overhead, and how much that is, in ns."""
    (dump,), done = record(folder, 5, "waits=50", milliseconds=600, program="costly",
                           SIMCUDA_CUPTI=f"overhead_kind={kind},overhead_us={OVERHEAD_US}")
    lengths = [r["end_mono_ns"] - r["begin_mono_ns"] for r in harness.of_kind(harness.records(dump), "overhead")]
    steps = int(done.out.split()[0])
    assert sum(abs(length - OVERHEAD_US * 1000) < 10000 for length in lengths) >= steps - 2, lengths
    return harness.info(dump)["files"][0], steps * OVERHEAD_US * 1000, done


@pytest.mark.parametrize("kind", OF_CUDA)
def test_what_cuda_itself_takes_is_no_cost_of_recording(tmp_path, kind):
    found, planned, done = with_overhead(tmp_path, OF_CUDA[kind])
    assert found["own_cost"]["cupti_ns"] < 0.1 * planned, found["own_cost"]
    assert kinds(found["budget"]) == [] and not said(done), done.err


@pytest.mark.parametrize("kind", OF_CUPTI)
def test_what_cupti_takes_is_a_cost_of_recording(tmp_path, kind):
    found, planned, done = with_overhead(tmp_path, OF_CUPTI[kind])
    assert found["own_cost"]["cupti_ns"] > 0.5 * planned and found["budget"]["cost_percent"] > 5, found["own_cost"]
    assert said(done)


def test_without_a_budget_nothing_is_left_out(tmp_path):
    (dump,), done = record(tmp_path, "none", "events=3000", program="costly")
    assert budget_of(dump) is None and not said(done)
    steps = int(done.out.split()[0])
    assert harness.info(dump)["files"][0]["events"]["event"] >= 3000 * steps


@pytest.mark.skipif(bool(harness.SANITIZER), reason="calls are slow there, and the drain thread comes to the buffers first")
def test_faults_in_fresh_buffers_are_times_of_gpuprof(tmp_path):
    """What a thread takes to touch a buffer that the drain thread did not come to."""
    (dump,), _ = record(tmp_path, 50, "events=60000", milliseconds=100)
    lengths = [int(line.split()[4]) for line in harness.checked("parse", dump).out.splitlines() if 'type="Record Buffer"' in line]
    buffers = harness.info(dump)["files"][0]["events"]["event"] // 1022
    assert 0 < len(lengths) <= buffers, (len(lengths), buffers)  # the first ones were touched before the window
    assert min(lengths) >= 5000, lengths  # ns; shorter ones are not worth a record
