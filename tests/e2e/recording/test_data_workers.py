# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_WORKERS=1: the workers of a look-alike PyTorch's DataLoader, however they are started, record their Python stacks in
the windows of their process; they are no ranks; without the setting they leave nothing."""
import json
import sys

import pytest

import harness

pytestmark = pytest.mark.usefixtures("ahead_of_other_tests")
SCRIPT = harness.SOURCE / "tests/programs/python/loader.py"
WORKERS, STEPS = 2, 60
SETTINGS = {"GPUPROF_STEP": "optimizer", "GPUPROF_SCHEDULE": "skip_first=5,warmup=2,active=40", "GPUPROF_CUPTI": "off",
            "PYTHONDONTWRITEBYTECODE": "1"}
[SLOW] = [number for number, line in enumerate(SCRIPT.read_text().splitlines(), 1) if "# SLOW" in line]
STARTS = ["fork", "spawn", "forkserver"]


def run(folder, start, others=1, steps=STEPS, **settings):
    """The folder's dumps: those of processes, and those of workers."""
    command = [sys.executable, SCRIPT, start, WORKERS, steps, others]
    bare = harness.run(command, env=harness.environment(PYTHONDONTWRITEBYTECODE=1, **settings))
    done = harness.run(command, env=harness.preloaded(**{**SETTINGS, "GPUPROF_OUTPUT": folder / "out", **settings}))
    assert (done.code, done.out) == (bare.code, bare.out) == (3, bare.out), done.err
    files = harness.info(folder / "out")["files"]
    return [f for f in files if not f["parent_pid"]], [f for f in files if f["parent_pid"]], done


def report_of(folder):
    return json.loads(harness.checked("report", folder / "out", "--format", "json").out)


def same_time(one, other, key):
    """The same reading of the clock, turned into time with anchors of one's own."""
    return abs(one[key] - other[key]) < 100_000


def slow_share(line_rows):
    return sum(row["busy_pct"] for row in line_rows if (row["file"], row["line"]) == (str(SCRIPT), SLOW))


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("settings", [{}, {"GPUPROF_WORKERS": 0}, {"GPUPROF_WORKERS": 1, "GPUPROF_MODE": "off"}], ids=["unset", "0", "mode"])
def test_without_the_setting_workers_have_no_thread_and_leave_nothing(tmp_path, start, settings):
    command = [sys.executable, SCRIPT, start, WORKERS, STEPS, 0]
    bare = harness.run(command, env=harness.environment(LOADER_COUNTS=1, PYTHONDONTWRITEBYTECODE=1))
    done = harness.run(command, env=harness.preloaded(**{**SETTINGS, "GPUPROF_OUTPUT": tmp_path / "out", "LOADER_COUNTS": 1, **settings}))
    assert (done.code, done.out) == (bare.code, bare.out) == (3, bare.out), f"workers have a thread of ours? {done.err}"
    dumps = harness.dumps(tmp_path)
    assert len(dumps) == (0 if "GPUPROF_MODE" in settings else 1), dumps
    for dump in dumps:
        [file] = harness.info(dump)["files"]
        assert (file["parent_pid"], file["worker"]) == (0, -1)
        assert "data_workers" not in json.loads(harness.checked("report", dump, "--format", "json").out)


# Whether there is a session when workers are started, or only later.
started_early_or_late = pytest.mark.parametrize("start, before", [(start, before) for start in STARTS for before in ("", "1")])


@started_early_or_late
def test_each_worker_records_the_window_of_its_process(tmp_path, start, before):
    for attempt in range(3):  # on a busy machine other lines wait for the processor, too
        folder = tmp_path / str(attempt)
        [main], workers, done = run(folder, start, steps=100, GPUPROF_WORKERS=1, LOADER_STEPS_BEFORE=before,
                                    GPUPROF_SCHEDULE="skip_first=5,warmup=2,active=80")
        report = report_of(folder)
        share = slow_share(report.get("worker_lines", []))
        if share >= 60:
            break
    assert len(workers) == WORKERS and {f["worker"] for f in workers} == {0, 1}
    assert {f["parent_pid"] for f in workers} == {main["pid"]}
    for worker in workers:
        assert worker["completeness"] == "complete" and worker["steps"] == {"count": 0, "log": 0}
        assert [worker[key] for key in ("window", "rank", "run")] == [main[key] for key in ("window", "rank", "run")]
        assert same_time(worker, main, "window_begin_mono_ns") and same_time(worker, main, "window_end_mono_ns")
        assert (worker["partial"], worker["end_reason"]) == (False, "parent") and worker["process_cpu_ns"] > 10**7
        samples = [r for r in harness.records(worker["path"]) if r["kind"] == "sample"]
        assert len(samples) == worker["samples"] > 10 and {s["tid"] for s in samples} == {worker["pid"]}
    assert share >= 60, report["worker_lines"]
    first = report["worker_lines"][0]
    assert first["place"] == f"loader.py:{SLOW} Data.__getitem__" or sys.version_info < (3, 11) and first["line"] == SLOW
    assert report["data_workers"]["workers"] == WORKERS
    text = harness.checked("report", folder / "out").out
    assert "Where data loader workers spend their time" in text and f"loader.py:{SLOW}" in text
    said = harness.our_lines(done.err)
    assert len(said) == 2 and "no GPU times" in said[0] and "steps 7-86 (optimizer)" in said[1], "workers say nothing"


@started_early_or_late
def test_workers_know_when_their_process_started(tmp_path, start, before):
    [main], workers, _ = run(tmp_path, start, GPUPROF_WORKERS=1, LOADER_STEPS_BEFORE=before)
    assert len(workers) == WORKERS and {f["parent_start"] for f in workers} == {main["start"]} != {0}


@pytest.mark.parametrize("torch, forks", [("2.5", 0), ("2.4", 1)])
def test_another_fork_is_no_worker_where_workers_have_names(tmp_path, torch, forks):
    """Of a process that loads nothing; before 2.5 PyTorch gave workers no name, and each fork counts."""
    [main], _, _ = run(tmp_path, "fork", LOOKALIKE_TORCH=torch, LOADER_LIBRARY=harness.HAZARDS / "torch_like/libtorch_cpu.so")
    seen = [r for r in harness.records(main["path"]) if r["kind"] == "worker"]
    assert len({r["pid"] for r in seen}) == WORKERS + forks
    assert len(seen) > 5 * WORKERS


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    return folder, run(folder, "fork", GPUPROF_WORKERS=1)


def test_workers_are_no_ranks(recorded):
    folder, ([main], workers, _) = recorded
    alone = json.loads(harness.checked("report", main["path"], "--format", "json").out)
    both = report_of(folder)
    assert workers and both["ranks"] == alone["ranks"] == 1
    for key in ("steps", "step_time_us", "stragglers", "verdict", "curves", "program", "losses"):
        assert both[key] == alone[key], key
    assert harness.info(folder / "out")["ranks"] == harness.info(main["path"])["ranks"]
    assert harness.checked("diff", main["path"], folder / "out").code == 0


def test_exports(recorded, tmp_path):
    """One file for each rank, as without workers; where all is in one file, workers are named."""
    folder, ([main], workers, _) = recorded
    for form in ("kineto", "tensorboard"):
        (tmp_path / form).mkdir()
        for name, source in (("alone", main["path"]), ("both", folder / "out")):
            harness.checked("convert", source, "--to", form, "-o", tmp_path / form / name)
        count = {name: sum(1 for path in (tmp_path / form / name).rglob("*") if path.is_file()) for name in ("alone", "both")}
        assert count["both"] == count["alone"] > 0, count
    titles = {f"DataLoader worker {number} of process {main['pid']}" for number in range(WORKERS)}
    for form in ("chrome", "perfetto", "speedscope"):
        harness.checked("convert", folder / "out", "--to", form, "-o", tmp_path / f"{form}.out")
        exported = (tmp_path / f"{form}.out").read_bytes()
        assert all(title.encode() in exported for title in titles), form
    assert f"(loader.py:{SLOW})".encode() in (tmp_path / "perfetto.out").read_bytes()


def test_info(recorded):
    _, ([main], workers, _) = recorded
    text = harness.checked("info", workers[0]["path"]).out
    assert f"worker {workers[0]['worker']} of the DataLoader of pid {main['pid']}" in text
    assert "0, steps 7-46 (optimizer)" in text and "CPU time" in text and "GPU times" not in text


def test_a_worker_alone_is_no_run(recorded, tmp_path):
    _, (_, workers, _) = recorded
    path = workers[0]["path"]
    assert json.loads(harness.checked("report", path, "--format", "json").out)["ranks"] == 0
    done = harness.gpuprof("convert", path, "--to", "kineto", "-o", tmp_path / "x.json")
    assert done.code != 0 and "workers of a DataLoader alone" in done.err


def test_each_window(tmp_path):
    mains, workers, _ = run(tmp_path, "fork", GPUPROF_WORKERS=1, LOADER_STEPS_BEFORE=1,
                            GPUPROF_SCHEDULE="skip_first=4,warmup=1,active=15,wait=8,repeat=2")
    assert [f["window"] for f in mains] == [0, 1]
    assert sorted((f["worker"], f["window"]) for f in workers) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(same_time(f, mains[f["window"]], "window_begin_mono_ns") for f in workers)


def test_a_forked_worker_needs_no_open_file_of_its_process(tmp_path):
    [main], workers, _ = run(tmp_path, "fork", GPUPROF_WORKERS=1, LOADER_STEPS_BEFORE=1, LOADER_CLOSES=1)
    assert {f["parent_pid"] for f in workers} == {main["pid"]} and {f["worker"] for f in workers} == {0, 1}


def test_what_a_killed_worker_leaves_can_be_read(tmp_path):
    [main], workers, _ = run(tmp_path, "fork", GPUPROF_WORKERS=1, LOADER_END="kill", LOADER_STEPS_BEFORE=1,
                             GPUPROF_SCHEDULE="skip_first=5,warmup=2,active=100")
    assert sorted((f["worker"], f["recovered"]) for f in workers) == [(0, True), (1, True)]
    assert {f["parent_pid"] for f in workers} == {main["pid"]}
    assert slow_share(report_of(tmp_path)["worker_lines"]) > 30


def test_workers_are_not_asked_for_windows(tmp_path):
    """gpuprof trigger asks their process alone."""
    script = tmp_path / "ask.py"
    script.write_text(SCRIPT.read_text().replace("    done.set()\n", f"""    import subprocess
    asked = subprocess.run([{harness.BIN!r}, "trigger", os.environ["ASKED"], "--off"], capture_output=True, text=True,
                           env={{k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}})
    print(asked.returncode, asked.stdout.count("process"), asked.stderr, file=sys.stderr)
    done.set()
""").replace("pathlib.Path(__file__).resolve().parent", f"pathlib.Path({str(SCRIPT.parent)!r})"))
    out = tmp_path / "out"
    done = harness.run([sys.executable, script, "fork", WORKERS, STEPS, 0], env=harness.preloaded(**{
        **SETTINGS, "GPUPROF_OUTPUT": out, "GPUPROF_WORKERS": 1, "LOADER_STEPS_BEFORE": 1, "ASKED": str(out),
        "GPUPROF_SCHEDULE": "skip_first=5,warmup=2,active=100"}))
    assert done.code == 3, done.err
    assert "0 1 " in done.err, done.err
