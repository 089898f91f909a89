# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run rarely: each finds what it imports, and says how it is used."""
import sys

import pytest

import harness

BENCHES = sorted(path for path in (harness.SOURCE / "tests/bench").glob("*.py") if "__main__" in path.read_text())
LOAD = "import os, runpy, sys; sys.argv = sys.argv[1:]; sys.path[0] = os.path.dirname(sys.argv[0]); runpy.run_path(sys.argv[0])"


@pytest.mark.parametrize("bench", BENCHES, ids=lambda path: path.stem)
def test_bench_loads(bench):
    loaded = harness.run([sys.executable, "-c", LOAD, bench])
    assert loaded.code == 0, loaded.err
    usage = harness.run([sys.executable, bench, "--help"])
    assert usage.code == 0 and "usage:" in usage.out, usage.err
