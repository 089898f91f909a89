# SPDX-License-Identifier: Apache-2.0
"""Whatever way a program has to CUDA, each of its calls is in the dump exactly once: with CUPTI, and with the
hooks alone."""
import collections
import re
import subprocess

import pytest

import harness
import truth

WAYS = {
    "linked": [harness.HAZARDS / "runtime_linked"],
    "dlsym": [harness.HAZARDS / "runtime_opened"],
    "ctypes": [harness.PYTHON, harness.SOURCE / "tests/programs/ways/runtime_ctypes.py"],
    "deepbind": [harness.HAZARDS / "deepbind", "libruntime_plugin.so"],
    "static_runtime": [harness.HAZARDS / "runtime_static"],
    "driver_linked": [harness.HAZARDS / "driver_linked"],
    "driver_dlsym": [harness.HAZARDS / "driver_opened", "dlsym"],
    "driver_ask": [harness.HAZARDS / "driver_opened", "ask"],
    "driver_ask_per_thread": [harness.HAZARDS / "driver_opened", "ask_per_thread"],
    "driver_ask_old": [harness.HAZARDS / "driver_opened", "ask_old"],
}
if harness.SANITIZER == "address":  # its runtime refuses RTLD_DEEPBIND
    del WAYS["deepbind"]

# Of each family at least one call must have been compared.
FAMILIES = {
    "launch": r"(cuda|cu)Launch(CooperativeKernel|Kernel)",
    "copy": r"(cuda|cu)Memcpy",
    "set": r"(cuda|cu)Memset",
    "allocation": r"cudaMalloc|cuMemAlloc|cuMemHostAlloc",
    "release": r"cudaFree|cuMemFree",
    "sync": r"(cudaDevice|cuCtx|cudaStream|cuStream)Synchronize",
    "event": r"(cuda|cu)EventRecord",
    "graph": r"(cuda|cu)GraphLaunch",
}
# What less usual programs call.
RUNTIME_TOO = ["cudaMemcpyBatchAsync", "cudaMemcpy3DBatchAsync", "cudaMemcpyPeerAsync", "cudaMemcpy3DPeerAsync", "cudaMemAdvise",
               "cudaMemPrefetchAsync", "cudaStreamCreateWithPriority", "cudaLaunchCooperativeKernel", "cudaLaunchHostFunc",
               "cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cudaGraphInstantiateWithParams", "cudaGraphUpload",
               "cudaGraphExecUpdate", "cudaProfilerStart", "cudaProfilerStop"]
DRIVER_TOO = ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease",
              "cuMemAddressFree", "cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuMemcpy3DBatchAsync_v2",
              "cuMemcpyPeerAsync", "cuMemcpy3DPeerAsync", "cuMemAdvise_v2", "cuMemPrefetchAsync_v2", "cuGreenCtxCreate",
              "cuCtxFromGreenCtx", "cuGreenCtxStreamCreate", "cuGreenCtxDestroy", "cuStreamCreateWithPriority",
              "cuLaunchCooperativeKernel", "cuLaunchHostFunc", "cuGraphInstantiateWithFlags", "cuGraphInstantiate_v2",
              "cuGraphInstantiateWithParams", "cuGraphExecUpdate_v2", "cuProfilerStart", "cuProfilerStop"]
HOST_KINDS = ["call", "launch", "copy", "set", "alloc", "dealloc", "sync", "event", "stream"]


def profile(command, folder, **settings):
    env = harness.preloaded(SIMCUDA_TRUTH=folder / "truth", GPUPROF_OUTPUT=folder / "out", **harness.WHOLE_RUN, **settings)
    bare = harness.run(command, harness.environment(**{k: v for k, v in settings.items() if not k.startswith("GPUPROF")}))
    done = harness.run(command, env)
    assert (done.code, done.out) == (bare.code, bare.out) and done.code == 0, done.out + done.err
    dump, = harness.dumps(folder / "out")
    return truth.Comparison(dump, folder / "truth", gpu=settings.get("GPUPROF_CUPTI") != "off")


@pytest.mark.parametrize("cupti", ["auto", "off"])
@pytest.mark.parametrize("way", WAYS)
def test_each_call_once(way, cupti, tmp_path):
    settings = {} if cupti == "auto" else {"GPUPROF_CUPTI": "off"}
    comparison = profile(WAYS[way], tmp_path, **settings)
    made = collections.Counter(c["name"] for c in comparison.truth if c["t"] == "call" and not c.get("trivial"))
    recorded = collections.Counter(r["name"] for r in harness.of_kind(comparison.records, *HOST_KINDS))
    assert recorded == made
    comparison.assert_right("launch", "copy", "set", "alloc", "dealloc", "sync")
    for family, pattern in FAMILIES.items():
        assert any(re.match(pattern, name) for name in made), f"the program makes no call of family {family}"
    called = {truth.plain_name(name) for name in made}
    if way.startswith("driver"):
        assert called >= set(DRIVER_TOO)
    elif way not in ("ctypes", "static_runtime"):
        assert called >= set(RUNTIME_TOO)
    if cupti == "auto":
        assert comparison.counts["gpu_kernel"] and comparison.counts["gpu_copy"] and comparison.counts["gpu_set"]
    assert comparison.summary["losses"] == {}


@pytest.mark.parametrize("way", ["linked", "static_runtime", "driver_linked", "driver_ask"])
def test_device_synchronization_is_a_step_in_each_way(way, tmp_path):
    comparison = profile(WAYS[way], tmp_path)
    made = [c for c in comparison.truth if c["t"] == "call" and c["name"] in ("cudaDeviceSynchronize", "cuCtxSynchronize")]
    assert made and len(harness.of_kind(comparison.records, "step")) == len(made)


def test_kernels_have_names_without_cupti(tmp_path):
    """The driver's kernels are named by what the program asked its module for."""
    for way in ("static_runtime", "driver_ask"):
        comparison = profile(WAYS[way], tmp_path / way, GPUPROF_CUPTI="off")
        launches = [r for r in harness.of_kind(comparison.records, "launch") if "Graph" not in r["name"]]
        assert launches and {r["kernel"] for r in launches} == {"_Z11ways_kernelPf"}


def test_a_library_that_brings_its_own_runtime_is_told_by_the_driver_call(tmp_path):
    """What CUPTI says of the runtime's call and what the hook says of the driver's are one event."""
    comparison = profile(WAYS["static_runtime"], tmp_path)
    launches = [r for r in harness.of_kind(comparison.records, "launch") if r["name"] == "cuLaunchKernel"]
    assert len(launches) == 24 and all(r["correlation"] for r in launches)
    assert not [r for r in comparison.records if "from_callback" in r.get("flags", ())]


@pytest.mark.parametrize("cupti", ["auto", "off"])
def test_what_the_runtime_does_in_the_driver_is_part_of_its_call(cupti, tmp_path):
    """A shared runtime that asks the driver for its functions is given hooks, too."""
    env = harness.preloaded(SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    env["LD_LIBRARY_PATH"] = f"{harness.BUILD / 'simcuda/lib_thin'}:{harness.SIMCUDA}"
    if cupti == "off":
        env["GPUPROF_CUPTI"] = "off"
    done = harness.run([harness.HAZARDS / "runtime_linked"], env)
    assert done.code == 0, done.out + done.err
    dump, = harness.dumps(tmp_path / "out")
    found = harness.of_kind(harness.records(dump), *HOST_KINDS)
    assert [r["name"] for r in found if not r["name"].startswith("cuda")] == []
    made = collections.Counter(truth.kind_of(c["name"]) for c in truth.load(tmp_path / "truth", harness.records(dump)[0]["pid"])
                               if c["t"] == "call" and truth.kind_of(c["name"]))
    assert made["launch"] == 32
    assert {kind: sum(r["kind"] == kind for r in found) for kind in made} == made
    if cupti == "auto":
        assert all(r["correlation"] for r in found if r["kind"] in ("launch", "copy", "set"))


@pytest.mark.parametrize("cupti", ["auto", "off"])
@pytest.mark.parametrize("way", ["driver_linked", "driver_ask"])
def test_a_green_context_is_told_from_the_device_s_own(way, cupti, tmp_path):
    comparison = profile(WAYS[way], tmp_path, **({} if cupti == "auto" else {"GPUPROF_CUPTI": "off"}))
    [created] = [r for r in comparison.records if r.get("name") == "cuGreenCtxStreamCreate"]
    launches = [r for r in harness.of_kind(comparison.records, "launch") if r["stream_handle"] == created["stream_handle"]]
    assert len(launches) == 1 and launches[0]["kernel"] == "_Z11ways_kernelPf"
    if cupti == "auto":  # the comparison has looked at each record's context
        contexts = {r["lane"]["context"] for r in harness.of_kind(comparison.records, "gpu_kernel")}
        assert len(contexts) == 2


@pytest.mark.parametrize("version, cupti", [("12.8", "auto"), ("12.8", "off"), ("12.6", "auto")])
def test_calls_that_had_another_signature_in_cuda_12(version, cupti, tmp_path):
    """Same names as today's, other arguments: passed on as they are, and read as that version means them."""
    settings = {"SIMCUDA_VERSION": version, "LD_LIBRARY_PATH": harness.BUILD / "simcuda/lib12"}
    comparison = profile([harness.HAZARDS / "runtime_12", version], tmp_path, **settings,
                         **({} if cupti == "auto" else {"GPUPROF_CUPTI": "off"}))
    recorded = collections.Counter(r["name"] for r in harness.of_kind(comparison.records, *HOST_KINDS))
    assert recorded == collections.Counter(c["name"] for c in comparison.truth if c["t"] == "call")
    comparison.assert_right("copy", "sync")
    [stream] = {r["stream_handle"] for r in harness.of_kind(comparison.records, "stream")}
    assert {r["stream_handle"] for r in harness.of_kind(comparison.records, "copy")} == {stream}


@pytest.mark.parametrize("way", ["linked", "driver_linked", "driver_dlsym", "driver_ask", "static_runtime"])
def test_profiler_marks_of_the_runtime_and_of_the_driver(way, tmp_path):
    """The window lies between them, whichever the program calls."""
    env = harness.preloaded(SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="profiler")
    assert harness.run(WAYS[way], env).code == 0
    dump, = harness.dumps(tmp_path / "out")
    comparison = truth.Comparison(dump, tmp_path / "truth")
    comparison.assert_right("launch", "copy", "alloc")
    calls = [c for c in comparison.truth if c["t"] == "call"]
    [start], [stop] = ([c for c in calls if f"Profiler{which}" in c["name"]] for which in ("Start", "Stop"))
    assert start["begin"] < comparison.begin < comparison.end and abs(comparison.end - stop["end"]) < 5e6


def answers(requests, env):
    program = [harness.PYTHON, harness.SOURCE / "tests/programs/ways/proc_addresses.py"]
    done = subprocess.run([str(c) for c in program], env=env, input="\n".join(requests), capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


def test_cuGetProcAddress_gives_the_hook_of_the_signature_asked_for():
    """For each row: from its version on our hook, and the same function that the driver would have given."""
    table = (harness.SOURCE / "preload/apis.def").read_text()
    rows = re.findall(r"^GPUPROF_DRIVER(?:_HAND)?\(driver, (\w+),.*?(\d+)\)$", table, flags=re.M)
    assert len(rows) > 120
    requests = {}
    for symbol, since in rows:
        name = re.sub(r"_v2$", "", re.sub(r"_pt[sd][sz]$", "", symbol))
        flags = 2 if re.search(r"_pt[sd][sz]$", symbol) else 0
        requests[f"{name}:{since}:{flags}"] = symbol
        requests[f"{name}:{int(since) - 1}:{flags}"] = None  # an older signature, or none
    bare = answers(requests, harness.environment())
    ours = answers(requests, harness.preloaded())
    for request, symbol in requests.items():
        if symbol:
            assert bare[request] == ["libcuda.so.1", symbol]
            assert ours[request] == ["libgpuprof.so", symbol], request
        else:
            # Never the hook of another signature than the driver's answer has.
            assert (bare[request] == ["none"]) == (ours[request] == ["none"]), request
    # Two signatures of one name, told apart by the version alone.
    both = answers(["cuCtxSynchronize:12090:0", "cuCtxSynchronize:13000:0", "cuInit:13000:0"], harness.preloaded())
    assert both["cuCtxSynchronize:12090:0"] != both["cuCtxSynchronize:13000:0"]
    assert both["cuInit:13000:0"] == ["libcuda.so.1", "cuInit"]
