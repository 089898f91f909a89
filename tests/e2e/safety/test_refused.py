# SPDX-License-Identifier: Apache-2.0
"""What the system refuses or does to a profiled program: it runs on as without the library, and each loss is named once."""
import os
import re
import resource
import signal
import subprocess
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
    preload = env.pop("LD_PRELOAD")
    done = harness.run([REFUSED, *rules, "--", "env", f"LD_PRELOAD={preload}", *PROGRAM], env)
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
