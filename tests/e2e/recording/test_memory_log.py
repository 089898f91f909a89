# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_MEMORY=1: what is allocated when a window begins, when the process is killed, and when an allocation fails,
against the simulator's log of allocations."""
import json
import pickle
import random
import re
import subprocess
import sys
import time

import harness
import truth

PROGRAM = harness.SOURCE / "tests/programs/python/memory.py"
STEPS = {"GPUPROF_STEP": "sync:1"}
BEFORE_ANY_WINDOW = {"GPUPROF_SCHEDULE": "skip_first=50,warmup=0,active=3"}
MIB = 1 << 20


def run(folder, *arguments, **settings):
    """Runs memory.py with the log on; returns how it ended, its dumps, and the simulator's calls of it."""
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder / "truth", SIMCUDA_TRUTH_SYNC=1,
                            SIMCUDA_DEVICES=2, **{**STEPS, "GPUPROF_MEMORY": 1, **settings})
    process = subprocess.Popen([sys.executable, PROGRAM, *arguments], env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    done = harness.Run(process.returncode, out.decode(), err.decode())
    left = harness.dumps(folder / "out") if (folder / "out").exists() else []
    return done, left, truth.load(folder / "truth", process.pid)


def live_in_truth(calls, until=2**63, without=()):
    """{address: bytes} of what calls that ended before `until` had allocated and not freed."""
    live = {}
    for call in sorted((c for c in calls if c["t"] == "call"), key=lambda c: c["end"]):
        if call["ret"] != 0 or call["end"] > until or id(call) in without:
            continue
        if truth.kind_of(call["name"]) == "alloc":
            live[truth.as_number(call["ptr"])] = call["bytes"]
        elif truth.kind_of(call["name"]) == "dealloc":
            live.pop(truth.as_number(call["ptr"]), None)
    return live


def live_in(records, moment):
    rows = [r for r in records if r["kind"] == "live" and r["moment"] == moment]
    live = {r["address"]: r["bytes"] for r in rows}
    assert len(live) == len(rows)
    return live


def test_threads_then_killed(tmp_path):
    done, left, calls = run(tmp_path, "threads", "kill", **BEFORE_ANY_WINDOW)
    assert done.code == -9 and [p.suffix for p in left] == [".ring"], done.err
    records = harness.records(left[0])
    live = live_in(records, "left")
    assert live == live_in_truth(calls) and len(live) > 100
    devices = {truth.as_number(c["ptr"]): c["device"] for c in calls if c["t"] == "call" and c["name"] == "cudaMalloc"}
    for row in harness.of_kind(records, "live"):
        assert row["api"] in ("cudaMalloc", "cudaMallocHost")
        assert row.get("device") == (devices[row["address"]] if row["api"] == "cudaMalloc" else None)
    made = {(truth.as_number(c["ptr"]), c["tid"]): c for c in calls if c["t"] == "call" and truth.kind_of(c["name"]) == "alloc"}
    for row in harness.of_kind(records, "live"):
        call = made[row["address"], row["tid"]]
        assert call["begin"] <= row["time_mono_ns"] <= call["end"] + 10**9


def test_killed_at_random(tmp_path):
    """Of each thread the last call may not have been complete."""
    delays = random.Random(4)
    compared = 0
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_MEMORY=1, SIMCUDA_TRUTH=folder / "truth",
                                SIMCUDA_TRUTH_SYNC=1, **harness.WHOLE_RUN)
        process = subprocess.Popen([harness.SIMTRAIN, "--steps", "100000", "--kernel-us", "5", "--malloc-per-step", "20"],
                                   env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = folder / "truth" / f"truth_{process.pid}.jsonl"
        for _ in range(3000):
            if log.exists() and log.read_bytes().count(b"cudaFree") > 20:
                break
            time.sleep(0.01)
        time.sleep(0.1 * delays.random())
        process.kill()
        process.wait()
        calls = truth.load(folder / "truth", process.pid)
        last = {}
        for call in calls:
            if call["t"] == "call" and call["end"] >= last.get(call["tid"], call)["end"]:
                last[call["tid"]] = call
        live = live_in(harness.records(folder / "out"), "left")
        open_calls = {id(call) for call in last.values()}
        with_last, without = live_in_truth(calls), live_in_truth(calls, without=open_calls)
        # The call after the last that was logged may have been under way: one allocation more or less.
        assert len(live.items() ^ with_last.items()) <= 1 or len(live.items() ^ without.items()) <= 1
        compared += len(live)
    assert compared >= 12


def test_window_has_what_was_allocated_before(tmp_path):
    done, [dump], calls = run(tmp_path, "weights", GPUPROF_SCHEDULE="skip_first=4,warmup=0,active=3", GPUPROF_STACKS="alloc")
    assert done.code == 0, done.err
    records = harness.records(dump)
    header = next(r for r in records if r["kind"] == "header")
    begin = header["window_begin_mono_ns"]
    live = live_in(records, "window_begins")
    assert live == live_in_truth(calls, begin) and len(live) == 8 + 3
    rows = [r for r in records if r["kind"] == "live"]
    weights = [r for r in rows if any("make_weights" in line for line in r.get("stack", ()))]
    assert sorted(r["bytes"] for r in weights) == [MIB * (i + 1) for i in range(8)]
    assert {r.get("step") for r in weights} == {0}
    assert {r["step"] for r in rows if r not in weights} == {1, 2, 3}
    assert all(r["time_mono_ns"] < begin for r in rows) and not harness.of_kind(records, "out_of_memory")
    assert {r["losses"].get("memory_log_full") for r in records if r["kind"] == "summary"} == {None}


def test_a_report_says_if_what_was_held_before_is_missing(tmp_path):
    schedule = "skip_first=4,warmup=0,active=3"
    for memory, schedule, known in ((0, schedule, False), (1, schedule, True), (0, "all", True)):
        _, [dump], _ = run(tmp_path / f"{memory}{known}", "weights", GPUPROF_SCHEDULE=schedule, GPUPROF_MEMORY=memory)
        told = json.loads(harness.checked("report", dump, "--format", "json").out)["memory"]
        assert told["before_known"] is known and told["peak_bytes"] > 0
        text = harness.checked("report", dump, env=harness.environment(COLUMNS=80)).out
        part = text.split("\nDevice memory\n")[1].split("\n\n")[0]
        words = " ".join(part.split())
        assert re.match(r"peak \S+ \S+ at \S+ \S+; \S+ \S+ at the end", words), part
        said = "at the end since the window began; what was held before is not known (GPUPROF_MEMORY=1 tells)" in words
        assert said is not known and max(map(len, part.splitlines())) <= 80, part


def test_report_and_snapshot_have_what_was_allocated_before(tmp_path):
    _, [dump], calls = run(tmp_path, "weights", GPUPROF_SCHEDULE="skip_first=4,warmup=0,active=3", GPUPROF_STACKS="alloc")
    report = json.loads(harness.checked("report", dump, "--format", "json").out)
    owners = {row["name"]: row["bytes"] for row in report["memory_owners"]}
    header = next(r for r in harness.records(dump) if r["kind"] == "header")
    levels = []
    for call in calls:
        if call["t"] == "call" and truth.kind_of(call["name"]) and call["end"] < header["window_end_mono_ns"]:
            live = live_in_truth(calls, call["end"])
            if call["end"] >= header["window_begin_mono_ns"]:
                levels.append(sum(live.values()))
    assert report["memory"]["peak_bytes"] == max(levels) and report["memory"]["end_bytes"] == levels[-1]
    line = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "getattr(cudart, function)(ctypes" in text)
    assert owners == {f"memory.py:{line} allocate": max(levels)}
    harness.checked("convert", dump, "--to", "memory-viz", "-o", tmp_path / "memory.pickle")
    snapshot = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    left = {block["address"]: block["size"] for segment in snapshot["segments"] for block in segment["blocks"]}
    assert left == live_in_truth(calls, header["window_end_mono_ns"])
    entries = [e for e in snapshot["device_traces"][0] if e["action"] == "alloc"]
    assert len([e for e in entries if any(f["name"] == "make_weights" for f in e["frames"])]) == 8
    assert "in 11 allocations when the window began" in harness.checked("info", dump).out


def assert_failure(records, calls):
    [failed] = harness.of_kind(records, "out_of_memory")
    [call] = [c for c in calls if c["t"] == "call" and c["ret"] == 2]
    assert (failed["api"], failed["bytes"], failed["number"]) == ("cudaMalloc", 16 * MIB, 1)
    assert any("fill (" in line for line in failed["stack"])
    assert call["begin"] <= failed["time_mono_ns"] <= call["end"] + 10**9
    live = live_in(records, "out_of_memory")
    assert live == live_in_truth(calls, call["begin"]) and sum(live.values()) > 200 * MIB


FULL = {"SIMCUDA_MEMORY_MB": 256, "GPUPROF_STACKS": "alloc"}


def test_out_of_memory_before_any_window(tmp_path):
    done, [dump], calls = run(tmp_path, "full", **FULL, **BEFORE_ANY_WINDOW)
    assert done.code == 0 and dump.name.endswith("_w0.gpuprof")
    assert [f"an allocation of {16 * MIB} bytes failed, out of memory; what was allocated then is in {dump}" in line
            for line in harness.our_lines(done.err)] == [True], done.err
    records = harness.records(dump)
    assert_failure(records, calls)
    assert next(r for r in records if r["kind"] == "summary")["end_reason"] == "out_of_memory"
    report = json.loads(harness.checked("report", dump, "--format", "json").out)
    [finding] = [f for f in report["findings"] if f["kind"] == "out_of_memory"]
    assert "out of memory in step 3: 16" in finding["text"] and "memory.py" in finding["text"]
    assert "out of memory in step 3" in harness.checked("report", dump).out
    owners = {row["name"]: row["bytes"] for row in report["memory_owners"]}
    assert sum(owners.values()) == sum(live_in(records, "out_of_memory").values()) and len(owners) == 2


def test_out_of_memory_then_aborted(tmp_path):
    done, left, calls = run(tmp_path, "full", "abort", **FULL, **BEFORE_ANY_WINDOW)
    assert done.code == -6 and [p.suffix for p in left] == [".ring"]
    records = harness.records(left[0])
    assert_failure(records, calls)
    assert sum(live_in(records, "left").values()) == 36 * MIB  # the program had freed the rest


def test_out_of_memory_in_the_early_window(tmp_path):
    done, [dump], calls = run(tmp_path, "full", **FULL)
    assert done.code == 0 and dump.name.endswith("_early0.gpuprof")
    assert_failure(harness.records(dump), calls)
    assert "out of memory" in harness.checked("report", dump).out


def test_out_of_memory_in_an_early_window_that_is_dropped(tmp_path):
    done, [dump], calls = run(tmp_path, "full", "on", **FULL)
    assert done.code == 0 and dump.name.endswith("_w0.gpuprof"), done.err
    assert_failure(harness.records(dump), calls)


def memory_findings(path):
    report = json.loads(harness.checked("report", path, "--format", "json").out)
    return [(f["kind"], f["ends_program"]) for f in report["findings"] if "memory" in f["kind"] or "alloc" in f["kind"]]


def test_a_program_that_goes_on_did_not_end_by_it(tmp_path):
    """PyTorch frees its cache and asks again; a server drops the request."""
    whole = {**FULL, **harness.WHOLE_RUN}
    for then, kind, words in (("", "out_of_memory", "out of memory in step 3: 16.0 MiB more were asked for"),
                              ("again", "survived_out_of_memory", "went on (it asked again and got as much): 16.0 MiB more"),
                              ("on", "survived_out_of_memory", "went on (steps followed): 16.0 MiB more")):
        folder = tmp_path / f"then{then}"
        done, [dump], _ = run(folder, "full", then, **whole)
        assert done.code == 0, done.err
        assert memory_findings(dump) == [(kind, kind == "out_of_memory")]
        text = harness.checked("report", dump).out
        assert words in " ".join(text.split()) and ("What ends the program" in text) is (then == ""), text


def test_a_refused_call_alone_ends_nothing(tmp_path):
    done, [dump], _ = run(tmp_path, "full", "again", **{**FULL, **harness.WHOLE_RUN, "GPUPROF_MEMORY": 0})
    assert done.code == 0, done.err
    assert memory_findings(dump) == [("failed_allocations", False)]
    text = harness.checked("report", dump).out
    assert "1 times in the window; it asked again and got as much." in " ".join(text.split()), text


def test_killed_in_the_early_window(tmp_path):
    done, left, calls = run(tmp_path, "full", "abort", **FULL)
    # The drain thread opens the dump when it comes to it.
    assert done.code == -6 and sorted(p.suffix for p in left) in ([".ring"], [".part", ".ring"])
    records = harness.records(left[0])  # of both: they are one process
    assert_failure(records, calls)
    assert sum(live_in(records, "left").values()) == 36 * MIB
    assert "out of memory" in harness.checked("report", tmp_path / "out").out


def test_out_of_memory_in_a_window(tmp_path):
    done, [dump], calls = run(tmp_path, "full", GPUPROF_SCHEDULE="skip_first=2,warmup=0,active=3", **FULL)
    assert done.code == 0, done.err
    records = harness.records(dump)
    assert_failure(records, calls)
    assert sum(live_in(records, "window_begins").values()) == 36 * MIB


def test_killed_after_its_window(tmp_path):
    """The dump is complete; what the process had in the end is beside it."""
    done, left, calls = run(tmp_path, "weights", "kill", GPUPROF_SCHEDULE="skip_first=2,warmup=0,active=2")
    assert done.code == -9 and sorted(p.suffix for p in left) == [".gpuprof", ".ring"], done.err
    live = [r for r in harness.records(tmp_path / "out") if r["kind"] == "live" and r["moment"] == "left"]
    assert {r["address"]: r["bytes"] for r in live} == live_in_truth(calls)
    harness.checked("report", tmp_path / "out")


def test_off_by_default(tmp_path):
    done, [dump], _ = run(tmp_path, "weights", GPUPROF_MEMORY="0", GPUPROF_SCHEDULE="skip_first=4,warmup=0,active=3")
    assert done.code == 0 and not harness.of_kind(harness.records(dump), "live"), done.err


# Maps four pieces of memory side by side, unmaps the first three by one call, and is killed.
MAPPED = """
import ctypes, os, signal
cuda, piece = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t(2 << 20)
address, handle, none = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t(0)
assert cuda.cuInit(0) == 0
assert cuda.cuMemAddressReserve(ctypes.byref(address), ctypes.c_size_t(8 << 20), none, none, none) == 0
for number in range(4):
    assert cuda.cuMemCreate(ctypes.byref(handle), piece, ctypes.create_string_buffer(64), none) == 0
    assert cuda.cuMemMap(ctypes.c_uint64(address.value + (number << 21)), piece, none, handle, none) == 0
assert cuda.cuMemUnmap(address, ctypes.c_size_t(6 << 20)) == 0
print(address.value + (6 << 20), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_one_unmap_of_several_mappings(tmp_path):
    done = harness.run([sys.executable, "-c", MAPPED], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path, GPUPROF_MEMORY=1, **STEPS, **BEFORE_ANY_WINDOW))
    assert done.code == -9, done.err
    ring, = harness.dumps(tmp_path)
    assert live_in(harness.records(ring), "left") == {int(done.out): 2 * MIB}


# PyTorch's expandable segments beside ordinary memory: each step maps 2 MiB more, and takes 1 MiB for itself.
SEGMENTS = """
import ctypes
cuda, cudart = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.13")
address, handle, memory, none = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_size_t(0)
assert cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
assert cuda.cuMemAddressReserve(ctypes.byref(address), ctypes.c_size_t(16 << 20), none, none, none) == 0
for step in range(8):
    size = ctypes.c_size_t(2 << 20)
    assert cuda.cuMemCreate(ctypes.byref(handle), size, ctypes.create_string_buffer(64), none) == 0
    assert cuda.cuMemMap(ctypes.c_uint64(address.value + (step << 21)), size, none, handle, none) == 0
    assert cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
    assert cudart.cudaFree(memory) == 0
    assert cudart.cudaDeviceSynchronize() == 0
"""


def test_mapped_memory_beside_ordinary_memory(tmp_path):
    done = harness.run([sys.executable, "-c", SEGMENTS], harness.preloaded(GPUPROF_OUTPUT=tmp_path, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    dump, = harness.dumps(tmp_path)
    assert len(harness.of_kind(harness.records(dump), "gpu_memory")) == 17  # CUPTI's, of ordinary memory alone
    report = json.loads(harness.checked("report", dump, "--format", "json").out)
    assert (report["memory"]["peak_bytes"], report["memory"]["end_bytes"]) == (18 * MIB, 17 * MIB)
    [growth] = [f for f in report["findings"] if f["kind"] == "memory_growth"]
    assert growth["value"] == 2 * MIB, growth
