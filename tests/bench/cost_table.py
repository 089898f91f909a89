#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost table: ns for each kind of hook, and for each kind of CUPTI record and callback, beside a reading of the
clock in the same run. Child processes are started in turn, round after round; the best time of each counts.

usage: cost_table.py --kinds FILE --cupti FILE --library FILE --gpuprof FILE [--rounds N]"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from recorded import losses_of

WHOLE_RUN = "skip_first=0,wait=0,warmup=0,active=1000000,repeat=1,max_s=0,max_mb=0"


def run(command, best, settings=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPROF_", "LD_PRELOAD", "NVTX_"))}
    done = subprocess.run([command], env={**environment, **(settings or {})}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr}")
    for kind, cost in json.loads(done.stdout).items():
        best[kind] = min(best.get(kind, 1e9), cost)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    for name in ("kinds", "cupti", "library", "gpuprof"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    bare, recorded, cupti = {}, {}, {}
    for _ in range(options.rounds):
        run(options.kinds, bare)
        with tempfile.TemporaryDirectory() as folder:
            run(options.kinds, recorded, {
                "LD_PRELOAD": str(pathlib.Path(options.library).resolve()), "GPUPROF_OUTPUT": folder, "GPUPROF_CUPTI": "off",
                "GPUPROF_STEP": "manual", "GPUPROF_SCHEDULE": WHOLE_RUN})
            events, losses = losses_of(options.gpuprof, folder)
        run(options.cupti, cupti)

    clock = recorded["clock read"]
    print(f"{'call':24}{'bare ns':>10}{'recorded':>10}{'added':>10}{'in clock reads':>16}")
    for kind, cost in recorded.items():
        added = cost - bare[kind]
        print(f"{kind:24}{bare[kind]:10.1f}{cost:10.1f}" + ("" if kind == "clock read" else f"{added:10.1f}{added / clock:16.1f}"))
    print(f"events in the last recording run: {events}, losses: {losses or 'none'}\n")
    clock = cupti["clock read"]
    print(f"{'CUPTI':30}{'ns':>8}{'in clock reads':>16}")
    for kind, cost in cupti.items():
        print(f"{kind:30}{cost:8.1f}" + ("" if kind == "clock read" else f"{cost / clock:16.1f}"))
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
