# SPDX-License-Identifier: Apache-2.0
"""gpuprof diff as a gate in CI, on runs whose difference no machine's noise can hide. How often it finds and
misses what is small is held to known noise by tests/unit/tools/analysis/diff_test.cpp."""
import json
import random
import subprocess
import time

import harness
from support import kineto_traces
import pytest

SCHEDULE = "skip_first=3,wait=0,warmup=1,active=8,repeat=1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Directories of a program as it was, and as it became: with 60 ms of data loading in each step."""
    found = {}
    for name, arguments in (("base", []), ("slow", ["--data-ms", "60"])):
        folder = tmp_path_factory.mktemp(name)

        def record(number):
            place = folder / str(number)
            done = harness.run([harness.BIN, "run", "-o", place, "--schedule", SCHEDULE, "--", harness.SIMTRAIN, "--steps", "14",
                                "--kernel-us", "1000", *arguments], env=harness.environment())
            assert done.code == 0, done.err
            return place / "latest"
        found[name] = harness.steady_run(record)
    return found


def test_a_regression_fails_the_gate_and_names_its_cause(runs):
    done = harness.gpuprof("diff", runs["base"], runs["slow"], "--fail-over", "5", "--format", "json")
    assert done.code == 1, done.err
    found = json.loads(done.out)
    assert found["regression"] is True
    step = found["step_time"]
    assert step["significant"] and step["ci_low_pct"] <= step["change_pct"] <= step["ci_high_pct"]
    assert step["new_us"] - step["base_us"] > 50_000
    first = found["changes"][0]
    assert (first["kind"], first["name"], first["significant"]) == ("cause", "data_loading", True)
    assert first["new_us"] - first["base_us"] > 50_000


def record_by_clock(place, step, active, data_ms):
    """A program without marks, by stretches of wall time."""
    done = harness.run([harness.BIN, "run", "-o", place, "--step", f"time:{step}", "--schedule",
                        f"skip_first=1,wait=0,warmup=1,active={active},repeat=1", "--", harness.SIMTRAIN, "--steps", "60",
                        "--layers", "1", "--data-ms", str(data_ms), "--markers", "none"], env=harness.environment())
    assert done.code == 0, done.err
    return place / "latest"


def test_stretches_of_wall_time_are_not_compared(tmp_path):
    """Of one iteration or two no order tells steps. However slow the program is, its stretches are as long."""
    fast, slow = (record_by_clock(tmp_path / str(data), 20, 3, data) for data in (40, 80))
    for options in ((fast, slow, "--fail-over", "5"), ("--baseline", tmp_path / "good", slow, "--update")):
        done = harness.gpuprof("diff", *options)
        assert done.code == 2 and "stretches of wall time (time:20)" in done.out + done.err, done.out + done.err
    assert not (tmp_path / "good").exists()
    found = json.loads(harness.checked("report", slow, "--format", "json").out)
    assert found["step_source"] == "time:20" and "clock_steps" in [f["kind"] for f in found["findings"]]


def test_iterations_that_wall_time_holds_are_compared(tmp_path):
    fast, slow = (record_by_clock(tmp_path / str(data), 200, 4, data) for data in (10, 40))
    found = json.loads(harness.checked("report", slow, "--format", "json").out)
    assert found["step_source"] == "period", found["findings"]
    done = harness.gpuprof("diff", fast, slow, "--fail-over", "5", "--format", "json")
    assert done.code == 1, done.err
    step = json.loads(done.out)["step_time"]
    assert step["new_us"] - step["base_us"] > 20_000


def test_a_gain_passes(runs):
    done = harness.gpuprof("diff", runs["slow"], runs["base"], "--fail-over", "5")
    assert done.code == 0, done.err
    assert "shorter" in done.out and "No regression" in done.out


def test_what_one_run_did_not_record_is_no_change(runs, tmp_path):
    """The preset `light` has no data loading: it is not gone."""
    done = harness.run([harness.BIN, "run", "-o", tmp_path / "out", "--schedule", SCHEDULE, "--preset", "light", "--", harness.SIMTRAIN,
                        "--steps", "14", "--kernel-us", "1000", "--data-ms", "60"], env=harness.environment())
    assert done.code == 0, done.err
    found = json.loads(harness.checked("diff", runs["slow"], tmp_path / "out", "--format", "json").out)
    assert {"kind": "cause", "name": "data_loading"} in found["not_compared"]
    assert not [c for c in found["changes"] if c["name"] in ("data_loading", "other")]
    setup, = found["setup"]
    assert setup["name"] == "recorded" and setup["new"] == [] and {"op", "nvtx"} <= set(setup["base"])


def test_without_a_gate_the_exit_code_is_0(runs):
    assert harness.gpuprof("diff", runs["base"], runs["slow"]).code == 0


def test_a_run_against_itself_is_no_change(runs):
    found = json.loads(harness.checked("diff", runs["base"], runs["base"], "--fail-over", "0", "--format", "json").out)
    assert found["step_time"]["change_pct"] == 0 and not found["regression"]
    assert not any(change["significant"] for change in found["changes"])


def test_text_fits_80_columns_and_markdown_is_a_table(runs, tmp_path):
    text = harness.checked("diff", runs["base"], runs["slow"]).out
    assert max(map(len, text.splitlines())) <= 80, text
    harness.checked("diff", runs["base"], runs["slow"], "--format", "markdown", "-o", tmp_path / "diff.md")
    lines = (tmp_path / "diff.md").read_text().splitlines()
    assert f"base `{runs['base']}`, new `{runs['slow']}`" in lines
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) >= 3 and "data_loading" in rows[2]
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1


def test_a_baseline_grows_by_runs_that_pass(runs, tmp_path):
    baseline = tmp_path / "baseline"
    done = harness.gpuprof("diff", "--baseline", baseline, runs["base"])
    assert done.code == 2 and "--update" in done.err
    harness.checked("diff", "--baseline", baseline, "--update", runs["base"])
    assert [path.name for path in baseline.iterdir()] == ["0001"]
    done = harness.gpuprof("diff", "--baseline", baseline, "--update", runs["slow"], "--fail-over", "5")
    assert done.code == 1
    assert [path.name for path in baseline.iterdir()] == ["0001"], "a run that failed the gate is no baseline"
    done = harness.checked("diff", "--baseline", baseline, "--update", runs["slow"])
    assert "not added to the baseline" in done.err and [path.name for path in baseline.iterdir()] == ["0001"]
    assert f"new   {runs['slow']}" in done.out
    harness.checked("diff", "--baseline", baseline, "--update", runs["base"], "--fail-over", "5")
    assert sorted(path.name for path in baseline.iterdir()) == ["0001", "0002"]
    assert harness.dumps(baseline / "0002")
    (baseline / "0002").rename(baseline / "2")  # as somebody who tidies up may name it
    assert f"base  {baseline / '2'}\n" in harness.checked("diff", "--baseline", baseline, runs["base"]).out


def test_a_killed_run_keeps_its_steps_in_a_baseline(tmp_path):
    """The newest of them are in its ring, which lies beside a dump that was not finished."""
    run, baseline = tmp_path / "run", tmp_path / "baseline"
    env = harness.preloaded(GPUPROF_OUTPUT=run, GPUPROF_SCHEDULE="all")
    with subprocess.Popen([harness.SIMTRAIN, "--steps", "1000000", "--kernel-us", "200"], env=env, stdout=subprocess.DEVNULL) as process:
        while not list(run.rglob("*.part")):
            time.sleep(0.01)
        time.sleep(2)
        process.kill()
    assert {path.suffix for path in harness.dumps(run)} == {".part", ".ring"}
    done = harness.checked("diff", "--baseline", baseline, "--update", run, "--fail-over", "5")
    assert f"{baseline}/0001: the first run of the baseline" in done.out
    judged, kept = (json.loads(harness.checked("report", "--format", "json", folder).out)["steps"] for folder in (run, baseline / "0001"))
    assert len(judged) > 3 and kept == judged
    for number in ("0002", "0003"):
        done = harness.checked("diff", "--baseline", baseline, "--update", run, "--fail-over", "5")
        assert "No regression" in done.out and f"{number} added to the baseline" in done.err


def test_a_first_run_that_could_not_be_compared_is_refused(tmp_path):
    short = tmp_path / "short.json"
    short.write_text(kineto_traces.training(steps=1).text())
    baseline = tmp_path / "baseline"
    done = harness.gpuprof("diff", "--baseline", baseline, "--update", short)
    assert done.code == 2 and not baseline.exists()
    assert done.err == (f"gpuprof: diff: {short} cannot be the first run of the baseline {baseline}: it has one step, "
                        "and a comparison needs at least 3\n")
    guessed = unmarked(tmp_path, "guessed.json", without=0.1)
    done = harness.gpuprof("diff", "--baseline", baseline, "--update", "--fail-over", "5", guessed)
    assert done.code == 2 and "--fail-over needs 0.8 or marked steps" in done.err and not baseline.exists(), done.err


def test_a_first_run_is_said_in_the_format_and_file_that_were_asked_for(tmp_path):
    run = tmp_path / "run.json"
    run.write_text(kineto_traces.training(steps=9).text())
    out = tmp_path / "out"
    for form in ("text", "json", "markdown", "html"):
        baseline = tmp_path / form
        done = harness.checked("diff", "--baseline", baseline, "--update", run, "--format", form, "-o", out)
        assert not done.out and f"{baseline}/0001: the first run of the baseline" in out.read_text()
        if form == "json":
            found = json.loads(out.read_text())
            assert (found["regression"], found["step_time"], found["base"], found["new"]) == (None, None, [], [str(run)])


def test_a_good_run_takes_the_place_of_one_that_cannot_be_compared(tmp_path):
    (tmp_path / "baseline/0001").mkdir(parents=True)
    (tmp_path / "baseline/0001/short.json").write_text(kineto_traces.training(steps=1).text())
    run = tmp_path / "run.json"
    run.write_text(kineto_traces.training(steps=9).text())
    arguments = ["diff", "--baseline", tmp_path / "baseline", run, "--fail-over", "5"]
    done = harness.gpuprof(*arguments)
    assert done.code == 2 and "base has one step" in done.out
    done = harness.checked(*arguments, "--update")
    assert "0002 takes the place of" in done.out and "it has one step" in done.out
    assert "No regression" in harness.checked(*arguments).out


def test_standard_input_is_no_run_that_a_baseline_can_keep(tmp_path):
    for arguments in (["-"], ["run.json", "--more-new", "-"]):
        done = harness.gpuprof("diff", "--baseline", tmp_path / "baseline", "--update", *arguments)
        assert done.code == 2 and "--update copies the files of NEW, and - (standard input) is none" in done.err, done.err
        assert len(done.err.splitlines()) == 1 and not (tmp_path / "baseline").exists()


@pytest.mark.parametrize("arguments,said", [
    (["only-one"], "BASE and NEW"),
    (["--baseline", "dir", "a", "b"], "NEW alone"),
    (["--update", "a", "b"], "--baseline"),
    (["a", "b", "--fail-over", "abc"], '--fail-over: "abc" is not a number from 0 to 1000000'),
    (["a", "b", "--fail-over", "-1"], '"-1" is not a number from 0 to 1000000'),
])
def test_wrong_usage_is_one_line(arguments, said):
    done = harness.gpuprof("diff", *arguments)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1 and said in done.err, done.err


def unmarked(folder, name, without=0.0):
    """A trace of 30 steps that nobody marked, of which a share of the kernels is missing."""
    document = kineto_traces.training(steps=30).document()
    chance = random.Random(3)
    gone = {event["args"]["correlation"] for event in document["traceEvents"]
            if event.get("cat") == "kernel" and chance.random() < without}
    document["traceEvents"] = [event for event in document["traceEvents"] if not event["name"].startswith("ProfilerStep#")
                               and event.get("args", {}).get("correlation") not in gone]
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def test_steps_that_were_found_are_said_to_be(tmp_path):
    """And do not decide about a merge where they are a guess."""
    base = unmarked(tmp_path, "base.json")
    done = harness.gpuprof("diff", base, base, "--fail-over", "5")
    assert done.code == 0 and "steps are not marked" in done.err, done.err
    cut = unmarked(tmp_path, "cut.json", without=0.1)
    done = harness.gpuprof("diff", base, cut, "--fail-over", "5")
    assert done.code == 2 and "--fail-over needs 0.8 or marked steps" in done.err, done.err
    assert len(done.err.strip().splitlines()) == 1
    done = harness.gpuprof("diff", base, cut)
    assert done.code == 0 and "steps are not marked" in done.err, done.err


def test_two_runs_of_one_job_are_compared(tmp_path):
    """Of torchrun in one allocation: both are attempt 0 of its job, and lie in one folder."""
    for arguments in ([], ["--data-ms", "60"]):
        done = harness.run([harness.BIN, "run", "-o", tmp_path, "--schedule", SCHEDULE, "--", harness.SIMTRAIN, "--steps", "14",
                            "--kernel-us", "1000", *arguments],
                           env=harness.environment(SLURM_JOB_ID=777, RANK=0, WORLD_SIZE=1, TORCHELASTIC_RESTART_COUNT=0))
        assert done.code == 0, done.err
    run = tmp_path / "777"
    files = [harness.info(run, "--attempt", name)["files"] for name in ("0", "0#2")]
    assert [len(each) for each in files] == [1, 1] and files[0][0]["pid"] != files[1][0]["pid"]
    assert "taking 0#2, the newest whole one; --attempt takes another" in harness.gpuprof("info", run).err
    diff = ["diff", run, run, "--format", "json", "--base-attempt", "0"]
    for options in ([], ["--new-attempt", "0#2"]):
        assert json.loads(harness.checked(*diff, *options).out)["changes"][0]["name"] == "data_loading"
    assert json.loads(harness.checked(*diff, "--new-attempt", "0").out)["step_time"]["change_pct"] == 0
    refused = harness.gpuprof(*diff, "--new-attempt", "0#3")
    assert refused.code == 2 and "no attempt 0#3 is here; --attempt takes one of: 0 (" in refused.err
    refused = harness.gpuprof("diff", "--baseline", tmp_path / "good", run, "--base-attempt", "0")
    assert refused.code == 2 and "--base-attempt" in refused.err
