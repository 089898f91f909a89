# SPDX-License-Identifier: Apache-2.0
"""The first step of a window beside the other ones of it, with call stacks: what gpuprof does at a window's start is over when
its first step begins. As root, programs get real-time priority. Exit 1 above the bound."""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("runs", nargs="?", type=int, default=20, help="of three windows each (default: %(default)s)")
parser.add_argument("build", nargs="?", type=pathlib.Path, default=SOURCE / "build")
OPTIONS = parser.parse_args()
os.environ["GPUPROF_TEST_BUILD"] = str(OPTIONS.build.resolve())
sys.path.insert(0, str(SOURCE / "tests/e2e"))
import harness  # noqa: E402  (it reads the environment)

BOUND = 1.05
SETTINGS = {"GPUPROF_STACKS": "launch,sync,alloc,nccl", "GPUPROF_SCHEDULE": "skip_first=3,wait=2,warmup=1,active=6,repeat=3"}
PROGRAM = [harness.SIMTRAIN, "--steps", "60", "--layers", "4", "--kernel-us", "100"]


def ratios(folder):
    """By window: the first step over the median of the others."""
    done = harness.gpuprof("run", "-o", folder, "--", *PROGRAM, env=harness.environment(**SETTINGS))
    assert done.code == 0, done.err
    for dump in harness.dumps(folder):
        steps = sorted((r for r in harness.records(dump) if r["kind"] == "step" and r["in_window"]), key=lambda r: r["number"])
        lengths = [step["end_mono_ns"] - step["begin_mono_ns"] for step in steps]
        yield lengths[0] / statistics.median(lengths[1:])


def main():
    if os.geteuid() == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    with tempfile.TemporaryDirectory() as folder:
        runs = [list(ratios(pathlib.Path(folder) / f"{run}")) for run in range(OPTIONS.runs)]
    failed = False
    for window, found in enumerate(zip(*runs)):
        middle = statistics.median(found)
        failed = failed or middle > BOUND
        print(f"window {window}: first step {middle:.3f} of the others (median of {len(found)}; worst {max(found):.3f}; bound {BOUND})")
    return failed


if __name__ == "__main__":
    sys.exit(main())
