# SPDX-License-Identifier: Apache-2.0
"""CUPTI 13.3 serves several subscribers: the program's profiler and gpuprof record the same window, and each has
all of it. Where one of them uses the older functions, or the driver is older, one gives way, and that is said."""
import re

import pytest

import harness
import test_graphs as graphs_alone
import truth

PROGRAM = harness.HAZARDS / "subscribers"
LIBRARIES = str(harness.BUILD / "simcuda/lib13_3")
WINDOW = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=19,warmup=1,active=20,repeat=1"}
SIMULATED = {"LD_LIBRARY_PATH": LIBRARIES, "SIMCUDA_VERSION": "13.3"}
PER_STEP = 10


def run_both(folder, command, preloaded=True, **settings):
    """The run bare and preloaded; both must say the same."""
    bare = harness.run(command, harness.environment(**SIMULATED, **{
        k: v for k, v in settings.items() if k.startswith("SIMCUDA_")}))
    done = harness.run(command, harness.preloaded(
        **{"GPUPROF_OUTPUT": folder / "out", "SIMCUDA_TRUTH": folder / "truth", **WINDOW, **SIMULATED, **settings}))
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    return done


def profile(folder, *arguments, **settings):
    """The run, the dump's comparison, and info on it."""
    done = run_both(folder, [PROGRAM, folder / "kernels", *arguments], **settings)
    dump, = harness.dumps(folder / "out")
    return done, truth.Comparison(dump, folder / "truth"), harness.info(dump)["files"][0]


def assert_other_is_right(folder, comparison, first, last, graph_nodes=0):
    """The program's profiler has each kernel of these steps once, with its time and external id."""
    seen = [[int(word) for word in line.split()] for line in (folder / "kernels").read_text().splitlines()]
    real = [line for line in comparison.truth if line["t"] == "gpu" and line["type"] == "kernel"]
    per_step = PER_STEP + graph_nodes
    expected = sorted(real, key=lambda line: line["begin"])[first * per_step:(last + 1) * per_step]
    assert len(seen) == len(expected) == (last - first + 1) * per_step
    for (correlation, external, begin, end), line in zip(sorted(seen, key=lambda k: k[2]), expected):
        assert correlation == line["corr"]
        assert external == first + 1 + expected.index(line) // per_step
        # Its clock is converted by one reading of two clocks.
        assert abs(begin - line["begin"]) < 100_000 and abs(end - line["end"]) < 100_000


def assert_whole(comparison, *kinds):
    comparison.assert_right("launch", "sync", "gpu_kernel", *kinds)
    assert comparison.summary["losses"] == {}


@pytest.mark.parametrize("switches", ["", "own_call_words", "v1_v2_once", "reversed_order"])
def test_both_record_the_window(switches, tmp_path):
    done, comparison, info = profile(tmp_path, "begin", SIMCUDA_CUPTI=switches)
    assert_whole(comparison)
    assert comparison.counts["gpu_kernel"] == 20 * PER_STEP
    assert_other_is_right(tmp_path, comparison, 0, 59)
    assert done.out == "600 callbacks, 0 strays, 0 other records, 0 lost\n"
    assert info["gpu_times_missing"] == "" and info["cupti_api"] == "V2 beside CUPTI for monitor"
    lines = harness.our_lines(done.err)
    assert len(lines) == 2 and "V2 beside CUPTI for monitor" in lines[0], done.err
    text = harness.checked("info", *harness.dumps(tmp_path / "out")).out
    assert "by V2 beside CUPTI for monitor" in text


def test_the_other_comes_and_goes_within_the_window(tmp_path):
    done, comparison, info = profile(tmp_path, "late")
    assert_whole(comparison)
    assert_other_is_right(tmp_path, comparison, 25, 34)
    assert info["cupti_api"] == "V2 beside CUPTI for monitor"
    assert len(harness.our_lines(done.err)) == 1, done.err


def test_graphs(tmp_path):
    _, comparison, _ = profile(tmp_path, "begin", "graph")
    assert_whole(comparison)
    assert comparison.counts["gpu_kernel"] == 20 * (PER_STEP + 2)
    assert_other_is_right(tmp_path, comparison, 0, 59, graph_nodes=2)


def test_graphs_as_a_whole_beside_another(tmp_path):
    """One choice is in force for all: that of the first to record."""
    done, comparison, _ = profile(tmp_path, "begin", "graph", GPUPROF_ACTIVITIES="+graph:trace")
    assert_whole(comparison)
    assert comparison.counts["gpu_kernel"] == 20 * (PER_STEP + 2)
    assert_other_is_right(tmp_path, comparison, 0, 59, graph_nodes=2)
    assert "another subscriber of CUPTI records graphs' nodes" in done.err


@pytest.mark.parametrize("mode", ["node", "trace"])
def test_graphs_alone(mode, tmp_path):
    """Graphs made in the window, with gpuprof the only subscriber."""
    graphs, _ = graphs_alone.profile_kinds(tmp_path, "kcsahegw0", graphs_alone.FIRST, f"+graph:{mode}", **SIMULATED)
    dump, = harness.dumps(tmp_path / "out")
    assert harness.info(dump)["files"][0]["cupti_api"] == "V2"
    if mode == "node":
        return graphs_alone.assert_same_work(graphs)
    graphs.assert_whole()
    assert harness.of_kind(graphs.records, "gpu_graph") and "graph_untimed" not in graphs.losses


def test_many_windows(tmp_path):
    """A subscriber for each; CUPTI keeps some buffers of each that leaves."""
    done = run_both(tmp_path, [PROGRAM, tmp_path / "kernels", "begin"], SIMCUDA_CUPTI="hold_buffers=100",
                    GPUPROF_SCHEDULE="skip_first=4,wait=2,warmup=1,active=4,repeat=6")
    dumps = harness.dumps(tmp_path / "out")
    assert len(dumps) == 6, done.err
    for dump in dumps:
        assert_whole(truth.Comparison(dump, tmp_path / "truth"))


def test_only_the_first_subscriber_may_register(tmp_path):
    """jax #38464: later windows, whose subscriber is another one, use the older functions, and have all of their work.
    Between the two windows lies 0.2 s: where the first one's dump is not complete by then, its subscriber stays."""
    run_both(tmp_path, [harness.HAZARDS / "marking_threads", 1, 0, 0, 60, 10_000], SIMCUDA_CUPTI="v2_registers_once",
             GPUPROF_SCHEDULE="skip_first=4,wait=20,skip_first_wait=1,warmup=1,active=4,repeat=2")
    dumps = harness.dumps(tmp_path / "out")
    assert [harness.info(dump)["files"][0]["cupti_api"] for dump in dumps] == ["V2", "V1"]
    for dump in dumps:
        assert_whole(truth.Comparison(dump, tmp_path / "truth"))


def test_the_other_forces_what_is_not_finished(tmp_path):
    """A flush is for all subscribers: what it took from us before it had a time is counted, and nothing is wrong."""
    done, comparison, _ = profile(tmp_path, "begin", "force", SIMCUDA_KERNEL_NS=300_000)
    untimed = [r for r in harness.of_kind(comparison.records, "gpu_kernel") if "no_time" in r.get("flags", ())]
    assert untimed and comparison.summary["losses"] == {"bad_timestamp": len(untimed)}
    wrong = [p for p in comparison.problems if '"no_time"' not in p]
    assert not wrong, wrong[:3]
    assert comparison.counts["launch"] == 20 * PER_STEP
    assert "bad" in done.err or "time" in done.err


def test_an_old_driver(tmp_path):
    """Before R610 nobody is one of several; gpuprof is the only one."""
    done, comparison, info = profile(tmp_path, "begin", SIMCUDA_CUPTI="old_driver")
    assert done.out.startswith("cuptiSubscribe_v2: CUPTI error 39\n")
    assert_whole(comparison)
    assert info["cupti_api"] == "V1" and info["gpu_times_missing"] == ""


def test_an_old_driver_and_the_other_comes_late(tmp_path):
    """It asks while gpuprof has CUPTI, and is refused for the driver's sake: gpuprof need not leave."""
    done, comparison, info = profile(tmp_path, "late", SIMCUDA_CUPTI="old_driver")
    assert done.out.startswith("cuptiSubscribe_v2: CUPTI error 39\n")
    assert_whole(comparison)
    assert info["cupti_api"] == "V1" and info["gpu_times_missing"] == ""


@pytest.mark.parametrize("function", ["cuptiActivityRegisterCallbacks_v2", "cuptiActivityEnable_v2"])
def test_a_function_that_fails(function, tmp_path):
    """The older ones are used then, as where it is absent."""
    done = run_both(tmp_path, [harness.HAZARDS / "end", "return"], SIMCUDA_CUPTI=f"refuse={function}", **harness.WHOLE_RUN)
    dump, = harness.dumps(tmp_path / "out")
    assert_whole(truth.Comparison(dump, tmp_path / "truth"))
    assert harness.info(dump)["files"][0]["cupti_api"] == "V1"
    assert len(harness.our_lines(done.err)) == 1, done.err


@pytest.mark.parametrize("style", ["eager", "activity"])
def test_a_profiler_that_excludes_others(style, tmp_path):
    """It uses the older functions: gpuprof leaves before its call, says so, and comes back as its like."""
    done = run_both(tmp_path, [harness.HAZARDS / "kineto_like", style, "during"])
    dump, = harness.dumps(tmp_path / "out")
    info, comparison = harness.info(dump)["files"][0], truth.Comparison(dump, tmp_path / "truth")
    assert info["gpu_times_missing"].startswith("for ") and "kineto_like" in info["gpu_times_missing"]
    assert info["cupti_api"] == "V1"
    wrong = [p for p in comparison.problems if not p.startswith(("1 pieces of work, 0 records", "not joined"))]
    assert not wrong, wrong[:3]
    assert any("kineto_like uses CUPTI" in line for line in harness.our_lines(done.err)), done.err


def test_where_one_kind_of_functions_excludes_the_other_for_good(tmp_path):
    """No document tells whether it does; if so, the program's profiler is refused, and that is said."""
    done = harness.run([harness.HAZARDS / "kineto_like", "activity", "after"], harness.preloaded(
        **{"GPUPROF_OUTPUT": tmp_path, **WINDOW, **SIMULATED, "SIMCUDA_CUPTI": "v1_v2_once"}))
    assert "CUPTI error 14" in done.out
    lines = [line for line in harness.our_lines(done.err) if "refuses the program's own profiler" in line]
    assert len(lines) == 1 and "GPUPROF_CUPTI=off" in lines[0]


def test_the_simulator_answers_as_documented():
    """cupti_callbacks.h and cupti_activity.h of 13.3; CUPTI guide 2.4; pytorch #192094 for error 14."""
    done = harness.run([PROGRAM, "errors"], harness.environment(**SIMULATED))
    answers = dict(re.findall(r"^(.*?) (\d.*)$", done.out, re.MULTILINE))
    assert answers == {
        "several": "0", "second": "0 CUPTI for one", "alone beside": "39", "V1 beside": "39", "state": "0 1",
        "set state": "1", "set clock": "27", "enable": "0", "whole graphs late": "14", "V1 enable": "14",
        "V1 dropped": "14", "V1 time": "14", "leave": "0 0", "gone": "1", "V1 after": "0", "several beside V1": "39",
        "V1 alone": "0", "several beside V1 subscriber": "39"}, done.out
    old = harness.run([PROGRAM, "errors"], harness.environment(**SIMULATED, SIMCUDA_CUPTI="old_driver"))
    assert old.out.startswith("several 39\n")
