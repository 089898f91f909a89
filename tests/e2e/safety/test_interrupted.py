# SPDX-License-Identifier: Apache-2.0
"""A signal that ends `gpuprof convert` leaves no file behind: ten seeded moments of each format."""
import json
import random
import signal
import subprocess
import time

import pytest

import harness
from support.kineto_traces import Trace

FORMATS = ["perfetto", "chrome", "kineto", "tensorboard", "xplane", "memory-viz", "speedscope"]
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
        time.sleep(0.02 + moments.uniform(0.2, 0.95) * takes)
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
    time.sleep(0.1)
    child.send_signal(signal.SIGHUP)
    assert child.wait(60) == 0 and (tmp_path / "out").exists()


def test_an_output_that_was_there_stays_as_it_was(trace, tmp_path):
    out = tmp_path / "out"
    out.write_text("before")
    for wait in (0.06, 0.05, 0.04, 0.03, 0.02):  # some machine is quick
        child = subprocess.Popen([harness.BIN, "convert", trace, "--to", "perfetto", "-o", out], stdout=subprocess.DEVNULL)
        time.sleep(wait)
        child.send_signal(signal.SIGTERM)
        if child.wait(60) == 128 + signal.SIGTERM:
            break
        out.write_text("before")
    assert child.returncode == 128 + signal.SIGTERM and out.read_text() == "before" and everything(tmp_path) == ["out"]
