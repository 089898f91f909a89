# SPDX-License-Identifier: Apache-2.0
"""A signal that ends `gpuprof convert` leaves no file behind: ten seeded moments of each format."""
import contextlib
import json
import os
import random
import signal
import subprocess
import time

import pytest

import harness
from support.kineto_traces import Trace

FORMATS = ["perfetto", "perfetto-ranks", "chrome", "kineto", "tensorboard", "xplane", "memory-viz", "speedscope"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
OPERATORS = 30_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace that takes some tenths of a second to convert."""
    made = Trace()
    for number in range(OPERATORS):
        external = made.operator(f"aten::op{number % 50}", made.now, 8_000)
        made.launch("cudaLaunchKernel", "kernel", f"kernel_{number % 40}", external)
    path = tmp_path_factory.mktemp("trace") / "trace.pt.trace.json"
    path.write_text(json.dumps(made.document()))
    return path


def wait_for_signal_set(child, name, number):
    """Until the process catches (SigCgt) or ignores (SigIgn) the signal, or has ended; on a busy machine it begins late."""
    while child.poll() is None:
        with contextlib.suppress(OSError), open(f"/proc/{child.pid}/status", encoding="utf-8") as status:
            words = dict(line.split(":", 1) for line in status)
            if int(words[name], 16) >> (number - 1) & 1:
                return
        time.sleep(0.001)


def everything(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@pytest.mark.parametrize("name", FORMATS)
def test_an_interrupted_conversion_leaves_nothing(trace, tmp_path, name):
    command = [harness.BIN, "convert", str(trace), "--to", name, "-o"]
    begun = time.monotonic()
    harness.checked(*command[1:], tmp_path / "whole")
    takes = time.monotonic() - begun
    there = everything(tmp_path)
    moments = random.Random(name)
    interrupted = 0
    for number in range(40):
        if number >= 10 and interrupted >= 3:
            break
        chosen = SIGNALS[number % 3]
        child = subprocess.Popen([*command, tmp_path / "out"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_signal_set(child, "SigCgt", chosen)
        time.sleep(moments.uniform(0.2, 0.95) * takes)
        child.send_signal(chosen)
        code = child.wait(60)
        if code == 0:  # it had written all of it: the machine has become faster
            takes *= 0.8
            assert everything(tmp_path) != there
            subprocess.run(["rm", "-rf", tmp_path / "out"], check=True)
            continue
        assert code == 128 + chosen, f"ended with {code}"
        assert everything(tmp_path) == there, f"left by {chosen.name}"
        interrupted += 1
    assert interrupted >= 3


def test_a_signal_that_is_ignored_stays_so(trace, tmp_path):
    """As nohup starts it."""
    child = subprocess.Popen(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", harness.BIN, "convert", trace, "--to", "perfetto",
                              "-o", tmp_path / "out"], stdout=subprocess.DEVNULL)
    wait_for_signal_set(child, "SigIgn", signal.SIGHUP)
    time.sleep(0.1)
    child.send_signal(signal.SIGHUP)
    assert child.wait(60) == 0 and (tmp_path / "out").exists()


def test_an_output_that_was_there_stays_as_it_was(trace, tmp_path):
    out = tmp_path / "out"
    out.write_text("before")
    for wait in (0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0, 0):  # some machine is quick
        child = subprocess.Popen([harness.BIN, "convert", trace, "--to", "perfetto", "-o", out], stdout=subprocess.DEVNULL)
        wait_for_signal_set(child, "SigCgt", signal.SIGTERM)
        time.sleep(wait)
        child.send_signal(signal.SIGTERM)
        if child.wait(60) == 128 + signal.SIGTERM:
            break
        out.write_text("before")
    assert child.returncode == 128 + signal.SIGTERM and out.read_bytes() == b"before" and everything(tmp_path) == ["out"]


@pytest.fixture(scope="module")
def signal_at(tmp_path_factory):
    """A library whose `linkat` or `rename` sends SIGTERM once it has done its work COUNTDOWN times."""
    if "no dynamic section" in harness.binutils("readelf", "-d", harness.BIN):
        pytest.skip("the command is linked statically, and no library stands between it and its calls")
    folder = tmp_path_factory.mktemp("signal_at")
    (folder / "at.c").write_text(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
static int left;
static int after(const char* name, int result) {
  if (left == 0) left = atoi(getenv("COUNTDOWN"));
  if (strcmp(name, getenv("SIGNAL_AT")) == 0 && --left == 0) raise(SIGTERM);
  return result;
}
int rename(const char* from, const char* to) {
  return after("rename", ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to));
}
int linkat(int a, const char* from, int b, const char* to, int flags) {
  return after("linkat", ((int (*)(int, const char*, int, const char*, int))dlsym(RTLD_NEXT, "linkat"))(a, from, b, to, flags));
}
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "at.so", folder / "at.c", "-ldl"], check=True)
    return folder / "at.so"


def bytes_of(path):
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(p.relative_to(path.parent)): p.read_bytes() for p in files}


# TensorBoard's folder has two files. The first is whole when the signal comes.
@pytest.mark.parametrize("name,place,count", [("perfetto", "linkat", 1), ("perfetto", "rename", 1), ("tensorboard", "linkat", 2),
                                              ("tensorboard", "rename", 1)])
@pytest.mark.parametrize("there", ["before", None])
def test_a_signal_between_two_files_leaves_the_old_ones_or_the_new_ones(trace, signal_at, tmp_path, name, place, count, there):
    (tmp_path / "new").mkdir()
    new, out = tmp_path / "new" / "out", tmp_path / "out"
    harness.checked("convert", trace, "--to", name, "-o", new)
    if there:
        for file in bytes_of(new):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(there)
    old = bytes_of(out) if there else everything(tmp_path)
    environment = dict(os.environ, LD_PRELOAD=f"{os.environ.get('LD_PRELOAD', '')}:{signal_at}", SIGNAL_AT=place, COUNTDOWN=str(count),
                       ASAN_OPTIONS="verify_asan_link_order=0")
    ended = subprocess.run([harness.BIN, "convert", trace, "--to", name, "-o", out], env=environment, stdout=subprocess.DEVNULL)
    if place == "rename":
        written = bytes_of(out)  # Kineto's has a random trace_id
        assert ended.returncode == 0 and written.keys() == bytes_of(new).keys() and b"before" not in written.values()
    else:
        assert ended.returncode == 128 + signal.SIGTERM
        assert (bytes_of(out) if there else everything(tmp_path)) == old
