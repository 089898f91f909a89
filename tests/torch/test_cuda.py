# SPDX-License-Identifier: Apache-2.0
"""Unmodified training scripts on PyTorch's CUDA build over the simulated stack. What the dump says is what the
simulator, torch.profiler and PyTorch's own account of its memory say."""
import collections
import json
import pathlib
import pickle
import re
import sys

import pytest

import equalities
import harness
import truth
from stack import profiled, simulated, torch_release

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "scripts/train.py"
STEPS = 40
WHOLE_RUN = range(STEPS)
# What the DataLoader makes of a batch when it comes from a worker, which may be a step earlier or later.
OF_BATCHES = ("aten::empty", "aten::set_")


def under_torch_profiler(folder, window, *arguments):
    """The same script without gpuprof: how it went, and how often each operator and range began in the window, but in
    step 0."""
    trace = folder / "theirs.json"
    first = max(window.start, 1)
    done = harness.run([sys.executable, HERE / "under_profiler.py", trace, first, window.stop - first, SCRIPT, *arguments],
                       env=simulated(harness.environment()), timeout=400)
    return done, equalities.listed_operators(json.loads(trace.read_text())["traceEvents"])


@pytest.mark.parametrize("model, mixed, window", [("mlp", [], WHOLE_RUN), ("conv", [], WHOLE_RUN), ("transformer", [], WHOLE_RUN),
                                                  ("transformer", ["amp"], range(12, 22))])
def test_training(tmp_path, model, mixed, window):
    memory = tmp_path / "memory.json"
    seen, comparison = profiled(tmp_path, window, HERE / "memory_of_steps.py", memory, SCRIPT, model, "cuda", *mixed)
    bare, theirs = under_torch_profiler(tmp_path, window, model, "cuda", *mixed)
    assert bare.code == 3, bare.err
    assert (seen.code, seen.out) == (bare.code, bare.out), seen.err
    assert f"steps {window[0]}-{window[-1]} (optimizer)" in seen.err

    comparison.assert_right(*equalities.WORK)
    assert comparison.summary["losses"].keys() <= {"sample_torn"}
    steps = [r for r in comparison.records if r["kind"] == "step"]
    assert [r["number"] for r in steps][:window.stop] == list(range(window.stop)) and len(steps) <= STEPS
    assert comparison.window_steps() == list(window)
    assert_operators(comparison.records, steps, theirs)
    assert_launches_have_operators(comparison.records, model)
    assert_memory(comparison.records, steps, json.loads(memory.read_text()))


def test_two_ranks(tmp_path):
    """DistributedDataParallel over NCCL, as torchrun starts it: each rank's dump is what the simulator says of it."""
    window = range(10, 30)
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", SIMCUDA_TRUTH=tmp_path / "truth", GPUPROF_LOG="info",
                                      GPUPROF_SCHEDULE=f"skip_first={window.start},warmup=1,active={len(window)}"))
    (tmp_path / "truth").mkdir()
    done = harness.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", HERE / "scripts/two_ranks.py", "nccl"],
                       env={**env, "SIMCUDA_DEVICES": "2"}, timeout=400)
    assert (done.code, sorted(done.out.split())) == (0, ["rank0", "rank1"]), done.err
    dumps = harness.dumps(tmp_path / "out")
    assert len(dumps) == 2
    for dump in dumps:
        comparison = truth.Comparison(dump, tmp_path / "truth")
        comparison.assert_right(*equalities.WORK, "collective")
        assert comparison.summary["losses"].keys() <= {"sample_torn"}
        assert comparison.window_steps() == [window.start + 1 + n for n in range(len(window))]
        owners = {r["index"]: r["name"] for r in harness.of_kind(comparison.records, "op", "annotation")}
        assert all(r.get("operator") in owners for r in harness.of_kind(comparison.records, "launch", "copy"))
        reduces = {owners[r["operator"]] for r in harness.of_kind(comparison.records, "launch") if "nccl" in r["kernel"]}
        assert reduces == {"all_reduce" if torch_release() >= (2, 15) else "nccl:all_reduce"}  # PyTorch's own name
        collectives = [r["name"] for r in harness.of_kind(comparison.records, "collective")]
        assert collectives == ["ncclAllReduce"] * len(window)  # the gradients fit in one bucket
    found = json.loads(harness.checked("report", tmp_path / "out", "--format", "json").out)
    assert found["ranks"] == 2 and [row["count"] for row in found["collectives"]] == [2 * len(window)]
    reduced = [row["count"] for row in found["kernels"] if "AllReduce" in row["name"]]
    assert reduced == [2 * len(window)]


def assert_operators(records, steps, theirs):
    ours = equalities.recorded_operators(r for r in records if r.get("begin_mono_ns", 0) > steps[1]["begin_mono_ns"])
    different = {n: counts for n, counts in equalities.count_differences(ours, theirs).items()
                 if n not in OF_BATCHES and not n.startswith("ProfilerStep#")}
    assert different == {} and len(ours) > 30


def assert_launches_have_operators(records, model):
    """Also the backward pass's, which run on another thread, and those that libraries make through the driver."""
    assert equalities.without_owner(records) == []
    owner = equalities.owner_of(records)
    owners = collections.defaultdict(set)
    for record in harness.of_kind(records, "gpu_kernel"):
        owners[record["name"]].add(owner(record))
    if model == "conv":
        assert owners["sim_cudnn_convolution_forward"] == {"aten::cudnn_convolution"}
        assert owners["sim_cudnn_convolution_wgrad"] == {"aten::convolution_backward"}
    else:
        assert owners["sim_cublasLt_gemm"] == {"aten::addmm"}
    assert any(re.fullmatch(r"aten::_foreach_\w+", name) for names in owners.values() for name in names)


def assert_memory(records, steps, told):
    """`told`: (memory_allocated, max_memory_allocated since the step before) at the end of each step."""
    window = [s for s in steps if s["in_window"]]
    first = window[0]["number"]
    level = told[first - 1][0] if first > 0 else 0  # what is given before the window is in PyTorch's totals alone
    ours, other_totals = equalities.memory_by_step(records, window, level)
    assert other_totals == 0
    assert ours == [tuple(of_step) for of_step in told[first:first + len(window)]]
    assert all(peak > level > 0 for level, peak in ours)


def line_of(text):
    return next(n for n, line in enumerate(SCRIPT.read_text().splitlines(), 1) if text in line)


def test_call_stacks(tmp_path):
    """A launch or a tensor's memory shows PyTorch's own frames, then the lines of the script that led to it."""
    done, comparison = profiled(tmp_path, range(10, 13), SCRIPT, "mlp", "cuda", GPUPROF_STACKS="launch,alloc")
    assert done.code == 3, done.err
    owner = equalities.owner_of(comparison.records)
    launches = [r for r in harness.of_kind(comparison.records, "launch") if r["lane"]["tid"] == comparison.header["pid"]]
    lines = collections.defaultdict(set)
    for launch in launches:
        stack = launch["stack"]
        first = next(i for i, line in enumerate(stack) if ".py:" in line)
        assert any("at::" in line for line in stack[:first]), stack
        script = [line for line in stack if f"({SCRIPT}:" in line]
        assert [line.split(" ")[0] for line in script] == ["main", "<module>"], stack
        lines[owner(launch)].add(int(script[0].rstrip(")").rpartition(":")[2]))
        if owner(launch) == "aten::addmm":
            assert stack[first].startswith("Linear.forward (" if sys.version_info >= (3, 11) else "forward (")
    assert lines["aten::addmm"] == {line_of("loss_of(model(inputs)")}
    of_optimizer = [places for name, places in lines.items() if name.startswith("aten::_foreach_addcdiv")]
    assert of_optimizer == [{line_of("optimizer.step()")}]
    tensors = [r for r in harness.of_kind(comparison.records, "tensor") if r["lane"]["tid"] == comparison.header["pid"]]
    assert all(any(f"main ({SCRIPT}:" in line for line in r["stack"]) for r in tensors if r["bytes"] > 0 and r["device_type"] == equalities.CUDA)
    assert not any("stack" in r for r in tensors if r["bytes"] <= 0)
    inputs = f"main ({SCRIPT}:{line_of('inputs.to(device)')})"
    assert any(inputs in r["stack"] for r in tensors if "stack" in r)
    harness.checked("convert", *harness.dumps(tmp_path / "out"), "--to", "memory-viz", "-o", tmp_path / "memory.pickle")
    snapshot = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    events = [e for trace in snapshot["device_traces"] for e in trace if e["action"] == "alloc"]
    assert any(frame["filename"] == str(SCRIPT) and frame["line"] == line_of("inputs.to(device)") for e in events for frame in e["frames"])


def test_streams_graphs_and_accumulation(tmp_path):
    memory = tmp_path / "memory.json"
    done, comparison = profiled(tmp_path, WHOLE_RUN, HERE / "memory_of_steps.py", memory, HERE / "scripts/streams.py")
    assert (done.code, done.out) == (0, "trained\n"), done.err
    comparison.assert_right(*equalities.WORK, "alloc", "sync")
    records = comparison.records
    steps = harness.of_kind(records, "step")
    assert [r["number"] for r in steps] == list(range(20))
    assert_memory(records, steps, json.loads(memory.read_text()))

    owner = equalities.owner_of(records)
    nobody = [r["name"] for r in equalities.without_owner(records)]
    assert nobody == ["cudaGraphLaunch"] * 40  # a replay is no operator
    replayed = [r for r in harness.of_kind(records, "gpu_kernel") if "graph" in r]
    assert collections.Counter(owner(r) for r in replayed) == {"aten::mm": 40, "aten::clamp_min": 40}
    copies = harness.of_kind(records, "gpu_copy")
    assert len(copies) == 40 and not {r["lane"]["stream"] for r in copies} & {r["lane"]["stream"] for r in replayed}


def test_memory_before_the_window(tmp_path):
    """What was given out before the window has owners, and is all that PyTorch says that it had given out."""
    memory, script = tmp_path / "memory.json", tmp_path / "train.py"
    script.write_text(SCRIPT.read_text())  # not in a folder that is named as PyTorch's
    done, comparison = profiled(tmp_path, range(10, 13), HERE / "memory_of_steps.py", memory, script, "mlp", "cuda",
                                GPUPROF_MEMORY="1", GPUPROF_STACKS="alloc")
    assert done.code == 3, done.err
    live = [r for r in harness.of_kind(comparison.records, "live") if r["moment"] == "window_begins"]
    blocks = [r for r in live if r["api"] == ""]
    assert sum(r["bytes"] for r in blocks) == json.loads(memory.read_text())[9][0] > 0
    assert all(r["device"] == 0 and "stack" in r for r in blocks)
    of_line = collections.Counter()
    for block in blocks:
        line = next((text for text in block["stack"] if f"({script}:" in text), "")
        of_line[int(line.rstrip(")").rpartition(":")[2]) if line else "another thread"] += 1
    assert of_line[line_of("model = make().to(device)")] >= 3  # two layers' weights and biases; at the first Python's frames are not known yet
    assert of_line[line_of("optimizer.step()")] >= 8  # AdamW's two averages of each
    [allocator] = [r for r in harness.of_kind(comparison.records, "allocator") if r["moment"] == "window_begins"]
    assert allocator["reserved"] == sum(r["bytes"] for r in live if r["api"] == "cudaMalloc")
    report = json.loads(harness.checked("report", *harness.dumps(tmp_path / "out"), "--format", "json").out)
    owners = [row["name"] for row in report["memory_owners"]]
    assert "before the window" not in owners and any(f"train.py:{line_of('model = make().to(device)')}" in name for name in owners)


def test_out_of_memory(tmp_path):
    env = simulated(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_MEMORY=1, GPUPROF_STACKS="alloc",
                                      SIMCUDA_MEMORY_MB=300))
    done = harness.run([sys.executable, HERE / "scripts/out_of_memory.py"], env=env, timeout=400)
    assert done.code == 0, done.err
    allocated, reserved, _ = map(int, done.out.split())
    [dump] = harness.dumps(tmp_path / "out")
    records = harness.records(dump)
    [failed] = harness.of_kind(records, "out_of_memory")
    assert (failed["api"], failed["bytes"], failed["device"]) == ("", 24 << 20, 0)
    assert any(line.startswith("fill (") for line in failed["stack"])
    blocks = [r for r in harness.of_kind(records, "live") if r["api"] == ""]
    assert sum(r["bytes"] for r in blocks) == allocated
    [allocator] = harness.of_kind(records, "allocator")
    assert (allocator["allocated"], allocator["reserved"]) == (allocated, reserved)
    assert "out of memory" in harness.checked("report", dump).out


def test_host_memory(tmp_path):
    """Allocations on the host are sampled through all of PyTorch's libraries, and lead to lines of the script."""
    done, comparison = profiled(tmp_path, range(12, 22), SCRIPT, "conv", "cuda", GPUPROF_ACTIVITIES="+malloc:1")
    bare = harness.run([sys.executable, SCRIPT, "conv", "cuda"], env=simulated(harness.environment()), timeout=400)
    assert (done.code, done.out) == (bare.code, bare.out), done.err
    comparison.assert_right(*equalities.WORK)
    given = [r for r in comparison.records if r["kind"] == "heap" and not r["released"]]
    of_torch = [r for r in given if any("libtorch" in line or "at::" in line or "c10::" in line for line in r["stack"])]
    assert len(given) > 100 and len(of_torch) > 20
    assert all(r.get("stack") for r in given)
    dump, = harness.dumps(tmp_path / "out")
    report = json.loads(harness.checked("report", "--format", "json", dump).out)
    assert any(row["place"].startswith("train.py:") for row in report["host_allocations"])


@pytest.mark.parametrize("times", ["events", "cupti"])
def test_torch_profiler_in_the_same_window(times, tmp_path):
    """With times from events each launch has one, and torch.profiler has what it has without gpuprof."""
    script = HERE / "scripts/own_profiler.py"
    bare = harness.run([sys.executable, script, tmp_path / "bare.json"], env=simulated(harness.environment()), timeout=400)
    assert bare.code == 0, bare.err
    done, comparison = profiled(tmp_path, range(12, 22), script, tmp_path / "theirs.json", GPUPROF_GPU_TIMES=times)
    assert done.code == 0, done.err
    launches = harness.of_kind(comparison.records, "launch")
    timed = sum("partner" in record for record in launches)
    assert timed == (len(launches) if times == "events" else 0) and len(launches) >= 200
    assert comparison.summary["losses"] == {}
    bare, theirs = (json.loads((tmp_path / name).read_text()) for name in ("bare.json", "theirs.json"))
    assert theirs["kernels"] == bare["kernels"] > 400
    assert not [call for call in theirs["calls"] if "Event" in call]


def test_an_optimizer_that_is_compiled(tmp_path):
    """Its steps tell nothing: calls of the model are taken, and known in time if they are named."""
    command = [sys.executable, HERE / "scripts/compiled_optimizer.py"]
    done = harness.run(command, timeout=400, env=simulated(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "auto", GPUPROF_LOG="info")))
    assert done.code == 0, done.err
    said = "\n".join(harness.our_lines(done.err))
    assert "what marks its 39 steps (forward) was known only when the program ended, too late for the window of steps 12-21" in said
    assert "set GPUPROF_STEP to it" in said
    done, comparison = profiled(tmp_path, range(12, 22), command[1], GPUPROF_STEP="forward")
    assert done.code == 0, done.err
    assert comparison.window_steps() == list(range(12, 22))
    comparison.assert_right(*equalities.WORK)
