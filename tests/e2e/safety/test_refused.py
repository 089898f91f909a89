# SPDX-License-Identifier: Apache-2.0
"""What the system refuses or does to a profiled program: it runs on as without the library, and each loss is named once."""
import os
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

import harness

REFUSED = harness.HAZARDS / "refused"
PROGRAM = [harness.SIMTRAIN, "--steps", "200", "--markers", "sync"]
WINDOWS = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=0,wait=5,warmup=0,active=5,repeat=0", "GPUPROF_LOG": "info"}


def run(folder, rules, **settings):
    """The lines of the library; the program itself runs as without it."""
    bare = harness.run(PROGRAM)
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", **{**WINDOWS, **settings})
    done = harness.run_within([REFUSED, *rules, "--"], PROGRAM, env)
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    lines = [line for line in harness.our_lines(done.err) if "steps: sync:1" not in line]
    assert all(line.startswith("gpuprof:") for line in done.err.splitlines())
    return lines


def whole_windows(folder):
    return [path for path in harness.dumps(folder / "out") if path.suffix == ".gpuprof"]


@pytest.mark.parametrize("rule, reason", [("broken_disk", os.strerror(5)), ("quota_at_write", os.strerror(122))])
def test_writes_that_fail(rule, reason, tmp_path):
    lines = run(tmp_path, [rule])
    assert len(lines) == 3, lines
    assert reason in lines[0] and "the program goes on" in lines[0]
    assert re.search(rf"windows are not whole: .*{re.escape(reason)}", lines[1])
    assert lines[2].endswith("nothing was kept of this run")


def test_files_that_cannot_be_made(tmp_path):
    lines = run(tmp_path, ["quota_at_create"])
    assert sum(os.strerror(122) in line for line in lines) <= 3 and len(lines) <= 4, lines
    assert whole_windows(tmp_path) == []


@pytest.mark.parametrize("rule", ["no_fallocate", "no_shared_map"])
def test_a_file_system_without(rule, tmp_path):
    lines = run(tmp_path, [rule])
    assert "buffers are in memory only" in lines[0] and "Next: gpuprof report" in lines[-1] and len(lines) == 2, lines
    assert len(whole_windows(tmp_path)) > 5


def test_no_thread_can_be_started(tmp_path):
    lines = run(tmp_path, ["no_threads"])
    assert len(lines) == 1 and "runs unprofiled" in lines[0] and os.strerror(11) in lines[0], lines
    assert whole_windows(tmp_path) == []


@pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitizer's runtime takes terabytes")
@pytest.mark.parametrize("megabytes", [60, 100, 150, 240, 300])
def test_little_address_space(megabytes, tmp_path):
    """All of it would be gone with the buffers: the program's own needs come first."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    done = subprocess.run([*PROGRAM], env=harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **WINDOWS), preexec_fn=limit, check=False,
                          capture_output=True, text=True)
    lines = harness.our_lines(done.stderr)
    assert done.returncode == 0 and len(lines) == 1 and "RLIMIT_AS leaves" in lines[0], done.stderr


@pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitizer's runtime takes terabytes")
def test_enough_address_space(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    subprocess.run([*PROGRAM], env=harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **WINDOWS), preexec_fn=limit, check=True,
                   capture_output=True)
    assert harness.info(tmp_path / "out")["files"][0]["events"]["gpu_kernel"] > 0


@pytest.mark.skipif(harness.SANITIZER in ("address", "thread"), reason="a sanitizer's runtime needs mappings of its own")
def test_no_mappings_are_left_when_the_first_window_comes(tmp_path):
    done = harness.run([harness.HAZARDS / "resources", "no_mappings_later"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE="skip_first=8,warmup=2,active=5"))
    assert (done.code, done.out) == (0, "worked with no more mappings\n"), done.err
    assert "no GPU times: the process may not have" in done.err, "no code of the vendor's is called at that limit"
    assert "Cannot allocate memory" in done.err and "nothing was kept of this run" in done.err


def test_the_last_mappings_are_the_programs(tmp_path):
    """Windows that begin near the limit take none of them, not even for a moment."""
    done = harness.run([harness.HAZARDS / "resources", "few_mappings_later"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="sync:1", GPUPROF_SCHEDULE="skip_first=8,wait=5,warmup=0,active=5,repeat=0"))
    assert (done.code, done.out) == (0, "mappings refused: 0\n"), done.err
    assert "no GPU times: the process may not have" in done.err and len(whole_windows(tmp_path)) > 5


def test_stopped_and_continued(tmp_path):
    """SIGSTOP in the middle of a window: nothing is lost, and no GPU work lasts as long as the stop."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    with subprocess.Popen([harness.SIMTRAIN, "--steps", "2000", "--markers", "sync"], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        for _ in range(5):
            time.sleep(0.15)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            process.send_signal(signal.SIGCONT)
        err = process.stderr.read()
    assert process.returncode == 0 and "missing or wrong" not in err, err
    file, = harness.info(tmp_path / "out")["files"]
    assert file["events"]["gpu_kernel"] == file["events"]["launch"]
    longest = max(r["end_mono_ns"] - r["begin_mono_ns"] for r in harness.of_kind(harness.records(tmp_path / "out"), "gpu_kernel"))
    assert longest < 100_000_000


# A first line comes from the program's own thread: one of its variables is no setting.
SAYS = """
import signal, sys
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
if sys.argv[1] == "blocked":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPIPE, signal.SIGXFSZ])
import gpu
gpu.work()
print("pending:", sorted(signal.sigpending()))
"""


def full_file(folder):
    file = open(folder / "log", "w+b")  # pylint: disable=consider-using-with
    file.write(bytes(4096))
    file.flush()
    return file


def broken_pipe(_):
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb")


@pytest.mark.parametrize("handled", ["default", "blocked"])
@pytest.mark.parametrize("error_of", [full_file, broken_pipe], ids=lambda error_of: error_of.__name__)
def test_a_line_raises_no_signal_in_the_program(error_of, handled, tmp_path):
    """Neither at once nor later: a signal of ours that stays pending would end the program that unblocks it."""
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_NO_SUCH_NAME="1", PYTHONPATH=harness.SOURCE / "tests/programs/python")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    with error_of(tmp_path) as error:
        done = subprocess.run([sys.executable, "-B", "-c", SAYS, handled], env=env, preexec_fn=limit, stdout=subprocess.PIPE, stderr=error,
                              check=False)
    assert (done.returncode, done.stdout) == (0, b"pending: []\n")


# A program in the background of a terminal that stops those which write to it; prints how it went.
IN_BACKGROUND = """
import fcntl, os, subprocess, sys, termios
leader, terminal = os.openpty()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
modes = termios.tcgetattr(terminal)
modes[3] |= termios.TOSTOP
termios.tcsetattr(terminal, termios.TCSANOW, modes)
child = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: os.setpgid(0, 0), stdout=subprocess.DEVNULL, stderr=terminal)
_, status = os.waitpid(child.pid, os.WUNTRACED)
print("stopped" if os.WIFSTOPPED(status) else "ended", end="", flush=True)
child.kill()
os._exit(0)
"""


def test_a_line_stops_no_background_program(tmp_path):
    env = harness.environment()
    preload = harness.preloaded()["LD_PRELOAD"]
    settings = [f"LD_PRELOAD={preload}", f"GPUPROF_OUTPUT={tmp_path / 'out'}", "GPUPROF_NO_SUCH_NAME=1"]
    done = subprocess.run([sys.executable, "-c", IN_BACKGROUND, "env", *settings, *PROGRAM], env=env, start_new_session=True,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "ended", done.stderr


@pytest.mark.parametrize("setting", ["GPUPROF_NO_SUCH_NAME", "GPUPROF_MODE"])  # a warning; an error
def test_no_line_goes_into_a_file_that_has_the_number_of_standard_error(setting, tmp_path):
    """A program that is started with it closed gets its number for the first file that it opens."""
    script = f"import os\nfile = os.open({str(tmp_path / 'data')!r}, os.O_RDWR | os.O_CREAT)\nimport gpu\ngpu.work()\nprint(file)"
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", PYTHONPATH=harness.SOURCE / "tests/programs/python", **{setting: "bad"})
    done = subprocess.run([sys.executable, "-B", "-c", script], env=env, preexec_fn=lambda: os.close(2), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (0, b"2\n") and (tmp_path / "data").read_bytes() == b""
