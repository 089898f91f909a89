# SPDX-License-Identifier: Apache-2.0
"""On which GPU work is shown whose record does not name one: waits, which come before anything else of their context, and
CUDA graphs that begin and end on the host."""
import pytest

import harness

# Each begins with a wait.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcudart.so.13")
memory, stream, graph, exec = (ctypes.c_void_p() for _ in range(4))
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
for device in map(int, sys.argv[1:]):
    for call in [
        lambda: cuda.cudaSetDevice(device), lambda: cuda.cudaDeviceSynchronize(),
        lambda: cuda.cudaStreamCreate(ctypes.byref(stream)), lambda: cuda.cudaStreamSynchronize(stream),
        lambda: cuda.cudaStreamBeginCapture(stream, 0), lambda: cuda.cudaLaunchHostFunc(stream, function, None),
        lambda: cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)),
        lambda: cuda.cudaGraphInstantiateWithFlags(ctypes.byref(exec), graph, ctypes.c_ulonglong(0)),
        lambda: cuda.cudaGraphLaunch(exec, stream), lambda: cuda.cudaDeviceSynchronize(),
        lambda: cuda.cudaMalloc(ctypes.byref(memory), 4096), lambda: cuda.cudaMemset(memory, 0, 4096),
        lambda: cuda.cudaDeviceSynchronize()]:
        assert call() == 0
"""
OF_A_DEVICE = {"gpu_sync": 4, "gpu_graph": 1, "gpu_set": 1}


@pytest.mark.parametrize("order", ["", "reversed_order"])
@pytest.mark.parametrize("devices", [[2], [3, 1]])
def test_work_is_on_its_own_gpu(devices, order, tmp_path):
    done = harness.run([harness.PYTHON, "-c", PROGRAM, *devices], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_ACTIVITIES="+sync:gpu,+graph:trace", SIMCUDA_DEVICES="4", SIMCUDA_CUPTI=order,
        **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    found = harness.records(*harness.dumps(tmp_path))
    for kind, count in OF_A_DEVICE.items():
        lanes = [each["lane"]["device"] for each in harness.of_kind(found, kind)]
        assert sorted(lanes) == sorted(devices * count), (kind, lanes)
