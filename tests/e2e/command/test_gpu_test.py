# SPDX-License-Identifier: Apache-2.0
"""The GPU test itself, on the simulated stack: that it sees what is right, says what is wrong, and goes on when a
program hangs. What it finds on a GPU it finds there."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

import harness

GPU = harness.SOURCE / "tests/gpu"
sys.path[:0] = [str(GPU), str(GPU / "programs")]
sys.dont_write_bytecode = True

import claims  # noqa: E402
import cost  # noqa: E402
import figures  # noqa: E402
import frameworks  # noqa: E402
import judge  # noqa: E402
import lab as lab_module  # noqa: E402
import natives  # noqa: E402
import run as whole_test  # noqa: E402
import stepper  # noqa: E402

NVCC = lab_module.toolkit()
WITHOUT_SANITIZER = pytest.mark.skipif(harness.SANITIZER == "address",
                                       reason="preloads the library without a sanitizer's runtime, as on a GPU machine")


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", harness.SIMCUDA)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    made = lab_module.Lab(harness.BUILD, tmp_path, 120)
    made.part = "part"
    return made


def verdicts(lab):
    return {row["case"]: row["verdict"] for row in lab.rows}


# -- figures -------------------------------------------------------------------------------------------


def test_kernels_are_compared_by_name_and_count():
    ours = {"void add<float>(float*, int)": 3, "(anonymous namespace)::f(int)": 1, "only_ours": 1}
    theirs = {"void add<float>(float *, int)": 3, "(anonymous namespace)::f(int)": 2}
    assert figures.differences(ours, theirs) == [("anonymous::f(int)", 1, 2), ("only_ours", 1, 0)]
    assert figures.differences(ours, ours) == []


def test_ratios_are_of_one_round():
    rounds = [{"bare": 10.0, "default": 11.0}, {"bare": 20.0, "default": 20.0}, {"bare": 10.0, "default": None}]
    row = figures.ratio_row(rounds, "default")
    assert row == {"rounds": 2, "median": 1.05, "least": 1.0, "most": 1.1}
    assert figures.ratio_text(row) == "+5.00 % (+0.00 % to +10.00 %, 2 rounds)"
    assert figures.ratio_row(rounds, "full") is None
    assert figures.median_between([9, 1, 2, 3, 9], 1, 3) == 2 and figures.median_between([1], 5, 9) is None


def test_windows_are_compared_with_the_steps_between_them():
    # 0-19 and 26-45 of 10 ms, then of 30 ms; windows 20-25 of 11 ms, 46-51 of 22 ms; what lies beside them does not count.
    times = [10.0] * 20 + [99] + [11.0] * 4 + [99] + [77.0] * 5 + [10.0] * 15 + [99] + [22.0] * 4 + [99] + [77.0] * 5 + [30.0] * 20
    times[15:20] = times[41:46] = [55.0] * 5
    assert figures.window_ratios(times, [(20, 25), (46, 51)]) == [1.1, 1.1]


def test_torch_events_are_told_apart():
    event = collections.namedtuple("event", "name device_type is_user_annotation")
    events = [event("k1", "DeviceType.CUDA", False), event("k1", "DeviceType.CUDA", False), event("aten::mm", "DeviceType.CPU", False),
              event("Memcpy HtoD (Pinned -> Device)", "DeviceType.CUDA", False), event("step", "DeviceType.CUDA", False),
              event("range", "DeviceType.CUDA", True), event("Memset (Device)", "DeviceType.CUDA", False)]
    assert stepper.kernel_counts(events) == {"kernels": {"k1": 2}, "other": {"Memcpy": 1, "Memset": 1}}


def test_programs_are_python():
    for path in [*GPU.glob("*.py"), *(GPU / "programs").glob("*.py")]:
        compile(path.read_text(), str(path), "exec")


# -- documented, simulated, seen ------------------------------------------------------------------------


def disagreeing(rows):
    """Claims of which the simulator, asked, shows another thing than the table says of it; figures aside."""
    figure = re.compile(r"[0-9.]+")
    return [(claim, simulated, seen(rows)) for claim, _, simulated, seen in claims.CLAIMS
            if figure.sub("N", seen(rows) or "not run") != figure.sub("N", simulated)]


def row(part, case, **numbers):
    return {"part": part, "case": case, "verdict": "ok", "text": "", "numbers": numbers}


def test_what_was_seen_stands_beside_what_is_documented():
    rows = [row("graphs", "before-node", launches=12, untimed=0, transfers=4), row("graphs", "inside-node", launches=9, untimed=0, transfers=4),
            row("graphs", "before-trace", launches=12, whole=12), row("graphs", "three-windows", launches=24, ids_agreed=8, ids_differed=16),
            row("after", "keep", bare=4.0, after2=6.0),
            row("ways", "linked", attach_s=0.25, events=4, events_timed=3, gpu_time_error_us=2.5, bad_times=1, clock="CLOCK_REALTIME",
                functions="V1", silent=False, same_addresses=None),
            row("ways", "driver-ask", same_addresses=False, functions="V2", silent=True)]
    seen = {claim: said(rows) for claim, _, _, said in claims.CLAIMS}
    assert list(seen.values()) == ["all", "all", "as copies and sets", "wrong in 16 of 24", "0.25 to 0.25 s", "1.50 times", None, "at most 2.50 us off",
                                   "CLOCK_REALTIME", "others", "V1, V2", "no, yes", "1", "3 of 4"]
    assert "not run" in claims.table([]) and len(claims.table(rows).splitlines()) == 1 + len(claims.CLAIMS)


def test_the_log_says_what_cupti_does():
    log = "gpuprof: CUPTI's clock is CLOCK_REALTIME\ngpuprof: CUPTI's functions in use: V2 beside CUPTI for monitor\n"
    assert figures.of_log(log) == {"clock": "CLOCK_REALTIME", "functions": "V2 beside CUPTI for monitor", "silent": False}
    assert figures.of_log("gpuprof: no GPU record has come for 3 launches") == {"clock": None, "functions": None, "silent": True}


def test_a_report_names_what_a_program_is_slow_for():
    def report(cause, evidence="", *findings):
        return {"verdict": [{"cause": cause, "evidence": [evidence]}] if cause else [], "findings": [{"kind": kind} for kind in findings]}

    limit = "beyond this the GPU's own work is the limit: compute is 95.1 % of step time"
    assert frameworks.names(report("transfer"), "pageable") and not frameworks.names(report("kernel_launch"), "pageable")
    assert not frameworks.names(report(""), "small")
    assert frameworks.names(report("compute", "", "without_tensor_cores"), "fp32")
    assert frameworks.names(report("kernel_launch", limit, "without_tensor_cores"), "fp32")
    assert not frameworks.names(report("kernel_launch", "", "without_tensor_cores"), "fp32")
    assert not frameworks.names(report("compute", "", "slower_recorded"), "fp32")


def test_without_rows_nothing_was_seen():
    assert {said([]) for _, _, _, said in claims.CLAIMS} == {None}


# -- native programs -----------------------------------------------------------------------------------


def run_whole(folder, *arguments):
    """run.sh as a user calls it, on the simulator."""
    fake = folder / "bin"
    fake.mkdir()
    (fake / "nvidia-smi").write_text("#!/bin/sh\necho 'Simulated GPU, 580.0'\n")
    (fake / "nvidia-smi").chmod(0o755)
    env = harness.environment(PATH=f"{fake}:{os.environ['PATH']}")
    done = subprocess.run([GPU / "run.sh", harness.BUILD, folder / "out", *arguments], env=env, capture_output=True, text=True,
                          timeout=300)
    return done, json.loads((folder / "out/table.json").read_text())


@pytest.mark.skipif(not NVCC, reason="no nvcc: the CUDA programs cannot be compiled here")
@WITHOUT_SANITIZER
def test_ways_and_graphs(tmp_path):
    done, table = run_whole(tmp_path, "ways", "graphs", "after")
    found = {row["case"]: row for row in table["rows"]}
    # NVIDIA's static runtime does not run on the simulated driver: a failure that stops nothing.
    failed = {"static", "static-injection"}
    assert {case for case, row in found.items() if row["verdict"] != "ok"} == failed, done.stdout
    assert done.returncode == 1 and "API call is not supported" in found["static"]["text"]
    assert found["linked"]["numbers"]["kernels"] == {"scale": 100, "add": 100}
    # Of graphs of before the attach nodes are recorded, and nothing as a whole.
    assert found["before-auto"]["numbers"]["untimed"] == 0 and found["inside-node"]["numbers"]["nodes"] == 30
    assert found["before-trace"]["numbers"]["whole"] == 0 and found["before-trace"]["numbers"]["nodes"] == 36
    assert len(found) == 10 + 3 * len(natives.GRAPHS) + 2 + 5
    assert disagreeing(table["rows"]) == [("times of events on the device", "all", None)]  # these programs have none
    assert (tmp_path / "out/table.txt").read_text().startswith("GPU: Simulated GPU")


@WITHOUT_SANITIZER
def test_a_wrong_count_is_said(lab):
    done, dump = lab.profile("program", [harness.HAZARDS / "graphs", 0, 0, -1, -1], **lab_module.WHOLE_RUN)
    right = {"kernels": dict(dump.kernels), "copies": dump.kinds["gpu_copy"], "sets": dump.kinds["gpu_set"]}
    assert natives.check_counts(right, dump, kernels_only=True) == []
    wrong = {**right, "kernels": {"other": 1}, "copies": 99}
    assert len(natives.check_counts(wrong, dump, kernels_only=True)) == 2


def test_a_program_that_hangs_does_not_stop_the_others(lab):
    def hang():
        done = lab.run(["sleep", "60"], limit=1)
        raise lab_module.Failed(done.why())

    def crash():
        return {}["no such key"]

    lab.cases([("hangs", hang), ("crashes", crash), ("works", lambda: lab.add("works", "ok"))])
    assert verdicts(lab) == {"hangs": "FAILED", "crashes": "FAILED", "works": "ok"}
    assert lab.rows[0]["text"] == "its time was up"
    lab.deadline = 0
    lab.cases([("late", crash)])
    assert verdicts(lab)["late"] == "skipped"


@WITHOUT_SANITIZER
def test_no_dump_is_a_failure(lab):
    with pytest.raises(lab_module.Failed, match="no dump"):
        lab.profile("none", ["true"])


def test_no_gpu_is_said(tmp_path):
    env = harness.environment(PATH=f"{tmp_path}:/usr/bin:/bin")
    done = subprocess.run([GPU / "run.sh", harness.BUILD, tmp_path / "out"], env=env, capture_output=True, text=True)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    assert "no GPU here" in done.stderr


def test_a_wrong_part_is_refused(tmp_path):
    done = subprocess.run([sys.executable, GPU / "run.py", harness.BUILD, tmp_path / "out", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "allowed: ways graphs after torch compile triton generate jax slow windows cost" in done.stderr


# -- frameworks: simtrain stands for a training loop ---------------------------------------------------


STAND_IN = """
    import json, os, pathlib, subprocess, sys, tempfile
    sys.path.insert(0, {programs!r})
    import stepper
    options, _ = stepper.arguments("", 40).parse_known_args()
    env = dict(os.environ)
    folder = tempfile.mkdtemp()
    if options.torch_profiler:
        env["SIMCUDA_TRUTH"] = folder
    subprocess.run([{simtrain!r}, "--steps", str(options.steps), "--markers", "nvtx"], env=env, check=True, stdout=subprocess.DEVNULL)
    if options.torch_profiler:
        lines = [json.loads(l) for p in pathlib.Path(folder).glob("*.jsonl") for l in p.read_text().splitlines() if l.strip()]
        steps = [l for l in lines if l["t"] == "step"]
        begin, end = steps[options.first]["begin"], steps[options.last]["end"]
        calls = {{l["corr"] for l in lines if l["t"] == "call" and begin <= l["begin"] <= end}}
        names = [l["name"] for l in lines if l["t"] == "gpu" and l["type"] == "kernel" and l["corr"] in calls]
        names = subprocess.run(["c++filt"], input="\\n".join(names), capture_output=True, text=True).stdout.split("\\n")
        kernels = {{name: names.count(name) + {wrong} for name in set(names) if name}}
        json.dump({{"kernels": kernels, "other": {{}}, "operators": {{}}}}, open(options.torch_profiler, "w"))
    print(json.dumps({{"result": 1.0, "step_ms": [{step_ms} for i in range(options.steps)], "memory": []}}))
"""


def stand_in(folder, wrong=0, step_ms="float(i)"):
    path = folder / "train.py"
    path.write_text(textwrap.dedent(STAND_IN.format(programs=str(GPU / "programs"), simtrain=harness.SIMTRAIN, wrong=wrong, step_ms=step_ms)))
    return [sys.executable, path]


@WITHOUT_SANITIZER
@pytest.mark.parametrize("wrong", [0, 1])
def test_a_training_loop_is_compared_with_torch_profiler(wrong, lab, tmp_path, monkeypatch):
    monkeypatch.setattr(frameworks, "need_torch", lambda lab: None)
    expected = judge.Expected(owners=False, memory=False)  # it has neither operators nor tensors
    lab.cases([frameworks.training(lab, "model", stand_in(tmp_path, wrong), expected=expected)])
    assert verdicts(lab) == {"model": "DIFFERS" if wrong else "ok"}, lab.rows
    assert bool(re.search("kernel names differ", lab.rows[0]["text"])) == bool(wrong)
    assert lab.rows[0]["numbers"]["kernels"] > 100
    assert list(tmp_path.rglob("trace.perfetto-trace"))


@WITHOUT_SANITIZER
@pytest.mark.parametrize("wrong", [0, 1])
def test_a_loop_is_compared_with_torch_profiler_in_the_same_run(wrong, lab, tmp_path, monkeypatch):
    monkeypatch.setattr(frameworks, "need_torch", lambda lab: None)
    lab.cases([frameworks.beside_torch(lab, "model", [*stand_in(tmp_path, wrong), "--steps", "45"])])
    assert verdicts(lab) == {"model": "DIFFERS" if wrong else "ok"}, lab.rows
    assert bool(re.search("kernel names differ", lab.rows[0]["text"])) == bool(wrong)
    numbers = lab.rows[0]["numbers"]
    assert numbers["attach_s"] > 0 and numbers["clock"] == "CLOCK_REALTIME" and numbers["cupti"]


@WITHOUT_SANITIZER
def test_cost_takes_rounds_of_all_modes(lab, tmp_path, monkeypatch):
    for name, value in (("STEPS", 60), ("WARM", 2), ("FIRST", 20), ("LAST", 39)):
        monkeypatch.setattr(cost, name, value)
    monkeypatch.setitem(cost.MODES, "default", {"GPUPROF_SCHEDULE": "skip_first=18,warmup=2,active=20,repeat=1"})
    modes = ["bare", "armed", "default", "torch.profiler"]
    rounds = cost.rounds_of(lab, "loop", [*stand_in(tmp_path), "--steps", "60"], "nvtx:step", modes, until=0)
    assert len(rounds) == 1 and set(rounds[0]) == set(modes)
    assert rounds[0]["bare"]["window"] == 29.5 and rounds[0]["default"]["before"] == 8
    cost.report(lab, "loop", rounds * 2)
    assert [row["case"] for row in lab.rows] == ["loop-bare", "loop-armed", "loop-default", "loop-torch.profiler"]
    assert lab.rows[1]["text"].startswith("+0.00 %") and "before the window" in lab.rows[2]["text"]
    dumps = {p.parent.parent.name for p in (tmp_path / "dumps").rglob("*.gpuprof")}
    assert dumps == {"part-loop-default"}


@WITHOUT_SANITIZER
@pytest.mark.parametrize("target, verdict", [(1.02, "ok"), (0.98, "OVER")])
def test_windows_of_one_process_keep_to_a_target(target, verdict, lab, tmp_path, monkeypatch):
    for name, value in (("WINDOWS", 2), ("TARGET", target), ("ALTERNATING", "skip_first=10,wait=18,warmup=2,active=10,repeat=2")):
        monkeypatch.setattr(cost, name, value)
    command = [*stand_in(tmp_path, step_ms="2.0"), "--steps", "90"]
    lab.cases([cost.alternating(lab, "loop", lambda: command, "nvtx:step", cost.RECORDED["operators"])])
    assert verdicts(lab) == {"loop": verdict}, lab.rows
    assert lab.rows[0]["text"] == (f"+0.00 % (+0.00 % to +0.00 %, 2 windows), at most {100 * (target - 1):+.2f} %; 2.0000 ms a step "
                                   "before the first, after the last +0.00 %")
    monkeypatch.setattr(cost, "WINDOWS", 3)
    lab.cases([cost.alternating(lab, "fewer", lambda: command, "nvtx:step", {})])
    assert lab.rows[1]["text"] == "2 windows, not 3"


def test_the_table_says_what_was_left_out(lab):
    lab.add("one", "skipped", "no triton here")
    lab.add("two", "OVER", "+3.00 %")
    text, code = whole_test.write(lab, "a GPU", 1)
    assert code == 0 and text.endswith("2 cases: 0 failed or differ, 1 over their target, 1 skipped; 1 s\n"
                                       "skipped: part one: no triton here\n")
    lab.add("three", "DIFFERS")
    assert whole_test.write(lab, "a GPU", 1)[1] == 1


def test_rows_of_a_part_that_is_cut_off_are_kept(tmp_path, monkeypatch):
    """The part itself looks at the table, as somebody does who ends it then."""
    kept = []

    def part(lab):
        for case in ("one", "two"):
            lab.add(case, "ok")
            kept.append([row["case"] for row in json.loads((lab.out / "table.json").read_text())["rows"]])

    monkeypatch.setattr(whole_test, "PARTS", {"part": (part, 10)})
    monkeypatch.setattr(whole_test, "machine", lambda lab: "a GPU")
    monkeypatch.setattr(sys, "argv", ["run.sh", str(harness.BUILD), str(tmp_path / "out")])
    assert whole_test.main() == 0 and kept == [["one"], ["one", "two"]]


# -- what PyTorch says of itself -----------------------------------------------------------------------


def pytorch_dump(*more, without=()):
    """Steps 1 and 2 of a program: an operator with a launch in each, a range, and 100 bytes that stay beside 30 that go."""
    records = [{"kind": "header", "gpu_times_missing": "", "step_source": "nvtx:step", "versions": {}},
               {"kind": "step", "number": 1, "in_window": True, "begin_mono_ns": 100, "end_mono_ns": 200},
               {"kind": "step", "number": 2, "in_window": True, "begin_mono_ns": 200, "end_mono_ns": 300},
               {"kind": "annotation", "name": "Optimizer.step", "index": 9, "begin_mono_ns": 100}]
    for index, at in ((10, 110), (20, 210)):
        records += [{"kind": "op", "name": "aten::mm", "index": index, "begin_mono_ns": at},
                    {"kind": "launch", "name": "cudaLaunchKernel", "label": "gemm", "result": 0, "operator": index, "partner": index + 2},
                    {"kind": "gpu_kernel", "name": "gemm", "label": "gemm", "operator": index}]
    for at, size, total in ((110, 100, 150), (120, 30, 180), (130, -30, 150), (210, 30, 180), (220, -30, 150)):
        records.append({"kind": "tensor", "device_type": 1, "begin_mono_ns": at, "bytes": size, "total_allocated": total,
                        "total_reserved": 1000})
    records = [r for r in records if (r["kind"], r.get("begin_mono_ns")) not in without]
    return figures.Dump(json.dumps(r) for r in [*records, *more])


TOLD = [[50, 60], [150, 180], [150, 180], [0, 0]]


def test_operators_are_those_of_torch_profiler():
    dump = pytorch_dump()
    listed = {"aten::mm": 2, "Optimizer.step": 1}
    assert judge.operators(dump, {**listed, "## Call CompiledFxGraph f ##": 2, "triton_poi_fused_0": 1}) == []
    assert judge.operators(dump, {**listed, "aten::mm": 3}) == ["1 operators differ, the first 2 to 3: aten::mm"]
    assert judge.operators(dump, {**listed, "aten::add": 1}) == ["1 operators differ, the first 0 to 1: aten::add"]
    assert judge.operators(dump, {}) == ["2 operators differ, the first 1 to 0: Optimizer.step"]


def test_launches_lie_within_operators():
    assert judge.owners(pytorch_dump()) == []
    replay = [{"kind": "launch", "name": "cudaGraphLaunch", "label": "cudaGraphLaunch", "result": 0},
              {"kind": "gpu_kernel", "name": "gemm", "label": "gemm", "graph": 1}]
    assert judge.owners(pytorch_dump(*replay)) == []
    for owner in ({}, {"operator": 9}, {"operator": 77}):
        alone = {"kind": "launch", "name": "cudaLaunchKernel", "label": "alone", "result": 0, **owner}
        assert judge.owners(pytorch_dump(alone)) == ["1 launches, copies and kernels belong to no operator, the first: alone"]


def test_memory_is_what_pytorch_says():
    assert judge.memory(pytorch_dump(), TOLD) == []
    assert judge.memory(pytorch_dump(), [*TOLD[:2], [150, 190], TOLD[3]]) == ["step 2: 150 bytes allocated, at most 180; PyTorch 150, 190"]
    assert judge.memory(pytorch_dump(), [*TOLD[:2], [149, 180], TOLD[3]]) == ["step 2: 150 bytes allocated, at most 180; PyTorch 149, 180"]
    lost = judge.memory(pytorch_dump(without={("tensor", 130)}), TOLD)
    assert lost == ["2 times the allocator's total is not what was given less what was taken back",
                    "step 1: 180 bytes allocated, at most 180; PyTorch 150, 180"]
    assert judge.memory(pytorch_dump(), []) == judge.memory(pytorch_dump(), TOLD[:2]) == ["no account of memory to compare with"]


def test_launches_of_graphs_have_gpu_work_or_are_said_to_have_none():
    launch = {"kind": "launch", "name": "cudaGraphLaunch", "label": "cudaGraphLaunch", "result": 0}
    untimed = {"kind": "summary", "losses": {"graph_untimed": 1}}
    assert judge.graphs(pytorch_dump({**launch, "partner": 5})) == judge.graphs(pytorch_dump(launch, untimed)) == []
    assert judge.graphs(pytorch_dump()) == ["no launch of a graph"]
    assert judge.graphs(pytorch_dump(launch)) == ["1 of 3 launches without GPU work, 0 of them said"]
    assert judge.graphs(pytorch_dump(launch, {"kind": "summary", "losses": {"dropped": 1}}))[0] == "losses {'dropped': 1}"


def test_the_folder_needs_nothing_beside_it(tmp_path):
    shutil.copytree(GPU, tmp_path / "gpu")
    for folder, modules in (("gpu", "run"), ("gpu/programs", "stepper")):
        done = harness.run([sys.executable, "-S", "-c", f"import {modules}"], cwd=tmp_path / folder)
        assert done.code == 0, done.err


def test_package(tmp_path):
    """The folder that travels: what is in it runs, and says what it is."""
    if not shutil.which("strip"):
        pytest.skip("no strip here (Debian: binutils), which makes the package small")
    subprocess.run([GPU / "package.sh", tmp_path / "package", harness.BUILD], check=True, capture_output=True,
                   env={**os.environ, "PATH": "/usr/bin:/bin"})
    package = tmp_path / "package"
    assert harness.run([package / "gpuprof", "lib"]).out.strip() == str(package / "libgpuprof.so")
    size = sum(p.stat().st_size for p in package.rglob("*") if p.is_file())
    assert harness.SANITIZER or size < 64 << 20, "a GPU machine may take no more"
    assert lab_module.Lab(pathlib.Path(package), tmp_path / "out", 1).library == package / "libgpuprof.so"
