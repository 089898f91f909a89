# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at a random moment: every record that was complete must be read back. Used by test_kill.py and, in
larger numbers, by tests/bench/kill_soak.sh.

usage: kill.py [KILLS] [SEED]"""
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import harness
import truth

COMMAND = [harness.SIMTRAIN, "--steps", "1000000", "--layers", "3", "--kernel-us", "5", "--small-kernels", "60",
           "--threads", "2", "--malloc-per-step", "2"]


def kill_once(folder, delay):
    """Kills the program after `delay` seconds. Returns how many calls were compared; raises AssertionError."""
    folder = pathlib.Path(folder)
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", SIMCUDA_TRUTH=folder / "truth", SIMCUDA_TRUTH_SYNC=1,
                            **{**harness.WHOLE_RUN, "GPUPROF_STEP": "sync:1"})
    process = subprocess.Popen([str(c) for c in COMMAND], env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    process.kill()
    process.wait()
    left = harness.dumps(folder / "out") if (folder / "out").exists() else []
    log = folder / "truth" / f"truth_{process.pid}.jsonl"
    lines = truth.load(folder / "truth", process.pid) if log.exists() else []
    calls = [line for line in lines if line["t"] == "call"]
    if not left:  # killed before the session was up: at most the call that was to start it had been made
        assert len(calls) <= 1, f"no dump after {len(calls)} calls"
        return 0
    if not calls:  # before the first call was done
        return 0
    comparison = truth.Comparison(folder / "out", folder / "truth", killed=True)
    assert not comparison.problems, "\n".join([f"killed after {delay:.3f} s: {len(comparison.problems)} differences"] +
                                              comparison.problems[:5])
    return len(comparison.pairs)


def soak(kills, seed):
    """Problems found in `kills` kills, and calls compared."""
    delays = random.Random(seed)
    compared, problems = 0, []
    for number in range(kills):
        with tempfile.TemporaryDirectory() as folder:
            try:
                compared += kill_once(folder, delays.choice([0.06, 0.2, 0.6]) * delays.random())
            except AssertionError as error:
                problems.append(f"kill {number}: {error}")
                print(problems[-1], flush=True)
        if sys.stdout.isatty():
            print(f"\r{number + 1} of {kills}", end="", flush=True)
    return compared, problems


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    total, failed = soak(count, sys.argv[2] if len(sys.argv) > 2 else 1)
    print(f"{count} kills, {total} calls compared, {len(failed)} kills with a loss")
    sys.exit(1 if failed else 0)
