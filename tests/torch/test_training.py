# SPDX-License-Identifier: Apache-2.0
"""Unmodified training scripts on a real PyTorch: same output and exit code, the exact number of steps, and each
operator as often as torch.profiler says in a run of its own."""
import collections
import functools
import json
import os
import pathlib
import re
import sys

import pytest

import equalities
import harness

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "scripts/train.py"
STEPS, FIRST = 40, 28  # the window ends with the script's last step
SETTINGS = {"GPUPROF_STEP": "optimizer",  # no CUDA here, which `auto` waits for
            "GPUPROF_SCHEDULE": f"skip_first={FIRST - 2},warmup=2,active={STEPS - FIRST}", "GPUPROF_LOG": "info"}


def environment(**settings):
    return {**settings, "LD_LIBRARY_PATH": os.environ["GPUPROF_TORCH_LIBRARIES"], "PYTHONDONTWRITEBYTECODE": "1"}


def profiled(folder, *command, **settings):
    bare = harness.run(command, env=environment_of(harness.environment(), settings), timeout=400)
    seen = harness.run(command, env=environment_of(harness.preloaded(GPUPROF_OUTPUT=folder / "out", **SETTINGS), settings),
                       timeout=400)
    assert bare.code == 3, bare.err
    assert (seen.code, seen.out) == (bare.code, bare.out), seen.err
    return seen


def environment_of(base, settings):
    return {**base, **environment(**settings)}


@functools.cache
def torch_trace(folder, model, *options):
    """Events of torch.profiler in the same steps."""
    trace = folder / f"{model}.json"
    done = harness.run([sys.executable, HERE / "under_profiler.py", *options, trace, FIRST, STEPS - FIRST, SCRIPT, model],
                       env=environment_of(harness.environment(), {}), timeout=400)
    assert done.code == 3, done.err
    return json.loads(trace.read_text())["traceEvents"]


def torch_says(folder, model):
    """Names of what torch.profiler lists in the same steps, with how often."""
    return equalities.listed_operators(torch_trace(folder, model))


# What the DataLoader makes of a batch when it comes from a worker, which may be a step earlier or later.
OF_BATCHES = ("aten::empty", "aten::set_")


def is_operator(name):
    return not name.startswith("ProfilerStep#")


@pytest.mark.parametrize("model", ["mlp", "conv", "transformer"])
def test_training(tmp_path, model):
    done = profiled(tmp_path, sys.executable, SCRIPT, model)
    assert f"steps {FIRST}-{STEPS - 1} (optimizer)" in done.err
    [dump] = harness.dumps(tmp_path / "out")
    records = harness.records(dump)
    assert [r["number"] for r in records if r["kind"] == "step"] == list(range(STEPS))
    assert harness.info(dump)["losses"].keys() <= {"sample_torn"}

    ours = collections.Counter(r["name"] for r in records if r["kind"] in ("op", "annotation"))
    theirs = torch_says(tmp_path, model)
    different = {n: (ours[n], theirs[n]) for n in {*ours, *theirs} if ours[n] != theirs[n] and is_operator(n) and n not in OF_BATCHES}
    assert different == {} and len(ours) > 30
    assert_backward_is_joined(records)
    assert_tensors_add_up(records)
    assert_exported(tmp_path, dump, ours)


def assert_backward_is_joined(records):
    nodes = [r for r in records if r["kind"] == "op" and re.fullmatch(r"\w+Backward\d", r["name"])]
    assert nodes and all("sequence_number" in node and node["forward_thread"] > 0 for node in nodes)


def assert_tensors_add_up(records):
    """A block is given before it is taken back, with the same size, and not given twice."""
    live, back = {}, 0
    tensors = sorted((r for r in records if r["kind"] == "tensor"), key=lambda r: r["begin_mono_ns"])
    for tensor in tensors:
        assert tensor["device_type"] == 0
        if tensor["bytes"] > 0:
            assert tensor["address"] not in live
            live[tensor["address"]] = tensor["bytes"]
        elif tensor["address"] in live:
            back += 1
            assert live.pop(tensor["address"]) == -tensor["bytes"]
        else:
            assert tensor["bytes"] == 0, "given before the window"
    assert back > 100 and len(live) < 100


def assert_exported(folder, dump, ours):
    for form in ("chrome", "perfetto"):
        harness.checked("convert", dump, "--to", form, "-o", folder / form)
    events = json.loads((folder / "chrome").read_text())["traceEvents"]
    exported = equalities.listed_operators(events)
    assert {name: exported[name] for name in ours} == dict(ours)
    assert sum(1 for e in events if e.get("cat") == "fwdbwd") > 0
    harness.checked("report", dump)


def inputs_of(name, dims, types):
    """What both tell of an operator's inputs: of tensors and one list of them all; of scalars torch.profiler has not the
    type, we have not the shapes in several lists."""
    lists = sum(isinstance(each, list) and bool(each) and isinstance(each[0], list) for each in dims)
    tensors = [[] if lists > 1 and each and isinstance(each[0], list) else each for each in dims]
    return name, str(tensors), str([each if each[:1].islower() else "" for each in types])


def test_shapes_in_lists_of_tensors(tmp_path):
    """A script of joins and stacks: each operator with each shapes as often as torch.profiler has it. Its trace has the
    shapes in lists of tensors; its table, key_averages(group_by_input_shape=True), has none for them."""
    command = [sys.executable, HERE / "scripts/lists.py", tmp_path / "theirs.json"]
    seen = harness.run(command, timeout=400, env=environment_of(harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="optimizer", GPUPROF_ACTIVITIES="+op:shapes",
        GPUPROF_SCHEDULE="skip_first=2,warmup=0,active=2"), {}))
    assert seen.code == 0, seen.err
    theirs = {way: {tuple(key): count for key, count in rows}
              for way, rows in json.loads((tmp_path / "theirs.json").read_text()).items()}
    [dump] = harness.dumps(tmp_path / "out")
    rows = json.loads(harness.checked("report", dump, "--by", "shape", "--format", "json").out)["operators_by"]["rows"]
    ours = collections.Counter({(row["name"], row["shape"]): row["count"] for row in rows if row["kind"] == "operator"})
    assert ("aten::cat", "[[[3,4],[2,4]],[]]") in ours and ("aten::cat", "[[[3,4]],[]]") in ours

    def different(theirs, ours):
        return {key: (ours.get(key, 0), count) for key, count in theirs.items() if ours.get(key, 0) != count}
    of_optional = ("aten::index", "aten::_index_put_impl_")  # lists of tensors that may be none: its trace has no shapes of them
    assert ("aten::index", "[[3,4],[[2]]]") in ours
    assert different({key: count for key, count in theirs["trace"].items() if key[0] not in of_optional}, ours) == {}
    collapsed = collections.Counter()
    for (name, shape), count in ours.items():
        inputs = [[] if each and isinstance(each[0], list) else each for each in json.loads(shape or "[]")]
        collapsed[name, json.dumps(inputs, separators=(",", ":"))] += count
    assert different({key: count for key, count in theirs["table"].items() if not key[0].startswith("Optimizer.")}, collapsed) == {}
    assert len(theirs["table"]) > 20


def test_tensors_without_sizes(tmp_path):
    """PyTorch's function for shapes throws for some tensors. It says nothing of that, and the operators are there, without shapes."""
    done = profiled(tmp_path, sys.executable, HERE / "scripts/without_sizes.py", GPUPROF_ACTIVITIES="+op:shapes")
    assert "RecordFunction" not in done.err, done.err
    [dump] = harness.dumps(tmp_path / "out")
    records = harness.records(dump)
    operators = [r for r in records if r["kind"] == "op"]
    header = next(r for r in records if r["kind"] == "header")
    assert min(r["begin_mono_ns"] for r in operators) >= header["window_begin_mono_ns"]
    without = [r for r in operators if "input_types" in r and "input_dims" not in r]
    assert {"aten::mul", "aten::to_padded_tensor"} <= {r["name"] for r in without}
    assert len([r for r in operators if "input_dims" in r]) > len(without)
    assert len([r for r in operators if r["name"] == "aten::to_padded_tensor"]) == STEPS - FIRST


def test_shapes_and_layers(tmp_path):
    profiled(tmp_path, sys.executable, SCRIPT, "transformer", GPUPROF_ACTIVITIES="+op:shapes,+module")
    [dump] = harness.dumps(tmp_path / "out")
    records = harness.records(dump)
    theirs = torch_trace(tmp_path, "transformer", "--all")

    shapes = collections.Counter(inputs_of(r["name"], r["input_dims"], r["input_types"])
                                 for r in records if r["kind"] == "op" and "input_dims" in r)
    expected = collections.Counter(inputs_of(e["name"], e["args"]["Input Dims"], e["args"]["Input type"])
                                   for e in theirs if e.get("cat") == "cpu_op" and "Input Dims" in e.get("args", {}))
    different = {k: (shapes[k], n) for k, n in expected.items() if shapes[k] != n and k[0] not in OF_BATCHES}
    assert different == {} and len(expected) > 50

    layers = collections.Counter(r["name"] for r in records if r["kind"] == "module")
    steps = STEPS - FIRST
    assert layers["nn.Module: Sequential"] == steps and layers["nn.Module: Sequential.0.norm (LayerNorm)"] == 3 * steps
    assert layers["nn.Module: Sequential.0.feed.1 (GELU)"] == steps
    classes = collections.Counter(re.search(r"(\w+)\)?$", name)[1] for name in layers.elements())
    assert classes == collections.Counter(re.sub(r"nn.Module: (\w+)_\d+", r"\1", e["name"]) for e in theirs
                                          if e.get("cat") == "python_function" and e["name"].startswith("nn.Module: "))
    report = json.loads(harness.checked("report", dump, "--format", "json").out)
    rows = {row["name"]: row for row in report["modules"]}
    assert rows["nn.Module: Sequential.0 (Block)"]["count"] == steps


@pytest.mark.parametrize("reason", ["no_workers", "few_workers", "cpu", "disk", "starting", "elsewhere"])
def test_why_data_is_late(tmp_path, reason):
    if reason == "few_workers" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: there is none for another worker")
    folder = tmp_path / "data"
    folder.mkdir()
    done = harness.run((sys.executable, HERE / "scripts/loading.py", reason, folder), timeout=400, env=environment_of(
        harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **SETTINGS), {"GPUPROF_SCHEDULE": "skip_first=6,warmup=2,active=32"}))
    assert done.code == 3, done.err
    [dump] = harness.dumps(tmp_path / "out")
    report = json.loads(harness.checked("report", dump, "--format", "json").out)
    loading = report["data_loading"]
    if reason == "few_workers" and loading["queued_pct"] > loading["on_cpu_pct"]:
        pytest.skip("other programs use the CPUs: there is none for another worker")
    assert loading["limit"] == reason, loading
    [finding] = [f for f in report["findings"] if f["kind"] == "late_data"]  # there is no GPU work to have a verdict on
    assert finding["value"] > 30 and "batches: " in finding["text"]


def test_workers_record_what_batches_wait_for(tmp_path):
    script = HERE / "scripts/loading.py"
    [slow] = [number for number, line in enumerate(script.read_text().splitlines(), 1) if "sum(range(" in line]
    done = harness.run((sys.executable, script, "few_workers", tmp_path), timeout=400, env=environment_of(
        harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **SETTINGS),
        {"GPUPROF_SCHEDULE": "skip_first=6,warmup=2,active=32", "GPUPROF_WORKERS": "1"}))
    assert done.code == 3, done.err
    files = harness.info(tmp_path / "out")["files"]
    assert [(f["worker"], f["parent_pid"]) for f in files] == [(-1, 0), (0, files[0]["pid"])]
    assert all(f["completeness"] == "complete" for f in files)
    report = json.loads(harness.checked("report", tmp_path / "out", "--format", "json").out)
    lines = report["worker_lines"]
    in_loop = [row for row in lines if (row["file"], row["line"]) in ((str(script), slow), (str(script), slow - 1))]
    assert sum(row["busy_pct"] for row in in_loop) > 60, lines
    [finding] = [f for f in report["findings"] if f["kind"] == "late_data"]
    assert "in the workers Python line loading.py:" in finding["text"]
    assert report["ranks"] == 1 and len(report["curves"]) <= 1


def test_the_scripts_own_profiler_sees_nothing_of_ours(tmp_path):
    """Its output has all names that torch.profiler lists, and must be that without gpuprof."""
    done = profiled(tmp_path, sys.executable, HERE / "scripts/under_own_profiler.py")
    assert f"steps {FIRST}-{STEPS - 1} (optimizer)" in done.err and "aten::sum" in done.out


def test_an_optimizer_over_another_makes_one_step(tmp_path):
    done = profiled(tmp_path, sys.executable, HERE / "scripts/own_optimizer.py")
    assert f"steps {FIRST}-{STEPS - 1} (optimizer)" in done.err
    [dump] = harness.dumps(tmp_path / "out")
    assert [r["number"] for r in harness.records(dump) if r["kind"] == "step"] == list(range(STEPS))


def test_layers_have_the_names_that_pytorch_gives_them(tmp_path):
    """Six models: lists, dictionaries, sequences, lists in lists, a layer at two places, checkpoints, DDP, FSDP2."""
    steps, first = 4, 1
    command = [sys.executable, HERE / "scripts/layers.py", tmp_path / "expected.json", str(steps)]
    seen = harness.run(command, timeout=400, env=environment_of(harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STEP="optimizer", GPUPROF_ACTIVITIES="+module",
        GPUPROF_SCHEDULE=f"skip_first={first},warmup=0,active={steps - first}"), {}))
    assert seen.code == 0, seen.err
    expected = json.loads((tmp_path / "expected.json").read_text())
    [dump] = harness.dumps(tmp_path / "out")
    found = {}
    for record in harness.records(dump):
        if record["kind"] == "module":
            name = re.fullmatch(r"nn.Module: ([^ ]+)(?: \((\w+)\))?", record["name"])
            found[name[1]] = name[2] or name[1]
    assert found == expected
    rows = {row["name"].removeprefix("nn.Module: ").split(" ")[0]: row for row in
            json.loads(harness.checked("report", dump, "--format", "json").out)["modules"]}
    assert rows.keys() == expected.keys()

    def around(path):
        while "." in path:
            path = path.rpartition(".")[0]
            if path in rows:
                return path
        return None
    # These run what is in them once more in the backward pass, outside of themselves.
    again = {"Checkpointed", *(path for path in rows if path.startswith("Wrapped.blocks.") and path.count(".") == 2)}
    assert len(again) == 4
    for path, row in rows.items():
        inner = sum(each["cpu_us"] for name, each in rows.items() if around(name) == path)
        if path in again:
            assert inner > row["cpu_us"] - row["cpu_self_us"], path
        else:
            assert inner + row["cpu_self_us"] == pytest.approx(row["cpu_us"], rel=0.02), path


def test_a_look_at_layers_may_run_the_programs_code(tmp_path):
    """What is called meanwhile has no path; the model that is looked at has all of its own."""
    done = profiled(tmp_path, sys.executable, HERE / "scripts/layers_that_call.py", GPUPROF_ACTIVITIES="+module",
                    GPUPROF_SCHEDULE="skip_first=1,warmup=0,active=4")
    [dump] = harness.dumps(tmp_path / "out")
    names = collections.Counter(r["name"] for r in harness.records(dump) if r["kind"] == "module")
    assert names["nn.Module: Sequential.0 (Looked)"] == 4, done.err
    assert all(names[f"nn.Module: Sequential.{i}.inner (Identity)"] >= 4 for i in range(1, 301)), names


def test_a_module_that_raises(tmp_path):
    """Once caught, once not, in the window: calls around it end where it does, and so does the program."""
    command = (sys.executable, HERE / "scripts/raises.py")
    bare = harness.run(command, env=environment_of(harness.environment(), {}), timeout=400)
    seen = harness.run(command, timeout=400, env=environment_of(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **SETTINGS),
                                                                {"GPUPROF_ACTIVITIES": "+module"}))
    assert (seen.code, seen.out) == (bare.code, bare.out) == (1, "caught\n"), seen.err
    assert seen.err.splitlines()[-2:] == [*bare.err.splitlines()[-1:], harness.our_lines(seen.err)[-1]]
    [dump] = harness.dumps(tmp_path / "out")
    calls = [r for r in harness.records(dump) if r["kind"] == "module"]
    names = collections.Counter(r["name"] for r in calls)
    assert names["nn.Module: Sequential"] == names["nn.Module: Sequential.1 (Raises)"] == 2
    last = {r["name"]: r for r in calls if r["begin_mono_ns"] == max(c["begin_mono_ns"] for c in calls if c["name"] == r["name"])}
    assert "parent_id" not in last["nn.Module: Linear"], "what raised is still open"


def test_compiled_code_is_the_same(tmp_path):
    """No warning, no break of a graph, nothing compiled again."""
    done = profiled(tmp_path, sys.executable, HERE / "scripts/compiled.py", GPUPROF_ACTIVITIES="+module")
    assert "calls of modules are not recorded: torch.compile" in done.err


def test_ranges_that_end_on_another_thread(tmp_path):
    """More than there is room for at once."""
    done = profiled(tmp_path, sys.executable, HERE / "scripts/asynchronous.py",
                    GPUPROF_SCHEDULE="skip_first=3,warmup=1,active=2")
    [dump] = harness.dumps(tmp_path / "out")
    found = [r for r in harness.of_kind(harness.records(dump), "annotation") if r["name"] == "request"]
    assert len(found) == 600 and len({r["lane"]["tid"] for r in found}) == 1, done.err
    assert not any(r["flags"] for r in found) and all(r["duration_ns"] > 0 for r in found)
    assert harness.info(dump)["files"][0]["losses"].get("operator_depth", 0) == 0


def test_native_samples(tmp_path):
    """PyTorch's functions of C++ above the lines that called them."""
    profiled(tmp_path, sys.executable, HERE / "scripts/sorting.py", GPUPROF_ACTIVITIES="step,samples:native",
             GPUPROF_SCHEDULE=f"skip_first=1,warmup=1,active={STEPS - 2}")
    [dump] = harness.dumps(tmp_path / "out")
    stacks = [[frame.split(" (")[0] for frame in sample["stack"]] for sample in harness.of_kind(harness.records(dump), "sample")]
    of_sort = [stack for stack in stacks if any(frame.startswith("at::") for frame in stack) and "sort_rows" in stack]
    assert len(of_sort) > 3, stacks
    for stack in of_sort:
        last = max(i for i, frame in enumerate(stack) if frame.startswith("at::"))
        assert last < stack.index("sort_rows") < stack.index("main") and not any("_PyEval" in frame for frame in stack), stack


@pytest.mark.parametrize("way", ["module", "isolated", "torchrun"])
def test_ways_to_start(tmp_path, way):
    if way == "module":
        command = [sys.executable, "-m", "train", "mlp"]
    elif way == "isolated":
        command = [sys.executable, "-I", SCRIPT, "mlp"]
    else:
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--no-python", sys.executable,
                   HERE / "scripts/two_ranks.py"]
    if way == "torchrun":
        seen = harness.run(command, env=environment_of(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **SETTINGS), {}),
                           timeout=500)
        assert (seen.code, sorted(seen.out.split())) == (0, ["rank0", "rank1"]), seen.err
    else:
        profiled(tmp_path, *command, PYTHONPATH=str(SCRIPT.parent))
    found = harness.dumps(tmp_path / "out")
    assert len(found) == (2 if way == "torchrun" else 1)
    for dump in found:
        records = harness.records(dump)
        assert [r["number"] for r in records if r["kind"] == "step"] == list(range(STEPS))
        assert any(r["kind"] == "op" and r["name"] == "aten::addmm" for r in records)


def test_torch_profiler_in_the_script_works_as_without_us(tmp_path):
    """Both see each operator of the steps that both record."""
    trace = tmp_path / "theirs.json"
    command = [sys.executable, HERE / "under_profiler.py", trace, FIRST, STEPS - FIRST, SCRIPT, "mlp"]
    done = harness.run(command, env=environment_of(harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **SETTINGS), {}),
                       timeout=400)
    assert done.code == 3, done.err
    events = json.loads(trace.read_text())["traceEvents"]
    theirs = equalities.listed_operators(events)
    [dump] = harness.dumps(tmp_path / "out")
    ours = collections.Counter(r["name"] for r in harness.records(dump) if r["kind"] in ("op", "annotation"))
    different = {n: (ours[n], theirs[n]) for n in {*ours, *theirs} if ours[n] != theirs[n] and is_operator(n)}
    assert different == {} and len(theirs) > 30
    alone = torch_says(tmp_path, "mlp")
    assert {n: c for n, c in theirs.items() if n not in OF_BATCHES} == {n: c for n, c in alone.items() if n not in OF_BATCHES}
