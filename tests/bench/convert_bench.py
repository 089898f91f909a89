#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time, memory and bytes of writing and reporting large dumps.

Each row: seconds (best of the rounds) and peak resident memory of one `gpuprof` process, beside a bare
writer of the same bytes (for .gz: libdeflate at its fastest level over the same JSON, in two threads) in the
same run. The machine's state enters the seconds; the ratios much less: where a virtual machine's host
takes back what memory is free, writing to it anew takes up to three times as long.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROWS = (
    # name, arguments, output, the row whose bytes are compressed for comparison
    ("perfetto", ("convert", "--to", "perfetto"), "out.pftrace", None),
    ("chrome", ("convert", "--to", "chrome"), "out.json", None),
    ("kineto", ("convert", "--to", "kineto"), "kineto.json", None),
    ("kineto.gz", ("convert", "--to", "kineto"), "kineto.json.gz", "kineto.json"),
    ("load", ("info",), None, None),  # reading and counting, beside which the two reports are to be seen
    ("tables", ("report", "--tables"), None, None),
    ("report", ("report",), None, None),
    ("json in", ("info",), None, None),  # the same events as a Kineto trace
)


def timed(command, output):
    begin = time.perf_counter()
    child = subprocess.Popen([str(word) for word in command], stdout=output, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"{' '.join(map(str, command))}: status {status}: {child.stderr.read().decode()}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def bare(options, mode, source, target, threads):
    seconds = []
    for _ in range(options.rounds):
        out = subprocess.run([options.bare, mode, source, target, str(threads)], check=True, capture_output=True)
        target.unlink()
        seconds.append(float(out.stdout))
    return min(seconds)


def json_trace(options, folder, dump):
    trace = folder / "kineto.json"
    if not trace.exists():
        subprocess.run([options.gpuprof, "convert", "--to", "kineto", dump, "-o", trace], check=True, capture_output=True)
    return trace


def measure(options, folder, events):
    dump = folder / "job.gpuprof"
    made = subprocess.run([options.make, dump, str(events)], check=True, capture_output=True)
    real = int(made.stdout.split()[0])
    print(f"{real / 1e6:.2f} million events, dump of {dump.stat().st_size / 1e6:.1f} MB "
          f"({dump.stat().st_size / real:.2f} bytes an event)")
    print(f"{'':12}{'seconds':>9}{'CPU s':>8}{'ns/event':>10}{'peak MB':>9}{'MB out':>9}{'bare s':>8}{'ratio':>7}")
    seconds_of = {}
    for name, arguments, output, packed in ROWS:
        if options.only and name not in options.only:
            continue
        target = folder / output if output else None
        source = json_trace(options, folder, dump) if name == "json in" else dump
        command = [options.gpuprof, *arguments, source, *(("-o", target) if target else ())]
        rounds = []
        for _ in range(options.rounds):
            if target:
                target.unlink(missing_ok=True)
            rounds.append(timed(command, subprocess.DEVNULL))
        seconds, cpu, _ = min(rounds)
        peak = max(row[2] for row in rounds)
        row = f"{name:12}{seconds:9.2f}{cpu:8.2f}{seconds / real * 1e9:10.0f}{peak:9.0f}"
        if source != dump:
            row += f"{'':9} {source.stat().st_size / seconds / 1e9:.2f} GB/s"
        if target:
            written = target.stat().st_size / 1e6
            if packed and (folder / packed).exists():
                base = bare(options, "gzip", folder / packed, folder / "bare", 2)
            else:
                base = bare(options, "write", target, folder / "bare", 1)
            row += f"{written:9.1f}{base:8.2f}{seconds / base:7.2f}"
        print(row, flush=True)
        seconds_of[name] = seconds / real
        if target and target.name != "kineto.json":
            target.unlink()
    for left in folder.iterdir():
        left.unlink()
    return seconds_of


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpuprof", required=True)
    parser.add_argument("--make", required=True, help="the make_dump program")
    parser.add_argument("--bare", required=True, help="the bare_copy program")
    parser.add_argument("--events", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="rows to measure")
    parser.add_argument("--folder", default="/dev/shm", help="where files go; should be a tmpfs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="gpuprof_bench_") as name:
        rates = [measure(options, pathlib.Path(name), events) for events in options.events]
    if len(rates) > 1:
        growth = ", ".join(f"{row} {rates[-1][row] / rates[0][row]:.2f}" for row in rates[0])
        print(f"time an event, largest to smallest: {growth}")


if __name__ == "__main__":
    main()
