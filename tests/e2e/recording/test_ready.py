# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_ON_TRACE_READY: once for each dump, and the program does not notice."""
import json
import os
import subprocess
import sys
import time

import pytest

import harness

PROGRAM = [harness.HAZARDS / "end", "return"]  # exits 3 after 20 launches
BARE_OUTPUT = "worked\natexit handler\n"

# Writes what it was given to DIRECTORY/<its pid>.json.
SPY = """
import json, os, signal, sys
fds = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
seen = {"arguments": sys.argv[2:], "environment": dict(os.environ), "fds": fds, "cwd": os.getcwd(),
        "blocked": [int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "complete": all(os.path.exists(path) for path in sys.argv[2:] if path.endswith(".gpuprof"))}
print("the command says this")
with open(f"{sys.argv[1]}/{os.getpid()}.json", "w") as out:
    json.dump(seen, out)
"""

# Windows of one step each; the program waits for all children at every chance, as a supervisor would.
HOST = """
import ctypes, os, signal, sys, time
if sys.argv[1] == "subreaper":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
signals = []
signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))
def children():
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
cuda = ctypes.CDLL("libcudart.so.13")
found = []
for step in range(6):
    cuda.cudaDeviceSynchronize()
    os.environ["LATER"] = os.environ["HOME"] = "set by the program"
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        found.append(children())
        time.sleep(0.002)
print("children", [child for child in found if child], "signals", signals)
"""


@pytest.fixture
def spy(tmp_path):
    """The setting's value, and a function that gives what the commands saw."""
    (tmp_path / "spy.py").write_text(SPY)
    (tmp_path / "seen").mkdir()

    def seen():
        return [json.loads(path.read_text()) for path in sorted((tmp_path / "seen").iterdir())]

    return f"{harness.PYTHON} {tmp_path}/spy.py {tmp_path}/seen 'two words' {{}}", seen


def settings(folder, command, **more):
    return harness.preloaded(**{"GPUPROF_OUTPUT": folder / "out", "GPUPROF_ON_TRACE_READY": command,
                                **harness.WHOLE_RUN, **more})


def test_the_dump_written_at_exit(spy, tmp_path):
    command, seen = spy
    read, write = os.pipe()
    os.set_inheritable(write, True)
    env = settings(tmp_path, command, NVTX_INJECTION64_PATH="")
    run = harness.run(PROGRAM, env)
    os.close(read)
    os.close(write)
    assert (run.code, run.out) == (3, BARE_OUTPUT)
    dump, = harness.dumps(tmp_path / "out")
    one, = seen()
    assert one["arguments"] == ["two words", str(dump)] and one["complete"]
    assert "LD_PRELOAD" not in one["environment"]
    assert one["environment"]["GPUPROF_OUTPUT"] == str(tmp_path / "out")
    assert set(one["fds"]) <= {"0", "1", "2"} and one["fds"]["0"] == "/dev/null", one["fds"]
    assert one["blocked"] == []
    assert "the command says this" in run.err


@pytest.mark.parametrize("how", ["plain", "subreaper"])
def test_once_for_each_window_and_no_child_is_seen(how, spy, tmp_path):
    command, seen = spy
    env = settings(tmp_path, command, GPUPROF_SCHEDULE="skip_first=0,wait=1,warmup=0,active=1,repeat=2")
    run = harness.run([harness.PYTHON, "-c", HOST, how], env)
    assert (run.code, run.out) == (0, "children [] signals []\n"), run.err
    assert len(harness.dumps(tmp_path / "out")) == 2, run.err
    assert [os.path.basename(one["arguments"][1]).split("_w")[1] for one in
            sorted(seen(), key=lambda one: one["arguments"][1])] == ["0.gpuprof", "1.gpuprof"]
    for one in seen():  # as it was when the session began: the program's may change while it is read
        assert "LATER" not in one["environment"] and one["environment"].get("HOME") == env.get("HOME")


def test_a_command_that_hangs_holds_no_window_up(tmp_path):
    """The second window is written while the first one's command still runs; the end waits 30 s at most."""
    env = settings(tmp_path, "sleep 4", GPUPROF_SCHEDULE="skip_first=0,wait=1,warmup=0,active=1,repeat=2")
    run = harness.run([harness.PYTHON, "-c", HOST, "plain"], env)
    assert (run.code, run.out) == (0, "children [] signals []\n"), run.err
    assert len(harness.dumps(tmp_path / "out")) == 2
    line, = [line for line in harness.our_lines(run.err) if "GPUPROF_ON_TRACE_READY" in line]
    assert "the end waits for the command" in line and "30 s at most" in line


# Windows of one step each, of which the last one's command takes a while.
MANY = """
import ctypes, resource, sys, time
if sys.argv[1] == "subreaper":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
cuda = ctypes.CDLL("libcudart.so.13")
def mapped():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
for step in range(42):
    cuda.cudaDeviceSynchronize()
    time.sleep(0.15)
    if step == 12:
        before = mapped()
print("more", mapped() - before < 1_000_000)
"""


@pytest.mark.parametrize("how", ["plain", "subreaper"])
def test_the_end_waits_for_the_command_of_the_20th_window(how, tmp_path):
    """As for that of the first, and no memory is left of those before."""
    command = f"sh -c 'case $1 in *_w19.*) sleep 3;; esac; date +%s.%N >> {tmp_path}/ended' sh {{}}"
    env = settings(tmp_path, command, GPUPROF_SCHEDULE="skip_first=0,wait=1,warmup=0,active=1,repeat=20")
    with open(tmp_path / "log", "w") as log, open(tmp_path / "out.txt", "w") as out:
        code = subprocess.run([harness.PYTHON, "-c", MANY, how], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=log, timeout=120,
                              check=False).returncode
    ended = time.time()
    assert (code, (tmp_path / "out.txt").read_text()) == (0, "more True\n"), (tmp_path / "log").read_text()
    times = (tmp_path / "ended").read_text().split()
    assert len(harness.dumps(tmp_path / "out")) == len(times) == 20 and float(times[-1]) <= ended


def test_a_program_that_is_not_there(tmp_path):
    run = harness.run(PROGRAM, settings(tmp_path, "no-such-program {}"))
    assert (run.code, run.out) == (3, BARE_OUTPUT)
    line, = [line for line in harness.our_lines(run.err) if "GPUPROF_ON_TRACE_READY" in line]
    assert "no-such-program" in line and "No such file" in line
    assert len(harness.dumps(tmp_path / "out")) == 1


def test_before_exec(spy, tmp_path):
    command, seen = spy
    run = harness.run([harness.HAZARDS / "exec", "shell"], settings(tmp_path, command))
    end = time.monotonic() + 20
    while not seen() and time.monotonic() < end:
        time.sleep(0.05)
    assert len(seen()) == 1 and seen()[0]["complete"], run.err


# Looks for `sh` in folders that have none, as os.execvp does: each is an exec that fails. What follows has no child.
LOOKS_FOR_SHELL = """
import os, sys
import gpu
gpu.work()
os.environ["PATH"] = ":".join(f"/nowhere/{i}" for i in range(20)) + ":" + os.environ["PATH"]
os.execvp("python3" if sys.argv[1] else "missing", ["python3", "-c", sys.argv[1]])
"""
FOLLOWS = """
import os, signal, time
signals = []
signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))
time.sleep(1)
try:
    print("child", os.waitpid(-1, 0))
except ChildProcessError:
    print("no child", signals)
"""


def wait_for_command(seen):
    end = time.monotonic() + 20
    while not seen() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)  # more would come
    return seen()


def test_once_after_many_that_failed(spy, tmp_path):
    """exec is tried 21 times, and the dump is complete while the command reads it."""
    command, seen = spy
    env = settings(tmp_path, command, PYTHONPATH=harness.SOURCE / "tests/programs/python")
    run = harness.run([harness.PYTHON, "-B", "-c", LOOKS_FOR_SHELL, FOLLOWS], env)
    assert (run.code, run.out) == (0, "no child []\n"), run.err
    one, = wait_for_command(seen)
    dump, = harness.dumps(tmp_path / "out")
    assert one["complete"] and one["arguments"] == ["two words", str(dump)] and one["blocked"] == []
    assert set(one["fds"]) <= {"0", "1", "2"} and one["fds"]["0"] == "/dev/null", one["fds"]


def test_not_after_those_that_failed(spy, tmp_path):
    """Then at the end, as without them."""
    command, seen = spy
    run = harness.run([harness.HAZARDS / "exec", "fails_beside"], settings(tmp_path, command))
    assert run.code == 5, run.err
    assert len(wait_for_command(seen)) == 1
    assert seen()[0]["complete"] and len(harness.dumps(tmp_path / "out")) == 1


def test_not_where_the_program_is_killed_after_one_that_failed(spy, tmp_path):
    """Its dump is in the live buffers."""
    command, seen = spy
    with subprocess.Popen([harness.HAZARDS / "exec", "fails_and_goes_on"], env=settings(tmp_path, command), stderr=subprocess.PIPE) as child:
        time.sleep(2)
        child.kill()
    time.sleep(1)
    assert seen() == []


SAYS = "sh -c 'echo said; echo said >&2'"


def test_without_standard_error_the_command_says_nothing(tmp_path):
    """Nor into the program's standard output, which is its own."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_ON_TRACE_READY=SAYS, **harness.WHOLE_RUN)
    done = subprocess.run(PROGRAM, env=env, preexec_fn=lambda: [os.close(file) for file in (0, 2)], stdout=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, BARE_OUTPUT)
    assert len(harness.dumps(tmp_path / "out")) == 1


def test_the_command_says_nothing_into_a_file_of_the_program(tmp_path):
    """One that has the number of standard error, which was closed as the program was started."""
    script = f"import os\nfile = os.open({str(tmp_path / 'data')!r}, os.O_RDWR | os.O_CREAT)\nimport gpu\ngpu.work()\nprint(file)"
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_ON_TRACE_READY=SAYS, PYTHONPATH=harness.SOURCE / "tests/programs/python",
                            **harness.WHOLE_RUN)
    done = subprocess.run([sys.executable, "-B", "-c", script], env=env, preexec_fn=lambda: os.close(2), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "2\n") and (tmp_path / "data").read_bytes() == b""
    assert len(harness.dumps(tmp_path / "out")) == 1
