#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports of one job of many ranks: seconds, peak memory, and how both grow with the ranks.

usage: ranks_bench.py [--ranks 64,1024] [--rounds 2] [--work DIRECTORY] [BUILD]

Dumps of 17,500 events a rank in 3 steps are made, reported as text, JSON and HTML, and deleted. Bounds: 60 s and 2 GB
for the largest job, 20 times the seconds of the smallest if that has a sixteenth of the ranks.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = ("layers=32", "forward=30", "backward=55", "tail=150", "steps=3")


def measured(command, out=subprocess.DEVNULL):
    """(seconds, MB at most, seconds of processors)"""
    begin = time.perf_counter()
    child = subprocess.Popen([str(word) for word in command], stdout=out)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command))}: status {status}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def timed(command):
    return measured(command)[:2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="64,1024")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--work", help="where the dumps go; 40 KB a rank")
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    options = parser.parse_args()
    counts = sorted(int(count) for count in options.ranks.split(","))
    best = {}
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        for count in counts:
            job = pathlib.Path(folder) / f"ranks{count}"
            subprocess.run([options.build / "tests/bench/make_job", job, f"ranks={count}", *MODEL], check=True)
            for form in ("text", "json", "html"):
                output = pathlib.Path(folder) / "out"
                rounds = [timed([options.build / "tools/gpuprof", "report", job, "--format", form, "-o", output])
                          for _ in range(options.rounds)]
                best[count, form] = min(seconds for seconds, _ in rounds), max(memory for _, memory in rounds)
                print(f"{count:6} ranks  {form:5} {best[count, form][0]:7.2f} s  {best[count, form][1]:7.0f} MB", flush=True)
            shutil.rmtree(job)
    bad = []
    for form in ("text", "json", "html"):
        seconds, memory = best[counts[-1], form]
        if seconds > 60 or memory > 2000:
            bad.append(f"{form}: {seconds:.1f} s and {memory:.0f} MB of at most 60 s and 2,000 MB")
        growth = seconds / best[counts[0], form][0]
        print(f"{form}: {growth:.1f} times the seconds for {counts[-1] / counts[0]:.0f} times the ranks")
        if counts[-1] == 16 * counts[0] and growth > 20:
            bad.append(f"{form}: {growth:.1f} times the seconds for 16 times the ranks")
    for line in bad:
        print(line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
