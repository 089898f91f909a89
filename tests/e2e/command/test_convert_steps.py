# SPDX-License-Identifier: Apache-2.0
"""`gpuprof convert --steps`: some steps of a dump, in every format, beside the whole."""
import collections
import gzip
import json
import pickle
import subprocess

import harness
import pytest
from support import kineto_traces

STEPS = 6
PROGRAM = [harness.SIMTRAIN, "--steps", STEPS, "--layers", 4, "--malloc-per-step", 1, "--comm-mb", 4, "--overlap",
           "--sync-every", 3]


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    run = harness.run(PROGRAM, harness.preloaded(
        GPUPROF_OUTPUT=folder, GPUPROF_STEP="nvtx:step", GPUPROF_ACTIVITIES="+nvml,+sync:gpu", GPUPROF_MEMORY="1",
        GPUPROF_SCHEDULE=f"skip_first=1,wait=0,warmup=0,active={STEPS - 1},repeat=1,max_s=0,max_mb=0"))
    assert run.code == 0, run.err
    found, = harness.dumps(folder)
    return found


@pytest.fixture(scope="module")
def steps(dump):
    found = [step["number"] for step in harness.of_kind(harness.records(dump), "step") if step["in_window"]]
    assert len(found) >= 3
    return found


def converted(dump, folder, target, *options):
    """The output's place."""
    suffix = {"chrome": ".json", "kineto": ".json", "speedscope": ".json"}.get(target, "")
    place = folder / ("_".join([target, *map(str, options)]) + suffix)
    done = harness.gpuprof("convert", dump, "--to", target, "-o", place, *options)
    assert done.code == 0 and done.err == "", done.err
    return place


def events(place):
    return json.loads(place.read_text())["traceEvents"]


def steps_in(found):
    return [e["name"].removeprefix("ProfilerStep#") for e in found if e["name"].startswith("ProfilerStep#")]


def slices(found):
    """By what they are. Ranges around GPU work are as long as the work that is there; a step that another one follows
    ends some nanoseconds early."""
    return collections.Counter(
        (e["cat"], e["name"], e["ts"], e["dur"], e["args"].get("correlation")) for e in found
        if e["ph"] == "X" and e["cat"] not in ("Trace", "gpu_user_annotation") and not e["name"].startswith("ProfilerStep#"))


def test_all_can_be_said(dump, tmp_path):
    said = converted(dump, tmp_path, "chrome", "--steps", "all", "--ranks", "all")
    assert slices(events(said)) == slices(events(converted(dump, tmp_path, "chrome")))


def test_a_trace_without_a_rank_is_rank_0(tmp_path):
    trace = tmp_path / "trace.json"
    document = kineto_traces.training().document()
    document.pop("distributedInfo", None)
    trace.write_text(json.dumps(document))
    for command in (["convert", "--to", "chrome"], ["export", "--to", "otlp", "--signal", "traces"]):
        arguments = [*command, trace, "-o", tmp_path / "out.json"]
        harness.checked(*arguments, "--ranks", "0-3")
        done = harness.gpuprof(*arguments, "--ranks", "5")
        assert done.code == 2 and "--ranks 5: none of these ranks is in the input, which has rank 0" in done.err, done.err


def test_all_steps_and_what_lies_outside_are_the_whole(dump, steps, tmp_path):
    whole = slices(events(converted(dump, tmp_path, "chrome")))
    parts = collections.Counter()
    for step in steps:
        found = events(converted(dump, tmp_path, "chrome", "--steps", step))
        assert steps_in(found) == [str(step)]
        part = slices(found)
        assert part and not part - whole
        parts += part
    assert not parts - whole, "no event belongs to two steps"
    spans = [(s["begin_mono_ns"], s["end_mono_ns"]) for s in harness.of_kind(harness.records(dump), "step") if s["in_window"]]
    records = {record.get("index"): record for record in harness.records(dump)}
    outside = 0
    for record in records.values():
        if "begin_mono_ns" not in record or record["kind"] in ("step", "header", "counter"):
            continue
        call = records.get(record.get("partner"), record) if record["kind"].startswith("gpu_") else record
        outside += not any(begin <= call["begin_mono_ns"] < end for begin, end in spans)
    together = slices(events(converted(dump, tmp_path, "chrome", "--steps", f"{steps[0]}-{steps[-1]}")))
    assert together == parts
    assert sum((whole - parts).values()) <= outside, "what is in no single step began in none"


@pytest.mark.parametrize("which", [0, 1, -1])
def test_nothing_points_outside(dump, steps, which, tmp_path):
    found = events(converted(dump, tmp_path, "chrome", "--steps", steps[which]))
    flows = {phase: {e["id"] for e in found if e["ph"] == phase} for phase in "sf"}
    assert flows["s"] == flows["f"] and flows["s"]
    calls = {e["args"]["correlation"] for e in found
             if e["ph"] == "X" and e["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]}
    work = [e for e in found if e["ph"] == "X" and e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert work and all(e["args"]["correlation"] in calls for e in work)
    waits = [e["args"]["wait_on_cuda_event_record_corr_id"] for e in found
             if e.get("args", {}).get("wait_on_cuda_event_record_corr_id")]
    assert set(waits) <= calls


def test_memory_is_that_of_the_whole(dump, steps, tmp_path):
    def marks(place):
        return [(e["ts"], e["args"]["Total Allocated"], e["args"]["Bytes"]) for e in events(place)
                if e["name"] == "[memory]"]
    whole = marks(converted(dump, tmp_path, "chrome"))
    part = marks(converted(dump, tmp_path, "chrome", "--steps", steps[1]))
    assert part and set(part) <= set(whole)
    assert part[0][1] > part[0][2], "the model was allocated before"
    with open(converted(dump, tmp_path, "memory-viz", "--steps", steps[1]), "rb") as file:
        snapshot = pickle.load(file)
    with open(converted(dump, tmp_path, "memory-viz", "--steps", f"{steps[0]}-{steps[1]}"), "rb") as file:
        longer = pickle.load(file)
    assert snapshot["segments"] and snapshot["segments"] == longer["segments"]


@pytest.mark.parametrize("target", ["chrome", "kineto"])
def test_json_reads_back_and_reports_the_same(dump, steps, target, tmp_path):
    """Of work: the tables' sums over single steps are those of the whole."""
    def report(place):
        return json.loads(harness.checked("report", place, "--format", "json").out)

    def kernels(found):
        rows = collections.Counter()
        for row in found["kernels"]:
            rows[row["name"], "count"] += row["count"]
            rows[row["name"], "us"] += row["total_us"]
        return rows

    whole = report(converted(dump, tmp_path, target))
    lengths = {step["step"]: step["duration_us"] for step in whole["steps"]}
    total = collections.Counter()
    for step in steps:
        part = report(converted(dump, tmp_path, target, "--steps", step))
        assert {s["step"]: s["duration_us"] for s in part["steps"]} == {step: pytest.approx(lengths[step], abs=0.002)}
        total += kernels(part)
    assert total == pytest.approx(kernels(whole), abs=0.01) and total


def test_every_other_format_is_whole(dump, steps, tmp_path):
    names = {}
    for options in ([], ["--steps", steps[0]]):
        perfetto = converted(dump, tmp_path, "perfetto", *options).read_bytes()
        assert perfetto and (b"step %d" % steps[0]) in perfetto
        assert ((b"step %d" % steps[1]) in perfetto) == (not options)
        xplane, = converted(dump, tmp_path, "xplane", *options).glob("*.xplane.pb")
        board = converted(dump, tmp_path, "tensorboard", *options)
        trace, = board.rglob("*.pt.trace.json.gz")
        with gzip.open(trace, "rt") as file:
            names[bool(options)] = {e["name"] for e in json.load(file)["traceEvents"]
                                    if e.get("name", "").startswith("ProfilerStep#")}
        flames = json.loads(converted(dump, tmp_path, "speedscope", *options).read_text())
        sizes = names.setdefault("sizes", [])
        sizes.append((len(perfetto), xplane.stat().st_size, len(json.dumps(flames))))
    assert names[True] == {f"ProfilerStep#{steps[0]}"} and len(names[False]) == len(steps)
    assert all(part < whole for whole, part in zip(*names["sizes"]))


def test_lists_and_what_is_not_there(dump, steps, tmp_path):
    first, last = steps[0], steps[-1]
    found = events(converted(dump, tmp_path, "chrome", "--steps", f"{first},{last}"))
    assert steps_in(found) == [str(first), str(last)]

    def refused(steps_text, *options):
        done = harness.gpuprof("convert", dump, "--to", "chrome", "-o", tmp_path / "x.json", "--steps", steps_text, *options)
        assert done.code == 2 and len(done.err.splitlines()) == 1 and not (tmp_path / "x.json").exists()
        return done.err

    assert f"--steps 900-: must be" in refused("900-") and "0,8-15" in refused("x")
    assert f"--steps 900: the input has none of them, but {first}-{last}" in refused("900")
    done = harness.gpuprof("convert", dump, "--to", "memory-viz", "-o", tmp_path / "x.pickle", "--steps", f"{first},{last}")
    assert done.code == 2 and "follow each other" in done.err


def test_the_note_of_gigabytes_goes_by_what_is_written(tmp_path):
    """Two million events in 14 steps."""
    job = tmp_path / "job"
    made = harness.run([harness.BUILD / "tests/bench/make_job", job, "ranks=1", "steps=14", "layers=1000", "forward=30",
                        "backward=55"], timeout=300)
    assert made.code == 0, made.err

    def note(*options):
        command = [harness.BIN, "convert", job, "--to", "chrome", "-o", "-", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.environment()) as process:
            assert process.stdout.read(1) == b"{"
            process.stdout.close()  # the rest is of no interest
            return process.stderr.read().decode()

    assert "about 1.1 GB; --ranks and --steps write less" in note()
    assert "GB" not in note("--steps", "3")
