# SPDX-License-Identifier: Apache-2.0
"""Host samples: in scripts whose GPU waits for one line, the report names that line; in each CPython that the
machine has; through fork, threads that end, and code that comes and goes; exported for Perfetto and speedscope."""
import json
import re
import sys

import pytest

import harness
from support.pythons import each_python, pythons

FOLDER = harness.SOURCE / "tests/programs/python"
SCRIPT = FOLDER / "slow_lines.py"
STEPS = 14
SETTINGS = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=1,warmup=1,active=10", "PYTHONDONTWRITEBYTECODE": "1"}
IN_PODMAN = [harness.HAZARDS / "refused", "as_in_podman", "--"]
BOTH_REFUSED = [harness.HAZARDS / "refused", "as_in_podman", "no_memory_file", "--"]
pytestmark = pytest.mark.usefixtures("ahead_of_other_tests")
CASES = ["list_comprehension", "generator", "nested_function", "method", "property", "class_method", "call_operator",
         "context_manager", "regular_expression", "json_text", "json_python", "file_write", "lambda_expression", "decorator",
         "recursion", "thread", "executed", "module_level", "class_body", "coroutine", "exception", "map_over", "while_loop"]


def dumps_of(folder, python, *command, within=(), **settings):
    env = harness.preloaded(**{**SETTINGS, "GPUPROF_OUTPUT": folder / "out", **settings})
    done = harness.run_within(within, [python, *command], env)
    return harness.dumps(folder / "out"), done


def report_of(*dumps):
    return json.loads(harness.checked("report", "--format", "json", *dumps).out)


def slow_lines(case):
    if case == "executed":
        return {("<generated>", 4)}
    lines = SCRIPT.read_text().splitlines()
    return {(str(SCRIPT), number) for number, line in enumerate(lines, 1) if f"# SLOW {case}" in line}


def assert_named(folder, python, case, within=()):
    """The slow line comes first, most of the idle time is its, and the verdict names it."""
    slow = slow_lines(case)
    assert slow, "no slow line"
    for attempt in range(3):  # on a busy machine other lines wait for the processor, too
        dumps, done = dumps_of(folder / str(attempt), python, SCRIPT, case, STEPS, within=within)
        assert (done.code, done.err.count("no stacks of Python")) == (0, 0), done.err
        report = report_of(*dumps)
        lines = report["python_lines"]
        assert lines, "no samples"
        share = sum(line["idle_pct"] for line in lines if (line["file"], line["line"]) in slow)
        if share > 60:
            break
    assert share > 60, lines[:3]
    assert (lines[0]["file"], lines[0]["line"]) in slow, lines[:3]
    first = next(each for each in report["verdict"] if each["cause"] != "machine_busy")
    assert first["cause"] == "host_work" and lines[0]["place"] in " ".join(first["evidence"]), report["verdict"]


@pytest.mark.parametrize("case", CASES)
def test_the_slow_line_is_named(tmp_path, case):
    assert_named(tmp_path, sys.executable, case)


# Threads that come one after the other, as a server's, each with work of a function of its own.
MANY_THREADS = """
import gpu, threading, time
def work(number):
    end = time.monotonic() + 0.06
    while time.monotonic() < end:
        sum(range(5000))
    gpu.work()
    while time.monotonic() < end + 0.06:
        sum(range(5000))
for number in range(120):
    exec(f"def request_{number}(): work({number})")
    thread = threading.Thread(target=locals()[f"request_{number}"])
    thread.start()
    thread.join()
"""


def test_threads_that_have_ended_make_room(tmp_path):
    dumps, done = dumps_of(tmp_path, sys.executable, "-c", MANY_THREADS, PYTHONPATH=str(FOLDER), GPUPROF_SCHEDULE="all")
    assert done.code == 0, done.err
    samples = str([sample["stack"] for sample in harness.of_kind(harness.records(*dumps), "sample")])
    seen = [number for number in range(120) if re.search(rf"\brequest_{number}\b", samples)]
    assert len([number for number in seen if number >= 90]) > 10, seen


@each_python()
@pytest.mark.parametrize("case", ["recursion", "coroutine", "json_python", "thread", "class_body"])
def test_each_python(tmp_path, version, case):
    assert_named(tmp_path, pythons()[version], case)


@each_python()
@pytest.mark.parametrize("case", ["nested_function", "coroutine", "thread"])
def test_in_a_container_that_refuses_the_call(tmp_path, version, case):
    """process_vm_readv needs CAP_SYS_PTRACE in Podman and CRI-O; a process may read its own memory as a file."""
    assert_named(tmp_path, pythons()[version], case, IN_PODMAN)


def test_a_container_that_refuses_both_ways(tmp_path):
    dumps, done = dumps_of(tmp_path, sys.executable, SCRIPT, "lambda_expression", STEPS, within=BOTH_REFUSED)
    assert done.code == 0 and done.err.count("no stacks of Python: the kernel refuses both") == 1, done.err
    assert all(line["file"] != str(SCRIPT) for line in report_of(*dumps)["python_lines"])


@pytest.fixture(scope="module")
def nested(tmp_path_factory):
    [dump], _ = dumps_of(tmp_path_factory.mktemp("nested"), sys.executable, SCRIPT, "nested_function", 84,
                         GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=80")  # some 160 samples: a slow machine takes fewer
    return dump


def test_lines_that_wait_are_named(tmp_path):
    """By the time that they wait, not by what the host does afterwards; and the verdict names them."""
    script = FOLDER / "waits.py"
    wanted = {number: int(text.split("# WAITS ")[1]) for number, text in enumerate(script.read_text().splitlines(), 1) if "# WAITS " in text}
    for attempt in range(3):  # on a busy machine the host has other waits
        dumps, done = dumps_of(tmp_path / str(attempt), sys.executable, script, 64, SIMCUDA_MEMSET_GBS=0.25,
                               GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=60")
        assert done.code == 0, done.err
        report = report_of(*dumps)
        waiting = report["waiting_lines"]  # now and then a stack is that of the moment after the call
        shares = {line["line"]: line["wait_pct"] for line in waiting if line["file"] == str(script)}
        off = max(abs(shares.get(line, 0) - 100 * part / sum(wanted.values())) for line, part in wanted.items())
        evidence = " ".join(text for verdict in report["verdict"] if verdict["cause"] == "synchronization" for text in verdict["evidence"])
        unnamed = [line for line in waiting[:2] if f"{line['place']} waits: {line['wait_pct']:.0f} %" not in evidence]
        told = sum(shares.get(line, 0) for line in wanted)
        if off < 10 and told > 95 and not unnamed:
            break
    assert off < 10 and told > 95, waiting
    assert not unnamed, report["verdict"]
    assert report["host_samples"]["wait_us"] == pytest.approx(sum(line["wait_us"] for line in waiting), rel=0.01)


def test_samples_are_whole_stacks(nested):
    [line] = [number for _, number in slow_lines("nested_function")]
    samples = harness.of_kind(harness.records(nested), "sample")
    slow = [s for s in samples if s["stack"][0].endswith(f"({SCRIPT}:{line})")]
    assert len(slow) > len(samples) / 2 > 10
    names = [frame.split(" (")[0].split(".")[-1] for frame in slow[0]["stack"]]
    assert names == ["innermost", "inner", "nested_function", "case", "<module>"]
    [process] = harness.info(nested)["files"]
    assert {s["tid"] for s in samples} == {process["pid"]}


def test_exports(nested, tmp_path):
    harness.checked("convert", nested, "--to", "speedscope", "-o", tmp_path / "scope.json")
    scope = json.loads((tmp_path / "scope.json").read_text())
    names = [frame["name"] for frame in scope["shared"]["frames"]]
    [profile] = [p for p in scope["profiles"] if "Python, thread" in p["name"]]
    innermost = {}
    for sample, weight in zip(profile["samples"], profile["weights"]):
        innermost[names[sample[-1]]] = innermost.get(names[sample[-1]], 0) + weight
    [line] = [number for _, number in slow_lines("nested_function")]
    assert max(innermost, key=innermost.get).endswith(f"({SCRIPT}:{line})")
    harness.checked("convert", nested, "--to", "perfetto", "-o", tmp_path / "trace.pftrace")
    assert f"innermost (slow_lines.py:{line})".encode() in (tmp_path / "trace.pftrace").read_bytes()


def test_switched_off(tmp_path):
    [dump], done = dumps_of(tmp_path, sys.executable, SCRIPT, "method", STEPS, GPUPROF_ACTIVITIES="-samples")
    assert done.code == 0 and harness.of_kind(harness.records(dump), "sample") == []


@pytest.mark.skipif(harness.SANITIZER == "address", reason="its runtime deadlocks now and then where a process with threads forks, bare too")
@each_python()
def test_code_that_comes_and_goes(tmp_path, version):
    """Frames, code objects and threads made and ended as fast as they go, processes forked meanwhile."""
    bare = harness.run([pythons()[version], FOLDER / "churn.py"])
    dumps, done = dumps_of(tmp_path, pythons()[version], FOLDER / "churn.py", GPUPROF_SCHEDULE="skip_first=0,warmup=0,active=100000",
                           GPUPROF_BUFFER_MB=4)
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    records = [record for dump in dumps for record in harness.records(dump)]
    assert len(harness.of_kind(records, "sample")) > 50


def test_a_killed_process_keeps_its_samples(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(f"import os, signal, sys, time\nsys.path.insert(0, {str(FOLDER)!r})\nimport gpu\n"
                      "for _ in range(10):\n    gpu.work()\n    time.sleep(0.03)\nos.kill(os.getpid(), signal.SIGKILL)\n")
    dumps, done = dumps_of(tmp_path, sys.executable, script, GPUPROF_SCHEDULE="skip_first=0,warmup=0,active=100000")
    assert done.code == -9
    lines = report_of(*dumps)["python_lines"]
    assert (lines[0]["file"], lines[0]["line"]) == (str(script), 6), lines


def test_a_sampling_thread_that_cannot_be_had(tmp_path):
    env = harness.preloaded(**SETTINGS, GPUPROF_OUTPUT=tmp_path / "out", REFUSE_STACK=256 * 1024)
    env["LD_PRELOAD"] = f"{harness.HAZARDS / 'librefuse_thread.so'}:{env['LD_PRELOAD']}"
    done = harness.run([harness.PYTHON, SCRIPT, "method", STEPS], env=env)
    [dump] = harness.dumps(tmp_path / "out")
    assert (done.code, done.err.count("no host samples: cannot start a thread: ")) == (0, 1), done.err
    [header] = harness.of_kind(harness.records(dump), "header")
    assert header["samples_note"].startswith("cannot start a thread: ") and harness.of_kind(harness.records(dump), "sample") == []
    assert "none: cannot start a thread: " in harness.checked("info", dump).out


def test_more_names_than_there_is_room_for(tmp_path):
    """Stacks of 190 functions, each in a file of its own with a long name."""
    script = tmp_path / "names.py"
    script.write_text(f"""import sys, time
sys.path.insert(0, {str(FOLDER)!r})
import gpu
def rest():
    gpu.work()
    time.sleep(0.05)
for chain in range(90):
    inner = rest
    for depth in range(180):
        names = {{"inner": inner}}
        exec(compile("def outer(): inner()", f"{{chain}}_{{depth}}_" + "x" * 900, "exec"), names)
        inner = names["outer"]
    inner()
""")
    [dump], done = dumps_of(tmp_path, harness.PYTHON, script, GPUPROF_SCHEDULE="skip_first=1,warmup=1,active=87")
    assert done.code == 0, done.err
    losses = harness.info(dump)["losses"]
    assert losses.get("string_table_full", 0) > 5 and losses.get("sample_torn", 0) < losses["string_table_full"], losses
    assert len(harness.of_kind(harness.records(dump), "sample")) > 5
