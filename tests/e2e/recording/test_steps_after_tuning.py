# SPDX-License-Identifier: Apache-2.0
"""XLA tries its algorithms before the first step, and waits for the GPU before each. Those waits are taken for steps at first;
what recurs after them takes their place."""
import json

import pytest

import harness

# 40 waits in 0.1 s and more, then steps of one graph.
PROGRAM = f"""import ctypes, sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
cuda, stream, graph, replay = gpu._cudart, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
def ok(result):
    assert result == 0, result
ok(cuda.cudaStreamCreate(ctypes.byref(stream)))
for _ in range(int(sys.argv[1])):
    gpu.work()  # ends in cudaDeviceSynchronize
    time.sleep(0.002)
ok(cuda.cudaStreamBeginCapture(stream, 0))
ok(cuda.cudaMemsetAsync(gpu._memory, 0, gpu._BYTES, stream))
ok(cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)))
ok(cuda.cudaGraphInstantiate(ctypes.byref(replay), graph, ctypes.c_ulonglong(0)))
time.sleep(1)
for _ in range(200):
    ok(cuda.cudaGraphLaunch(replay, stream))
    ok(cuda.cudaStreamSynchronize(stream))
    time.sleep(0.005)
"""


@pytest.mark.parametrize("waits, sources", ((18, ["graph:1"]), (40, ["sync:1", "graph:1"])))
def test_the_steps_are_recorded_after_all(waits, sources, tmp_path):
    """With few waits the window of the schedule has not come by then; with many it is over, and another one follows."""
    done = harness.run([harness.PYTHON, "-c", PROGRAM, waits], harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_LOG="info"))
    assert done.code == 0, done.err
    files = sorted(harness.info(tmp_path / "out")["files"], key=lambda file: file["window"])
    assert [file["step_source"] for file in files] == sources, done.err
    report = json.loads(harness.checked("report", "--format", "json", tmp_path / "out/latest").out)
    newest = max(harness.dumps(tmp_path / "out"), key=lambda path: harness.info(path)["files"][0]["window"])
    launches = [r for r in harness.records(newest) if r.get("name") == "cudaGraphLaunch"]
    assert len(launches) in (10, 11), done.err
    assert len(report["steps"]) == 10
