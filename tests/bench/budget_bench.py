# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_BUDGET: programs that are costly to record (tests/programs/costly.c, whose calls take no time of their own). What
recording costs as the dump states it, without a budget and within one, once what is too costly is left out. And the
processor time of a step that does nothing but these calls, bare, without a budget and within one: of what that adds, how
much the dump states. Exit 1 where a bound does not hold."""
import argparse
import os
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("build", nargs="?", type=pathlib.Path, default=SOURCE / "build")
OPTIONS = parser.parse_args()
os.environ["GPUPROF_TEST_BUILD"] = str(OPTIONS.build.resolve())
sys.path.insert(0, str(SOURCE / "tests/e2e"))
import harness  # noqa: E402  (it reads the environment)

BOUND = 1.2  # times the budget
LEAST_STATED = 0.8  # of the processor time that recording adds; but for operators, in which PyTorch would have its part
BUDGETS = [2, 5, 10]
PROGRAMS = {  # arguments, further settings
    "API calls": (["events=120000"], {}),
    "calls that wait": (["waits=120000"], {}),
    "operators": (["operators=15000"], {}),
    "stacks": (["launches=2000", "depth=60"], {"GPUPROF_STACKS": "launch"}),
    "all four": (["launches=1000", "depth=60", "events=40000", "waits=40000", "operators=5000"], {"GPUPROF_STACKS": "launch"}),
}
MILLISECONDS, STEP_US = 2000, 10000


def step_time(done):
    return float(done.out.split()[-2])


def stated(own, done, bare_us):
    """What the dump says that its hooks took, in parts of what they added."""
    return own["own_cost"]["hooks_ns"] / 1000 / (int(done.out.split()[0]) * (step_time(done) - bare_us))


def run(folder, milliseconds, step_us, arguments, settings):
    """The window's own figures, or none of a bare run; what the program printed."""
    quick = {"LD_LIBRARY_PATH": harness.HAZARDS / "quick_cudart"}
    command = [harness.HAZARDS / "costly_calls", milliseconds, step_us, *arguments]
    if settings is None:
        return None, harness.run(command, harness.environment(**quick))
    env = harness.preloaded(GPUPROF_OUTPUT=folder, GPUPROF_CUPTI="off", GPUPROF_BUFFER_MB=256, **quick, **harness.WHOLE_RUN, **settings)
    done = harness.run(command, env)
    assert done.code == 0, done.err
    dump, = harness.dumps(folder)
    return harness.info(dump)["files"][0], done


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        places = (pathlib.Path(folder) / f"{i}" for i in range(1000))
        for name, (arguments, settings) in PROGRAMS.items():
            whole, _ = run(next(places), MILLISECONDS, STEP_US, arguments, settings)
            bare_us = step_time(run(None, 500, 0, arguments, None)[1])
            alone, done = run(next(places), 1000, 0, arguments, settings)
            part = stated(alone, done, bare_us)
            failed = failed or (name != "operators" and part < LEAST_STATED)
            print(f"{name}: own cost {whole['own_cost']['percent']:.1f} %; a step of these calls alone {bare_us:.0f} us bare, "
                  f"{step_time(done):.0f} us recorded, of which the dump states {100 * part:.0f} %")
            for budget in BUDGETS:
                within = {**settings, "GPUPROF_BUDGET": budget}
                found = run(next(places), MILLISECONDS, STEP_US, arguments, within)[0]["budget"]
                budget_us = step_time(run(next(places), MILLISECONDS, 0, arguments, within)[1])
                failed = failed or found["cost_percent"] > BOUND * budget
                missing = ", ".join(f"{each['kind']} {each['cost_percent']:.1f} %" for each in found["left_out"])
                print(f"  budget {budget} %: {found['cost_percent']:.2f} % (bound {BOUND * budget:.1f}); left out: {missing or 'nothing'}; "
                      f"a step of these calls alone {budget_us:.0f} us")
    return failed


if __name__ == "__main__":
    sys.exit(main())
