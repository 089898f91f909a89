# SPDX-License-Identifier: Apache-2.0
"""Memory of the commands that read large dumps: what one event more takes. 256 MB for ten million events
are 25.6 bytes each; whoever copies events, or keeps a file's text, takes more."""
import os
import pathlib
import subprocess

import harness
import pytest

MAKE = pathlib.Path(os.environ["GPUPROF_TEST_BUILD"]) / "tests/bench/make_dump"
SIZES = (1_000_000, 4_000_000)
MOST_BYTES = 25.6

pytestmark = pytest.mark.skipif(not MAKE.exists(), reason="benchmarks are not built here: a sanitizer's memory is no measure")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dumps")
    made = []
    for size in SIZES:
        path = folder / f"{size}.gpuprof"
        out = subprocess.run([MAKE, path, str(size)], check=True, capture_output=True, text=True).stdout
        made.append((path, int(out.split()[0])))
    return made


@pytest.fixture(scope="module")
def traces(dumps):
    """The same as JSON traces."""
    made = []
    for path, count in dumps:
        trace = path.with_suffix(".json")
        harness.checked("convert", path, "--to", "kineto", "-o", trace)
        made.append((trace, count))
    return made


def peak_bytes(*arguments):
    child = subprocess.Popen([harness.BIN, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, error.decode()
    return usage.ru_maxrss * 1024


@pytest.mark.parametrize("command", [
    ("report", "-o", "report.txt"),
    ("report", "--format", "html", "-o", "report.html"),
    ("convert", "--to", "perfetto", "-o", "out.pftrace"),
    ("convert", "--to", "chrome", "-o", "out.json"),
    ("convert", "--to", "kineto", "-o", "kineto.json"),
    ("convert", "--to", "xplane", "-o", "xplane"),
    ("convert", "--to", "speedscope", "-o", "out.speedscope.json"),
    ("convert", "--to", "memory-viz", "-o", "out.pickle"),
], ids=lambda command: " ".join(command[:3]))
def test_ten_million_events_fit_in_256_megabytes(dumps, tmp_path, command):
    *words, output = command
    (small, few), (large, many) = dumps
    growth = peak_bytes(*words, tmp_path / f"l-{output}", large) - peak_bytes(*words, tmp_path / f"s-{output}", small)
    assert growth / (many - few) <= MOST_BYTES


@pytest.mark.parametrize("command", [("info",), ("report",)], ids=lambda command: command[0])
def test_of_a_json_trace_too(traces, command):
    (small, few), (large, many) = traces
    assert (peak_bytes(*command, large) - peak_bytes(*command, small)) / (many - few) <= MOST_BYTES
