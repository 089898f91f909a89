# SPDX-License-Identifier: Apache-2.0
"""Only the program starts CUDA. One that has loaded it, as `import torch` does, and marks steps, can still use it in forked
children. What belongs to CUDA is recorded once the program has started it."""
import re

import pytest

import harness

LIBRARIES = {"12.6": f"{harness.SIMCUDA}12", "13.0": harness.SIMCUDA, "13.2": f"{harness.SIMCUDA}13_2", "13.3": f"{harness.SIMCUDA}13_3"}

# Six steps, then children that use CUDA. argv[1]: the runtime; argv[2], if there: the program goes on with CUDA, and how it ends.
PROGRAM = """
import ctypes, os, signal, sys, time
cuda = ctypes.CDLL(sys.argv[1])
if "libcudart.so.13" in sys.argv[1] and os.environ.get("SIMCUDA_VERSION") == "13.0":
    ctypes.CDLL("libnvidia-ml.so.1")  # as NCCL does
everything = ctypes.CDLL(None)
memory = ctypes.c_void_p()
def step():
    everything.gpuprof_step()
    time.sleep(0.03)
def use_cuda():
    return cuda.cudaMalloc(ctypes.byref(memory), 4096) or cuda.cudaMemset(memory, 0, 4096) or cuda.cudaDeviceSynchronize()
for _ in range(6):
    step()
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(use_cuda())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
for _ in range(30 if len(sys.argv) > 2 else 0):
    assert use_cuda() == 0
    step()
if sys.argv[2:] == ["killed"]:
    os.kill(os.getpid(), signal.SIGKILL)
"""

ALL = {"GPUPROF_SCHEDULE": "all"}
SHORT = {"GPUPROF_SCHEDULE": "skip_first=0,wait=0,warmup=1,active=2,repeat=0"}


def ran(tmp_path, *arguments, version="13.0", **settings):
    runtime = "libcudart.so.12" if version == "12.6" else "libcudart.so.13"
    done = harness.run([harness.PYTHON, "-c", PROGRAM, runtime, *arguments], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_STEP="manual", SIMCUDA_VERSION=version, LD_LIBRARY_PATH=LIBRARIES[version], **settings))
    assert done.out == "0\n0\n", (done.out, done.err)
    return done


@pytest.mark.parametrize("schedule", [ALL, SHORT])
@pytest.mark.parametrize("settings", [
    {}, {"version": "12.6"}, {"version": "13.2"}, {"version": "13.3"}, {"GPUPROF_ACTIVITIES": "+nvml"}, {"GPUPROF_GPU_TIMES": "events"},
    {"GPUPROF_CUPTI": f"{harness.SIMCUDA}/libcupti.so.13"}, {"GPUPROF_CUPTI": "off"}])
def test_forked_children_can_use_cuda(settings, schedule, tmp_path):
    done = ran(tmp_path, **settings, **schedule)
    # In a child, whose window its first call of CUDA begins, CUPTI 13.2 is asked only after that.
    said = settings.get("GPUPROF_CUPTI") == "off" or (settings.get("version") == "13.2" and schedule is ALL)
    assert done.code == 0 and ("no GPU times" in done.err) == said, done.err


def own_file(tmp_path):
    """Of the process that forked: its children have dumps of their own."""
    file, = [each for each in harness.info(*harness.dumps(tmp_path))["files"] if each["events"]["set"] > 1]
    return file


def test_what_belongs_to_cuda_comes_once_it_has_started(tmp_path):
    done = ran(tmp_path, "ends", **ALL)
    assert done.code == 0, done.err
    file = own_file(tmp_path)
    missing = re.fullmatch(r"for (\d+\.\d{3}) s of the window, until CUDA had started and CUPTI was attached", file["gpu_times_missing"])
    assert missing and float(missing[1]) > 0.15, file["gpu_times_missing"]
    assert 0 < file["events"]["gpu_set"] <= file["events"]["set"] == 30, file["events"]
    assert len(file["devices"]) == 8 and file["devices"][0]["name"] == "Simulated GPU (simcuda)", file["devices"]
    assert file["versions"]["driver"] == 13000 and file["versions"]["cupti"] > 0, file["versions"]


def test_a_killed_process_has_them_too(tmp_path):
    assert ran(tmp_path, "killed", **ALL).code == -9
    file = own_file(tmp_path)
    assert len(file["devices"]) == 8 and file["versions"]["runtime"] == 13000, file
