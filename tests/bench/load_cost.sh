#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What LD_PRELOAD of the library costs a program that uses no GPU: the best of many starts of /bin/true, in
# turn with and without. Then short children (sh -c 'exit 0'), 2,000 of each in turn: ratio of the medians of their processor
# time and page faults. Then compilers of one small file (gcc -c), COMPILERS of each in turn: ratio of the medians of their
# times. Exit 1 when over 1 ms, or when a file was left.
# usage: tests/bench/load_cost.sh [BUILD [COMPILERS]]     COMPILERS: 200 by default
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
python3 - "$build/preload/libgpuprof.so" "${2:-200}" <<'PYTHON'
import os, pathlib, statistics, sys, tempfile, time
library, compilers = sys.argv[1], int(sys.argv[2])
base = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPROF_", "LD_PRELOAD"))}
best = {"bare": 1e9, "preloaded": 1e9}
for _ in range(300):
    for name, environment in (("bare", base), ("preloaded", base | {"LD_PRELOAD": library})):
        begin = time.perf_counter()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], environment), 0)
        best[name] = min(best[name], time.perf_counter() - begin)
used, faults = {"bare": [], "preloaded": []}, {}
for _ in range(2000):
    for name, environment in (("bare", base), ("preloaded", base | {"LD_PRELOAD": library})):
        child = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 0"], environment)
        usage = os.wait4(child, 0)[2]
        used[name].append(usage.ru_utime + usage.ru_stime)
        faults[name] = min(faults.get(name, 1e9), usage.ru_minflt)
middle = {name: statistics.median(times) * 1e3 for name, times in used.items()}
print(f"sh -c 'exit 0': {middle['bare']:.3f} ms of processor time, preloaded {middle['preloaded']:.3f} ms: "
      f"{middle['preloaded'] / middle['bare']:.3f}; page faults {faults['bare']}, {faults['preloaded']}")
with tempfile.TemporaryDirectory() as elsewhere:
    source = pathlib.Path(elsewhere) / "one.c"
    source.write_text("int one(int x) { return x + 1; }\n")
    took = {"bare": [], "preloaded": []}
    for _ in range(compilers):
        for name, environment in (("bare", base), ("preloaded", base | {"LD_PRELOAD": library})):
            begin = time.perf_counter()
            child = os.posix_spawnp("gcc", ["gcc", "-c", "-O2", str(source), "-o", str(source) + ".o"], environment)
            if os.waitpid(child, 0)[1]:
                sys.exit("load_cost.sh: gcc could not compile a file of one line")
            took[name].append(time.perf_counter() - begin)
middle = {name: statistics.median(times) * 1e3 for name, times in took.items()}
print(f"gcc -c: {middle['bare']:.1f} ms, preloaded {middle['preloaded']:.1f} ms: {middle['preloaded'] / middle['bare']:.3f}")
extra = (best["preloaded"] - best["bare"]) * 1e3
left = [p.name for p in pathlib.Path(".").iterdir()]
print(f"/bin/true: {best['bare'] * 1e3:.2f} ms, preloaded {best['preloaded'] * 1e3:.2f} ms: {extra:.2f} ms more (at most 1); "
      f"files left: {left or 'none'}")
sys.exit(extra > 1 or bool(left))
PYTHON
