# SPDX-License-Identifier: Apache-2.0
"""Clocks, power and the like, as the driver's library gives them."""
import json

import pytest

import harness

PROGRAM = [harness.SIMTRAIN, "--steps", "60", "--layers", "4", "--kernel-us", "40", "--data-ms", "40"]
SCHEDULE = {"GPUPROF_STEP": "nvtx:step", "GPUPROF_SCHEDULE": "skip_first=5,warmup=1,active=50,repeat=1"}
UNITS = {"SM clock": "MHz", "memory clock": "MHz", "power": "mW", "temperature": "C", "throttle reasons": "",
         "GPU busy": "%", "GPU memory busy": "%", "GPU memory used": "bytes", "ECC errors corrected": "",
         "ECC errors uncorrected": "", "SM clock at most": "MHz"}
ONCE = "SM clock at most"  # it never changes
USED = (0,)  # of two GPUs, the one that the program uses


def profile(folder, **settings):
    done = harness.run(PROGRAM, harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder / "truth",
                                                  SIMCUDA_DEVICES=2, **SCHEDULE, **settings))
    assert done.code == 0, done.err
    dump, = harness.dumps(folder / "out")
    return done, dump


def counters(dump):
    return harness.of_kind(harness.records(dump), "counter")


@pytest.mark.parametrize("missing", ["", "nvmlDeviceGetTotalEccErrors,nvmlDeviceGetPowerUsage"])
def test_samples_are_what_the_library_said(missing, tmp_path):
    done, dump = profile(tmp_path, GPUPROF_ACTIVITIES="+nvml", SIMCUDA_NVML=missing)
    found = counters(dump)
    log, = (tmp_path / "truth").glob("nvml_*.jsonl")
    said = [json.loads(line) for line in log.read_text().splitlines()]
    names = {name for name in UNITS if not missing or not name.startswith(("ECC", "power"))}
    assert {(r["device"], r["name"], r["unit"]) for r in found} == {(d, n, UNITS[n]) for d in USED for n in names}
    for device in USED:
        for name in names:
            mine = [r for r in found if (r["device"], r["name"]) == (device, name)]
            # One call gives both utilisations; of each the answer to its own question counts.
            theirs = [r for r in said if (r["device"], r["name"]) == (device, name)]
            if name in ("GPU busy", "GPU memory busy"):
                theirs = theirs[0 if name == "GPU busy" else 1::2]
            assert [r["value"] for r in mine] == [r["value"] for r in theirs]
            if name == ONCE:
                assert len(mine) == 1
            else:
                assert len(mine) >= 10, "two seconds at 10 Hz, on a busy machine"
            for one, other in zip(mine, theirs):
                assert other["time"] <= one["time_mono_ns"] + 1000
    assert len(harness.our_lines(done.err)) == 1, done.err


# What begins with the first traced call begins before the program uses a GPU, and another one later.
LATE = """import ctypes, time
cuda = ctypes.CDLL("libcudart.so.13")
memory = ctypes.c_void_p()
for device in range(2):
    cuda.cudaSetDevice(device)
    for _ in range(25):
        assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1000)) == cuda.cudaFree(memory) == 0
        time.sleep(0.1)
"""


def test_gpus_that_come_into_use_in_the_window(tmp_path):
    done = harness.run([harness.PYTHON, "-c", LATE], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_ACTIVITIES="+nvml", GPUPROF_SCHEDULE="all", SIMCUDA_DEVICES=3))
    dump, = harness.dumps(tmp_path / "out")
    found = counters(dump)
    assert {(r["device"], r["name"]) for r in found} == {(device, name) for device in (0, 1) for name in UNITS}, done.err
    for device in (0, 1):
        assert sum((r["device"], r["name"]) == (device, ONCE) for r in found) == 1
    assert sum((r["device"], r["name"]) == (0, "power") for r in found) > 25, "in both halves"


def test_counter_tracks(tmp_path):
    _, dump = profile(tmp_path, GPUPROF_ACTIVITIES="+nvml")
    found = counters(dump)
    harness.checked("convert", dump, "--to", "chrome", "-o", tmp_path / "t.json")
    events = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e.get("ph") == "C"]
    assert len(events) == len(found)
    power = [e["args"]["mW"] for e in events if e["name"] == "GPU 0 power"]
    assert power == [r["value"] for r in found if (r["device"], r["name"]) == (0, "power")]
    harness.checked("convert", dump, "--to", "perfetto", "-o", tmp_path / "t.pftrace")
    trace = (tmp_path / "t.pftrace").read_bytes()
    assert all(name.encode() in trace for name in UNITS)


def test_info_tells_the_range_of_each(tmp_path):
    _, dump = profile(tmp_path, GPUPROF_ACTIVITIES="+nvml")
    rows = harness.info(dump)["files"][0]["counters"]
    text = harness.checked("info", dump).out
    assert {(r["device"], r["name"], r["unit"]) for r in rows} == {(d, n, UNITS[n]) for d in USED for n in UNITS}
    for row in rows:
        values = [r["value"] for r in counters(dump) if (r["device"], r["name"]) == (row["device"], row["name"])]
        assert row["count"] == len(values) > 0
        if row["name"] == "throttle reasons":
            bits = 0
            for value in values:
                bits |= value
            assert row["bits"] == bits and "min" not in row
        else:
            assert (row["min"], row["max"]) == (min(values), max(values))
            assert abs(row["mean"] - sum(values) / len(values)) <= 1e-9 * max(values)
        assert f"GPU {row['device']} {row['name']}: {row['count']} samples" in text
    assert "on average" in text


def test_not_asked_for(tmp_path):
    _, dump = profile(tmp_path)
    assert counters(dump) == [] and not list((tmp_path / "truth").glob("nvml_*"))
    assert harness.info(dump)["files"][0]["counters"] == [] and "counter" not in harness.checked("info", dump).out


def test_no_library(tmp_path):
    done, dump = profile(tmp_path, GPUPROF_ACTIVITIES="+nvml", LD_LIBRARY_PATH=harness.SIMCUDA + "_nocupti")
    lines = [line for line in harness.our_lines(done.err) if "nvml" in line]
    assert len(lines) == 1 and "libnvidia-ml.so.1" in lines[0], done.err
    assert counters(dump) == []


def test_memory_of_a_slice(tmp_path):
    """With MIG it is the slice's, not that of its whole GPU, which others fill."""
    _, dump = profile(tmp_path, GPUPROF_ACTIVITIES="+nvml", SIMCUDA_MIG=1, SIMCUDA_MEMORY_MB=10240)
    found = counters(dump)
    used = [r["value"] for r in found if r["name"] == "GPU memory used"]
    assert len(used) >= 10 and all(2 << 30 <= value < (2 << 30) + 50 for value in used), used
    assert any(r["name"] == "power" for r in found) and not any(r["name"] in ("GPU busy", "GPU memory busy") for r in found)
    report = json.loads(harness.checked("report", "--format", "json", dump).out)
    assert not [each for each in report["findings"] if each["kind"] == "near_out_of_memory"], report["findings"]


def test_a_slice_that_nvml_does_not_know(tmp_path):
    """Its memory is not known then: that of the GPU is not given for it."""
    _, dump = profile(tmp_path, GPUPROF_ACTIVITIES="+nvml", SIMCUDA_MIG=1, SIMCUDA_NVML="nvmlDeviceGetHandleByUUID")
    names = {r["name"] for r in counters(dump)}
    assert "power" in names and "GPU memory used" not in names
