# SPDX-License-Identifier: Apache-2.0
"""CUDA_INJECTION64_PATH: the driver loads the library when it starts, nothing is preloaded. What the program
calls from then on is in the dump once, by a hook or by CUPTI's callback; and the program is not disturbed."""
import collections
import re
import shutil

import pytest

import harness
import test_hazards
import test_ways
import truth

KINDS = [kind for kind, _ in truth.CALL_KINDS if kind != "collective"]


def injected(**settings):
    return harness.environment(CUDA_INJECTION64_PATH=harness.LIB, **settings)


def run(command, folder, env):
    env.update({"SIMCUDA_TRUTH": str(folder / "truth"), "GPUPROF_OUTPUT": str(folder / "out")})
    bare = harness.run(command)
    done = harness.run(command, env)
    assert (done.code, done.out) == (bare.code, bare.out) and done.code == 0, done.out + done.err
    return done


def compare(folder, gpu=True):
    dump, = harness.dumps(folder / "out")
    return truth.Comparison(dump, folder / "truth", gpu=gpu, callbacks=True)


def calls_by_kind(comparison):
    made = collections.Counter(truth.kind_of(c["name"]) for c in comparison.truth if c["t"] == "call" and not c.get("trivial"))
    return {kind: made[kind] for kind in KINDS}


@pytest.mark.parametrize("way", test_ways.WAYS)
def test_each_call_once(way, tmp_path):
    run(test_ways.WAYS[way], tmp_path, injected(**harness.WHOLE_RUN))
    comparison = compare(tmp_path)
    comparison.assert_right("gpu_kernel", "gpu_copy", "gpu_set")
    recorded = collections.Counter(r["kind"] for r in comparison.records)
    assert {kind: recorded[kind] for kind in KINDS} == calls_by_kind(comparison)
    assert comparison.summary["losses"] == {}
    made = [c["name"] for c in comparison.truth if c["t"] == "call"]
    for family, pattern in test_ways.FAMILIES.items():
        assert any(re.match(pattern, name) for name in made), f"the program makes no call of family {family}"
    # A runtime inside the program has asked for the driver's functions before: CUPTI's callback tells of it.
    # All others are led to the hooks; only the call that started the driver was under way already.
    through_callback = [r for r in comparison.records if "from_callback" in r.get("flags", ())]
    if way == "static_runtime":
        assert len(through_callback) > 50
    elif way != "ctypes":  # it has looked one function up before
        assert len(through_callback) <= 1


@pytest.mark.parametrize("way", sorted({"linked", "dlsym", "deepbind", "driver_linked", "driver_ask"} & set(test_ways.WAYS)))
def test_hooks_alone(way, tmp_path):
    """Without CUPTI all but the call that started the driver is seen."""
    run(test_ways.WAYS[way], tmp_path, injected(GPUPROF_CUPTI="off", **harness.WHOLE_RUN))
    comparison = compare(tmp_path, gpu=False)
    recorded = collections.Counter(r["kind"] for r in comparison.records)
    assert {kind: recorded[kind] for kind in KINDS} == calls_by_kind(comparison)


@pytest.mark.parametrize("way", test_ways.WAYS)
def test_preloaded_and_injected(way, tmp_path):
    """Both at once: one library, one dump, nothing twice, and as complete as preloaded."""
    env = harness.preloaded(CUDA_INJECTION64_PATH=harness.LIB, **harness.WHOLE_RUN)
    run(test_ways.WAYS[way], tmp_path, env)
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path / "truth")
    made = collections.Counter(c["name"] for c in comparison.truth if c["t"] == "call" and not c.get("trivial"))
    recorded = collections.Counter(r["name"] for r in harness.of_kind(comparison.records, *test_ways.HOST_KINDS))
    assert recorded == made
    comparison.assert_right("launch", "copy", "set", "gpu_kernel")


@pytest.mark.parametrize("mode", ["off", "armed", "on"])
def test_constructor_starts_the_driver(mode, tmp_path):
    """Constructors of other libraries, which have not run yet, run in their turn."""
    done = run([harness.HAZARDS / "copies_registry_starts"], tmp_path, injected(GPUPROF_MODE=mode))
    assert "  1 in the registry" in done.out, done.out


@pytest.mark.parametrize("preloaded_too", [True, False])
def test_another_copy_of_the_library(preloaded_too, tmp_path):
    """The injected file is another than the preloaded one: that one is at work, this one does nothing."""
    other = tmp_path / "libgpuprof-copy.so"
    shutil.copy(harness.LIB, other)
    env = (harness.preloaded if preloaded_too else harness.environment)(CUDA_INJECTION64_PATH=other, **harness.WHOLE_RUN)
    run(test_ways.WAYS["linked"], tmp_path, env)
    compare(tmp_path).assert_right("launch", "gpu_kernel")


@pytest.mark.parametrize("way", ["linked", "dlsym", "driver_ask"])
def test_two_preloaded_copies(way, tmp_path):
    """The first one records, the second calls what comes after it."""
    other = tmp_path / "libgpuprof-copy.so"
    shutil.copy(harness.LIB, other)
    env = harness.preloaded(**harness.WHOLE_RUN)
    env["LD_PRELOAD"] += f":{other}"
    run(test_ways.WAYS[way], tmp_path, env)
    compare(tmp_path).assert_right("launch", "gpu_kernel")


def test_another_copy_in_a_python(tmp_path):
    """Only one of them is told of PyTorch's optimizers."""
    other = tmp_path / "libgpuprof-copy.so"
    shutil.copy(harness.LIB, other)
    env = harness.preloaded(CUDA_INJECTION64_PATH=other, GPUPROF_STEP="optimizer", GPUPROF_OUTPUT=tmp_path / "out",
                            GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=4")
    done = harness.run([harness.PYTHON, harness.SOURCE / "tests/programs/python/train.py", "gpu", 12], env)
    assert done.code == 3, done.err
    assert len(harness.dumps(tmp_path / "out")) == 1


def test_a_call_while_the_driver_starts(tmp_path):
    """Its thread is led to a hook before the driver lets the library start: it waits, and does not hold the driver up."""
    env = injected(SIMCUDA_INJECTION_MS=300, **harness.WHOLE_RUN)
    done = run([harness.HAZARDS / "two_starts"], tmp_path, env)
    assert "another thread has been" not in done.err, done.err
    comparison = compare(tmp_path)
    recorded = collections.Counter(r["kind"] for r in comparison.records)
    assert (recorded["alloc"], recorded["dealloc"]) == (2, 2)


def test_nvtx_has_loaded_the_library_on_another_thread(tmp_path):
    """That is not the driver, which would be waited for."""
    env = injected(NVTX_INJECTION64_PATH=harness.LIB, GPUPROF_LOG="info", **harness.WHOLE_RUN)
    done = run([harness.HAZARDS / "two_starts", "nvtx"], tmp_path, env)
    assert "has not started this library" not in done.err and "(sync:1)" in done.err, done.err
    recorded = collections.Counter(r["kind"] for r in compare(tmp_path).records)
    assert (recorded["alloc"], recorded["dealloc"]) == (2, 2)


def test_threads_that_open_and_close_libraries(tmp_path):
    """Offset tables are changed while other threads load and unload: nobody's pages, and no call missed."""
    plugins = [tmp_path / f"libplugin{i}.so" for i in range(6)]
    for plugin in plugins:
        shutil.copy(harness.HAZARDS / "libmemory_plugin.so", plugin)
    run([harness.HAZARDS / "plugin_threads", *plugins], tmp_path, injected(**harness.WHOLE_RUN))
    comparison = compare(tmp_path)
    recorded = collections.Counter(r["kind"] for r in comparison.records)
    assert {kind: recorded[kind] for kind in KINDS} == calls_by_kind(comparison)
    assert (recorded["alloc"], recorded["set"], recorded["dealloc"]) == (6000, 6000, 6000)
    # CUPTI tells of a library that another thread has opened and not led yet: few.
    assert sum("from_callback" in r.get("flags", ()) for r in comparison.records) < 1800


@pytest.mark.parametrize("markers, ranks, step", [
    ("nvtx", 1, "nvtx:step"),
    ("nvtx", 1, "auto"),
    ("sync", 1, "sync:1"),
    ("none", 2, "nccl:ncclAllReduce:1"),
    ("profiler", 1, "auto"),
])
def test_steps(markers, ranks, step, tmp_path):
    env = injected(GPUPROF_STEP=step, GPUPROF_SCHEDULE="skip_first=2,wait=1,warmup=1,active=3,repeat=1")
    done = run([harness.SIMTRAIN, "--steps", "12", "--ranks", ranks, "--markers", markers, "--profile-steps", "4-6",
                "--comm-mb", 4 if ranks > 1 else 0, "--layers", 1], tmp_path, env)
    dumps = harness.dumps(tmp_path / "out")
    assert len(dumps) == ranks
    for dump in dumps:
        comparison = truth.Comparison(dump, tmp_path / "truth")
        comparison.assert_right("launch", "gpu_kernel")
        if markers != "profiler":
            assert comparison.window_steps() == [4, 5, 6], done.err
        if markers == "nvtx":
            ranges = [r["name"] for r in harness.of_kind(comparison.records, "nvtx_range")]
            assert len([name for name in ranges if name.startswith("step ")]) >= 2, ranges


def test_nvtx_before_cuda(tmp_path):
    """The program's NVTX asks once where to go, before the driver starts: NVTX_INJECTION64_PATH answers."""
    program = [harness.HAZARDS / "nvtx_first"]
    for also in (False, True):
        folder = tmp_path / str(also)
        env = injected(**{**harness.WHOLE_RUN, "GPUPROF_STEP": "sync:1"})
        if also:
            env["NVTX_INJECTION64_PATH"] = harness.LIB
        run(program, folder, env)
        dump, = harness.dumps(folder / "out")
        assert len(harness.of_kind(harness.records(dump), "nvtx_range")) == (10 if also else 0)
        compare(folder).assert_right("launch", "gpu_kernel")


def test_off_and_armed(tmp_path):
    for mode in ("off", "armed"):
        done = run([harness.SIMTRAIN, "--steps", "20"], tmp_path, injected(GPUPROF_MODE=mode))
        assert not harness.dumps(tmp_path / "out") and "loss" not in done.err


def test_a_program_that_uses_no_cuda(tmp_path):
    done = harness.run(["/bin/true"], injected(GPUPROF_OUTPUT=tmp_path / "out"))
    assert (done.code, done.err) == (0, "") and not (tmp_path / "out").exists()


def visible(text):
    return [line for line in test_hazards.visible(text) if not line.startswith("CUDA_INJECTION64_PATH=")]


# The constructor that calls CUDA first is in a library that is still being loaded when the driver starts.
@pytest.mark.parametrize("hazard", test_hazards.HAZARDS, ids=str)
def test_a_program_is_not_disturbed(hazard, tmp_path):
    """However it ends: as it would bare, its dump complete."""
    bare = harness.run(hazard.command())
    env = injected(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="run", **harness.WHOLE_RUN)
    done = harness.run(hazard.command(), env, timeout=30)
    assert done.code == bare.code, done.err
    assert visible(done.out) == visible(bare.out)
    if hazard.lossy or not hazard.launches:
        return
    assert test_hazards.launches_of(tmp_path / "out") == tuple(sorted(hazard.launches)), done.err
    left = [p for p in harness.dumps(tmp_path / "out") if p.suffix != ".gpuprof"]
    assert bool(left) == hazard.killed, f"left behind: {left}"
