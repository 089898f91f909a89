# SPDX-License-Identifier: Apache-2.0
"""Calls that no other test makes: each is recorded once, by its name, with CUPTI and without."""
import re
import sys

import pytest

import harness

CALLS = [
    "cudaMemcpy3D", "cudaMemcpy3DAsync", "cudaMemcpy3DPeer", "cudaMemcpyToSymbolAsync", "cudaMemcpyFromSymbolAsync",
    "cudaMemcpy2DAsync", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol", "cudaMemset2D", "cudaMemset2DAsync", "cudaMemset3D", "cudaMemset3DAsync", "cudaHostAlloc",
    "cudaMemcpyWithAttributesAsync", "cudaMemcpy3DWithAttributesAsync", "cudaLaunchHostFunc_v2", "cudaExecutionCtxSynchronize",
    "cudaHostRegister", "cudaHostUnregister", "cudaMallocFromPoolAsync", "cudaStreamBeginCaptureToGraph", "cudaMemPrefetchBatchAsync", "cudaStreamAttachMemAsync", "ncclCommInitRankConfig", "ncclMemAlloc", "ncclCommRegister",
    "ncclCommDeregister", "ncclCommWindowRegister", "ncclCommWindowDeregister", "ncclMemFree", "ncclRedOpCreatePreMulSum",
    "ncclRedOpDestroy", "ncclCommFinalize", "ncclCommAbort"]

BYTES = {"cudaMemset3D": 64 * 2 * 3, "cudaMemset3DAsync": 64 * 2 * 3, "cudaMemcpyWithAttributesAsync": 640}


@pytest.mark.parametrize("cupti", ["auto", "off"])
def test_each_is_recorded_by_its_name(cupti, tmp_path):
    done = harness.run([sys.executable, harness.SOURCE / "tests/programs/python/other_calls.py"], env=harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", SIMCUDA_DEVICES=1, GPUPROF_CUPTI=cupti,
        GPUPROF_ACTIVITIES="+api", GPUPROF_SCHEDULE="skip_first=2,warmup=0,active=1", LD_LIBRARY_PATH=f"{harness.SIMCUDA}13_2",
        SIMCUDA_VERSION="13.2"))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    found = [record for record in harness.records(dump) if not record["kind"].startswith("nvtx")]
    names = [record.get("name") for record in found]
    assert {call: names.count(call) for call in CALLS} == dict.fromkeys(CALLS, 1)
    for record in found:
        if record.get("name") in BYTES:
            assert record["bytes"] == BYTES[record["name"]] and ("partner" in record) == (cupti == "auto"), record
    kinds = {record["name"]: record["kind"] for record in found if "name" in record}
    assert kinds["cudaExecutionCtxSynchronize"] == "sync" and kinds["cudaLaunchHostFunc_v2"] == "call"


# Names of calls that work or wait, and those of them that no CUDA since 11.8 has, or whose call of the driver's stands for them.
WORK = r"cu(da)?(Memcpy|Memset|Launch|\w*Synchronize|StreamBegin|Mem(Prefetch|Discard|Batch))"
GONE = {"cudaLaunch", "cudaLaunch_ptsz", "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuMemcpy_v2",
        "cudaMemDiscardAndPrefetchBatchAsync_ptsz"}


@pytest.mark.parametrize("library", ["runtime", "driver"])
def test_each_call_that_works_or_waits_has_a_row(library):
    """Of those that CUPTI's headers name."""
    rows = re.findall(r"^GPUPROF_\w+\(\w+, (\w+)", (harness.SOURCE / "preload/apis.def").read_text(), re.M)
    inc, = (harness.BUILD / "tests/simcuda").rglob(f"simcuda_{library}_cbids.inc")
    names = re.findall(r'"(\w+)"', inc.read_text())
    if library == "runtime":
        names = [re.sub(r"_v\d{4,}$", "", name) for name in names]
    work = {name for name in names if re.match(WORK, name) and not re.match(r"cuStreamBeginCaptureToCig", name)}
    old = {name for name in work if re.sub("(_pt[sd][sz])?$", r"_v2\1", name, count=1) in names}
    assert len(work) > 50 and work - set(rows) - GONE - (old if library == "driver" else set()) == set()
