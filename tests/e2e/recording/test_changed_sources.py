# SPDX-License-Identifier: Apache-2.0
"""What marks steps changes while a program runs: each window keeps the name of what marked its own steps."""
import harness

# Steps of a graph. In the window a kernel runs for longer than the program's own marks then need to take the steps over, so that
# the window's end is written later.
PROGRAM = f"""import ctypes, sys, time
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
from captured_calls import check, cudart, launch
stream, other, graph, replay = (ctypes.c_void_p() for _ in range(4))
for each in (stream, other):
    check(cudart.cudaStreamCreate(ctypes.byref(each)))
check(cudart.cudaStreamBeginCapture(stream, 0))
launch(stream)
check(cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)))
check(cudart.cudaGraphInstantiate(ctypes.byref(replay), graph, ctypes.c_ulonglong(0)))
for step in range(24):
    check(cudart.cudaGraphLaunch(replay, stream))
    check(cudart.cudaStreamSynchronize(stream))
    if step == 16:
        cudart.simcuda_set_next_kernel_ns(ctypes.c_uint64(1500000000))
        launch(other)
for _ in range(8):
    ctypes.CDLL(None).gpuprof_step()
print("given over", flush=True)
check(cudart.cudaStreamSynchronize(other))
time.sleep(1)
"""


def test_a_window_that_is_written_late_keeps_its_source(tmp_path):
    """Before, it had the name of what was chosen until then, and the report judged it by that."""
    done = harness.run([harness.PYTHON, "-c", PROGRAM], harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_LOG="info"))
    assert done.code == 0 and "steps: manual" in done.err, done.err
    first = min(harness.dumps(tmp_path / "out"), key=lambda path: harness.info(path)["files"][0]["window"])
    assert harness.info(first)["files"][0]["step_source"] == "graph:1", done.err
    assert harness.checked("parse", "--format", "json", first).out.count("manual") == 0
