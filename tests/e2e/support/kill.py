# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at a random moment of every phase: each record that was complete must be read back, once. Used by test_kill.py
and, in larger numbers, by tests/bench/kill_soak.sh.

usage: kill.py [KILLS] [SEED]"""
import bisect
import collections
import dataclasses
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

import harness
import truth

PROGRAM = [harness.SIMTRAIN, "--layers", "3", "--kernel-us", "5", "--small-kernels", "20", "--threads", "2", "--malloc-per-step", "2",
           "--markers", "sync"]
FOR_EVER = "1000000"
FIRST_EARLY = 1 << 30  # number of the first early window (formats/core/early_window.h)
PHASES = ["no ring", "idle", "waiting", "warm-up", "active", "writing", "ended"]


@dataclasses.dataclass
class Case:
    """One kind of run. `delays`: the kill comes at a random part of one of these, in seconds."""
    name: str
    settings: dict
    steps: str = FOR_EVER
    delays: tuple = (0.1, 0.25, 0.6)
    triggers: bool = False


def windows(schedule):
    return {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": schedule}


CASES = [
    Case("one window", {**harness.WHOLE_RUN, "GPUPROF_STEP": "sync:1"}),
    Case("windows", windows("skip_first=2,wait=15,warmup=10,active=20,repeat=0")),
    Case("one after the other", windows("skip_first=0,wait=0,warmup=0,active=40,repeat=0")),
    Case("all presets", {**windows("skip_first=0,wait=5,warmup=5,active=20,repeat=0"), "GPUPROF_PRESET": "full", "GPUPROF_MEMORY": "1"}),
    Case("hooks alone", {**windows("skip_first=0,wait=5,warmup=1,active=20,repeat=0"), "GPUPROF_CUPTI": "off"}),
    Case("armed", {"GPUPROF_STEP": "sync:1", "GPUPROF_MODE": "armed", "GPUPROF_SCHEDULE": "warmup=10,active=20"}, delays=(0.3, 0.9), triggers=True),
    Case("exit", {**harness.WHOLE_RUN, "GPUPROF_STEP": "sync:1"}, steps="60", delays=()),
    Case("exit between windows", windows("skip_first=2,wait=15,warmup=10,active=20,repeat=0"), steps="120", delays=()),
]


@dataclasses.dataclass
class Ring:
    """Head of a ring file (formats/core/ring_file.h)."""
    phase: int
    window: int
    begin: int
    end: int

    @staticmethod
    def read(path):
        head = path.open("rb").read(72) if path else b""
        if len(head) < 72 or head[:8] != b"GPRFRNG1":
            return None
        return Ring(*struct.unpack_from("<IIQQ", head, 48))


class Truth:
    """The simulator's log, cut to the time of a window."""

    def __init__(self, lines):
        self.lines = sorted((line for line in lines if "begin" in line), key=lambda line: line["begin"])
        self.begins = [line["begin"] for line in self.lines]

    def around(self, begin, end):
        margin = 50_000_000  # no call or piece of work takes longer
        first = bisect.bisect_left(self.begins, begin - margin)
        return self.lines[first:bisect.bisect_right(self.begins, end + margin)]


class Killed:
    """What one kill left, against what happened."""

    def __init__(self, folder, pid):
        self.out, self.truth_folder = folder / "out", folder / "truth"
        self.left = harness.dumps(self.out) if self.out.exists() else []
        log = self.truth_folder / f"truth_{pid}.jsonl"
        self.lines = truth.load(self.truth_folder, pid) if log.exists() else []
        self.ring_path = next((path for path in self.left if path.name.endswith(".ring")), None)
        self.ring = Ring.read(self.ring_path)
        self.problems = []
        self.compared = collections.Counter()  # of calls, by (thread, begin)

    def phase(self):
        if self.ring:
            return PHASES[self.ring.phase + 1]
        return "ended" if any(path.suffix == ".gpuprof" for path in self.left) else "no ring"

    def check(self):
        calls = [line for line in self.lines if line["t"] == "call"]
        if not self.left:  # killed before the session was up: at most the call that was to start it had been made
            if len(calls) > 1:
                self.problems.append(f"no dump after {len(calls)} calls")
            return
        if not (self.out / "latest").is_symlink() and self.ring:
            self.problems.append("there is no link `latest`")
        everything = Truth(self.lines)
        last = {}
        for call in calls + [line for line in self.lines if line["t"] == "nccl"]:
            if call["begin"] >= last.get(call["tid"], call)["begin"]:
                last[call["tid"]] = call
        complete = [path for path in self.left if path.suffix == ".gpuprof"]
        for path in complete:
            self.compare(path, everything, last)
        if self.ring:
            self.check_ring(everything, last, complete)
        for key, count in self.compared.items():
            if count > 1:
                self.problems.append(f"a call is in {count} windows: {key}")

    def check_ring(self, everything, last, complete):
        # A window that has ended may still be on its way to its dump, also in the next one's warm-up.
        is_open = self.ring.phase in (3, 4) or self.ring.begin != 0
        number = self.ring.window
        name = f"_w{number}.gpuprof" if number < FIRST_EARLY else f"_early{number - FIRST_EARLY}.gpuprof"
        dumped = any(path.name.endswith(name) for path in complete)
        if is_open and not dumped:
            return self.compare(self.ring_path, everything, last, recovered=True)
        events = [r for r in harness.records(self.ring_path) if "index" in r and r["kind"] != "step"]
        if events:
            self.problems.append(f"{len(events)} records of windows that are complete are in the ring, too")

    def compare(self, path, everything, last, recovered=False):
        comparison = OneWindow(path, everything, self.truth_folder, last, recovered and self.ring.end == 0)
        self.problems += [f"{path.name}: {problem}" for problem in comparison.problems]
        for call, _ in comparison.pairs:
            self.compared[call["tid"], call["begin"], call["name"]] += 1


class OneWindow(truth.Comparison):
    """Of each window every call is compared. GPU records, which come later than what they are of, may be missing at the
    end: each must be true, and there once."""

    def __init__(self, dump, everything, truth_folder, last, is_open):
        self.everything, self.last, self.is_open = everything, last, is_open
        super().__init__(dump, truth_folder, killed=True)
        self._check_gpu_records()

    def _load(self, truth_folder):
        return self.everything.around(self.begin, 2**63 if self.is_open else self.end)

    def _last_calls(self):
        if not self.is_open:
            self.end = self.header["window_end_mono_ns"]
        return {id(call) for call in self.last.values()}

    def _check_gpu_records(self):
        works = collections.defaultdict(list)
        for work in self.truth:
            if work["t"] == "gpu" and work["type"] in truth.GPU_KINDS:
                works[work["corr"], truth.GPU_KINDS[work["type"]]].append(work)
        seen = collections.Counter()
        for record in self.records:
            if record["kind"] not in truth.GPU_KINDS.values():
                continue
            key = record["correlation"], record["kind"]
            seen[key] += 1
            if len(works[key]) == 1:
                self._compare_work(works[key][0], record)
            if works[key] and seen[key] > len(works[key]):
                self.problem(f"{seen[key]} records of one piece of work", record)


def run_time(case, folder):
    """How long the whole run takes."""
    begun = time.monotonic()
    start(case, folder).wait()
    return time.monotonic() - begun


def start(case, folder):
    env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_RUN="run", SIMCUDA_TRUTH=folder / "truth", SIMCUDA_TRUTH_SYNC=1, **case.settings)
    return subprocess.Popen([str(c) for c in [*PROGRAM, "--steps", case.steps]], env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_once(case, folder, delay):
    folder = pathlib.Path(folder)
    process = start(case, folder)
    end = time.monotonic() + delay
    if case.triggers:
        while time.monotonic() < end - 0.02:
            subprocess.run([harness.BIN, "trigger", folder / "out" / "run", "--steps", "20"], env=harness.environment(),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
    time.sleep(max(0, end - time.monotonic()))
    process.kill()
    process.wait()
    killed = Killed(folder, process.pid)
    killed.check()
    return killed


def soak(kills, seed):
    """Problems found in `kills` kills, calls compared, and kills by phase."""
    delays = random.Random(seed)
    compared, problems, phases, times = 0, [], collections.Counter(), {}
    for number in range(kills):
        case = CASES[number % len(CASES)]
        with tempfile.TemporaryDirectory() as folder:
            if not case.delays and case.name not in times:
                times[case.name] = run_time(case, pathlib.Path(folder) / "whole")
            length = delays.choice(case.delays) * delays.random() if case.delays else times[case.name] * delays.uniform(0.7, 1.1)
            killed = kill_once(case, folder, length)
        compared += sum(killed.compared.values())
        phases[killed.phase()] += 1
        if not case.delays:  # about half of them end first, also where the machine becomes faster or slower
            times[case.name] *= 0.95 if killed.phase() == "ended" else 1.1
        if killed.problems:
            problems.append(f"kill {number} ({case.name}, {killed.phase()}, after {length:.3f} s): {len(killed.problems)} differences:\n"
                            + "\n".join(problem[:500] for problem in killed.problems[:5]))
            print(problems[-1], flush=True)
        if sys.stdout.isatty():
            print(f"\r{number + 1} of {kills}", end="", flush=True)
    return compared, problems, phases


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    total, failed, phases = soak(count, sys.argv[2] if len(sys.argv) > 2 else 1)
    print(f"{count} kills ({', '.join(f'{phases[name]} {name}' for name in PHASES)}), {total} calls compared, "
          f"{len(failed)} kills with a difference")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
