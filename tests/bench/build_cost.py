# SPDX-License-Identifier: Apache-2.0
"""What a fleet-wide preload costs work that consists of many short programs: a command (a build, a test suite) bare and
preloaded, in turn. Compares output, exit code and processor time of all its processes; wall time is printed. Exit 1 where
output or exit code differ, or where the median of processor time is more than 1.05 of bare.

usage: build_cost.py [--runs N] [--build DIR] [--ignore REGEX] FOLDER COMMAND...   run in FOLDER
example: build_cost.py git-2.39.5/t ./t0001-init.sh"""
import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

MOST = 1.05


def run(command, folder, environment):
    """Processor seconds, wall seconds, exit code and output."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.monotonic() - begun, done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--ignore", default="$^", help="lines of the output that differ from run to run")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("GPUPROF_", "LD_"))}
    modes = {"bare": bare, "preloaded": bare | {"LD_PRELOAD": str(options.build.resolve() / "preload/libgpuprof.so")}}
    used, walls, ends = {name: [] for name in modes}, {name: [] for name in modes}, {}
    for number in range(options.runs + 1):
        for name, environment in modes.items():
            seconds, wall, code, output = run(options.command, options.folder, environment)
            if number == 0:
                continue  # warms caches
            used[name].append(seconds)
            walls[name].append(wall)
            lines = [line for line in output.decode(errors="replace").splitlines() if not re.search(options.ignore, line)]
            ends.setdefault(name, (code, lines))
    ratio = statistics.median(used["preloaded"]) / statistics.median(used["bare"])
    same = ends["bare"] == ends["preloaded"]
    print(f"{' '.join(options.command)}: {statistics.median(used['bare']):.3f} s of processor time bare, "
          f"{statistics.median(used['preloaded']):.3f} s preloaded: {ratio:.3f} (at most {MOST}); wall "
          f"{statistics.median(walls['bare']):.2f} and {statistics.median(walls['preloaded']):.2f} s; "
          f"exit {ends['bare'][0]} and {ends['preloaded'][0]}, output {'the same' if same else 'DIFFERS'}")
    return 0 if same and ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
