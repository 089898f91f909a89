# SPDX-License-Identifier: Apache-2.0
"""What `+malloc` costs a pair of malloc and free: within one process, in steps before the first window (nothing is
changed yet), between windows (calls come to the library and go on), and in windows (they are counted and sampled)."""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

FIRST, CYCLES, PAIRS = 8, 12, 2_000_000  # steps before the first warm-up; then wait, warm-up, active


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=pathlib.Path("build"))
    build = parser.parse_args().build.resolve()
    print(f"{'bytes':>6} {'interval':>9} {'before':>8} {'between':>8} {'window':>8}   ns a pair, medians")
    for size, kib in ((64, 512), (1024, 512), (16384, 512), (1024, 64)):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, LD_PRELOAD=str(build / "preload/libgpuprof.so"), GPUPROF_OUTPUT=folder, GPUPROF_STEP="manual",
                       GPUPROF_SCHEDULE=f"skip_first={FIRST},wait=1,warmup=1,active=1,repeat=0", GPUPROF_LOG="error",
                       GPUPROF_ACTIVITIES=f"step,malloc:{kib}")
            done = subprocess.run([build / "tests/bench/heap_cost", str(FIRST + 3 * CYCLES), str(PAIRS), str(size)], env=env, check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        steps = [float(line) for line in done.stdout.split()]
        cycles = steps[FIRST:]
        before = statistics.median(steps[:FIRST])
        between, window = statistics.median(cycles[3::3]), statistics.median(cycles[2::3])
        print(f"{size:>6} {kib:>5} KiB {before:>8.2f} {between:>8.2f} {window:>8.2f}   {between / before:.2f} and {window / before:.2f} times")


if __name__ == "__main__":
    main()
