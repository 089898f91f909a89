# SPDX-License-Identifier: Apache-2.0
"""CUPTI of each version, CUPTI that delivers bad data, and where it is found."""
import json
import re
import subprocess
import sys

import pytest

import harness
import truth

SIMTRAIN12 = harness.BUILD / "tests/programs/simtrain/simtrain12"
LIB12 = str(harness.BUILD / "simcuda/lib12")
LIB13_2 = str(harness.BUILD / "simcuda/lib13_2")
TRAIN = ["--steps", "26", "--layers", "4", "--kernel-us", "40", "--malloc-per-step", "2", "--comm-mb", "4"]


def profile(folder, command, **settings):
    """Runs `command` preloaded; returns the run and its only dump. Exit code and output are as without."""
    settings = {"GPUPROF_STEP": "nvtx:step", "GPUPROF_OUTPUT": folder / "out", "SIMCUDA_TRUTH": folder / "truth", **settings}
    bare = harness.run(command, harness.environment(LD_LIBRARY_PATH=settings.get("LD_LIBRARY_PATH", harness.SIMCUDA)))
    done = harness.run(command, harness.preloaded(**settings))
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    assert done.code == 0, done.err
    dump, = harness.dumps(folder / "out")
    return done, dump


VERSIONS = {"12.0": 19, "12.2": 20, "12.4": 22, "12.6": 24, "12.8": 26, "12.9": 27, "13.0": 130001,
            "13.2": 130202}


@pytest.mark.parametrize("version", VERSIONS)
def test_versions(version, tmp_path):
    twelve = version.startswith("12")
    _, dump = profile(tmp_path, [SIMTRAIN12 if twelve else harness.SIMTRAIN, *TRAIN, "--overlap"], SIMCUDA_VERSION=version, GPUPROF_ACTIVITIES="+sync:gpu",
                      LD_LIBRARY_PATH=LIB12 if twelve else LIB13_2 if version == "13.2" else harness.SIMCUDA)
    comparison = truth.Comparison(dump, tmp_path / "truth")
    comparison.assert_right("launch", "copy", "set", "alloc", "dealloc", "sync", "collective", "gpu_kernel", "gpu_copy",
                            "gpu_set")
    assert comparison.summary["losses"] == {}
    found = comparison.header["versions"]
    major, minor = map(int, version.split("."))
    assert (found["cupti"], found["runtime"]) == (VERSIONS[version], major * 1000 + minor * 10)
    # Fields that this version's records do not have are absent, not what lies behind the record.
    for record in harness.of_kind(comparison.records, "gpu_kernel"):
        assert record["cluster"] == [0, 0, 0] and not record.get("graph"), record
    events = harness.of_kind(comparison.records, "gpu_event")
    assert events and all(("no_time" in r["flags"]) == (major == 12 and minor < 8) for r in events), events[:2]


@pytest.mark.parametrize("preset, asked, there", [("light", "", False), ("default", "", False), ("full", "", True), ("light", "+sync:gpu", True)])
def test_waits_are_asked_of_cupti_only_where_wanted(preset, asked, there, tmp_path):
    """They slow a program down, also after its window; the calls that wait are recorded anyway."""
    _, dump = profile(tmp_path, [harness.SIMTRAIN, *TRAIN, "--overlap"], GPUPROF_PRESET=preset, GPUPROF_ACTIVITIES=asked or "preset")
    kinds = {record["kind"] for record in harness.records(dump)}
    assert {"gpu_sync", "gpu_event"} & kinds == ({"gpu_sync", "gpu_event"} if there else set()) and "sync" in kinds


# Of every so many pieces of GPU work one is bad: how, what it is counted as, and what the line at the end says.
BAD = {
    "zero_ts": ("bad_timestamp", "zero or reversed"),
    "reversed_ts": ("bad_timestamp", "zero or reversed"),
    "drop": ("cupti_dropped", "dropped"),
    "unknown_kind": ("cupti_unknown", "unknown kind"),
    "incomplete": ("cupti_incomplete", "could not be read"),
    "duplicate_ts": (None, None),
}


def kinds_of_findings(dump):
    return {finding["kind"] for finding in json.loads(harness.checked("report", dump, "--format", "json").out)["findings"]}


@pytest.mark.parametrize("switch", BAD)
def test_bad_data(switch, tmp_path):
    cause, text = BAD[switch]
    every = 100 if switch == "incomplete" else 10  # it costs all that follows in its buffer
    done, dump = profile(tmp_path, [harness.SIMTRAIN, *TRAIN], SIMCUDA_CUPTI=f"{switch}={every}")
    lines = harness.our_lines(done.err)
    comparison = truth.Comparison(dump, tmp_path / "truth")
    losses = comparison.summary["losses"]
    if cause:
        assert losses.get(cause, 0) > 0 and len(lines) == 2 and text in lines[0], done.err
    else:
        assert losses == {} and len(lines) == 1, done.err
    # Calls do not suffer, nor does GPU work that was recorded well.
    wrong = [p for p in comparison.problems if not p.startswith(("begin differs", "end differs", "1 pieces of work, 0 records",
                                                                 "not joined to its GPU work", "kernel differs"))]
    assert not wrong, wrong[:3]
    work = [r for r in comparison.truth if r["t"] == "gpu" and r["type"] in truth.GPU_KINDS
            and comparison.begin < r["begin"] and r["end"] < comparison.end]
    kept = harness.of_kind(comparison.records, *truth.GPU_KINDS.values())
    if switch == "incomplete":
        assert 0 < len(kept) < len(work)
    elif switch == "drop":
        assert 0.8 * len(work) < len(kept) < len(work)
    else:
        assert len(kept) >= len(work)
    timed = [r for r in kept if "no_time" not in r.get("flags", ())]
    assert all(r["end_mono_ns"] >= r["begin_mono_ns"] > 0 for r in timed)
    if cause == "bad_timestamp":
        assert 0.8 * len(kept) < len(timed) < len(kept)
    told = ["cannot be right" in harness.checked("info", dump).out, "impossible_times" in kinds_of_findings(dump)]
    assert told == [switch == "duplicate_ts"] * 2, told
    for target in ("chrome", "perfetto"):
        harness.checked("convert", dump, "--to", target, "-o", tmp_path / target)
    assert len(json.loads((tmp_path / "chrome").read_text())["traceEvents"]) > len(timed)


def test_correlation_ids_wrap(tmp_path):
    """At 32 bits, in the middle of the window."""
    _, first = profile(tmp_path / "plain", [harness.SIMTRAIN, *TRAIN])
    ids = [r["correlation"] for r in harness.of_kind(harness.records(first), "launch")]
    middle = (min(ids) + max(ids)) // 2
    _, dump = profile(tmp_path, [harness.SIMTRAIN, *TRAIN], SIMCUDA_FIRST_CORRELATION=2**32 - middle)
    comparison = truth.Comparison(dump, tmp_path / "truth")
    ids = [r["correlation"] for r in harness.of_kind(comparison.records, "launch")]
    assert min(ids) < 10000 and max(ids) > 2**32 - 10000
    comparison.assert_right("launch", "copy", "gpu_kernel", "gpu_copy")
    assert comparison.summary["losses"] == {}


def test_ids_wrap_between_work_without_times(tmp_path):
    """Work without times belongs to the window if its launch does; before the launch is known its id decides, and
    ids of before the wrap are earlier than those after it."""
    command = [harness.SIMTRAIN, "--steps", "40", "--layers", "24", "--kernel-us", "5", "--small-kernels", "40", "--data-ms", "20"]
    settings = {"SIMCUDA_CUPTI": "zero_ts=1", "GPUPROF_SCHEDULE": "skip_first=2,warmup=3,active=34,repeat=1"}
    (tmp_path / "plain").mkdir()
    _, first = profile(tmp_path / "plain", command, **settings)
    begin = truth.Comparison(first, tmp_path / "plain" / "truth").begin
    ids = [c["corr"] for c in truth.load(tmp_path / "plain" / "truth", harness.records(first)[0]["pid"])
           if c["t"] == "call" and c["begin"] > begin]
    _, dump = profile(tmp_path, command, SIMCUDA_FIRST_CORRELATION=2**32 - min(ids) - 100, **settings)
    comparison = truth.Comparison(dump, tmp_path / "truth")
    work = harness.of_kind(comparison.records, "gpu_kernel")
    assert len(work) > 2000 and all("no_time" in r["flags"] for r in work)
    ids = [r["correlation"] for r in work]
    assert min(ids) < 10000 and max(ids) > 2**32 - 10000
    for record in work:
        call = comparison.calls_by_correlation[record["correlation"]]
        assert call["begin"] > comparison.begin - 1000, "launched before the window"
    launched = {c["corr"] for c in comparison.truth if c["t"] == "call" and comparison._position(c)
                and truth.kind_of(c["name"]) == "launch"}
    assert launched <= set(ids)


def test_records_in_reversed_order(tmp_path):
    """Nothing depends on the order in which CUPTI delivers."""
    _, dump = profile(tmp_path, [harness.SIMTRAIN, *TRAIN, "--overlap"], SIMCUDA_CUPTI="reversed_order")
    comparison = truth.Comparison(dump, tmp_path / "truth")
    comparison.assert_right("launch", "copy", "set", "sync", "collective", "gpu_kernel", "gpu_copy", "gpu_set")
    assert comparison.summary["losses"] == {}


# A function of CUPTI that fails at attach: what is said, and whether there are GPU times all the same.
REFUSED = {
    "cuptiActivityRegisterCallbacks": ("no GPU times: cuptiActivityRegisterCallbacks", False),
    "cuptiActivityEnable": ("no GPU times: cuptiActivityEnable", False),
    "cuptiActivityRegisterTimestampCallback": (None, True),
    "cuptiEnableCallback": ("cuptiEnableCallback: ", True),
}


@pytest.mark.parametrize("function", REFUSED)
def test_a_function_that_fails_at_attach(function, tmp_path):
    text, timed = REFUSED[function]
    done, dump = profile(tmp_path, [harness.SIMTRAIN, *TRAIN], SIMCUDA_CUPTI=f"refuse={function}")
    lines = [line for line in harness.our_lines(done.err) if "Next: " not in line]
    if text:
        assert any(text in line for line in lines) and len(lines) == 1, done.err
    else:
        assert lines == [], done.err
    comparison = truth.Comparison(dump, tmp_path / "truth", gpu=timed and function != "cuptiEnableCallback")
    comparison.assert_right("launch", "copy", "sync", *(["gpu_kernel"] if timed and function != "cuptiEnableCallback" else []))
    assert bool(harness.of_kind(comparison.records, "gpu_kernel")) == timed
    missing = harness.info(dump)["files"][0]["gpu_times_missing"]
    assert (missing == "") == timed


def test_a_kind_that_is_refused(tmp_path):
    """CUPTI_ACTIVITY_KIND_MEMSET: the others go on, and one line names it."""
    done, dump = profile(tmp_path, [harness.SIMTRAIN, *TRAIN], SIMCUDA_CUPTI="refuse_kind=2")
    refused = [line for line in harness.our_lines(done.err) if "refuses activity kinds 2" in line]
    assert len(refused) == 1, done.err
    found = harness.records(dump)
    assert harness.of_kind(found, "gpu_kernel") and harness.of_kind(found, "gpu_copy") and not harness.of_kind(found, "gpu_set")


def test_callbacks_of_a_later_cupti(tmp_path):
    """Their ids are far behind the last one of any header: names tell what they are."""
    done = harness.run([harness.HAZARDS / "linked_way"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, SIMCUDA_CUPTI="launch_id=950", **harness.WHOLE_RUN))
    found = harness.records(*harness.dumps(tmp_path))
    launches = harness.of_kind(found, "launch")
    assert done.code == 0 and len(launches) == 50, done.err
    assert all(each["name"] == "cudaLaunchKernel" and "partner" in each for each in launches)


def test_a_library_that_is_too_old(tmp_path):
    """It lacks functions that there have been since CUDA 11: one line names the first."""
    (tmp_path / "old.c").write_text("int cuptiGetVersion(unsigned* v) { *v = 9; return 0; }\n")
    library = tmp_path / "libcupti.so.9"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "old.c"], check=True)
    done, dump = profile(tmp_path, [harness.SIMTRAIN, *TRAIN], GPUPROF_CUPTI=library)
    lines = harness.our_lines(done.err)
    assert len(lines) == 2 and "no GPU times: libcupti has no function cupti" in lines[0], done.err
    truth.Comparison(dump, tmp_path / "truth", gpu=False).assert_right("launch", "copy", "sync", "collective")
    assert "libcupti has no function" in harness.info(dump)["files"][0]["gpu_times_missing"]


def place(folder, source, *names):
    """A folder with links to some of the simulated libraries."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).symlink_to(f"{source}/{name}")
    return folder


def found_cupti(program, folder, path, **settings):
    """Which libcupti a run took, as it says itself; GPU records came of it."""
    done = harness.run(program, harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", GPUPROF_LOG="debug", LD_LIBRARY_PATH=path, **harness.WHOLE_RUN, **settings))
    assert done.code == 0, done.err
    dump, = harness.dumps(folder / "out")
    assert harness.of_kind(harness.records(dump), "gpu_kernel"), done.err
    return [line.split("CUPTI: ")[1] for line in harness.our_lines(done.err) if "CUPTI: " in line]


RUNTIME12 = ("libcudart.so.12", "libcuda.so.1", "libnccl.so.2")
RUNTIME13 = ("libcudart.so.13", "libcuda.so.1", "libnccl.so.2")
TRAIN12 = [SIMTRAIN12, "--steps", "4"]
PLACES = {  # where the runtime is, where CUPTI is, the program
    "wheel_of_12": ("site-packages/nvidia/cuda_runtime/lib", "site-packages/nvidia/cuda_cupti/lib", 12),
    "brought_by_torch": ("site-packages/torch/lib", "site-packages/nvidia/cuda_cupti/lib", 12),
    "torch_and_wheel_of_13": ("site-packages/torch/lib", "site-packages/nvidia/cu13/lib", 13),
    "toolkit": ("cuda/lib64", "cuda/extras/CUPTI/lib64", 13),
}


@pytest.mark.parametrize("name", PLACES)
def test_cupti_is_found(name, tmp_path):
    runtime, cupti, major = PLACES[name]
    source = LIB12 if major == 12 else harness.SIMCUDA
    path = place(tmp_path / runtime, source, *(RUNTIME12 if major == 12 else RUNTIME13))
    place(tmp_path / cupti, source, f"libcupti.so.{major}")
    program = TRAIN12 if major == 12 else [harness.HAZARDS / "linked_way"]
    found, = found_cupti(program, tmp_path, path)
    assert (tmp_path / cupti).resolve() == (harness.pathlib.Path(found).parent).resolve()


def test_cupti_beside_the_runtime(tmp_path):
    path = place(tmp_path / "site-packages/nvidia/cu13/lib", harness.SIMCUDA, *RUNTIME13, "libcupti.so.13")
    found, = found_cupti([harness.HAZARDS / "linked_way"], tmp_path, path)
    assert found == str(path / "libcupti.so.13")


# A program with the runtime in it: only the driver's version is known, 13.0, and CUPTI may be older. What is tried, in order.
STATIC = [harness.HAZARDS / "runtime_static"]
TRIED = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"]


def place_driver(folder, *there):
    """A folder with the driver and these of TRIED; the others cannot be loaded, and hide those of a toolkit."""
    path = place(folder, harness.SIMCUDA, "libcuda.so.1")
    for name in TRIED:
        if name in there:
            (path / name).symlink_to(f"{harness.SIMCUDA}/{name}" if name.endswith("13") else f"{LIB12}/libcupti.so.12")
        else:
            (path / name).touch()
    return path


@pytest.mark.parametrize("first", range(len(TRIED)))
def test_cupti_of_a_program_with_an_older_runtime_in_it(first, tmp_path):
    path = place_driver(tmp_path / "driver", *TRIED[first:])
    found, = found_cupti(STATIC, tmp_path, path)
    assert found == str(path / TRIED[first])


def test_all_names_of_cupti_that_were_tried_are_said(tmp_path):
    done = harness.run(STATIC, harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", LD_LIBRARY_PATH=place_driver(tmp_path / "driver"), **harness.WHOLE_RUN))
    assert "no GPU times: libcupti.so.13, libcupti.so.12 or libcupti.so.11.8 was not found beside the CUDA runtime" in done.err


# Its first mark comes before it loads CUDA.
LATE = """
import ctypes, sys, time
everything = ctypes.CDLL(None)
for _ in range(5):
    everything.gpuprof_step()
    time.sleep(0.02)
_, runtime = (ctypes.CDLL(f"{sys.argv[1]}/{name}", mode=ctypes.RTLD_GLOBAL) for name in ("libcuda.so.1", "libcudart.so.13"))
memory = ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(memory), 4096) == 0
for _ in range(60):
    assert runtime.cudaMemset(memory, 0, 4096) == 0
    assert runtime.cudaDeviceSynchronize() == 0
    everything.gpuprof_step()
    time.sleep(0.02)
"""


@pytest.mark.parametrize("schedule", [{"GPUPROF_SCHEDULE": "all"}, {}])
def test_cupti_of_a_runtime_that_is_loaded_later(schedule, tmp_path):
    """No other is taken before; what is missing until then is said."""
    beside = place(tmp_path / "beside", harness.SIMCUDA, *RUNTIME13, "libcupti.so.13")
    done = harness.run([sys.executable, "-c", LATE, beside], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", GPUPROF_LOG="debug", LD_LIBRARY_PATH="", **schedule))
    assert done.code == 0, done.err
    assert [line.split("CUPTI: ")[1] for line in harness.our_lines(done.err) if "CUPTI: " in line] == [f"{beside}/libcupti.so.13"]
    file, = harness.info(tmp_path / "out")["files"]
    missing, timed = file["gpu_times_missing"], file["events"]["gpu_set"]
    if not schedule:
        assert missing == "" and timed == 10, (missing, timed)
        return
    seconds = re.fullmatch(r"for (\d+\.\d{3}) s of the window, until CUDA had started and CUPTI was attached", missing)
    found = harness.records(*harness.dumps(tmp_path / "out"))
    sets = sorted(harness.of_kind(found, "set"), key=lambda each: each["begin_mono_ns"])
    joined = sum("partner" in each for each in sets)
    assert seconds and joined > 0 and ["partner" in each for each in sets] == [False] * (60 - joined) + [True] * joined, (missing, timed)
    # CUPTI gives GPU times first, and then says which call each is of: what comes between has times and no call.
    first = sets[60 - joined]["begin_mono_ns"]
    assert timed == joined + sum(each["begin_mono_ns"] < first for each in harness.of_kind(found, "gpu_set"))
    # From the first mark on; with the last kind that is enabled CUPTI is there, and the first set with times may come before.
    begin = min(each["end_mono_ns"] for each in harness.of_kind(found, "step"))
    assert 0 < float(seconds[1]) < (first - begin) / 1e9 + 1, (begin, first, missing)


def test_times_by_events_of_a_driver_that_is_loaded_later(tmp_path):
    """They begin then. What is missing until then is said, and nothing is said of the driver."""
    done = harness.run([sys.executable, "-c", LATE, harness.SIMCUDA], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", GPUPROF_LOG="info", GPUPROF_GPU_TIMES="events", GPUPROF_SCHEDULE="all"))
    assert done.code == 0 and "no GPU times" not in done.err, done.err
    file, = harness.info(tmp_path / "out")["files"]
    seconds = re.fullmatch(r"for (\d+\.\d{3}) s of the window, until CUDA was loaded", file["gpu_times_missing"])
    sets = sorted(harness.of_kind(harness.records(*harness.dumps(tmp_path / "out")), "set"), key=lambda each: each["begin_mono_ns"])
    joined = sum("partner" in each for each in sets)
    assert seconds and 0.08 < float(seconds[1]), file["gpu_times_missing"]
    assert 40 < joined == file["events"]["gpu_set"] and ["partner" in each for each in sets] == [False] * (60 - joined) + [True] * joined


def test_times_by_events_without_cuda(tmp_path):
    script = "import ctypes, time\nfor _ in range(5): ctypes.CDLL(None).gpuprof_step(); time.sleep(0.02)"
    done = harness.run([sys.executable, "-c", script], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", GPUPROF_GPU_TIMES="events", GPUPROF_SCHEDULE="all"))
    assert done.code == 0 and "no GPU times" not in done.err, done.err
    file, = harness.info(tmp_path / "out")["files"]
    assert file["gpu_times_missing"] == "the program had not loaded CUDA"


def test_cupti_named_by_the_user(tmp_path):
    path = place(tmp_path / "named", harness.SIMCUDA, "libcupti.so.13")
    found, = found_cupti([harness.HAZARDS / "linked_way"], tmp_path, harness.SIMCUDA + "_nocupti",
                         GPUPROF_CUPTI=path / "libcupti.so.13")
    assert found == str(path / "libcupti.so.13")


def test_cupti_of_the_process_wins(tmp_path):
    """The program has loaded one; another lies beside its runtime."""
    loaded = place(tmp_path / "loaded", harness.SIMCUDA, "libcupti.so.13")
    beside = place(tmp_path / "beside", harness.SIMCUDA, *RUNTIME13, "libcupti.so.13")
    found, = found_cupti([harness.HAZARDS / "kineto_like", "activity", "after"], tmp_path, f"{loaded}:{beside}")
    assert found == str(loaded / "libcupti.so.13")


def test_wrong_cupti_is_said(tmp_path):
    done = harness.run([harness.HAZARDS / "linked_way"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_CUPTI="/nonexistent/libcupti.so", **harness.WHOLE_RUN))
    assert done.code == 0
    lines = harness.our_lines(done.err)
    assert len(lines) == 2 and "GPUPROF_CUPTI" in lines[0] and "/nonexistent/libcupti.so" in lines[0], done.err


def test_cupti_that_dies_before_the_driver_starts(tmp_path):
    """CUPTI 13.2 and a window that the program's first call of CUDA begins: attached later, and what it misses is said."""
    done = harness.run([harness.HAZARDS / "end", "return"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, SIMCUDA_VERSION="13.2", LD_LIBRARY_PATH=LIB13_2, **harness.WHOLE_RUN))
    bare = harness.run([harness.HAZARDS / "end", "return"])
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    dump, = harness.dumps(tmp_path)
    launches, kernels = (len(harness.of_kind(harness.records(dump), kind)) for kind in ("launch", "gpu_kernel"))
    missing = harness.info(dump)["files"][0]["gpu_times_missing"]
    assert 0 < launches and (kernels == launches or "CUPTI 13.2 is asked after that" in missing), (kernels, launches, missing)


def test_cupti_that_dies_without_a_driver_and_no_gpu(tmp_path):
    done = harness.run([harness.HAZARDS / "end", "return"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, SIMCUDA_VERSION="13.2", SIMCUDA_NODRIVER="1", LD_LIBRARY_PATH=LIB13_2, **harness.WHOLE_RUN))
    bare = harness.run([harness.HAZARDS / "end", "return"], harness.environment(SIMCUDA_NODRIVER="1"))
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    assert any("no GPU times: CUDA had not started" in line for line in harness.our_lines(done.err)), done.err


def test_cupti_that_finds_no_driver(tmp_path):
    """Every call of it fails: hooks go on alone."""
    done = harness.run([harness.HAZARDS / "end", "return"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, SIMCUDA_CUPTI="nodriver", **harness.WHOLE_RUN))
    assert done.code == 3
    lines = harness.our_lines(done.err)
    assert len(lines) == 2 and "no GPU times: cuptiSubscribe" in lines[0], done.err
    dump, = harness.dumps(tmp_path)
    assert len(harness.of_kind(harness.records(dump), "launch")) == 20
    assert "cuptiSubscribe" in harness.info(dump)["files"][0]["gpu_times_missing"]


# Steps before CUDA is loaded, so that the child can use it, and has a dump of its own.
FORKS = """
import ctypes, os
step = ctypes.CDLL(None).gpuprof_step
step()
child = os.fork()
cuda = ctypes.CDLL("libcudart.so.13")
memory = ctypes.c_void_p()
cuda.cudaMalloc(ctypes.byref(memory), 4096)
for _ in range(5):
    cuda.cudaMemset(memory, 0, 4096)
    cuda.cudaDeviceSynchronize()
    step()
if child:
    os.waitpid(child, 0)
"""


def test_a_forked_child_says_itself_why_it_has_no_gpu_times(tmp_path):
    done = harness.run([harness.PYTHON, "-c", FORKS], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="manual", GPUPROF_SCHEDULE="all", GPUPROF_CUPTI="off"))
    assert done.code == 0, done.err
    missing = [harness.info(dump)["files"][0]["gpu_times_missing"] for dump in harness.dumps(tmp_path)]
    assert len(missing) == 2 and all("GPUPROF_CUPTI=off" in each for each in missing), missing


@pytest.mark.parametrize("settings", [{}, {"GPUPROF_PRESET": "light"}, {"GPUPROF_PRESET": "full"}], ids=["default", "light", "full"])
def test_a_context_that_ends(tmp_path, settings):
    """cudaDeviceReset takes with it what CUPTI has not delivered: it is asked for before."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="all", **settings)
    done = harness.run([harness.HAZARDS / "reset"], env)
    assert done.code == 0, done.err
    dump, = harness.dumps(tmp_path / "out")
    # Those before CUPTI was attached have no times.
    early = harness.run([harness.HAZARDS / "reset"], {**env, "GPUPROF_OUTPUT": str(tmp_path / "kept"), "SIMCUDA_CUPTI": "reset_loses_records=0"})
    assert early.code == 0, early.err
    kept, = harness.dumps(tmp_path / "kept")
    counts = [len(harness.of_kind(harness.records(path), "gpu_kernel")) for path in (dump, kept)]
    assert counts[0] > 100 and abs(counts[0] - counts[1]) < 50, counts
