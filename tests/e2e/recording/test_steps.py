# SPDX-License-Identifier: Apache-2.0
"""Step sources: what marks a step, and which windows follow, against the simulator's truth."""
import json
import re
import statistics
import sys

import pytest

import harness
import truth
from test_truth import QUICK, profile

SCHEDULE = "skip_first=4,wait=0,warmup=1,active=4,repeat=1"  # steps 5 to 8


def boundaries(comparison):
    """Every boundary of the run, CLOCK_MONOTONIC ns."""
    steps = sorted((r for r in comparison.records if r["kind"] == "step"), key=lambda r: r["number"])
    return [steps[0]["begin_mono_ns"]] + [r["end_mono_ns"] for r in steps]


def calls(comparison, pattern, kernel=""):
    return sorted((line for line in comparison.truth if line["t"] in ("call", "nccl") and line.get("via") != "nccl"
                   and re.search(pattern, line["name"]) and re.search(kernel, line.get("kernel") or "")),
                  key=lambda line: line["end"])


def captured(comparison, mark):
    """Whether it became a node of a CUDA graph: its thread was capturing its stream."""
    began = None
    for line in sorted((line for line in comparison.truth if line["t"] == "call" and line["tid"] == mark["tid"]),
                       key=lambda line: line["begin"]):
        if line["begin"] >= mark["begin"]:
            break
        if re.search("StreamBeginCapture", line["name"]):
            began = line["stream"]
        elif re.search("StreamEndCapture", line["name"]):
            began = None
    return began is not None and began == mark["stream"]


def assert_after_every(comparison, marks, every):
    """Boundary 0 is the process's start; number k comes right after mark k * every, before the next call."""
    found = boundaries(comparison)[1:]  # as far as the log goes: to when the dump was written
    assert 9 <= len(found) <= len(marks) // every
    others = sorted(line["begin"] for line in comparison.truth if line["t"] in ("call", "nccl"))
    for number, when in enumerate(found, 1):
        mark = marks[number * every - 1]
        after = [begin for begin in others if begin > mark["end"]]
        assert when >= mark["end"] - truth.CALL_TOLERANCE_NS
        assert not after or when <= after[0] + truth.CALL_TOLERANCE_NS


EVERY_NTH = {  # source: simtrain's flags, the calls that are its marks, N
    "kernel:^multi_tensor_adam\\(float\\*:1": ([], ("LaunchKernel", "multi_tensor_adam"), 1),
    "kernel:gemm_(fwd|bwd_data):16": (["--small-kernels", "20"], ("LaunchKernel", "gemm_(fwd|bwd_data)"), 16),
    "nccl:ncclAllReduce:4": (["--comm-mb", "8"], ("ncclAllReduce", ""), 4),
    "nccl:ncclAllReduce:8": (["--comm-mb", "8", "--overlap"], ("ncclAllReduce", ""), 8),
    "graph:1": (["--graphs"], ("cudaGraphLaunch", ""), 1),
    "graph:2": (["--graphs"], ("cudaGraphLaunch", ""), 2),
    "sync:3": (["--markers", "sync"], ("cudaDeviceSynchronize", ""), 3),
}


PERIOD = [(1000, ["--layers", "6", "--kernel-us", "300"]),  # steps: two looks are over after about 3 s
          (2000, ["--layers", "4", "--kernel-us", "200", "--small-kernels", "10"]),
          (1000, ["--layers", "6", "--kernel-us", "300", "--comm-mb", "4", "--ranks", "2"])]


@pytest.mark.parametrize("steps, flags", PERIOD, ids=[" ".join(flags) for _, flags in PERIOD])
def test_period(steps, flags, tmp_path):
    """No mark at all: steps are found from the order of launches, each as long as the program's own and with as many launches."""
    for comparison in profile(tmp_path, [harness.SIMTRAIN, "--markers", "none", "--steps", f"{steps}", *flags], "--step", "period",
                              "--schedule", SCHEDULE):
        assert comparison.header["step_source"] == "period"
        found = comparison.window_steps()
        assert found == [5, 6, 7, 8]
        launches = sorted(line["begin"] for line in comparison.truth if line["t"] == "call" and "Launch" in line["name"])
        per_step = len(launches) / steps
        assert per_step > 10
        edges = boundaries(comparison)
        for begin, end in list(zip(edges, edges[1:]))[1:9]:
            assert sum(begin <= launch < end for launch in launches) == per_step
        comparison.assert_right("launch")


def test_no_period(tmp_path):
    """Too short for steps to be found: an early window is recorded, and one line says why there is no other."""
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--step", "period", "--", harness.SIMTRAIN, "--markers", "none",
                        "--steps", "3"], harness.environment(GPUPROF_LOG="info"))
    assert done.code == 0 and [dump.name.endswith("_early0.gpuprof") for dump in harness.dumps(tmp_path / "out")] == [True]
    assert "early window" in done.err and "ended before its launches could tell its steps" in done.err


@pytest.mark.parametrize("source", EVERY_NTH)
def test_every_nth(source, tmp_path):
    flags, marks, every = EVERY_NTH[source]
    comparison, = profile(tmp_path, [harness.SIMTRAIN, "--steps", "40", *QUICK, *flags], "--step", source,
                          "--schedule", SCHEDULE)
    assert comparison.header["step_source"] == source
    assert comparison.window_steps() == [5, 6, 7, 8]
    assert_after_every(comparison, calls(comparison, *marks), every)
    if "--graphs" not in flags:
        comparison.assert_right("launch")


def test_kernel_that_no_launch_matches(tmp_path):
    env = harness.environment(GPUPROF_LOG="info")
    done = harness.gpuprof("run", "-o", tmp_path, "--step", "kernel:^nothing$:1", "--", harness.SIMTRAIN, *QUICK, env=env)
    assert done.code == 0 and [dump.name.endswith("_early0.gpuprof") for dump in harness.dumps(tmp_path)] == [True]
    assert "no whole step was seen (kernel:^nothing$:1)" in done.err, done.err


def test_kernel_name_without_a_cxx_library(tmp_path):
    """A C program: there is nobody to demangle, the name is matched as it is registered."""
    program = [harness.HAZARDS / "end", "return"]  # 20 launches of one kernel
    settings = {"GPUPROF_SCHEDULE": "skip_first=4,warmup=1,active=5,repeat=1", "SIMCUDA_TRUTH": tmp_path / "truth"}
    run = harness.run(program, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="kernel:hazard_kernel:1",
                                                 **settings))
    assert run.code == 3, run.err
    dump, = harness.dumps(tmp_path / "out")
    assert truth.Comparison(dump, tmp_path / "truth").window_steps() == [5, 6, 7, 8, 9]


def profiler_windows(comparison):
    """For each pair from cudaProfilerStart to the first call after cudaProfilerStop."""
    starts, stops = calls(comparison, "^cudaProfilerStart$"), calls(comparison, "^cudaProfilerStop$")
    begins = [line["begin"] for line in comparison.truth if line["t"] == "call"]
    return [(start["begin"], min(begin for begin in begins if begin > stop["end"])) for start, stop in zip(starts, stops)]


@pytest.mark.parametrize("step", ["profiler", "auto"])
def test_profiler_opens_and_closes_the_window(step, tmp_path):
    comparisons = profile(tmp_path, [harness.SIMTRAIN, "--steps", "24", *QUICK, "--markers", "profiler",
                                     "--profile-steps", "5-9,15-16"], "--step", step)
    assert [c.header["window"] for c in comparisons] == [0, 1]
    for number, comparison in enumerate(comparisons):
        comparison.assert_right("launch", "copy", "gpu_kernel", "gpu_copy")
        assert comparison.header["step_source"] == "profiler"
        begin, end = profiler_windows(comparison)[number]
        assert begin <= comparison.begin < comparison.end <= end
        inside = [line["n"] for line in comparison.truth if line["t"] == "step" and begin < line["begin"] and line["end"] < end]
        assert inside == [[5, 6, 7, 8, 9], [15, 16]][number]
        kernels = [w for w in comparison.truth if w["t"] == "gpu" and w["type"] == "kernel"]
        assert comparison.counts["gpu_kernel"] == len(kernels) // 24 * len(inside)
        assert not comparison.summary["partial"] and comparison.summary["end_reason"] == "cudaProfilerStop"
        assert comparison.window_steps() == [2 * number], "a step lies between two marks"


@pytest.mark.parametrize("schedule, windows", [(None, 16), ("active=1,repeat=3", 3), ("active=1,repeat=0", 20), ("repeat=1", 1),
                                               ("skip_first=10,wait=0,warmup=2,active=10,repeat=1", 1)])
def test_so_many_brackets_are_recorded(schedule, windows, tmp_path):
    command = ["--markers", "profiler", "--profile-steps", ",".join(f"{n}-{n}" for n in range(2, 42, 2))]
    options = ["--schedule", schedule] if schedule else []
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", *options, "--", harness.SIMTRAIN, "--steps", "44", *QUICK, *command],
                       harness.environment(GPUPROF_LOG="info"))
    assert done.code == 0 and len(harness.dumps(tmp_path / "out")) == windows, done.err
    assert done.err.count("opens no more windows") == (windows < 20)


def test_brackets_in_a_program_that_is_recorded_as_a_whole(tmp_path):
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--all", "--step", "profiler", "--", harness.SIMTRAIN, "--steps", "12", *QUICK,
                        "--markers", "profiler", "--profile-steps", "5-6,8-8"], harness.environment())
    line, = [line for line in done.err.splitlines() if "cudaProfilerStart" in line]
    assert "opens no window: GPUPROF_SCHEDULE=all records the whole program" in line and len(harness.dumps(tmp_path / "out")) == 1


def test_profiler_left_open(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, "--steps", "12", *QUICK, "--markers", "profiler",
                                     "--profile-steps", "8-99"], "--step", "profiler")
    comparison.assert_right("launch", "gpu_kernel")
    assert comparison.summary["partial"] and comparison.summary["end_reason"] == "exit"


# A bracket comes while CUPTI is being attached; then many calls in none; then another bracket of 3 steps.
BRACKETS = f"""import sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
def bracket():
    gpu._cudart.cudaProfilerStart()
    for _ in range(3):
        gpu.work()
    gpu._cudart.cudaProfilerStop()
bracket()
time.sleep(2)
for _ in range(int(sys.argv[1])):
    for _ in range(10):
        gpu._cudart.cudaMemsetAsync(gpu._memory, 0, gpu._BYTES, None)
    gpu.work()
if sys.argv[2] == "again":
    bracket()
"""


def brackets(folder, *arguments):
    """Attaching CUPTI for the first time takes longer than a bracket waits for it."""
    return harness.run([harness.PYTHON, "-c", BRACKETS, *arguments], harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="profiler", GPUPROF_SCHEDULE="active=1,repeat=1", GPUPROF_BUFFER_MB=8, GPUPROF_LOG="info",
        SIMCUDA_TRUTH=folder / "truth", SIMCUDA_CUPTI="first_subscribe_ms=4000", SIMCUDA_COPY_LIMIT=64))


def test_a_bracket_that_is_left_out_costs_the_next_one_nothing(tmp_path):
    """Neither its place among `repeat`, nor room: CUPTI does not stay on for calls that no window has."""
    done = brackets(tmp_path, 14_000, "again")
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path / "truth")
    comparison.assert_right("set", "gpu_set")
    assert comparison.counts["gpu_set"] == 3 and comparison.summary["losses"] == {}, comparison.summary["losses"]
    assert "window 0 was left out: attaching CUPTI takes longer than 3 s" in done.err and "missing" not in done.err, done.err


def test_a_left_out_bracket_alone_is_said(tmp_path):
    done = brackets(tmp_path, 0, "no more")
    assert harness.dumps(tmp_path / "out") == [] and "never called" not in done.err
    assert "nothing was recorded: the windows that cudaProfilerStart was to open were left out" in done.err, done.err


def test_program_without_a_start(tmp_path):
    env = harness.environment(GPUPROF_LOG="info")
    done = harness.gpuprof("run", "-o", tmp_path, "--step", "profiler", "--", harness.SIMTRAIN, *QUICK, env=env)
    assert done.code == 0 and harness.dumps(tmp_path) == []
    assert "cudaProfilerStart" in done.err, done.err


AUTO = {  # simtrain's flags: what `auto` chooses
    "nvtx": (["--comm-mb", "8"], "nvtx:step"),
    "nccl": (["--comm-mb", "8", "--markers", "none"], "nccl:ncclAllReduce:4"),
    "graph": (["--graphs", "--markers", "none"], "graph:1"),
    "graph_above_sync": (["--graphs", "--markers", "sync"], "graph:1"),
    "sync": (["--markers", "sync"], "sync:1"),
}


@pytest.mark.parametrize("name", AUTO)
def test_auto(name, tmp_path):
    flags, chosen = AUTO[name]
    comparison, = profile(tmp_path, [harness.SIMTRAIN, "--steps", "26", *QUICK, *flags])
    assert comparison.header["step_source"] == chosen
    assert comparison.window_steps() == list(range(12, 22))
    if not name.startswith("graph"):  # a graph of before the window: its kernels are test_graphs' matter
        return comparison.assert_right("launch")
    # One graph launch a step, whatever boundary 0 was.
    launches = calls(comparison, "cudaGraphLaunch")
    assert len([c for c in launches if comparison.begin < c["begin"] and c["end"] < comparison.end + 1000]) in (10, 11)


ONE_GRAPH = f"""import ctypes, sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
cuda, stream, graph, replay = gpu._cudart, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
def ok(result):
    assert result == 0, result
def capture():
    ok(cuda.cudaStreamBeginCapture(stream, 0))
    ok(cuda.cudaMemsetAsync(gpu._memory, 0, gpu._BYTES, stream))
    ok(cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    ok(cuda.cudaGraphInstantiate(ctypes.byref(replay), graph, ctypes.c_ulonglong(0)))
ok(cuda.cudaStreamCreate(ctypes.byref(stream)))
if sys.argv[2] == "before":
    capture()
for _ in range(4):
    gpu.work()  # warmed up: a step ends in cudaDeviceSynchronize
if sys.argv[2] == "after":
    capture()
begun = time.monotonic()
while time.monotonic() - begun < float(sys.argv[1]):
    time.sleep(0.02)
    ok(cuda.cudaGraphLaunch(replay, stream))
    ok(cuda.cudaStreamSynchronize(stream))
"""


# Waits before its own marks come, and after a pause a few more; then steps of three waits each.
OWN_MARKS = f"""import ctypes, sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
def waits(count, seconds):
    for _ in range(count):
        gpu.work()
        time.sleep(seconds)
waits(4, 0.02)
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:  # a model is loaded
    gpu.give()
    time.sleep(0.1)
waits(int(sys.argv[2]), 0.02)
for _ in range(30):
    waits(3, 0.03)
    ctypes.CDLL(None).gpuprof_step()
"""


@pytest.mark.parametrize("pause, more, sources", [(0, 0, ["manual"]), (7, 4, ["sync:1", "manual"]), (42, 0, ["time:1000", "manual"])])
def test_the_programs_own_marks_take_the_steps_over(pause, more, sources, tmp_path):
    """Also after a pause, where other marks, or the clock, are taken before: their window has another one after it."""
    done = harness.run([harness.PYTHON, "-c", OWN_MARKS, pause, more], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="skip_first=6,warmup=2,active=2,max_s=0", GPUPROF_LOG="info"))
    files = sorted(harness.info(tmp_path / "out")["files"], key=lambda file: file["window"])
    assert done.code == 0 and [file["step_source"] for file in files] == sources, done.err


def test_the_first_own_step_is_whole(tmp_path):
    """Steps begin anew: what the mark that was taken before says of the time is forgotten."""
    done = harness.run([harness.PYTHON, "-c", OWN_MARKS, 0, 0], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="all", GPUPROF_LOG="info"))
    dump, = harness.dumps(tmp_path / "out")
    lengths = [r["end_mono_ns"] - r["begin_mono_ns"] for r in harness.of_kind(harness.records(dump), "step")]
    assert done.code == 0 and len(lengths) >= 29, done.err
    assert lengths[0] > statistics.median(lengths[1:]), lengths[:4]


@pytest.mark.parametrize("made, left", [("before", "none by sync:1 for 5 s"), ("after", "sync:1 was start-up")])
def test_steps_that_are_one_graph_from_some_step_on(made, left, tmp_path):
    """What marked steps while the graph was made does not come again: before, nothing was recorded."""
    script = tmp_path / "one_graph.py"
    script.write_text(ONE_GRAPH)
    done = harness.run([harness.PYTHON, script, 7, made], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_LOG="info", SIMCUDA_TRUTH=tmp_path, GPUPROF_SCHEDULE="skip_first=8,warmup=1,active=6"))
    assert done.code == 0, done.err
    said = [line for line in done.err.splitlines() if "steps: " in line]
    assert len(said) == 3 and said[0].endswith("steps: sync:1") and left in said[1] and said[2].endswith("graph:1")
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path)
    assert comparison.window_steps() == list(range(9, 15))
    launches = [c for c in calls(comparison, "cudaGraphLaunch") if comparison.begin < c["begin"] < comparison.end]
    assert len(launches) in (5, 6)


# A graph for each batch size, each after a warm-up; then requests come.
MANY_GRAPHS = ONE_GRAPH[:ONE_GRAPH.index("if sys.argv")] + """
for size in range(20):
    gpu.work()
    replay = ctypes.c_void_p()
    capture()
time.sleep(3)
for token in range(40):
    ok(cuda.cudaGraphLaunch(replay, stream))
    ok(cuda.cudaStreamSynchronize(stream))
    time.sleep(0.02)
"""


def test_graphs_that_are_made_at_start_are_no_steps(tmp_path):
    """Before, the window held warm-ups and captures."""
    done = harness.run([harness.PYTHON, "-c", MANY_GRAPHS], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_LOG="info", SIMCUDA_TRUTH=tmp_path, GPUPROF_SCHEDULE="skip_first=8,warmup=1,active=6"))
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path)
    assert done.code == 0 and comparison.header["step_source"] == "graph:1", done.err
    assert comparison.window_steps() == list(range(9, 15))
    inside = [c["name"] for c in calls(comparison, "") if comparison.begin < c["begin"] < comparison.end]
    assert inside.count("cudaGraphLaunch") in (5, 6) and "cudaGraphInstantiate" not in inside, inside


# So many calls that are no marks, and then ten that are.
NO_MARKS = f"""import ctypes, sys
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
from captured_calls import ARGUMENTS, Dim3, check, cudart, launch
nccl = ctypes.CDLL("libnccl.so.2")
P, size = ctypes.c_void_p, ctypes.c_size_t
stream, graph, replay, comm, memory, device = P(), P(), P(), P(), P(), ctypes.c_int(0)
check(cudart.cudaMalloc(ctypes.byref(memory), size(4096)))
check(nccl.ncclCommInitAll(ctypes.byref(comm), 1, ctypes.byref(device)))
check(cudart.cudaStreamCreate(ctypes.byref(stream)))
def reduce(stream, comm=comm):
    return nccl.ncclAllReduce(memory, memory, size(16), 7, 0, comm, stream)
def replays(stream):
    return cudart.cudaGraphLaunch(replay, stream)
def capture(work, count):
    check(cudart.cudaStreamBeginCapture(stream, 0))
    for _ in range(count):
        work(stream)
    check(cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    check(cudart.cudaGraphInstantiate(ctypes.byref(replay), graph, ctypes.c_ulonglong(0)))
capture(launch, 1)
mark = dict(kernel=launch, nccl=reduce, graph=replays)[sys.argv[1]]
if mark is not replays:
    capture(mark, 50)
for _ in range(50):
    if mark is reduce:
        assert reduce(stream, None) != 0
    elif mark is launch:
        assert cudart.cudaLaunchKernel(P(8), Dim3(1, 1, 1), Dim3(1, 1, 1), ARGUMENTS, size(0), stream) != 0
    else:
        assert cudart.cudaGraphLaunch(P(0), stream) != 0
for _ in range(10):
    mark(stream)
check(cudart.cudaStreamSynchronize(stream))
"""


@pytest.mark.parametrize("source, step", [("kernel", "kernel:.*:1"), ("nccl", "nccl:ncclAllReduce:1"), ("graph", "graph:1")])
def test_calls_that_fail_or_become_part_of_a_graph_are_no_marks(source, step, tmp_path):
    """Before, each capture of a graph was as many steps as it has launches."""
    done = harness.run([harness.PYTHON, "-c", NO_MARKS, source], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="all", GPUPROF_STEP=step))
    dump, = harness.dumps(tmp_path / "out")
    steps = [r["number"] for r in harness.records(dump) if r["kind"] == "step"]
    assert done.code == 0 and len(steps) == 10, (len(steps), done.err)


WAYS = {  # how a program comes to its launches, each counted once
    "linked": [harness.HAZARDS / "runtime_linked"],
    "static_runtime": [harness.HAZARDS / "runtime_static"],
    "driver": [harness.HAZARDS / "driver_opened", "ask"],
}


@pytest.mark.parametrize("way", WAYS)
def test_kernel_launches_of_each_way(way, tmp_path):
    env = harness.preloaded(**{**harness.WHOLE_RUN, "SIMCUDA_TRUTH": tmp_path / "truth", "GPUPROF_OUTPUT": tmp_path / "out",
                               "GPUPROF_STEP": "kernel:ways_kernel:1"})
    done = harness.run(WAYS[way], env)
    assert done.code == 0, done.err
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path / "truth")
    comparison.assert_right("launch")
    marks = [mark for mark in calls(comparison, "^(cuda|cu)Launch(Cooperative)?Kernel", "ways_kernel")
             if not captured(comparison, mark)]
    assert len(marks) > 10 and len(boundaries(comparison)) == len(marks) + 1


MARKS = {"nvtx": "nvtx:step", "sync": "sync:1", "graph": "graph:1", "kernel": "kernel:hazard_kernel:10", "auto": "auto"}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("slow", (-1, 2))
def test_threads_that_each_drive_a_gpu(mark, slow, tmp_path):
    """A step is a round of the four replicas, not of one of them; the one that is slow is named."""
    env = harness.environment(GPUPROF_STEP=MARKS[mark], GPUPROF_SCHEDULE="skip_first=3,wait=0,warmup=2,active=10,repeat=1", SIMCUDA_DEVICES="4")
    program = [harness.HAZARDS / "replica_threads", "4", "30", str(slow), "1.5", "nvtx" if mark == "auto" else mark]
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--", *program, env=env)
    assert done.code == 0 and done.out == "4 GPUs, 30 rounds\n", done.err
    dump, = harness.dumps(tmp_path / "out")
    kernels = [r for r in harness.records(dump) if r["kind"] == "gpu_kernel"]
    steps = [r for r in harness.records(dump) if r["kind"] == "step" and r["in_window"]]
    assert len(steps) == 10
    # Replicas begin a round together, but not in the same microsecond. Were each one's marks steps, a step would hold ten.
    held = [sum(step["begin_mono_ns"] <= k["begin_mono_ns"] < step["end_mono_ns"] for k in kernels) for step in steps[1:-1]]
    assert 200 <= sum(held) <= 440, held  # of 320
    report = json.loads(harness.checked("report", "--format", "json", tmp_path / "out/latest").out)
    named = [finding["text"] for finding in report["findings"] if finding["kind"] == "slow_gpu"]
    assert len(named) == (slow >= 0) and all("of GPU 2 take 1.50 x" in text for text in named), named


@pytest.mark.parametrize("thread", ["replica 3", "number"])
def test_the_thread_whose_ranges_are_steps(thread, tmp_path):
    """Here the ranges of one of four replicas; the line says which thread leads where none is named."""
    env = harness.environment(GPUPROF_SCHEDULE="skip_first=3,wait=0,warmup=2,active=10,repeat=1", SIMCUDA_DEVICES="4", GPUPROF_LOG="info")
    step = f"nvtx:step@{thread}" if thread != "number" else "nvtx:step@1"  # no thread of the program's has that one
    done = harness.gpuprof("run", "--step", step, "-o", tmp_path / "out", "--", harness.HAZARDS / "replica_threads", "4", "30", "-1", "1", "nvtx", env=env)
    assert done.code == 0, done.err
    if thread == "number":
        assert harness.dumps(tmp_path / "out") == [] and "no whole step was seen (nvtx:step@1)" in done.err
        return
    dump, = harness.dumps(tmp_path / "out")
    assert harness.info(dump)["files"][0]["step_source"] == "nvtx:step@replica 3"
    found = harness.records(dump)
    steps = [r for r in found if r["kind"] == "step" and r["in_window"]]
    own = [r for r in found if r["kind"] == "nvtx_range" and r["lane"]["name"] == "replica 3"]
    assert len(steps) == 10 and len(own) >= 9
    assert all(any(0 <= r["begin_mono_ns"] - s["begin_mono_ns"] < 1e6 for s in steps) for r in own), "its ranges begin the steps"


def test_the_line_names_the_thread_that_leads(tmp_path):
    env = harness.environment(GPUPROF_STEP="auto", SIMCUDA_DEVICES="4", GPUPROF_LOG="info")
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--", harness.HAZARDS / "replica_threads", "4", "30", "-1", "1", "nvtx", env=env)
    assert re.search(r"steps: nvtx:step, of GPU \d and thread \d+: other GPUs of this process mark theirs; nvtx:NAME@THREAD chooses another", done.err), done.err


# An iteration in parts, each with a wait of its own: as fences of Kokkos' are. Or whole ones, of which every other copies more.
FENCES = """
import sys, time, gpu
def parts():
    gpu.give(); gpu.fence()
    gpu.copy_within(); gpu.copy_within(); gpu.fence()
    gpu.copy_in(); gpu.fence()
def whole():
    for copies in range(2):
        for _ in range(4): gpu.give(); gpu.copy_within()
        for _ in range(copies): gpu.copy_in()
        gpu.fence()
for _ in range(40):
    {"parts": parts, "whole": whole}[sys.argv[1]]()
    time.sleep(0.002)
"""


@pytest.mark.parametrize("waits, step, joined", [("parts", "auto", 3), ("parts", "sync:1", 1), ("whole", "auto", 1)])
def test_waits_within_an_iteration_are_joined(waits, step, joined, tmp_path):
    """Not where whole iterations differ a little, nor where the user has said what a step is."""
    done = harness.gpuprof("run", "--step", step, "-o", tmp_path / "out", "--", sys.executable, "-c", FENCES, waits,
                           env=harness.environment(PYTHONPATH=harness.SOURCE / "tests/programs/python"))
    assert done.code == 0, done.err
    dump, = harness.dumps(tmp_path / "out")
    own = harness.info(dump)["files"][0]["steps"]
    report = json.loads(harness.checked("report", "--format", "json", dump).out)
    assert [row["value"] for row in report["findings"] if row["kind"] == "joined_waits"] == ([joined] if joined > 1 else [])
    first = own["first"] // joined
    assert own["count"] == 10 and [row["step"] for row in report["steps"]] == list(range(first, first + 10 // joined)), report["steps"]
    words = harness.checked("report", dump).out
    assert ("a step is 3 calls of cudaDeviceSynchronize" in words) == (joined == 3)
