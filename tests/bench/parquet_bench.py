#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports jobs of many ranks as Parquet: seconds, peak memory, rows a second, bytes a row.

usage: parquet_bench.py [--ranks 64,1024] [--rounds 2] [--work DIRECTORY] [BUILD]

The jobs are those of ranks_bench.py. Bounds for 1,024 ranks: 120 s and 1,000 MB. Rows a second: of the writing alone, and of the
whole command, which also reads the dumps and makes the report; and by the time of processors that it took, for a machine that is
busy otherwise.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from ranks_bench import MODEL, measured


def exported(command, log):
    """(seconds, MB, seconds of processors, rows, seconds of reading, analysis and writing)"""
    with open(log, "w") as out:
        figures = measured(command, out)
    text = pathlib.Path(log).read_text()
    rows = int(re.search(r": (\d+) rows of", text)[1])
    laps = [float(lap) for lap in re.findall(r"in ([\d.]+) s", text)]
    return *figures, rows, laps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="64,1024")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--work", help="where dumps and tables go; 300 KB a rank")
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    options = parser.parse_args()
    bad = []
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        folder = pathlib.Path(folder)
        for count in sorted(int(count) for count in options.ranks.split(",")):
            job, tables = folder / f"ranks{count}", folder / "tables"
            subprocess.run([options.build / "tests/bench/make_job", job, f"ranks={count}", *MODEL], check=True)
            best = None
            for _ in range(options.rounds):
                shutil.rmtree(tables, ignore_errors=True)
                command = [options.build / "tools/gpuprof", "export", job, "--to", "parquet", "-o", tables]
                round_ = exported(command, folder / "log")
                best = min(best or round_, round_)
            seconds, memory, processors, rows, (read, analysed, written) = best
            size = sum(path.stat().st_size for path in tables.rglob("*.parquet"))
            print(f"{count:6} ranks  {rows:9} rows  {seconds:6.2f} s (read {read:.2f}, analysed {analysed:.2f}, written {written:.2f})  "
                  f"{memory:5.0f} MB  {rows / written / 1e6:.2f} million rows/s written, {rows / seconds / 1e6:.2f} in all; "
                  f"{processors:.2f} s of processors: {2 * rows / processors / 1e6:.2f} million rows/s on two  "
                  f"{size / rows:.1f} bytes a row", flush=True)
            if count == 1024 and (seconds > 120 or memory > 1000):
                bad.append(f"{count} ranks: {seconds:.1f} s and {memory:.0f} MB of at most 120 s and 1,000 MB")
            shutil.rmtree(job)
    for line in bad:
        print(line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
