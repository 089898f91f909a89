# SPDX-License-Identifier: Apache-2.0
"""The activity `malloc`: tests/programs/heap says what each of its places allocates in the window, and how much of
it is held; the samples must come to that."""
import json
import math
import re

import pytest

import harness
from support.pythons import each_python, pythons

STEPS, FIRST, LAST = 15, 3, 12
INTERVAL = 16 << 10


def program():
    return [harness.HAZARDS / "heap", STEPS, FIRST, LAST, harness.HAZARDS / "libheap_library.so"]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Truth by place, the dump's records, and its folder."""
    folder = tmp_path_factory.mktemp("heap")
    command = program()
    bare = harness.run(command)
    done = harness.run(command, harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_STEP="manual",
                                                  GPUPROF_SCHEDULE=f"skip_first={FIRST - 1},warmup=1,active={LAST - FIRST + 1}",
                                                  GPUPROF_ACTIVITIES=f"+malloc:{INTERVAL >> 10}"))
    assert (done.code, done.out) == (0, bare.out), done.err
    truth = {}
    for line in done.out.splitlines():
        name, *numbers = line.split()
        truth[name] = tuple(map(int, numbers))
    if harness.SANITIZER == "address":
        del truth["from_library"], truth["late"]  # its runtime has a strdup and a dlopen of its own
    dump, = harness.dumps(folder / "out")
    return truth, harness.records(dump), dump


def weight(size):
    return size / -math.expm1(-size / INTERVAL)


def place_of(stack):
    """The function place_... that is nearest to the allocation."""
    for line in stack:
        found = re.match(r"place_(\w+)", line)
        if found:
            return re.sub(r"\.(isra|constprop|part)\..*", "", found[1])
    return None


def sums(records):
    """By place: samples, bytes and calls that they stand for, bytes held at the end."""
    out, live = {}, {}
    for record in harness.of_kind(records, "heap"):
        before = live.pop(record["address"], None)
        if before:
            out[before[0]][3] -= before[1]
        if record["released"]:
            continue
        row = out.setdefault(place_of(record["stack"]), [0, 0.0, 0.0, 0.0])
        size = weight(record["bytes"])
        live[record["address"]] = (place_of(record["stack"]), size)
        row[0] += 1
        row[1] += size
        row[2] += size / record["bytes"]
        row[3] += size
    return out


def test_each_place_has_its_bytes(job):
    truth, records, _ = job
    found = sums(records)
    assert set(truth) <= set(found) and "in_child" not in found
    for place, (size, calls, held) in truth.items():
        samples, bytes_found, calls_found, held_found = found[place]
        # Four standard errors of so many samples.
        slack = 4 / math.sqrt(size / INTERVAL)
        assert bytes_found == pytest.approx(size, rel=slack), place
        assert calls_found == pytest.approx(calls, rel=slack), place
        assert held_found == pytest.approx(held, rel=slack, abs=size * 1e-9), place
        assert samples > 0


def test_functions_are_named(job):
    truth, records, _ = job
    names = {}
    for record in harness.of_kind(records, "heap"):
        if not record["released"]:
            names.setdefault(place_of(record["stack"]), set()).add(record["name"])
    assert names["few_large"] == {"calloc"}
    assert names["grown"] == {"realloc"}
    assert names["mapped"] == {"mmap"}
    assert names["aligned"] == {"posix_memalign"}
    for place in {"from_library", "many_small", "by_thread", "late"} & set(truth):
        assert names[place] == {"malloc"}
    released = {record["name"] for record in harness.of_kind(records, "heap") if record["released"]}
    assert released == {"free", "realloc", "munmap"}


def test_own_lanes_and_losses(job):
    truth, records, dump = job
    summary, = harness.of_kind(records, "summary")
    assert summary["losses"] == {}
    assert summary["heap_samples"] == len(harness.of_kind(records, "heap"))
    assert {record["interval"] for record in harness.of_kind(records, "heap")} == {INTERVAL}
    steps = [record for record in harness.of_kind(records, "step") if record["in_window"]]
    begin, end = steps[0]["begin_mono_ns"], steps[-1]["end_mono_ns"]
    assert all(begin <= record["time_mono_ns"] <= end for record in harness.of_kind(records, "heap"))


def test_report_names_the_lines(job):
    truth, _, dump = job
    report = json.loads(harness.checked("report", "--format", "json", dump).out)
    rows = {}
    for row in report["host_allocations"]:
        name = place_of([row["place"].split()[-1]])
        if name:
            rows.setdefault(name, []).append(row)
    assert all(re.match(r"heap\.c:\d+ ", row["place"]) for found in rows.values() for row in found)
    for place, (size, _, held) in truth.items():
        assert sum(row["bytes"] for row in rows[place]) == pytest.approx(size, rel=4 / math.sqrt(size / INTERVAL))
    finding, = (each["text"] for each in report["findings"] if each["kind"] == "host_memory_growth")
    assert re.search(r"grows by [\d.]+ MiB in each step, .* allocated at heap\.c:\d+ place_kept", finding)
    text = harness.checked("report", dump).out
    assert "Host memory allocated, by " in text and "place_many_small" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_speedscope_has_both_profiles(job, tmp_path):
    truth, _, dump = job
    out = tmp_path / "heap.speedscope.json"
    harness.checked("convert", dump, "--to", "speedscope", "-o", out)
    file = json.loads(out.read_text())
    allocated, held = (p for p in file["profiles"] if p["unit"] == "bytes")
    assert allocated["name"].endswith("host memory allocated") and held["name"].endswith("held at the end")
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    kept = sum(w for stack, w in zip(held["samples"], held["weights"])
               if any(frames[i].startswith("place_kept") for i in stack))
    assert kept == pytest.approx(truth["kept"][2], rel=4 / math.sqrt(truth["kept"][2] / INTERVAL))
    assert sum(allocated["weights"]) == allocated["endValue"]


@each_python()
def test_lines_of_a_python_program(version, tmp_path):
    """Whoever allocated within the interpreter or a library: the line of the script is named."""
    script = harness.SOURCE / "tests/programs/python/host_memory.py"
    done = harness.run([pythons()[version], script], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=10",
        GPUPROF_ACTIVITIES="+malloc:64"))
    assert (done.code, done.out) == (0, "done 16\n"), done.err
    dump, = harness.dumps(tmp_path / "out")
    report = json.loads(harness.checked("report", "--format", "json", dump).out)
    rows = {}
    for row in report["host_allocations"]:
        rows.setdefault(row["place"].split()[-1], []).append(row)
    steps = len(report["steps"])
    for function, size in (("make_buffer", 1 << 20), ("keep", 256 << 10)):
        found = sum(row["bytes"] for row in rows[function])
        assert found == pytest.approx(steps * size, rel=4 / math.sqrt(steps * size / (64 << 10))), function
        assert all(row["place"].startswith("host_memory.py:") for row in rows[function])
    assert rows["keep"][0]["held_bytes"] == pytest.approx(rows["keep"][0]["bytes"])
    objects = [r for r in harness.of_kind(harness.records(dump), "heap") if "make_objects" in str(r.get("stack"))]
    assert {r["name"] for r in objects} <= {"mmap", "malloc", "calloc", "realloc"} and objects


def test_off_leaves_the_allocator_alone(tmp_path):
    """Without the activity nothing is patched: the program's table leads to libc."""
    done = harness.run(program(),
                       harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="manual",
                                         GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=3"))
    dump, = harness.dumps(tmp_path / "out")
    assert done.code == 0 and not harness.of_kind(harness.records(dump), "heap")


@pytest.mark.parametrize("kib", ["0", "1048577", "x", ""])
def test_wrong_intervals_are_named(tmp_path, kib):
    done = harness.gpuprof("run", "--set", f"GPUPROF_ACTIVITIES=+malloc:{kib}", "--", "true")
    line, = harness.our_lines(done.err)
    assert done.code == 2 and f"malloc:{kib}" in line and "malloc:KIB (1 to 1048576)" in line
