# SPDX-License-Identifier: Apache-2.0
"""A profiled run of simtrain on two ranks, once for all tests, with what the simulator says of it."""
import dataclasses
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # HTA rounds times to microseconds otherwise, and gets negative ones

import pytest

import harness
import truth_trace

FIRST, LAST = 12, 21  # the steps that the default schedule records


@dataclasses.dataclass
class Profiled:
    dumps: pathlib.Path
    info: dict
    truths: dict  # rank -> Truth
    folder: pathlib.Path  # for what tests make of it

    def convert(self, to, *options):
        out = self.folder / to
        if not out.exists():
            harness.checked("convert", self.dumps, "--to", to, "-o", out, *options)
        return out


@pytest.fixture(scope="session")
def profiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    command = [harness.SIMTRAIN, "--ranks", "2", "--steps", "26", "--layers", "4", "--kernel-us", "300", "--comm-mb", "8",
               "--overlap", "--data-ms", "1", "--h2d-mb", "8", "--malloc-per-step", "3"]
    env = harness.environment(SIMCUDA_TRUTH=folder / "truth")
    done = harness.gpuprof("run", "-o", folder / "out", "--", *command, env=env)
    assert done.code == 0, done.err
    info = harness.info(folder / "out")
    truths = {}
    for dump in harness.dumps(folder / "out"):
        records = harness.records(dump)
        header = next(r for r in records if r["kind"] == "header")
        steps = {r["number"]: (r["begin_mono_ns"], r["end_mono_ns"]) for r in records
                 if r["kind"] == "step" and r["in_window"]}
        assert sorted(steps) == list(range(FIRST, LAST + 1))
        truths[header["rank"]] = truth_trace.Truth(folder / "truth", header["pid"], steps)
    assert sorted(truths) == [0, 1]
    return Profiled(folder / "out", info, truths, folder)
