# SPDX-License-Identifier: Apache-2.0
"""A program that runs for long, with a window every 2 s, windows on request, children and threads: its resident memory,
descriptors and threads stay as they are. The same program without the library runs beside it as the control. Exit 1 where
anything grows."""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("seconds", nargs="?", type=int, default=1800, help="the first sixth is not judged (default: %(default)s)")
parser.add_argument("build", nargs="?", type=pathlib.Path, default=SOURCE / "build")
OPTIONS = parser.parse_args()
SECONDS = OPTIONS.seconds
os.environ["GPUPROF_TEST_BUILD"] = str(OPTIONS.build.resolve())
sys.path.insert(0, str(SOURCE / "tests/e2e"))
import harness  # noqa: E402  (it reads the environment)

MOST_GROWTH = 0.01


def sample(pid):
    """Kilobytes resident; descriptors; threads."""
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    kilobytes = lambda name: int(status[name].split()[0])
    return kilobytes("VmRSS"), len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"])


def steady(pid):
    """The least of samples over 5 s: a dump is open while its window is, and files of /proc for a moment."""
    samples = []
    for _ in range(100):
        samples.append(sample(pid))
        time.sleep(0.05)
    return [min(values) for values in zip(*samples)]


def watch(name, env, folder):
    """Samples of the judged part of a run."""
    process = subprocess.Popen([harness.HAZARDS / "soak"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=open(folder / f"{name}.log", "w"))
    kept, begun = [], time.monotonic()
    every = max(1.0, SECONDS / 60 - 5)
    while time.monotonic() - begun < SECONDS:
        time.sleep(every)
        if name == "profiled":
            subprocess.run([harness.BIN, "trigger", folder / "out", "--steps", "50"], env=harness.environment(), check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        values = steady(process.pid)
        passed = time.monotonic() - begun
        print(f"{name:8} {passed:6.0f} s: {values[0]} kB resident, {values[1]} descriptors, {values[2]} threads", flush=True)
        if passed > SECONDS / 6:
            kept.append(values)
    process.terminate()
    code = process.wait(60)
    print((folder / f"{name}.log").read_text(), end="")
    return kept, code


def grew(name, kept):
    problems = []
    for what, values in zip(("resident memory", "descriptors", "threads"), zip(*kept)):
        half = len(values) // 2
        before, after = max(values[:half]), max(values[half:])
        share = (max(values) - min(values)) / max(values)
        limit = MOST_GROWTH if "memory" in what else 0
        print(f"{name:8} {what}: {min(values)} to {max(values)} ({share:.2%}); at most {before} in the first half, {after} in the second")
        if share > limit:
            problems.append(what)
    return problems


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_RUN="run", GPUPROF_STEP="sync:1", GPUPROF_LOG="warn",
                                GPUPROF_SCHEDULE="skip_first=0,wait=600,warmup=50,active=250,repeat=0")
        with concurrent.futures.ThreadPoolExecutor() as both:
            control = both.submit(watch, "bare", harness.environment(), folder)
            profiled, code = watch("profiled", env, folder)
            bare, bare_code = control.result()
        dumps = [path for path in harness.dumps(folder / "out") if path.suffix == ".gpuprof"]
        grew("bare", bare)
        problems = grew("profiled", profiled)
        print(f"{SECONDS} s each; {len(dumps)} dumps; exit {code} (bare {bare_code}); grew: {', '.join(problems) or 'nothing'}")
        return 1 if problems or code != bare_code or not dumps else 0
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
