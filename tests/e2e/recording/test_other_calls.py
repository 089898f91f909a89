# SPDX-License-Identifier: Apache-2.0
"""Calls that no other test makes: each is recorded once, by its name, with CUPTI and without."""
import sys

import pytest

import harness

CALLS = [
    "cudaMemcpy3D", "cudaMemcpy3DAsync", "cudaMemcpy3DPeer", "cudaMemcpyToSymbolAsync", "cudaMemcpyFromSymbolAsync",
    "cudaMemcpy2DAsync", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol", "cudaMemset2D", "cudaMemset2DAsync", "cudaHostAlloc",
    "cudaHostRegister", "cudaHostUnregister", "cudaMallocFromPoolAsync", "cudaStreamBeginCaptureToGraph", "cudaMemPrefetchBatchAsync", "cudaStreamAttachMemAsync", "ncclCommInitRankConfig", "ncclMemAlloc", "ncclCommRegister",
    "ncclCommDeregister", "ncclCommWindowRegister", "ncclCommWindowDeregister", "ncclMemFree", "ncclRedOpCreatePreMulSum",
    "ncclRedOpDestroy", "ncclCommFinalize", "ncclCommAbort"]


@pytest.mark.parametrize("cupti", ["auto", "off"])
def test_each_is_recorded_by_its_name(cupti, tmp_path):
    done = harness.run([sys.executable, harness.SOURCE / "tests/programs/python/other_calls.py"], env=harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual", SIMCUDA_DEVICES=1, GPUPROF_CUPTI=cupti,
        GPUPROF_ACTIVITIES="+api", GPUPROF_SCHEDULE="skip_first=2,warmup=0,active=1"))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    names = [record.get("name") for record in harness.records(dump) if not record["kind"].startswith("nvtx")]
    assert {call: names.count(call) for call in CALLS} == dict.fromkeys(CALLS, 1)
