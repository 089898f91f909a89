# SPDX-License-Identifier: Apache-2.0
"""GPU times from CUDA events (GPUPROF_GPU_TIMES=events), which need no CUPTI: against the simulator's log."""
import sys

import pytest

import harness
import truth

KINETO_LIKE = harness.HAZARDS / "kineto_like"
LATENCY_NS = 3000  # of the simulator, from a call's end to the GPU
WINDOW = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=19,warmup=1,active=20,repeat=1"}


def profile(folder, *command, **settings):
    bare = harness.run(command)
    done = harness.run(command, harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder / "truth",
                                                  **{**WINDOW, **settings}))
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    dump, = harness.dumps(folder / "out")
    return done, truth.Comparison(dump, folder / "truth", gpu=False), harness.info(dump)["files"][0]


def assert_times(comparison, error):
    """Each time holds the work's. It begins no earlier than its call and the end of the work before on its stream,
    and ends no later than the stream comes to an event that is recorded at once."""
    work = {w["corr"]: w for w in comparison.truth if w["t"] == "gpu" and w["type"] == "kernel"}
    recorded = sorted((c for c in comparison.truth if c["t"] == "call" and c["name"].startswith("cuEventRecord")),
                      key=lambda c: c["begin"])
    timed = 0
    for call, record in comparison.pairs:
        if record["kind"] != "launch" or call["corr"] not in work:
            continue
        true, gpu = work[call["corr"]], comparison.by_index[record["partner"]]
        behind = next(c for c in recorded if c["begin"] >= call["end"] and c["tid"] == call["tid"])
        assert record["begin_mono_ns"] - 1 <= gpu["begin_mono_ns"] <= true["begin"] + error, (true, gpu)
        assert true["end"] - error <= gpu["end_mono_ns"] <= max(true["end"], behind["end"] + LATENCY_NS) + error, (true, gpu)
        assert gpu["lane"] == {**gpu["lane"], "device": true["device"], "context": true["context"], "stream": true["stream"]}
        assert (gpu["name"], gpu["grid"], gpu["block"]) == (true["name"], true["grid"], true["block"])
        timed += 1
    return timed


@pytest.mark.parametrize("style", ["eager", "activity", "clock"])
def test_another_profiler_has_cupti_in_the_window(style, tmp_path):
    done, comparison, info = profile(tmp_path, KINETO_LIKE, style, "during", GPUPROF_GPU_TIMES="events")
    assert not comparison.problems, comparison.problems[:3]
    assert assert_times(comparison, info["gpu_time_error_ns"] + 1000) == comparison.counts["launch"] == 200
    assert info["gpu_times_from"] == "events" and info["gpu_times_missing"] == "" and info["losses"] == {}
    assert len(harness.our_lines(done.err)) == 1, done.err
    dump, = harness.dumps(tmp_path / "out")
    assert "GPU times are from CUDA events" in harness.checked("report", dump).out
    for number, (kind, name) in enumerate((("chrome", "t.json"), ("speedscope", "s.json"), ("perfetto", "t.perfetto-trace"), ("xplane", "logs"))):
        target = tmp_path / "converted" / str(number) / name
        target.parent.mkdir(parents=True)
        harness.checked("convert", "--to", kind, "-o", target, dump)
        files = [f for f in ([target] if target.is_file() else target.rglob("*")) if f.is_file()]
        assert any(b"times from CUDA events" in f.read_bytes() for f in files), kind
    # No event is left when the window is over.
    calls = [c["name"] for c in comparison.truth if c["t"] == "call"]
    made, gone = (sum(name.startswith(n) for name in calls) for n in ("cuEventCreate", "cuEventDestroy"))
    assert made == gone > 0


def test_none_unless_asked_for(tmp_path):
    _, comparison, info = profile(tmp_path, KINETO_LIKE, "activity", "during")
    assert not any(c["t"] == "call" and c["name"].startswith("cuEvent") for c in comparison.truth)
    assert info["gpu_times_from"] == "" and "kineto_like" in info["gpu_times_missing"]


def test_captured_launches_are_counted(tmp_path):
    """Captured in the window, and launched: a graph has one time, its parts none."""
    _, comparison, info = profile(tmp_path, harness.HAZARDS / "graphs", "3", "4", "-1", "-1", GPUPROF_GPU_TIMES="events",
                                  **harness.WHOLE_RUN)
    captured = [r for r in comparison.records if r.get("captured")]
    assert info["losses"] == {"event_captured": len(captured)} and len(captured) == 4
    assert not any("partner" in r for r in captured)
    graphs = [r for r in harness.of_kind(comparison.records, "launch") if r["name"] == "cudaGraphLaunch"]
    assert graphs and {comparison.by_index[r["partner"]]["kind"] for r in graphs} == {"gpu_graph"}


COPIES = """
import ctypes
cuda, P, size = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p, ctypes.c_size_t
device, host = P(), (ctypes.c_char * 4096)()
assert cuda.cudaMalloc(ctypes.byref(device), size(4096)) == 0
for kind, (to, source) in enumerate(((host, host), (device, host), (host, device), (device, device))):
    assert cuda.cudaMemcpyAsync(to, source, size(100 + kind), kind, None) == 0
assert cuda.cudaMemsetAsync(device, 7, size(64), None) == 0 == cuda.cudaDeviceSynchronize()
"""


def test_copies_and_sets_are_what_was_called(tmp_path):
    _, comparison, info = profile(tmp_path, sys.executable, "-c", COPIES, GPUPROF_GPU_TIMES="events", **harness.WHOLE_RUN)
    assert not comparison.problems and info["losses"] == {}
    work = [comparison.by_index[call["partner"]] for call in harness.of_kind(comparison.records, "copy")]
    assert [(w["kind"], w["direction"], w["bytes"]) for w in work] == [
        ("gpu_copy", "HtoH", 100), ("gpu_copy", "HtoD", 101), ("gpu_copy", "DtoH", 102), ("gpu_copy", "DtoD", 103)]
    [call] = harness.of_kind(comparison.records, "set")
    gpu = comparison.by_index[call["partner"]]
    assert (gpu["kind"], gpu["bytes"], gpu["value"]) == ("gpu_set", 64, 7)


def test_only_the_kinds_that_are_recorded_have_events(tmp_path):
    """What the settings leave out has no times, as with CUPTI."""
    command = (sys.executable, "-c", COPIES)
    _, comparison, info = profile(tmp_path / "copies", *command, GPUPROF_GPU_TIMES="events", GPUPROF_ACTIVITIES="-memcpy", **harness.WHOLE_RUN)
    assert harness.of_kind(comparison.records, "gpu_copy") == [] and len(harness.of_kind(comparison.records, "gpu_set")) == 1
    assert info["losses"] == {}
    _, comparison, info = profile(tmp_path / "sets", *command, GPUPROF_GPU_TIMES="events", GPUPROF_ACTIVITIES="-kernel,-memset",
                                  **harness.WHOLE_RUN)
    assert len(harness.of_kind(comparison.records, "gpu_copy")) == 4 and harness.of_kind(comparison.records, "gpu_set") == []
    assert info["gpu_times_missing"] == "kernels are not among the activities (GPUPROF_ACTIVITIES)"


def test_work_without_times_leaves_no_verdict(tmp_path):
    """Launches that come faster than 8,192 events are free again: the GPU may have worked where it seems idle."""
    command = (harness.SIMTRAIN, "--steps", "16", "--layers", "400", "--kernel-us", "100", "--sync-every", "16")
    harness.run(command, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_GPU_TIMES="events", GPUPROF_SCHEDULE="all",
                                           GPUPROF_STEP="nvtx:step"))
    report = harness.checked("report", tmp_path / "out").out
    assert "have no times, beside" in report and "GPU busy at least" in report, report


FULL_QUEUE = """
import ctypes
cuda, P = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p
runtime = ctypes.CDLL("libcudart.so.13")
module, kernel, stream = P(), P(), P()
assert runtime.cudaStreamCreate(ctypes.byref(stream)) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), b"") == 0 == cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k")
for step in range(3):
    for _ in range(40):
        cuda.simcuda_set_next_kernel_ns(ctypes.c_uint64(5000000))
        assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, None, None) == 0
    assert runtime.cudaDeviceSynchronize() == 0
"""


def test_a_clock_behind_a_full_queue_loses_no_time(tmp_path):
    """With one work queue the clock's reading comes to its turn after 200 ms of the program's kernels."""
    _, comparison, info = profile(tmp_path, sys.executable, "-c", FULL_QUEUE, GPUPROF_GPU_TIMES="events",
                                  SIMCUDA_CONNECTIONS=1, **harness.WHOLE_RUN)
    assert not comparison.problems and info["losses"] == {}
    assert assert_times(comparison, info["gpu_time_error_ns"] + 1000) == comparison.counts["launch"] == 120
    assert info["gpu_time_error_ns"] < 1_000_000


BLOCKED = """
import ctypes, threading
cuda, P = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p
runtime = ctypes.CDLL("libcudart.so.13")
module, kernel, stream, released = P(), P(), P(), threading.Event()
assert runtime.cudaStreamCreate(ctypes.byref(stream)) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), b"") == 0 == cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k")
def launch(count, ns):
    for _ in range(count):
        cuda.simcuda_set_next_kernel_ns(ctypes.c_uint64(ns))
        assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, None, None) == 0
wait = ctypes.CFUNCTYPE(None, P)(lambda _: released.wait())
def blocked():
    assert runtime.cudaLaunchHostFunc(stream, wait, None) == 0
    launch(500, 2000)
    released.set()
def ahead():
    launch(2000, 100000)
"""


@pytest.mark.parametrize("way, timed", [("blocked", 256), ("ahead", 2000)])
def test_events_leave_room_in_a_streams_queue(way, timed, tmp_path):
    """A stream that stands has so much more room for the program's launches. One that moves, with as many launches ahead as
    fit, has all times."""
    program = BLOCKED + f"{way}()\nassert runtime.cudaStreamSynchronize(stream) == 0\n"
    _, comparison, info = profile(tmp_path, sys.executable, "-c", program, GPUPROF_GPU_TIMES="events", SIMCUDA_QUEUE=1024,
                                  **harness.WHOLE_RUN)
    launches = harness.of_kind(comparison.records, "launch")
    assert not comparison.problems and len(launches) == {"blocked": 500, "ahead": 2000}[way]
    assert sum("partner" in r for r in launches) == timed
    assert info["losses"] == ({"event_untimed": len(launches) - timed} if timed < len(launches) else {})


CONTEXTS = """
import ctypes, os, threading, time
cuda, P = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p
log = f"{os.environ.get('SIMCUDA_TRUTH')}/truth_{os.getpid()}.jsonl"
seen, elapsed, readings = 0, 0, 0
def wait_until_read(launches):
    # All pairs, and the clock several times.
    global seen, elapsed, readings
    enough, limit = readings + 11, time.time() + 30
    while (elapsed < 2 * launches or readings < enough) and time.time() < limit:
        time.sleep(0.02)
        with open(log) as file:
            file.seek(seen)
            lines, seen = file.read(), file.tell()
        elapsed += lines.count("cuEventElapsedTime")
        readings += sum("cuEventRecord" in line and f'"tid":{threading.get_native_id()},' not in line for line in lines.splitlines())
context, module, kernel = P(), P(), P()
assert ctypes.CDLL("libcudart.so.13").cudaSetDevice(0) == 0 == cuda.cuModuleLoadData(ctypes.byref(module), b"")
assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k") == 0
for turn in range(20):
    assert cuda.cuCtxCreate_v4(ctypes.byref(context), None, 0, 0) == 0
    for _ in range(420):
        assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
    assert cuda.cuCtxSynchronize() == 0
    if "LD_PRELOAD" in os.environ:
        wait_until_read(420 * (turn + 1))
    assert cuda.cuCtxDestroy_v2(context) == 0
"""


def test_contexts_that_come_and_go_have_times(tmp_path):
    """20 contexts one after the other, of which 16 have room, and their 8,400 pairs, of which 8,192 have."""
    _, comparison, info = profile(tmp_path, sys.executable, "-c", CONTEXTS, GPUPROF_GPU_TIMES="events", SIMCUDA_TRUTH_SYNC=1, **harness.WHOLE_RUN)
    launches = harness.of_kind(comparison.records, "launch")
    assert len(launches) == 8400 and info["losses"] == {}
    assert len({comparison.by_index[r["partner"]]["lane"]["context"] for r in launches}) == 20
    work = {w["corr"]: w for w in comparison.truth if w["t"] == "gpu"}
    error = info["gpu_time_error_ns"] + 1000
    for call, record in comparison.pairs:
        if record["kind"] == "launch":
            true, gpu = work[call["corr"]], comparison.by_index[record["partner"]]
            assert gpu["begin_mono_ns"] <= true["begin"] + error and gpu["end_mono_ns"] >= true["end"] - error, (true, gpu)


FIRST_CALLS = """
import ctypes, threading
cuda, P = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p
memory, stream, current = [P(), P()], P(), P()
for device in (1, 0):
    assert cuda.cudaSetDevice(device) == 0 == cuda.cudaMalloc(ctypes.byref(memory[device]), 4096)
assert cuda.cudaSetDevice(1) == 0 == cuda.cudaStreamCreate(ctypes.byref(stream)) == cuda.cudaSetDevice(0)
def first(device, stream):
    assert cuda.cudaMemsetAsync(memory[device], 7, ctypes.c_size_t(64), stream) == 0
def current_after(found):
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(current)) == 0
    print(current.value)
for device, stream in ((0, None), (0, P(2)), (1, stream)):
    thread = threading.Thread(target=lambda: (first(device, stream), current_after(device)))
    thread.start(), thread.join()
assert cuda.cudaDeviceSynchronize() == 0
"""


def test_a_threads_first_call_has_a_time(tmp_path):
    """It binds a context, and none is current before. In a stream of another GPU the work is that one's, and what the call
    binds is the thread's."""
    done, comparison, info = profile(tmp_path, sys.executable, "-c", FIRST_CALLS, GPUPROF_GPU_TIMES="events", **harness.WHOLE_RUN)
    assert done.out == "1\n1\n1\n"
    assert not comparison.problems and info["losses"] == {}
    calls = harness.of_kind(comparison.records, "set")
    assert [comparison.by_index[call["partner"]]["lane"]["device"] for call in calls] == [0, 0, 1]


def test_threads_that_come_later_have_times(tmp_path):
    _, comparison, info = profile(tmp_path, harness.HAZARDS / "threads", "one_by_one", GPUPROF_GPU_TIMES="events", **harness.WHOLE_RUN)
    # The process's first call makes the context itself.
    assert not comparison.problems and info["losses"] == {"event_untimed": 1}
    assert sum("partner" in r for r in harness.of_kind(comparison.records, "launch")) == 79


def test_captures_go_on(tmp_path):
    """While a stream is captured in the mode "global", to ask for an event's state would end the capture."""
    done, _, info = profile(tmp_path, harness.HAZARDS / "graph_updates", "beside", "5", GPUPROF_GPU_TIMES="events",
                            **harness.WHOLE_RUN)
    assert done.out == "end: 0\n" * 5
    assert info["losses"] == {"event_captured": 5}


def test_a_lost_context_is_not_waited_for(tmp_path):
    """After such an error all work fails (driver_types.h). What the GPU was given before has no times that can be known."""
    command = (harness.SIMTRAIN, "--steps", "30")
    done = harness.run(command, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_GPU_TIMES="events",
                                                  SIMCUDA_FAIL="cudaMemcpyAsync:10:700", **harness.WHOLE_RUN))
    assert done.code == 1 and "cudaErrorIllegalAddress" in done.err
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path / "truth", gpu=False)
    calls = comparison.truth
    failed = [c["name"] for c in calls if c["t"] == "call" and c["ret"] == 700]
    assert failed.count("cuEventRecord") < 20, "asked again and again"
    losses = harness.info(dump)["files"][0]["losses"]
    assert losses["event_untimed"] > 0
    # Each launch without a time is one loss, not two.
    without = [r for call, r in comparison.pairs if r["kind"] in ("launch", "copy", "set") and call["ret"] == 0 and "partner" not in r]
    assert sum(losses.values()) == len(without)


@pytest.mark.parametrize("kernel_us, complete", [(2500, True), (20000, False)])
def test_work_of_unrecorded_calls_is_awaited(kernel_us, complete, tmp_path):
    """`light` records no calls, so nothing but the events tells that work still runs when the window ends."""
    command = (harness.SIMTRAIN, "--steps", "8", "--sync-every", "100", "--kernel-us", str(kernel_us))
    _, comparison, info = profile(tmp_path, *command, GPUPROF_GPU_TIMES="events", GPUPROF_PRESET="light",
                                  GPUPROF_STEP="nvtx:step", GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=3,repeat=1")
    launched = [c for c in comparison.truth if c["t"] == "call" and "LaunchKernel" in c["name"]
                and comparison.begin <= c["begin"] < comparison.end]
    kernels = harness.of_kind(comparison.records, "gpu_kernel")
    assert len(launched) > 50 and not harness.of_kind(comparison.records, "launch")
    work = harness.of_kind(comparison.records, "gpu_kernel") + harness.of_kind(comparison.records, "gpu_copy") + harness.of_kind(
        comparison.records, "gpu_set")
    others = [c for c in comparison.truth if c["t"] == "call" and truth.kind_of(c["name"]) in ("copy", "set")
              and comparison.begin <= c["begin"] < comparison.end]
    assert len(work) + info["losses"].get("unfinished_gpu", 0) == len(launched) + len(others)
    assert set(info["losses"]) <= {"unfinished_gpu"}
    assert (len(kernels) == len(launched)) == complete
