# SPDX-License-Identifier: Apache-2.0
"""Each fault that CUPTI is reported to have (tests/simcuda/README.md), with graphs captured before, inside and
across the window, one and three windows, one and four threads that mark steps: what is in the dump is so, and what
is missing is counted and named. `ctest -R e2e_cupti_faults` runs each switch with every value of each of these three,
and all of them without a switch; with GPUPROF_TEST_FAULTS=all in the environment it runs all combinations."""
import itertools
import json
import os
import re

import pytest

import harness
import truth

PROGRAM = harness.HAZARDS / "marking_threads"
# A thread's rounds in the first window are 4 to 6.
CAPTURES = {"before": (0, 0), "inside": (5, 5), "across": (0, 5)}

# Of a record without times it cannot be told which launch it is of where CUPTI's ids are wrong: from the second
# session on. Neither can it of those that follow, until the host has waited; nor has the launch a record then.
UNJOINED = ["gpu_unjoined", "graph_untimed", "unfinished_gpu"]
# What may be lost under each switch in the first window, in later ones; empty: nothing may.
FAULTS = {
    "": ([], []),
    "graph_ids=right": ([], []), "graph_ids=stale": ([], []), "graph_ids=previous": ([], []), "graph_ids=zero": ([], []),
    "late_nodes=0": (["graph_untimed"], ["graph_untimed"]),
    "late_graph_times": ([], []),
    "late_transfers_as_kernels": ([], []),
    "foreign_clock=0": ([], []),
    "callback_zero_ts=3": ([], []),
    "dead_after_empty_session": ([], []),
    "no_device_sync_records": ([], []),
    "ids_need_api_kinds": (UNJOINED, UNJOINED),  # until it is noticed
    "buffers_run_out=20": (["bad_timestamp"], ["bad_timestamp", *UNJOINED]),
    "zero_ts=7": (["bad_timestamp"], ["bad_timestamp", *UNJOINED]),
    "reversed_ts=7": (["bad_timestamp"], ["bad_timestamp", *UNJOINED]),
    "drop=9": (["cupti_dropped", "unfinished_gpu"], ["cupti_dropped", *UNJOINED]),
    "unknown_kind=9": (["cupti_unknown"], ["cupti_unknown"]),
    "incomplete=9": (["cupti_incomplete", *UNJOINED], ["cupti_incomplete", *UNJOINED]),
    "hold_buffers=4": ([], []),
    "reversed_order": ([], []),
    "subscribe_ms=200": ([], []),
    "whole_buffers=0": ([], []),
    "deliver_in_calls": ([], []),
    "dies_without_driver": ([], []),
}
# Those of a release that gpuprof tells by its functions.
RELEASES = {"dies_without_driver": {"SIMCUDA_VERSION": "13.2", "LD_LIBRARY_PATH": f"{harness.SIMCUDA}13_2"}}
# Where CUPTI's ids are wrong and threads launch while it is attached: until the host has waited for each of them.
OPEN = UNJOINED

CASES = list(itertools.product(CAPTURES, [1, 3], [1, 4]))


def cases():
    """All of them, or for each switch so many that each value of the three is among them."""
    for number, fault in enumerate(FAULTS):
        chosen = CASES
        if fault and os.environ.get("GPUPROF_TEST_FAULTS") != "all":
            names = list(CAPTURES)
            chosen = [(names[(number + i) % 3], windows, threads)
                      for i, (windows, threads) in enumerate([(3, 1), (1, 1), (3, 4)])]
        yield from ((fault, *case) for case in chosen)


def profile(folder, threads, when, windows, rounds=0, wait="device", pause_us=300, **settings):
    rounds = rounds or (10 if windows == 1 else 22)
    command = [PROGRAM, threads, *CAPTURES.get(when, (-1, -1)), rounds, pause_us, wait]
    env = harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder, **{
            "GPUPROF_STEP": "sync:1",
            "GPUPROF_SCHEDULE": f"skip_first={3 * threads},wait={2 * threads},skip_first_wait=1,warmup={threads},"
                                f"active={3 * threads},repeat={windows}", **settings})
    done = harness.run(command, env)
    assert done.code == 0 and done.out == f"{threads} threads, {rounds} rounds\n", done.out + done.err
    return done, sorted((truth.Comparison(dump, folder, by_clock=threads > 1) for dump in harness.dumps(folder / "out")),
                        key=lambda c: c.header["window"])


def unexpected(comparison, fault):
    """Differences that the switch itself does not make."""
    by_kernel = fault == "late_transfers_as_kernels"
    late = re.compile(r'(\d+ pieces of work, \d+ records|kernel differs).*"graph": [1-9]|0 pieces of work, 1 records')
    return [p for p in comparison.problems if not (by_kernel and late.search(p))]


def wrong_work(comparison, fault):
    """GPU records that have a time and are not what ran then, or that are joined to another call."""
    works = {}
    for work in comparison.truth:
        if work["t"] == "gpu" and work["type"] in truth.GPU_KINDS:
            kinds = {truth.GPU_KINDS[work["type"]]}
            if fault == "late_transfers_as_kernels" and work.get("node"):
                kinds.add("gpu_kernel")
            for kind in kinds:
                works.setdefault((kind, work["stream"], work.get("node", 0)), []).append(work)
    wrong = []
    for record in harness.of_kind(comparison.records, *truth.GPU_KINDS.values()):
        if "no_time" in record.get("flags", ()):
            continue
        key = (record["kind"], record["lane"]["stream"], record.get("graph_node", 0))
        if not any(abs(record["begin_mono_ns"] - work["begin"]) <= truth.GPU_TOLERANCE_NS
                   and abs(record["end_mono_ns"] - work["end"]) <= truth.GPU_TOLERANCE_NS
                   and record.get("correlation", 0) in (0, work["corr"]) for work in works.get(key, ())):
            wrong.append(record)
    return wrong


def assert_no_silent_error(comparison, fault, allowed, done):
    losses = comparison.summary["losses"]
    assert losses.keys() <= set(allowed), (losses, done.err)
    problems = unexpected(comparison, fault)
    assert losses or not problems, (len(problems), problems[:3], done.err)
    assert comparison.counts["launch"] > 0
    if not losses:
        assert comparison.counts["gpu_kernel"] > 0, done.err
        return
    # Calls do not suffer, and whatever has a time or a launch has the right one.
    wrong = [p for p in problems if p.startswith(("name differs", "result differs", "launch shape", "a call that", "a record that"))]
    assert not wrong and not wrong_work(comparison, fault), (wrong[:2], wrong_work(comparison, fault)[:2])


@pytest.mark.parametrize("fault, when, windows, threads", cases())
def test_fault(fault, when, windows, threads, tmp_path):
    done, comparisons = profile(tmp_path, threads, when, windows, SIMCUDA_CUPTI=fault)
    assert len(comparisons) == windows, done.err
    for comparison in comparisons:
        first = comparison.header["window"] == 0
        own = FAULTS[fault][0 if first else 1]
        assert_no_silent_error(comparison, fault, own + (OPEN if threads > 1 and not first else []), done)
    losing = [c for c in comparisons if c.summary["losses"]]
    if losing:
        said = harness.checked("info", tmp_path / "out").out
        for name in losing[-1].summary["losses"]:
            assert name in said, (name, said)


# The first launch of a round marks, with nothing on the GPU. The warm-up has room for a wait.
BY_KERNEL = {"GPUPROF_STEP": "kernel:hazard_kernel:1",
             "GPUPROF_SCHEDULE": "skip_first=6,wait=20,skip_first_wait=1,warmup=6,active=3,repeat=3"}


TAKEN_DOWN = {**dict.fromkeys(CAPTURES, 0), "never": 3}


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("when", TAKEN_DOWN)
def test_taken_down_after_each_window(when, threads, tmp_path):
    """By a call of the program's, but for programs with a graph; the next window attaches anew."""
    schedule = f"skip_first={3 * threads},wait={100 * threads},skip_first_wait=1,warmup={threads},active={3 * threads},repeat=3"
    done, comparisons = profile(tmp_path, threads, when, 3, rounds=500, GPUPROF_CUPTI_TEARDOWN="1", GPUPROF_LOG="debug",
                                GPUPROF_SCHEDULE=schedule)
    assert len(comparisons) == 3, done.err
    for comparison in comparisons:
        assert_no_silent_error(comparison, "", OPEN if threads > 1 and comparison.header["window"] > 0 else [], done)
    assert done.err.count("attaching CUPTI took") == 3, done.err
    assert done.err.count("CUPTI is taken down") == TAKEN_DOWN[when], done.err
    assert done.err.count("CUPTI is not taken down: ") == 3 - TAKEN_DOWN[when], done.err


def test_not_taken_down_while_a_graph_runs(tmp_path):
    """cuptiFinalize would end a program whose graph is under way (the simulator aborts)."""
    done = harness.run([PROGRAM, 1, 0, 0, 500, 0, "none"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_CUPTI_TEARDOWN="1", GPUPROF_LOG="debug", **BY_KERNEL))
    assert done.code == 0 and done.out == "1 threads, 500 rounds\n", done.err
    assert "is not taken down: 1 CUDA graph lives" in done.err and "is taken down" not in done.err, done.err


def test_nobody_is_there_to_take_it_down(tmp_path):
    """The window lasts to the program's end."""
    done, [comparison] = profile(tmp_path, 1, "never", 1, GPUPROF_CUPTI_TEARDOWN="1", GPUPROF_LOG="debug",
                                 GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=1000,repeat=1")
    assert comparison.summary["losses"] == {} and "is taken down" not in done.err, done.err


@pytest.mark.parametrize("wait", ["stream", "event"])
@pytest.mark.parametrize("ids", ["stale", "previous", "zero"])
def test_a_wait_for_the_stream_of_a_graph_is_enough(ids, wait, tmp_path):
    done, comparisons = profile(tmp_path, 1, "before", 3, rounds=100, wait=wait, SIMCUDA_CUPTI=f"graph_ids={ids}", **BY_KERNEL)
    assert len(comparisons) == 3, done.err
    for comparison in comparisons:
        assert comparison.summary["losses"] == {}, done.err
        comparison.assert_right("launch", "gpu_kernel", "gpu_copy", "gpu_set")


def test_without_any_wait_launches_are_not_guessed(tmp_path):
    """The host never learns that a launch is over: where CUPTI's ids are wrong nothing is joined, and that is said."""
    done, comparisons = profile(tmp_path, 1, "before", 3, rounds=100, wait="none", pause_us=5000, GPUPROF_LOG="debug", **BY_KERNEL)
    assert len(comparisons) == 3, done.err
    for comparison in comparisons:
        assert_no_silent_error(comparison, "", UNJOINED if comparison.header["window"] > 0 else [], done)
    # Where a dump was not complete before the next window was near, CUPTI's session went on.
    sessions = done.err.count("attaching CUPTI took")
    unjoined = [c for c in comparisons if "gpu_unjoined" in c.summary["losses"]]
    assert sessions > 1 and len(unjoined) >= sessions - 1, done.err
    assert "waits for" in done.err


def test_work_that_goes_on_after_the_window_is_no_loss(tmp_path):
    """The host runs ahead: CUPTI hands over what is not finished as it is switched off."""
    done, [comparison] = profile(tmp_path, 1, "before", 1, rounds=60, wait="none", SIMCUDA_KERNEL_NS=300_000, **{
        **BY_KERNEL, "GPUPROF_SCHEDULE": "skip_first=6,warmup=6,active=3,repeat=1"})
    assert comparison.summary["losses"] == {} and "missing or wrong" not in done.err
    assert not wrong_work(comparison, "") and comparison.counts["gpu_kernel"] > 0


@pytest.mark.parametrize("whole", [0, 1])
def test_a_gpu_that_is_never_done(whole, tmp_path):
    """Some kernel always runs, so that CUPTI keeps the buffer back in which the window's records are (CUPTI guide, flushing)."""
    done, [comparison] = profile(tmp_path, 1, "before", 1, rounds=24, wait="none", pause_us=200_000, SIMCUDA_KERNEL_NS=50_000_000,
                                 SIMCUDA_CUPTI=f"whole_buffers={whole}", **{
        **BY_KERNEL, "GPUPROF_SCHEDULE": "skip_first=6,warmup=2,active=3,repeat=1"})
    assert comparison.summary["losses"] == {}, done.err
    comparison.assert_right("launch", "gpu_kernel", "gpu_copy", "gpu_set")


@pytest.mark.parametrize("whole", [0, 1])
def test_a_gpu_that_is_never_done_without_calls(whole, tmp_path):
    """Nothing tells then which work to wait for: what was launched in the window and ran in it is there all the same."""
    done, [comparison] = profile(tmp_path, 1, "before", 1, rounds=24, wait="none", pause_us=200_000, SIMCUDA_KERNEL_NS=44_000_000,
                                 SIMCUDA_CUPTI=f"whole_buffers={whole}", GPUPROF_PRESET="light", **{
        **BY_KERNEL, "GPUPROF_SCHEDULE": "skip_first=6,warmup=2,active=3,repeat=1"})
    ran = [(work["begin"], work["end"]) for work in comparison.truth if work["t"] == "gpu" and work["type"] in truth.GPU_KINDS
           and comparison.calls_by_correlation[work["corr"]]["begin"] > comparison.begin and work["begin"] < comparison.end - truth.GPU_TOLERANCE_NS]
    found = [(r["begin_mono_ns"], r["end_mono_ns"]) for r in harness.of_kind(comparison.records, *truth.GPU_KINDS.values())]
    assert len(ran) > 5 and comparison.counts["launch"] == 0
    missing = [work for work in ran if not any(abs(work[0] - begin) <= truth.GPU_TOLERANCE_NS and abs(work[1] - end) <= truth.GPU_TOLERANCE_NS
                                               for begin, end in found)]
    assert not missing and comparison.summary["losses"] == {}, (missing, len(ran), done.err)


# CUPTI is attached too late for the first window, and is being given back, of no use, when the second one begins.
AGAIN = """
import ctypes, time, gpu
cuda = ctypes.CDLL(None)
gpu.work()
cuda.cudaProfilerStart()
cuda.cudaProfilerStop()
time.sleep(1.2)
cuda.cudaProfilerStart()
for _ in range(5): gpu.work()
cuda.cudaProfilerStop()
"""


def test_a_window_begins_while_cupti_is_given_back(tmp_path):
    """It waits for that, and for CUPTI to be attached again."""
    done = harness.run([harness.PYTHON, "-c", AGAIN], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="profiler", PYTHONPATH=harness.SOURCE / "tests/programs/python",
        SIMCUDA_CUPTI="first_subscribe_ms=3500,forced_flush_ms=2000"))
    assert done.code == 0 and "window 0 was left out" in done.err, done.err
    file, = harness.info(tmp_path)["files"]
    assert (file["events"].get("gpu_set"), file["gpu_times_missing"]) == (5, ""), (file, done.err)


def test_what_the_profiler_took_is_in_no_cause(tmp_path):
    """CUPTI's buffers are read in calls of the program, a known time each: steps are longer by it, and it is said whose it is."""
    done = harness.run([harness.SIMTRAIN, "--steps", "80", "--layers", "40", "--kernel-us", "10"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_TRUTH=tmp_path, SIMCUDA_CUPTI="deliver_in_calls,next_record_us=100",
        GPUPROF_SCHEDULE="skip_first=10,warmup=2,active=60,repeat=1"))
    assert done.code == 0, done.err
    dump, = harness.dumps(tmp_path / "out")
    steps = sorted((r["begin_mono_ns"], r["end_mono_ns"]) for r in harness.of_kind(harness.records(dump), "step") if r["in_window"])
    begin, end = steps[0][0], steps[-1][1]
    lines = [json.loads(line) for file in tmp_path.glob("*.jsonl") for line in file.read_text().splitlines() if line.strip()]
    planted = [(max(l["begin"], begin), min(l["end"], end)) for l in lines if l["t"] == "profiler" and begin < l["end"] and l["begin"] < end]
    assert sum(b - a for a, b in planted) > 0.3 * (end - begin), planted
    # What the GPU did meanwhile is no idle time.
    work = sorted((l["begin"], l["end"]) for l in lines if l["t"] == "gpu" and l["type"] in ("kernel", "memcpy", "memset", "graph"))
    idle = sum(idle_time(a, b, work) for a, b in planted)
    told = json.loads(harness.checked("report", dump, "--format", "json").out)
    assert abs(told["breakdown_pct"]["profiler"] - 100 * idle / (end - begin)) < 2
    said = [f["text"] for f in told["findings"] if f["kind"] == "profiler_time"]
    assert len(said) == 1 and "CUPTI Buffers" in said[0]
    others = {cause["cause"]: cause["share_pct"] for cause in told["verdict"]}
    assert others.get("host_work", 0) < 5 and others.get("kernel_launch", 0) < 100 - told["breakdown_pct"]["profiler"], told["verdict"]
    assert " profiler " in harness.checked("report", dump).out


def idle_time(begin, end, work):
    """Of [begin, end), what no work covers; `work` in order of begin."""
    idle, at = 0, begin
    for first, last in work:
        if last <= at or first >= end:
            continue
        idle += max(0, first - at)
        at = max(at, min(last, end))
    return idle + max(0, end - at)


@pytest.mark.parametrize("kernel_us", [20, 2000, 20000])
@pytest.mark.parametrize("warmup", [1, 2, 3])
def test_graphs_of_before_a_slow_attach(warmup, kernel_us, tmp_path):
    """Every node's record, whatever the warm-up had time for."""
    done = harness.run([harness.HAZARDS / "graphs", 0, 0, -1, -1], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", SIMCUDA_TRUTH=tmp_path, SIMCUDA_CUPTI="subscribe_ms=300",
        SIMCUDA_KERNEL_NS=kernel_us * 1000, GPUPROF_SCHEDULE=f"skip_first={4 - warmup},warmup={warmup},active=3"))
    comparison = truth.Comparison(harness.dumps(tmp_path / "out")[0], tmp_path)
    comparison.assert_right("launch", "gpu_kernel", "gpu_copy", "gpu_set")
    assert comparison.summary["losses"] == {}, done.err


def test_an_attach_of_four_seconds_puts_the_window_off(tmp_path):
    done, [comparison] = profile(tmp_path, 1, "before", 1, rounds=40, SIMCUDA_CUPTI="subscribe_ms=4000",
                                 SIMCUDA_KERNEL_NS=30_000_000)
    comparison.assert_right("launch", "gpu_kernel", "gpu_copy", "gpu_set")
    assert comparison.summary["losses"] == {} and comparison.header["window"] == 0
    steps = comparison.window_steps()
    assert len(steps) == 3 and steps[0] > 4 and not comparison.summary["partial"]
    assert "attaching CUPTI takes longer than 3 s: window 0 takes as many steps later" in done.err
    assert 4e9 <= comparison.summary["cupti_attach_ns"] < 8e9
    assert "CUPTI attached in 4." in harness.checked("info", tmp_path / "out").out


def test_each_window_that_a_late_attach_costs_is_named(tmp_path):
    """The attach takes as long as some windows of the schedule, and the one that it puts off meets the next."""
    done, comparisons = profile(tmp_path, 1, "before", 1, rounds=48, SIMCUDA_CUPTI="subscribe_ms=4000", SIMCUDA_KERNEL_NS=30_000_000,
                                GPUPROF_SCHEDULE="skip_first=2,wait=0,warmup=1,active=3,repeat=10")
    recorded = {comparison.header["window"] for comparison in comparisons}
    left_out = {int(number) for number in re.findall(r"window (\d+) was left out", done.err)}
    assert recorded and left_out and not recorded & left_out and recorded | left_out == set(range(10)), (recorded, done.err)


def test_a_program_that_ends_before_a_late_attach_is_told(tmp_path):
    done, comparisons = profile(tmp_path, 1, "before", 1, rounds=6, SIMCUDA_CUPTI="subscribe_ms=5000")
    assert not comparisons and "nothing was recorded: the program ended while CUPTI was being attached" in done.err


def test_the_error_of_gpu_times_is_stated(tmp_path):
    _, [comparison] = profile(tmp_path, 1, "before", 1)
    assert 0 < comparison.summary["gpu_time_error_ns"] < 100_000


@pytest.mark.parametrize("ids", ["stale", "previous", "zero"])
def test_a_launch_that_began_before_the_attach_and_ends_in_the_window(ids, tmp_path):
    """Its work begins after the next launch of the same graph: without its place in the order that one would get it."""
    done = harness.run([harness.HAZARDS / "held_launch", 180, 5, 75], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", SIMCUDA_TRUTH=tmp_path, SIMCUDA_CUPTI=f"graph_ids={ids}",
        SIMCUDA_HELD_GRAPH_LAUNCH=5, SIMCUDA_HELD_MS=60, SIMCUDA_LAUNCH_LATENCY_NS=400_000,
        GPUPROF_SCHEDULE="skip_first=2,wait=20,skip_first_wait=1,warmup=2,active=60,repeat=2"))
    assert done.code == 0, done.err
    comparison = truth.Comparison(harness.dumps(tmp_path / "out")[1], tmp_path, by_clock=True)
    assert_no_silent_error(comparison, "", UNJOINED, done)


@pytest.mark.parametrize("run", range(5))
def test_windows_of_four_marking_threads_are_complete(run, tmp_path):
    """All calls of the window, whichever thread marks, and their work, joined to them; ten windows a run. A thread may
    be off its processor for milliseconds, inside a launch: the warm-up lasts longer."""
    schedule = "skip_first=12,wait=32,skip_first_wait=1,warmup=48,active=12,repeat=10"
    done, comparisons = profile(tmp_path, 4, "before", 10, rounds=250, GPUPROF_SCHEDULE=schedule)
    assert len(comparisons) == 10, done.err
    for comparison in comparisons:
        assert comparison.summary["losses"] == {} and not comparison.problems, (comparison.header["window"], comparison.problems[:2], done.err)
