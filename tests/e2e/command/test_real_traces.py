# SPDX-License-Identifier: Apache-2.0
"""What the report says of traces that nobody made for it: GPU busy as an independent sum gives it, verdicts that an expert
would not call false, and no sentence that contradicts a number of the same report. And of made traces whose first kernel
comes late. Real ones are skipped where they are not."""
import json
import os
import pathlib
import re

import harness
import pytest
import test_kineto

PLACES = [root / "shared/data/real_traces" for root in (harness.SOURCE, harness.SOURCE.parent, harness.SOURCE.parents[1])]
REAL = pathlib.Path(os.environ.get("GPUPROF_REAL_TRACES", next(filter(pathlib.Path.is_dir, PLACES), PLACES[0])))
TRACES = sorted(REAL.glob("*.json*")) + sorted(test_kineto.REAL.glob("*.json.gz"))
WORK = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
BUSY_PARTS = ("compute", "communication", "transfer")
PARTS = (*BUSY_PARTS, "data_loading", "kernel_launch", "allocation", "synchronization", "other", "profiler", "unknown")
PART_OF = {"host_work": "other", "straggler": "communication", "gpu_throttled": "compute"}
LEAST_BUSY_PCT = 80  # of the known time, for "the GPU is the limit": docs/REPORT.md

# The first causes that a reader who knows the field would call right; None: no verdict, with a reason.
RIGHT = {
    "hta_simple_add": {None, "host_work"},
    "hta_backward_thread": {None},
    "hta_ns_resolution": {"compute"},
    "hta_negative_queue": {None, "host_work"},
    "dlrm_worker1": {None},
    "dlrm_worker3": {None},
    "sglang_decode": {None, "host_work", "kernel_launch"},
    "vllm_decode_graph": {None, "compute"},
    "h100_qwen_0.5b": {None},
    "mi300_resnet_act_checkpoint": {"communication"},
    "sdpa_03": {None, "host_work"},
    "sdpa_04": {None, "host_work"},
}


def name_of(path):
    return path.name.split(".json")[0].removesuffix(".pt.trace")


def spans(events, kinds):
    return [(e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and e.get("cat", "").lower() in kinds]


def covered_us(intervals, begin, end):
    """Of begin to end: what the intervals cover together."""
    total, at = 0, begin
    for first, last in sorted(intervals):
        first, last = max(first, at), min(last, end)
        if first < last:
            total += last - first
            at = last
    return total


def report(path, *options):
    return json.loads(harness.checked("report", "--format", "json", *options, path).out)


def close(a, b, by=0.06):
    return abs(float(a) - float(b)) <= by


def contradictions(found, text):
    """Sentences of a report against its numbers."""
    wrong, parts, gpu = [], found["breakdown_pct"], found["gpu"]

    def check(holds, what):
        if not holds:
            wrong.append(what)
    if not found["steps"]:
        return ["a verdict without steps"] if found["verdict"] else []
    check(all(step["duration_us"] > 0 for step in found["steps"]), "a step without length")
    if not gpu["timed"]:
        return wrong + (["a verdict without GPU times"] if found["verdict"] else [])
    busy = sum(parts[part] for part in BUSY_PARTS)
    check(close(sum(parts.values()), 100), "parts do not sum up")
    check(close(busy, gpu["utilization_pct"]), "GPU busy is not the sum of its parts")
    check(bool(found["verdict"]) != bool(found["reason"]), "a verdict and a reason, or neither")
    for verdict in found["verdict"]:
        cause, part = verdict["cause"], PART_OF.get(verdict["cause"], verdict["cause"])
        idle = found.get("without_processor", {}).get("idle_pct", {})
        most = sum(idle.values()) if cause == "machine_busy" else parts[part] - idle.get(part, 0)
        check(verdict["share_pct"] <= most + 0.06, f"{cause}: a larger share than its part")
        check(0 <= verdict["saves_pct"] <= 100, f"{cause}: saves {verdict['saves_pct']}")
        check(verdict.get("few_steps", 0) <= len(found["steps"]), f"{cause}: more steps than there are")
        if cause == "compute":
            check(busy >= LEAST_BUSY_PCT * (100 - parts["unknown"]) / 100, f"compute at {busy:.1f} % busy")
            check(len(found["verdict"]) == 1, "compute beside other causes")
    for heading in re.findall(r"GPU busy ([\d.]+) %", text.splitlines()[0]):
        check(close(heading, busy), f"heading: {heading}")
    for part in PARTS:
        for said in re.findall(rf"^  {part} +([\d.]+) %", text, re.M):
            check(close(said, parts[part]), f"text: {part} {said}")
    without = found.get("without_processor", {}).get("idle_pct", {}).get("other", 0)
    for said in re.findall(r"^    host_work +([\d.]+) %", text, re.M):
        check(close(said, parts["other"] - found["device_idle_pct"] - without), f"text: host_work {said}")
    for said in re.findall(r"^    stalled_work +([\d.]+) %", text, re.M):
        check(close(said, found["device_idle_pct"]), f"text: stalled_work {said}")
    flat = " ".join(text.split())
    for said in re.findall(r"the GPU works (?:for )?([\d.]+) % of", flat):
        check(close(said, busy), f"'the GPU works {said} %', of {busy:.1f}")
    for said in re.findall(r"for ([\d.]+) % of \w+ time it is unknown", flat):
        check(close(said, parts["unknown"], 0.6), f"'unknown for {said} %', of {parts['unknown']:.1f}")
    for cause, share in re.findall(r"\d\. (\w+): ([\d.]+) % of", flat):
        check(any(v["cause"] == cause and close(share, v["share_pct"]) for v in found["verdict"]), f"text: {cause} {share}")
    return wrong


@pytest.mark.skipif(not TRACES, reason=f"no traces in {REAL}")
@pytest.mark.parametrize("path", TRACES, ids=name_of)
def test_no_sentence_contradicts_a_number(path):
    found = report(path)
    assert contradictions(found, harness.checked("report", path).out) == []
    first = found["verdict"][0]["cause"] if found["verdict"] else None
    assert first in RIGHT.get(name_of(path), {first}), (first, found["reason"], found["breakdown_pct"])


def test_contradictions_are_found():
    """The check itself: each of these reports has one."""
    good = {"steps": [{"duration_us": 5}], "gpu": {"timed": True, "utilization_pct": 90}, "reason": "",
            "breakdown_pct": {**dict.fromkeys(PARTS, 0), "compute": 90, "other": 10},
            "verdict": [{"cause": "compute", "share_pct": 90, "saves_pct": 0, "few_steps": 0}]}
    text = "Steps 0 to 3, GPU busy 90.0 %\n  compute 90.0 %\n"
    assert contradictions(good, text) == []
    assert contradictions(good, text.replace("busy 90", "busy 98"))
    assert contradictions(good, text + "- the GPU works 97.0 % of the time\n")
    assert contradictions({**good, "steps": [{"duration_us": 0}]}, text)
    assert contradictions({**good, "reason": "one step"}, text)
    idle = {**good["breakdown_pct"], "compute": 40, "other": 60}
    assert contradictions({**good, "breakdown_pct": idle, "gpu": {"timed": True, "utilization_pct": 40}}, "Steps\n")


@pytest.mark.skipif(not TRACES, reason=f"no traces in {REAL}")
@pytest.mark.parametrize("path", TRACES, ids=name_of)
def test_busy_is_recorded_work(path):
    """Within 0.1 points of the marked steps' length; without steps, the same time as the trace has."""
    found = report(path)
    events = test_kineto.load(path)["traceEvents"]
    work = spans(events, WORK)
    steps = [(e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and
             e["name"].startswith("ProfilerStep#") and e.get("cat") != "gpu_user_annotation"]
    length = sum(step["duration_us"] for step in found["steps"])
    told = found["gpu"]["utilization_pct"] / 100 * length
    if steps:
        begin, end = min(s[0] for s in steps), max(s[1] for s in steps)
        assert found["gpu"]["utilization_pct"] == pytest.approx(100 * covered_us(work, begin, end) / (end - begin), abs=0.1)
    else:
        assert told == pytest.approx(covered_us(work, -1e18, 1e18), abs=0.001 * length)


def late_trace(path, steps, delay_us, step_us=100_000):
    """Steps of 90 % DataLoader, 8 % GPU; the first kernel begins later than it could."""
    events, now, correlation = [], 1e9, 0

    def put(category, name, tid, begin, length, **args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 0 if category == "kernel" else 77, "tid": tid,
                       "ts": begin, "dur": length, "args": args})
    for step in range(steps):
        put("user_annotation", f"ProfilerStep#{step}", 77, now, step_us)
        loading = 0.9 * step_us
        put("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 77, now, loading)
        late, at, gpu = delay_us if step == 0 else 0, now + loading + 10, now + loading + 20
        for _ in range(8):
            correlation += 1
            put("cuda_runtime", "cudaLaunchKernel", 77, at, 5, correlation=correlation)
            put("kernel", "gemm", 7, gpu + late, 0.01 * step_us, device=0, stream=7, correlation=correlation)
            at, gpu = at + 7, gpu + 0.01 * step_us
        correlation += 1
        put("cuda_runtime", "cudaDeviceSynchronize", 77, at, gpu + late + 5 - at, correlation=correlation)
        now += step_us
    path.write_text(json.dumps({"traceEvents": events}))


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("delay_us", [0, 10, 30, 100, 300, 1000])
def test_a_first_kernel_that_comes_late(tmp_path, steps, delay_us):
    late_trace(tmp_path / "late.json", steps, delay_us)
    found = report(tmp_path / "late.json")
    parts = found["breakdown_pct"]
    assert found["gpu"]["utilization_pct"] == pytest.approx(8, abs=0.5)
    assert parts["data_loading"] == pytest.approx(90, abs=0.5)
    assert parts["unknown"] == pytest.approx(0 if delay_us < 20 else delay_us / 1000 / steps, abs=0.1)
    assert contradictions(found, harness.checked("report", tmp_path / "late.json").out) == []
    if steps > 1:
        assert found["verdict"][0]["cause"] == "data_loading"


JOBS = REAL.parent / "straggler_jobs"


@pytest.mark.skipif(not JOBS.is_dir(), reason=f"no {JOBS}")
@pytest.mark.parametrize("job,slow", [("AR", "data-parallel rank 0, stage 0"), ("SE", "the last stage (1)")])
def test_slowdown_of_a_pipeline(job, slow):
    """Against the figures that the authors of the method published for these jobs."""
    truth = {**json.loads((JOBS / f"mw-{job}.json").read_text()), **json.loads((JOBS / f"ms-{job}.json").read_text())}
    found = report(JOBS / f"timeline-{job}.json.gz")
    pipeline, first = found["pipeline"], found["verdict"][0]
    assert pipeline["slowdown"] == pytest.approx(truth["tori"] / truth["tideal"], rel=0.05)
    assert pipeline["worst_workers"] == pytest.approx(truth["Mw"], abs=0.1)
    assert pipeline["last_stage"] == pytest.approx(truth["Ms"], abs=0.1)
    assert first["cause"] == "straggler" and first["evidence"][0].startswith(f"slow: {slow},"), first["evidence"]
    assert "backward-compute" in first["evidence"][1]
