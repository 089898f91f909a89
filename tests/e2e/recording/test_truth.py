# SPDX-License-Identifier: Apache-2.0
"""What gpuprof says happened is what the simulator says happened."""
import json
import re

import pytest

import harness
import truth

QUICK = ["--layers", "4", "--kernel-us", "40"]
STEPS = ["--steps", "26"]  # the default schedule records steps 12 to 21


def profile(folder, command, *options, by_clock=False, **settings):
    """Runs `command` under `gpuprof run` with a truth log; returns the comparisons, one per dump."""
    folder.mkdir(exist_ok=True)
    env = harness.environment(SIMCUDA_TRUTH=folder / "truth", **settings)
    profiled = harness.gpuprof("run", "-o", folder / "out", *options, "--", *command, env=env)
    bare = harness.run(command)
    assert (profiled.code, profiled.out) == (bare.code, bare.out), profiled.err
    assert profiled.code == 0, profiled.err
    found = harness.dumps(folder / "out")
    assert found, f"no dump: {profiled.err}"
    assert all(path.suffix == ".gpuprof" for path in found)
    return sorted((truth.Comparison(path, folder / "truth", by_clock=by_clock) for path in found),
                  key=lambda c: (c.header["rank"], c.header["window"]))


def assert_steps(comparison, first, last):
    """The window holds exactly these steps, and each begins where the program began it."""
    assert comparison.window_steps() == list(range(first, last + 1))
    assert comparison.summary["steps"] == {"first": first, "last": last, "count": last - first + 1,
                                           "log": comparison.summary["steps"]["log"]}
    real = {line["n"]: line for line in comparison.truth if line["t"] == "step"}
    for record in comparison.records:
        if record["kind"] == "step" and record["number"] in real:
            number = record["number"]
            assert record["begin_mono_ns"] <= real[number]["begin"] + truth.CALL_TOLERANCE_NS
            if number - 1 in real:
                assert record["begin_mono_ns"] >= real[number - 1]["end"] - truth.CALL_TOLERANCE_NS
    begin, end = comparison.begin, comparison.end
    # The window begins at the boundary, its first step when the thread went on, which had waited for CUPTI.
    if first - 1 in real:
        assert begin >= real[first - 1]["end"] - truth.CALL_TOLERANCE_NS
    assert begin <= next(r for r in comparison.records if r["kind"] == "step" and r["number"] == first)["begin_mono_ns"]
    assert abs(end - next(r for r in comparison.records if r["kind"] == "step" and r["number"] == last)
               ["end_mono_ns"]) <= truth.GPU_TOLERANCE_NS


PROGRAMS = {
    "plain": ([], ["launch", "copy", "set", "sync", "gpu_kernel", "gpu_copy", "gpu_set"]),
    "pageable": (["--pageable", "--sync-every", "3"], ["launch", "copy", "sync", "gpu_copy"]),
    "small_kernels": (["--small-kernels", "300"], ["launch", "gpu_kernel"]),
    "allocations": (["--malloc-per-step", "9"], ["alloc", "dealloc"]),
    "threads": (["--threads", "4"], ["launch", "gpu_kernel"]),
    "slow_data": (["--data-ms", "3"], ["launch"]),
    "collectives": (["--comm-mb", "8"], ["collective"]),
    "overlap": (["--comm-mb", "8", "--overlap"], ["collective"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_simtrain(name, tmp_path):
    flags, kinds = PROGRAMS[name]
    comparison, = profile(tmp_path, [harness.SIMTRAIN, *STEPS, *QUICK, *flags])
    comparison.assert_right(*kinds)
    assert_steps(comparison, 12, 21)
    assert comparison.header["step_source"].startswith("nvtx:step")
    assert comparison.summary["complete"] and not comparison.summary["partial"]
    assert comparison.summary["losses"] == {}


def test_data_loading_ranges(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, *STEPS, *QUICK])
    ranges = [r["message"] for r in harness.of_kind(comparison.records, "nvtx_range")]
    assert ranges.count("enumerate(DataLoader)#sim.__next__") == 10
    assert [r for r in ranges if re.fullmatch("step [0-9]+", r)] == [f"step {n}" for n in range(12, 22)]


@pytest.mark.parametrize("ranks, flags", [(2, []), (4, ["--overlap", "--slow-rank", "2:1.5"])])
def test_ranks(ranks, flags, tmp_path):
    comparisons = profile(tmp_path, [harness.SIMTRAIN, *STEPS, *QUICK, "--comm-mb", "8", "--ranks", str(ranks), *flags])
    assert [c.header["rank"] for c in comparisons] == list(range(ranks))
    assert {c.header["world_size"] for c in comparisons} == {ranks}
    for comparison in comparisons:
        comparison.assert_right("launch", "collective", "gpu_kernel")
        assert_steps(comparison, 12, 21)
    # The collectives' sequence numbers name the same collective on every rank.
    series = [[(r["sequence"], r["name"], r["count"]) for r in harness.of_kind(c.records, "collective")] for c in comparisons]
    assert all(one == series[0] for one in series)


def test_graphs_instantiated_in_the_window(tmp_path):
    """Nodes have records only where CUPTI was on when the graph was made."""
    comparison, = profile(tmp_path, [harness.SIMTRAIN, "--steps", "8", *QUICK, "--graphs"],
                          "--step", "nvtx:step", "--schedule", "skip_first=0,warmup=0,active=5,repeat=1")
    comparison.assert_right("launch", "gpu_kernel")
    assert_steps(comparison, 0, 4)


def test_graphs_instantiated_before_the_window(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, *STEPS, *QUICK, "--graphs"])
    launches = [r for r in harness.of_kind(comparison.records, "launch") if r["name"].startswith("cudaGraphLaunch")]
    assert len(launches) == 10
    assert_steps(comparison, 12, 21)


SCHEDULES = {  # schedule: windows of `--steps 30`
    "skip_first=0,wait=0,warmup=0,active=3,repeat=1": [(0, 2)],
    "skip_first=5,wait=1,warmup=1,active=4,repeat=2": [(7, 10), (13, 16)],
    "skip_first=5,wait=1,warmup=1,active=4,repeat=2,skip_first_wait=1": [(6, 9), (12, 15)],
    "skip_first=20,wait=0,warmup=0,active=1,repeat=3": [(20, 20), (21, 21), (22, 22)],
}


@pytest.mark.parametrize("source", ["nvtx", "sync"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule, source, tmp_path):
    step = {"nvtx": "nvtx:step", "sync": "sync:1"}[source]
    comparisons = profile(tmp_path, [harness.SIMTRAIN, "--steps", "30", *QUICK, "--markers", source],
                          "--schedule", schedule, "--step", step)
    assert len(comparisons) == len(SCHEDULES[schedule])
    for comparison, (first, last) in zip(comparisons, SCHEDULES[schedule]):
        comparison.assert_right("launch", "gpu_kernel")
        if source == "nvtx":
            assert_steps(comparison, first, last)
        else:
            assert comparison.window_steps() == list(range(first, last + 1))


def test_auto_takes_sync_where_there_are_no_ranges(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, *STEPS, *QUICK, "--markers", "sync"])
    comparison.assert_right("launch", "gpu_kernel", "sync")
    assert comparison.header["step_source"] == "sync:1"
    assert comparison.window_steps() == list(range(12, 22))


def test_time_as_step(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, "--steps", "800", *QUICK, "--markers", "none"],
                          "--step", "time:20", "--schedule", "skip_first=2,warmup=1,active=5,repeat=1", by_clock=True)
    comparison.assert_right("launch", "gpu_kernel")
    assert comparison.window_steps() == [3, 4, 5, 6, 7]
    first = next(r for r in comparison.records if r["kind"] == "step" and r["in_window"])
    assert first["begin_mono_ns"] == comparison.header["window_begin_mono_ns"]


def test_auto_takes_time_where_there_is_nothing_else(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, "--steps", "800", "--layers", "1", "--data-ms", "42", "--markers", "none"],
                          "--schedule", "skip_first=0,warmup=0,active=1,repeat=1", by_clock=True)
    comparison.assert_right("launch", "gpu_kernel")
    assert comparison.header["step_source"] == "time:1000"
    assert comparison.window_steps() == [0] and not comparison.summary["partial"]
    assert 0.5e9 < comparison.end - comparison.begin < 2e9


def test_window_cut_by_exit(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, "--steps", "18", *QUICK])
    comparison.assert_right("launch", "copy", "gpu_kernel")
    assert comparison.summary["partial"] and comparison.summary["end_reason"] == "exit"
    assert comparison.window_steps()[0] == 12


def test_presets_and_activities(tmp_path):
    def kinds(name, *options):
        comparison, = profile(tmp_path / name, [harness.SIMTRAIN, *STEPS, *QUICK, "--malloc-per-step", "2"], *options)
        return {r["kind"] for r in comparison.records}

    light = kinds("light", "--preset", "light")
    assert {"gpu_kernel", "gpu_copy", "gpu_set", "sync"} <= light
    assert {"alloc", "nvtx_range", "event"} & light == set()
    default = kinds("default")
    assert {"gpu_kernel", "alloc", "dealloc", "nvtx_range", "launch"} <= default
    less = kinds("less", "--activities=-alloc,-nvtx")
    assert "gpu_kernel" in less and not {"alloc", "nvtx_range"} & less


def test_python_example(tmp_path):
    comparison, = profile(tmp_path, [harness.PYTHON, harness.SOURCE / "examples/train.py"])
    comparison.assert_right("launch", "copy", "gpu_kernel", "gpu_copy")
    assert comparison.window_steps() == list(range(12, 22))


def test_linked_opened_and_ctypes_give_the_same_trace(tmp_path):
    ways = {
        "linked": [harness.HAZARDS / "linked_way"],
        "dlopen": [harness.HAZARDS / "dlopen_way"],
        "ctypes": [harness.PYTHON, harness.SOURCE / "tests/programs/same/ctypes_way.py"],
    }
    signatures = {}
    for name, command in ways.items():
        comparison, = profile(tmp_path / name, command, **harness.WHOLE_RUN)
        comparison.assert_right("launch", "copy", "set", "alloc", "dealloc", "sync", "gpu_kernel", "gpu_copy", "gpu_set")
        assert comparison.counts["launch"] == 50
        signatures[name] = truth.signature(comparison)
    assert signatures["linked"] == signatures["dlopen"] == signatures["ctypes"]


def test_preload_by_hand_is_the_same(tmp_path):
    """LD_PRELOAD=$(gpuprof lib) does what `gpuprof run` does."""
    library = harness.checked("lib").out.strip()
    env = harness.environment(SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_OUTPUT=tmp_path / "out")
    env["LD_PRELOAD"] = ":".join(filter(None, [harness.RUNTIME, library]))
    done = harness.run([harness.SIMTRAIN, *STEPS, *QUICK], env)
    assert done.code == 0
    dump, = harness.dumps(tmp_path / "out")
    truth.Comparison(dump, tmp_path / "truth").assert_right("launch", "gpu_kernel")
    last = harness.our_lines(done.err)[-1]
    assert "steps 12-21 (nvtx" in last and "gpuprof report" in last, done.err


def test_conversions_hold_every_event(tmp_path):
    comparison, = profile(tmp_path, [harness.SIMTRAIN, *STEPS, *QUICK])
    harness.checked("convert", tmp_path / "out", "--to", "chrome", "-o", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert len(kernels) == comparison.counts["gpu_kernel"]
    flows = [e for e in events if e.get("ph") == "f"]
    assert len(flows) >= comparison.counts["gpu_kernel"]
    harness.checked("convert", tmp_path / "out", "--to", "perfetto", "-o", tmp_path / "t.pftrace")
    assert (tmp_path / "t.pftrace").stat().st_size > 1000


def test_comparison_sees_what_is_wrong(tmp_path):
    """The comparison itself: each kind of damage to the truth must be found."""
    comparison, = profile(tmp_path, [harness.SIMTRAIN, *STEPS, *QUICK, "--malloc-per-step", "1"])
    comparison.assert_right("launch", "alloc", "gpu_kernel")
    log = next((tmp_path / "truth").iterdir())
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
    inside = [i for i, line in enumerate(lines) if line.get("begin", 0) > comparison.begin + 10**6
              and line.get("end", 10**30) < comparison.end - 10**6]
    launch = next(i for i in inside if "LaunchKernel" in lines[i].get("name", "") and lines[i]["t"] == "call")
    kernel = next(i for i in inside if lines[i].get("type") == "kernel" and lines[i]["corr"] == lines[launch]["corr"])
    alloc = next(i for i in inside if lines[i].get("name") == "cudaMalloc")
    damages = {
        "a call too few": lambda all: all.pop(launch),
        "a call too many": lambda all: all.insert(launch, {**all[launch], "begin": all[launch]["begin"] - 1}),
        "a kernel later": lambda all: all[kernel].update(begin=all[kernel]["begin"] + 2000),
        "another stream": lambda all: all[kernel].update(stream=all[kernel]["stream"] + 1),
        "another name": lambda all: all[kernel].update(name="_Z5otherv"),
        "another size": lambda all: all[alloc].update(bytes=all[alloc]["bytes"] + 1),
        "another thread": lambda all: all[launch].update(tid=1),
    }
    dump, = harness.dumps(tmp_path / "out")
    for what, damage in damages.items():
        copy = [dict(line) for line in lines]
        damage(copy)
        log.write_text("\n".join(json.dumps(line) for line in copy))
        assert truth.Comparison(dump, tmp_path / "truth").problems, what
