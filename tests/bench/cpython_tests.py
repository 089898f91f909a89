# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests, bare, with the library preloaded and idle, and with a live session whose window is open: each test
must end the same way. Every CPython of this machine that has its tests is used, plain and with `-X dev`. What differs is
run again, alone, since some of these tests fail at times. Exit 1 where a test keeps differing.

usage: cpython_tests.py [--short] [--build DIR] [--python X.Y]... [MODULE...]"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODULES = ["test_subprocess", "test_threading", "test_signal", "test_os", "test_posix", "test_ctypes", "test_faulthandler", "test_gc",
           "test_sys", "test_audit", "test_embed", "test_multiprocessing_fork", "test_multiprocessing_spawn",
           "test_multiprocessing_forkserver", "test_asyncio"]
SHORT = ["test_posix", "test_gc", "test_audit", "test_signal", "test_faulthandler"]
ATTEMPTS = 3

# A program that uses CUDA and has a window open while the tests run.
LIVE = """
import ctypes, sys
cuda = ctypes.CDLL("libcudart.so.13")
memory = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(memory), 1000) == 0 and cuda.cudaDeviceSynchronize() == 0
import runpy
sys.argv[0] = "test"
runpy.run_module("test", run_name="__main__", alter_sys=True)
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few quick modules, oldest and newest CPython")
    parser.add_argument("--build", default=SOURCE / "build", type=pathlib.Path)
    parser.add_argument("--python", action="append", default=[], help="X.Y; every one by default")
    parser.add_argument("modules", nargs="*")
    return parser.parse_args()


OPTIONS = options()
os.environ["GPUPROF_TEST_BUILD"] = str(OPTIONS.build.resolve())
sys.path.insert(0, str(SOURCE / "tests/e2e"))
import harness  # noqa: E402  (it reads the environment)
from support import pythons  # noqa: E402

MODES = {"bare": {}, "idle": {"preload": True}, "live": {"preload": True, "live": True}}


def results(python, flags, mode, modules, folder):
    """Outcome by test: passed, failed, error or skipped; and how the run ended."""
    env = harness.environment()
    if mode.get("preload"):
        env["LD_PRELOAD"] = harness.LIB
        env["GPUPROF_OUTPUT"] = str(folder / "out")
        env["GPUPROF_SCHEDULE"] = "all"
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [python, *flags] + (["-c", LIVE] if mode.get("live") else ["-m", "test"])
    done = subprocess.run([*command, "--junit-xml", report, "--timeout", "600", *modules], env=env, cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False)
    outcome = {"exit": str(done.returncode)}
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            states = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            outcome[case.get("name")] = states[0] if states else "passed"
    if len(outcome) == 1:
        outcome["output"] = (done.stdout + done.stderr)[-400:]
    return outcome


def differences(left, right):
    return {name: (left.get(name, "absent"), right.get(name, "absent")) for name in sorted({*left, *right}) if left.get(name) != right.get(name)}


def has_tests(python, modules):
    done = subprocess.run([python, "-c", "import test.libregrtest, importlib.util as u; print(*[m for m in %r if u.find_spec('test.' + m)])" % (modules,)],
                          capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def interpreters(modules):
    """A CPython of each version, if there is one with these tests; and the versions of which there is none."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    usable, without = {}, []
    for version, path in sorted(pythons.pythons().items()):
        if not pythons.OLDEST <= version <= pythons.NEWEST:
            continue
        name = ".".join(map(str, version))
        others = sorted(versions.glob(f"{name}.*/bin/python3"))
        found = [str(each) for each in [path, *others] if has_tests(each, modules)]
        if found:
            usable[name] = found[0]
        else:
            without.append(name)
    return usable, without


def compare(version, python, flags, module, folder):
    """Lines on what keeps differing from a bare run; how many tests there are; seconds by mode."""
    keeps, tests, seconds = [], 0, {}
    bare = None
    for name, mode in MODES.items():
        begun = time.monotonic()
        found = results(python, flags, mode, [module], folder)
        seconds[name] = time.monotonic() - begun
        if name == "bare":
            bare, tests = found, len(found) - 1
            continue
        differing = differences(bare, found)
        for _ in range(ATTEMPTS - 1):
            if not differing:
                break
            again = differences(results(python, flags, MODES["bare"], [module], folder), results(python, flags, mode, [module], folder))
            differing = {test: how for test, how in again.items() if test in differing}
        keeps += [f"CPython {version} {' '.join(flags)} {name}: {test}: {how[0]} bare, {how[1]} then" for test, how in differing.items()]
    return keeps, tests, seconds


def main():
    modules = OPTIONS.modules or (SHORT if OPTIONS.short else MODULES)
    usable, without = interpreters(modules)
    print(f"CPythons with tests: {', '.join(usable) or 'none'}; without: {', '.join(without) or 'none'}")
    usable = {version: path for version, path in usable.items() if not OPTIONS.python or version in OPTIONS.python}
    if OPTIONS.short and not OPTIONS.python:
        usable = {version: usable[version] for version in {list(usable)[0], list(usable)[-1]}} if usable else {}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for version, python in usable.items():
            for flags in ([], ["-X", "dev"]):
                for module in has_tests(python, modules):
                    keeps, tests, seconds = compare(version, python, flags, module, pathlib.Path(folder))
                    times = ", ".join(f"{name} {took:.1f} s" for name, took in seconds.items())
                    print(f"CPython {version} {' '.join(flags):6} {module}: {tests} tests, {len(keeps)} differ ({times})", flush=True)
                    for line in keeps[:10]:
                        print(f"  {line}")
                    problems += keeps
    print(f"{len(problems)} differences")
    return 1 if problems or not usable else 0


if __name__ == "__main__":
    sys.exit(main())
