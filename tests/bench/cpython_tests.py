# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests, bare, with the library preloaded and idle, and with a live session whose window is open: each test
must end the same way. Every CPython of this machine that has its tests is used, plain and with `-X dev`. A module where a
test differs is run bare twice more. A test that does not end the same way in all bare runs flakes, and is named as such. The
others are run again with the library, since some fail at times. Ends with a table: version, module, mode. Exit 1 where a
test keeps differing.

usage: cpython_tests.py [--short] [--build DIR] [--python X.Y]... [--jobs N] [--results FILE] [MODULE...]"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODULES = ["test_subprocess", "test_threading", "test_signal", "test_os", "test_posix", "test_ctypes", "test_faulthandler", "test_gc",
           "test_sys", "test_audit", "test_embed", "test_multiprocessing_fork", "test_multiprocessing_spawn",
           "test_multiprocessing_forkserver", "test_asyncio"]
SHORT = ["test_posix", "test_gc", "test_audit", "test_signal", "test_faulthandler"]
BARE_RUNS = 3  # of a module where something differs
ATTEMPTS = 3   # with the library
MOST_HANGS = 4
FLAGS = {"plain": [], "dev": ["-X", "dev"]}

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
    parser.add_argument("--flags", action="append", choices=FLAGS, help="both by default")
    parser.add_argument("--jobs", type=int, default=1, help="modules at a time (default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one test (default: %(default)s)")
    parser.add_argument("--results", type=pathlib.Path, help="keeps what was found; a later call with it runs what is missing")
    parser.add_argument("modules", nargs="*")
    return parser.parse_args()


OPTIONS = options()
os.environ["GPUPROF_TEST_BUILD"] = str(OPTIONS.build.resolve())
sys.path.insert(0, str(SOURCE / "tests/e2e"))
import harness  # noqa: E402  (it reads the environment)
from support import pythons  # noqa: E402

MODES = {"bare": {}, "idle": {"preload": True}, "live": {"preload": True, "live": True}}


def run_to_end(command, env, folder):
    """Exit code and output. What the tests leave running ends, too: it may hold the output open."""
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        code = process.wait()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return code, (folder / "output").read_text(errors="replace")


def results(python, flags, mode, module, folder, left_out=()):
    """Outcome by test: passed, failed, error or skipped; how the run ended; and the test in which it stood still."""
    env = harness.environment()
    env["LD_PRELOAD"] = ""  # CPython skips its tests under strace wherever this is set
    if mode.get("preload"):
        env["LD_PRELOAD"] = harness.LIB
        env["GPUPROF_OUTPUT"] = str(folder / "out")
        env["GPUPROF_SCHEDULE"] = "all"
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [python, *flags] + (["-c", LIVE] if mode.get("live") else ["-m", "test"])
    for test in left_out:
        command += ["--ignore", test]
    code, text = run_to_end([*command, "-v", "--junit-xml", report, "--timeout", str(OPTIONS.timeout), module], env, folder)
    outcome = {"exit": str(code)}
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            states = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            outcome[case.get("name")] = states[0] if states else "passed"
        return outcome, None
    begun = re.findall(r"^(test\w+) \([\w.]+\)", text, re.MULTILINE)
    return outcome, begun[-1] if begun else None


def differences(left, right):
    return {name: [left.get(name, "absent"), right.get(name, "absent")] for name in sorted({*left, *right}) if left.get(name) != right.get(name)}


def compare(python, flags, module, folder):
    """What differs by mode, and what flakes bare; tests that stand still bare are left out everywhere."""
    left_out = []
    bare, stood = results(python, flags, MODES["bare"], module, folder)
    while stood and len(left_out) < MOST_HANGS:
        left_out.append(stood)
        bare, stood = results(python, flags, MODES["bare"], module, folder, left_out)
    found = {"tests": len(bare) - 1, "hangs": left_out, "flakes": [], "modes": {}}
    bares = [bare]
    for name in ("idle", "live"):
        differing = differences(bare, results(python, flags, MODES[name], module, folder, left_out)[0])
        while differing and len(bares) < BARE_RUNS:
            bares.append(results(python, flags, MODES["bare"], module, folder, left_out)[0])
        flaky = {test for other in bares[1:] for test in differences(bare, other)}
        flaky_here = sorted(flaky & differing.keys())
        # The run fails where one of its tests does.
        steady = {test: how for test, how in differing.items() if test not in flaky and not (test == "exit" and len(differing) > 1)}
        passing = {}
        for _ in range(ATTEMPTS - 1):
            if not steady:
                break
            again = differences(bare, results(python, flags, MODES[name], module, folder, left_out)[0])
            passing.update({test: how for test, how in steady.items() if test not in again})
            steady = {test: how for test, how in again.items() if test in steady}
        found["flakes"] = sorted({*found["flakes"], *flaky_here})
        found["modes"][name] = {"differs": steady, "once": passing}
    return found


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


def cell(mode):
    if mode["differs"]:
        return f"DIFFERS ({len(mode['differs'])})"
    return "same" if not mode["once"] else f"same when run again ({len(mode['once'])})"


def remarks(found):
    """Lines below a row of the table."""
    lines = [f"{test}: stands still bare, left out" for test in found["hangs"]]
    lines += [f"{test}: flakes bare as well" for test in found["flakes"]]
    for name, mode in found["modes"].items():
        lines += [f"{test}: {how[0]} bare, {how[1]} {name}" for test, how in list(mode["differs"].items())[:10]]
        lines += [f"{test}: {how[1]} {name} once, then {how[0]} as bare" for test, how in list(mode["once"].items())[:10]]
    return lines


def print_row(key, found):
    version, flags, module = key
    print(f"| {version} | {flags} | {module} | {found['tests']} | {' | '.join(cell(found['modes'][name]) for name in ('idle', 'live'))} |")
    for line in remarks(found):
        print(f"  {line}")
    sys.stdout.flush()


def run_all(cases, known):
    """Fills `known` with what each case gives, in parallel; a row each as it comes."""
    def one(case):
        (version, flags, module), python = case
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return (version, flags, module), compare(python, FLAGS[flags], module, pathlib.Path(folder))
    with concurrent.futures.ThreadPoolExecutor(OPTIONS.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, case) for case in cases if case[0] not in known]):
            key, found = done.result()
            known[key] = found
            print_row(key, found)
            if OPTIONS.results:
                with open(OPTIONS.results, "a") as file:
                    print(json.dumps([key, found]), file=file)


def main():
    modules = OPTIONS.modules or (SHORT if OPTIONS.short else MODULES)
    usable, without = interpreters(modules)
    print(f"CPythons with tests: {', '.join(usable) or 'none'}; without: {', '.join(without) or 'none'}")
    usable = {version: path for version, path in usable.items() if not OPTIONS.python or version in OPTIONS.python}
    if OPTIONS.short and not OPTIONS.python:
        usable = {version: usable[version] for version in {list(usable)[0], list(usable)[-1]}} if usable else {}
    cases = [((version, flags, module), python) for flags in OPTIONS.flags or FLAGS for version, python in usable.items()
             for module in has_tests(python, modules)]
    known = {}
    if OPTIONS.results and OPTIONS.results.exists():
        known = {tuple(key): found for key, found in map(json.loads, OPTIONS.results.read_text().splitlines())}
    run_all(cases, known)
    print("\n| CPython | flags | module | tests | idle | live |\n|---|---|---|--:|---|---|")
    rows = [(key, known[key]) for key, _ in cases]
    for row in rows:
        print_row(*row)
    differing = sum(len(mode["differs"]) for _, found in rows for mode in found["modes"].values())
    print(f"\n{sum(found['tests'] for _, found in rows)} tests in {len(rows)} rows, {sum(len(found['flakes']) for _, found in rows)} flake bare, "
          f"{differing} differ")
    return 1 if differing or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
