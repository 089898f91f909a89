#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `gpuprof report` says of simtrain against what really happened: scenarios of each cause, strong, middling and
weak, of pairs of causes, and healthy ones. The truth of a step's parts comes from the simulator's log; that of what a
fix saves from running the scenario again without its cause. Prints a table and a summary; exit code 1 where the
bounds of docs/REPORT.md's claims do not hold. Takes some five minutes; with the right to (root), runs are given
real-time priority, since another process on their core is a cause of its own.

usage: verdict_bench.py BUILD [--only TEXT] [--markdown]"""
import argparse
import bisect
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PARTS = ("compute", "communication", "transfer", "data_loading", "kernel_launch", "allocation", "synchronization", "other")
SCHEDULE = "skip_first=5,wait=0,warmup=2,active=15,repeat=1"
OWN_WORK_NS = 1_000_000
LAUNCH_LATENCY_NS = 3000  # the simulator's


def merged(*lists):
    """Options, of which the last of a name counts."""
    options = {}
    for words in lists:
        for i, word in enumerate(words):
            if word.startswith("--"):
                options[word] = [w for w in words[i + 1:i + 2] if not w.startswith("--")]
    return [word for name, value in options.items() for word in (name, *value)]


def scenarios():
    """(name, strength, cause, arguments, arguments without the cause)"""
    rows = []
    for ranks in (1, 4):
        base = ["--ranks", str(ranks), *(["--comm-mb", "4"] if ranks > 1 else [])]
        seed = 0

        def add(strength, cause, arguments, without):
            nonlocal seed
            seed += 1
            common = base + ["--steps", "24", "--seed", str(seed)]
            rows.append((f"{cause}_{strength}_{ranks}r_{seed}", strength, cause, merged(common, arguments), merged(common, without)))

        for strength, ms in (("strong", 10), ("strong", 5), ("middling", 1.5), ("weak", 0.4)):
            add(strength, "data_loading", ["--data-ms", str(ms)], [])
        for strength, mb in (("strong", 200), ("strong", 60), ("middling", 20), ("weak", 5)):
            add(strength, "transfer", ["--h2d-mb", str(mb)], ["--h2d-mb", "0.001"])
        for strength, mb in (("strong", 30), ("middling", 6)):
            add(strength, "transfer", ["--h2d-mb", str(mb), "--pageable"], ["--h2d-mb", "0.001"])
        if ranks > 1:
            for strength, mb in (("strong", 400), ("strong", 150), ("middling", 40), ("weak", 15)):
                add(strength, "communication", ["--comm-mb", str(mb)], ["--comm-mb", "0"])
            add("middling", "communication", ["--comm-mb", "600", "--overlap"], ["--comm-mb", "0"])
            for strength, factor in (("strong", 2), ("strong", 1.4), ("middling", 1.15), ("weak", 1.06)):
                add(strength, "straggler", ["--slow-rank", f"2:{factor}"], [])
        if ranks <= os.cpu_count():  # what the host is slow in: each rank needs a core of its own
            small = ["--layers", "2", "--kernel-us", "30"]
            for strength, count, sync in (("strong", 1500, "8"), ("middling", 800, "4"), ("middling", 1000, "8")):
                many = [*small, "--small-kernels", str(count), "--sync-every", sync]
                add(strength, "kernel_launch", many, [*many, "--graphs"])
            for strength, count in (("strong", 1000), ("strong", 500), ("middling", 200), ("weak", 60)):
                add(strength, "allocation", ["--malloc-per-step", str(count)], [])
            tiny = ["--layers", "1", "--h2d-mb", "0.01"]
            for strength, us in (("middling", 60), ("weak", 200)):
                add(strength, "synchronization", [*tiny, "--kernel-us", str(us)],
                    [*tiny, "--kernel-us", str(us), "--sync-every", "1000"])
        for healthy in (["400"], ["400", "--graphs"], ["400", "--sync-every", "4"], ["1000"]):
            add("healthy", "compute", ["--kernel-us", *healthy], ["--kernel-us", *healthy])
        add("strong", "data_loading", ["--data-ms", "8", "--h2d-mb", "30"], ["--h2d-mb", "30"])
        add("strong", "transfer", ["--data-ms", "1", "--h2d-mb", "150"], ["--data-ms", "1", "--h2d-mb", "0.001"])
        add("strong", "data_loading", ["--data-ms", "8", "--malloc-per-step", "300"], ["--malloc-per-step", "300"])
        for ms in (3, 15):
            add("strong", "data_loading", ["--data-ms", str(ms), "--sync-every", "3"], ["--sync-every", "3"])
        add("strong", "data_loading", ["--data-ms", "6", "--graphs"], ["--graphs"])
        add("strong", "transfer", ["--h2d-mb", "120", "--graphs"], ["--h2d-mb", "0.001", "--graphs"])
        if ranks > 1:
            add("strong", "communication", ["--comm-mb", "300", "--data-ms", "0.7"], ["--comm-mb", "0", "--data-ms", "0.7"])
            add("strong", "data_loading", ["--comm-mb", "40", "--data-ms", "6"], ["--comm-mb", "40"])
            add("strong", "straggler", ["--slow-rank", "1:1.6", "--data-ms", "0.5"], ["--data-ms", "0.5"])
    return rows


class Job:
    """One run: its report, and the simulator's log of it."""

    def __init__(self, build, folder, arguments, priority):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPROF_", "SIMCUDA_", "LD_"))}
        environment.update(LD_LIBRARY_PATH=str(build / "simcuda/lib"), SIMCUDA_TRUTH=str(folder))
        gpuprof = str(build / "tools/gpuprof")
        subprocess.run([*priority, gpuprof, "run", "-o", str(folder / "out"), "--schedule", SCHEDULE, "--",
                        str(build / "tests/programs/simtrain/simtrain"), *arguments],
                       env=environment, check=True, capture_output=True, timeout=120)
        self.report = json.loads(subprocess.run([gpuprof, "report", "--format", "json", str(folder / "out/latest")],
                                                check=True, capture_output=True, timeout=120).stdout)
        self.numbers = {step["step"] for step in self.report["steps"]}
        self.processes = []
        for path in sorted(folder.glob("truth_*.jsonl")):
            lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
            if any(line["t"] == "step" for line in lines):
                self.processes.append(lines)

    def step_us(self):
        """Between the ends of the first and the last step's work, by step, the mean over ranks."""
        found = []
        for lines in self.processes:
            steps = sorted((line for line in lines if line["t"] == "step" and line["n"] in self.numbers), key=lambda s: s["n"])
            issued = {line["corr"]: line["begin"] for line in lines if line["t"] == "call"}
            begins, ends = [step["begin"] for step in steps], {}
            for work in lines:
                if work["t"] == "gpu" and work["type"] in ("kernel", "memcpy", "memset"):
                    at = bisect.bisect_right(begins, issued[work["corr"]]) - 1
                    if at >= 0 and issued[work["corr"]] < steps[at]["end"]:
                        ends[at] = max(ends.get(at, 0), work["end"])
            found.append((ends[len(steps) - 1] - ends[0]) / 1000 / (len(steps) - 1))
        return sum(found) / len(found)

    def parts(self):
        sums = dict.fromkeys(PARTS, 0)
        for lines in self.processes:
            for part, ns in Truth(lines, self.numbers).parts().items():
                sums[part] += ns
        whole = sum(sums.values())
        return {part: 100 * ns / whole for part, ns in sums.items()}


class Truth:
    """The parts of one process's steps by the definitions of docs/REPORT.md, from the simulator's log alone."""

    def __init__(self, lines, numbers):
        steps = sorted((line for line in lines if line["t"] == "step"), key=lambda step: step["n"])
        self.begin = min(step["begin"] for step in steps if step["n"] in numbers)
        self.end = max(step["end"] for step in steps if step["n"] in numbers)
        calls = [line for line in lines if line["t"] in ("call", "nccl") and line.get("via") != "nccl"]
        main = steps[0].get("tid", max({c["tid"] for c in calls}, key=lambda tid: sum(c["tid"] == tid for c in calls)))
        self.calls = sorted((c for c in calls if c["tid"] == main), key=lambda call: call["begin"])
        self.call_ends = [call["end"] for call in self.calls]
        issued = {line["corr"]: line["begin"] for line in lines if line["t"] == "call"}
        self.works = sorted((line for line in lines if line["t"] == "gpu" and line["type"] in ("kernel", "memcpy", "memset")),
                            key=lambda work: work["begin"])
        for work in self.works:
            work["issued"] = issued[work["corr"]]
        # simtrain loads its data from a step's begin to its first call, the copy of the batch.
        self.loading = []
        begins = [call["begin"] for call in self.calls]
        for step in steps:
            at = bisect.bisect_left(begins, step["begin"])
            if at < len(begins) and begins[at] < step["end"]:
                self.loading.append((step["begin"], begins[at]))
        self.load_ends = [load[1] for load in self.loading]
        self.work_begins = [work["begin"] for work in self.works]
        self.call_begins = begins

    @staticmethod
    def part_of(work):
        if work["type"] != "kernel":
            return "transfer"
        return "communication" if "nccl" in work["name"] else "compute"

    def parts(self):
        edges = sorted((time, step, part) for work in self.works for time, step, part in
                       ((work["begin"], 1, self.part_of(work)), (work["end"], -1, self.part_of(work))))
        sums = dict.fromkeys(PARTS, 0)
        running = dict.fromkeys(PARTS[:3], 0)
        at = self.begin
        for time, step, part in edges + [(self.end, 0, "compute")]:
            time = min(max(time, self.begin), self.end)
            if time > at:
                busy = next((p for p in PARTS[:3] if running[p]), None)
                if busy:
                    sums[busy] += time - at
                else:
                    self.idle(at, time, sums)
                at = time
            running[part] += step
        return sums

    def idle(self, begin, end, sums):
        next_work = bisect.bisect_left(self.work_begins, end)
        work = self.works[next_work] if end < self.end and next_work < len(self.works) else None
        if work and work["issued"] + LAUNCH_LATENCY_NS < begin - 2000:
            sums["other"] += end - begin
            return
        first = max(0, bisect.bisect_left(self.call_ends, begin - 2000))
        near = []
        for call in self.calls[first:]:
            if call["begin"] >= end:
                break
            near.append(call)
        opener = "kernel_launch"
        for call in near:
            if call["begin"] <= begin and self.waits(call):
                opener = self.waits(call)
        pieces = sorted({begin, end, *(min(max(t, begin), end) for call in near for t in (call["begin"], call["end"])),
                         *(min(max(t, begin), end) for load in self.loads(begin, end) for t in load)})
        for a, b in zip(pieces, pieces[1:]):
            sums[self.state(a, near, opener, work)] += b - a

    def loads(self, begin, end):
        """Loading that touches a stretch of time."""
        first = bisect.bisect_left(self.load_ends, begin)
        found = []
        for load in self.loading[first:]:
            if load[0] > end:
                break
            found.append(load)
        return found

    def waits(self, call):
        name = call["name"]
        if "Synchronize" in name:
            return "synchronization"
        if name.startswith(("cudaMalloc", "cudaFree")):
            return "allocation"
        return "synchronization" if call.get("kind") == "sync_copy" else None

    def state(self, at, near, opener, work):
        if any(begin <= at < end for begin, end in self.loads(at, at)):
            return "data_loading"
        for call in near:
            if call["begin"] <= at < call["end"]:
                return self.waits(call) or opener
        if work and at >= work["issued"]:
            return opener
        earlier, later = bisect.bisect_right(self.call_ends, at) - 1, bisect.bisect_right(self.call_begins, at)
        before = self.call_ends[earlier] if earlier >= 0 else at
        after = self.call_begins[later] if later < len(self.calls) else at
        return "other" if after - before > OWN_WORK_NS and not self.loads(before, after) else opener


def measure(build, row, priority):
    name, strength, cause, arguments, without = row
    with tempfile.TemporaryDirectory() as scratch:
        job = Job(build, pathlib.Path(scratch), arguments, priority)
    truth = job.parts()
    verdict = job.report["verdict"]
    first = verdict[0]["cause"] if verdict else "none"
    difference = max(abs(job.report["breakdown_pct"][part] - truth[part]) for part in PARTS)
    really = predicted = 0.0
    if cause != "compute":
        with tempfile.TemporaryDirectory() as scratch:
            fixed = Job(build, pathlib.Path(scratch), without, priority)
        really = 100 * (1 - fixed.step_us() / job.step_us())
        predicted = next((v["saves_pct"] for v in verdict if v["cause"] == cause), 0.0)
    return {"name": name, "strength": strength, "cause": cause, "first": first, "difference": difference,
            "saves": predicted, "saved": really, "share": job.report["breakdown_pct"].get(cause, 0.0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    priority = ["chrt", "-f", "10"]
    if subprocess.run([*priority, "true"], capture_output=True).returncode != 0:
        priority = []
        print("verdict_bench: no real-time priority: other processes will be seen as causes", file=sys.stderr)
    rows = [row for row in scenarios() if options.only in row[0]]
    results = []
    bar = "| " if options.markdown else ""
    if options.markdown:
        print("| scenario | first cause | breakdown off by | would save | really saved |\n|---|---|--:|--:|--:|")
    for row in rows:
        result = measure(options.build.resolve(), row, priority)
        results.append(result)
        mark = "" if result["first"] == result["cause"] else "  <- " + result["cause"] if not options.markdown else " (!)"
        print(f"{bar}{result['name']:<28} {bar}{result['first'] + mark:<18} {bar}{result['difference']:5.2f} "
              f"{bar}{result['saves']:6.1f} {bar}{result['saved']:6.1f}{' |' if options.markdown else ''}", flush=True)
    return summary(results)


def summary(results):
    failed = False
    print()
    for strength, bound in (("strong", 1.0), ("middling", 0.95), ("healthy", 1.0), ("weak", 0.0)):
        of = [r for r in results if r["strength"] == strength]
        right = sum(r["first"] == r["cause"] for r in of)
        failed |= bool(of) and right < bound * len(of)
        print(f"{strength}: first cause right in {right} of {len(of)}")
    worst = max(results, key=lambda r: r["difference"])
    print(f"breakdown: off by at most {worst['difference']:.2f} points ({worst['name']})")
    saving = [r for r in results if r["cause"] != "compute" and r["strength"] != "weak"]
    if saving:
        furthest = max(saving, key=lambda r: abs(r["saves"] - r["saved"]))
        off = abs(furthest["saves"] - furthest["saved"])
        near = sum(abs(r["saves"] - r["saved"]) <= 5 for r in saving)
        print(f"saves_pct: within 5 points in {near} of {len(saving)}, off by at most {off:.1f} ({furthest['name']})")
        failed |= near < len(saving)
    return 1 if failed or worst["difference"] > 2 else 0


if __name__ == "__main__":
    sys.exit(main())
