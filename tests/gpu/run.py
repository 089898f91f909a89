# SPDX-License-Identifier: Apache-2.0
"""The GPU test: see run.sh."""
import argparse
import json
import pathlib
import sys
import time

import claims
import cost
import frameworks
import natives
from figures import table
from lab import Lab


def of(cases):
    """The part that runs what `cases` gives: (name, function) pairs."""
    return lambda lab: lab.cases(cases(lab))


# In the order in which they run; seconds each may take, fewer where the whole test has less left.
PARTS = {
    "ways": (natives.ways, 100),
    "graphs": (natives.graphs, 80),
    "after": (natives.after, 40),
    "torch": (of(frameworks.training_steps), 160),
    "compile": (of(frameworks.compiled_steps), 120),
    "triton": (of(frameworks.triton_kernels), 60),
    "generate": (of(frameworks.requests), 120),
    "jax": (of(frameworks.jax_steps), 70),
    "slow": (of(frameworks.slow_steps), 90),
    "windows": (cost.windows, 300),
    "cost": (cost.cost, 460),
}


def machine(lab):
    done = lab.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    return done.out.strip().splitlines()[0] if done.code == 0 and done.out.strip() else "unknown"


def write(lab, gpu, took):
    bad = [row for row in lab.rows if row["verdict"] in ("FAILED", "DIFFERS")]
    skipped = [row for row in lab.rows if row["verdict"] == "skipped"]
    over = [row for row in lab.rows if row["verdict"] == "OVER"]  # a figure, which another run may not repeat: no failure
    versions = claims.said("cupti")(lab.rows)
    text = "\n".join([f"GPU: {gpu}", *([f"CUPTI: {versions}"] if versions else []), "", table(lab.rows), "", claims.table(lab.rows), "",
                      f"{len(lab.rows)} cases: {len(bad)} failed or differ, {len(over)} over their target, {len(skipped)} skipped; {took:.0f} s",
                      *(f"skipped: {row['part']} {row['case']}: {row['text']}" for row in skipped), ""])
    (lab.out / "table.txt").write_text(text)
    (lab.out / "table.json").write_text(json.dumps({"gpu": gpu, "seconds": round(took), "rows": lab.rows}, indent=1))
    return text, 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(prog="tests/gpu/run.sh", description="The main job on a real GPU.")
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR", help="holds libgpuprof.so and gpuprof, or is a build directory")
    parser.add_argument("output", type=pathlib.Path, metavar="OUT", nargs="?", default=pathlib.Path("gpuprof-gpu"))
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"of {' '.join(PARTS)}; default: all")
    parser.add_argument("--seconds", type=float, default=450, help="after which no program is started and none goes on")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"{unknown[0]} is no part; allowed: {' '.join(PARTS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    lab = Lab(options.folder.resolve(), options.output.resolve(), options.seconds)
    whole = lab.deadline
    gpu = machine(lab)
    lab.added = lambda: write(lab, gpu, time.monotonic() - begun)  # what is known, should this be cut off
    print(f"GPU: {gpu}", flush=True)
    for name, (part, seconds) in PARTS.items():
        if options.parts and name not in options.parts:
            continue
        lab.part = name
        lab.deadline = min(whole, time.monotonic() + seconds)
        try:
            part(lab)
        except Exception as error:  # whatever it is, the other parts still run
            lab.add("part", "FAILED", f"{type(error).__name__}: {error}")
    text, code = write(lab, gpu, time.monotonic() - begun)
    print("\n" + text, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
