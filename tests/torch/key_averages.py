# SPDX-License-Identifier: Apache-2.0
"""Compares the report's tables of operators, by name and by shapes of inputs, with key_averages() of torch.profiler, for
twelve training scripts on the simulated stack. Each runs three times:

both   gpuprof and torch.profiler record the same steps of one run: counts, and the CPU's time. torch.profiler has CUPTI.
torch  torch.profiler alone, with CUDA's activity; the report is of its trace: counts, the GPU's and the CPU's time
ours   gpuprof alone: the GPU's time, against that of the run before. Kernels last as long in each."""
import collections
import json
import pathlib
import sys

import harness
from stack import simulated

HERE = pathlib.Path(__file__).resolve().parent
PUBLIC = HERE / "scripts/public.py"
FIRST, ACTIVE = 5, 6

# By name: ranks, and the script with its arguments; {} is a folder.
SCRIPTS = {
    **{name: (1, [PUBLIC, name]) for name in ("resnet", "nanogpt", "dcgan", "mnist", "accumulation", "compiled", "lstm", "lr_finder")},
    "trainer": (1, [HERE / "scripts/trainer_loop.py", "{}"]),
    "lightning": (1, [HERE / "scripts/lightning_loop.py"]),
    "ddp": (2, [HERE / "scripts/two_ranks.py", "nccl"]),
    "fsdp": (2, [HERE / "scripts/groups.py", "fsdp", "{}"]),
}


def run(folder, way, name):
    """One run of a script; the folder with what it left."""
    ranks, command = SCRIPTS[name]
    here = folder / way
    here.mkdir(parents=True)
    command = [str(each).replace("{}", str(here)) for each in command]
    if way != "ours":
        command = [HERE / "averages_of.py", *(["--cuda"] if way == "torch" else []), here / "averages_%r.json",
                   here / "trace_%r.json", str(FIRST), str(ACTIVE), *command]
    if ranks > 1:
        command = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), *command]
    base = harness.environment() if way == "torch" else harness.preloaded(
        GPUPROF_OUTPUT=here / "out", GPUPROF_STEP="optimizer", GPUPROF_ACTIVITIES="+op:shapes",
        GPUPROF_SCHEDULE=f"skip_first={FIRST},warmup={int(way == 'ours')},active={ACTIVE}".replace(
            "skip_first=5,warmup=1", "skip_first=4,warmup=1"))
    done = harness.run([sys.executable, *command], env={**simulated(base), "SIMCUDA_DEVICES": str(ranks)}, timeout=900)
    assert done.code == 0, done.err
    return here


def plain_shape(text):
    """Shapes as key_averages() lists them: none of the tensors in a list."""
    return json.dumps([[] if each and isinstance(each[0], list) else each for each in json.loads(text or "[]")], separators=(",", ":"))


def summed(rows):
    """{"name" or "shape": {key: sums}} of rows with name, shape, count and times; those by name have no shape."""
    out = {"name": {}, "shape": {}}
    for by, row in rows:
        key = row["name"] if by == "name" else (row["name"], plain_shape(row["shape"]))
        sums = out[by].setdefault(key, collections.Counter())
        sums.update({field: row[field] for field in ("count", "cpu_self_us", "cpu_call_us", "gpu_us", "gpu_self_us") if field in row})
    return out


def reported(path):
    report = json.loads(harness.checked("report", path, "--by", "shape", "--format", "json").out)
    return summed([*(("name", row) for row in report["operators"]), *(("shape", row) for row in report["operators_by"]["rows"])])


def averaged(here, ranks):
    """The same of key_averages(), of all ranks; without its rows for CUDA's calls and for itself."""
    rows = []
    for rank in range(ranks):
        events = json.loads((here / f"trace_{rank}.json").read_text())["traceEvents"]
        listed = {event["name"] for event in events if event.get("cat") in ("cpu_op", "user_annotation")}
        for by, table in json.loads((here / f"averages_{rank}.json").read_text()).items():
            rows += [(by, row) for row in table if row["name"] in listed and not row["name"].startswith("ProfilerStep")]
    return summed(rows)


def only_ours(here, ranks):
    """How often gpuprof has each row where key_averages() has none: NVTX ranges (NCCL's own), and operators on threads that
    torch.profiler does not profile. It knows the thread that starts it and those of the backward pass; not, say, the
    loader's that pins memory."""
    seen = set()
    for rank in range(ranks):
        events = json.loads((here / f"trace_{rank}.json").read_text())["traceEvents"]
        seen |= {(event["pid"], event["tid"]) for event in events if event.get("cat") in ("cpu_op", "user_annotation")}
    out = {"name": collections.Counter(), "shape": collections.Counter()}
    for dump in harness.dumps(here / "out"):
        pid = harness.info(dump)["files"][0]["pid"]
        for record in harness.of_kind(harness.records(dump), "op", "annotation", "nvtx_range"):
            if record["kind"] == "nvtx_range" or (pid, record["lane"]["tid"]) not in seen:
                out["name"][record["name"]] += 1
                out["shape"][record["name"], plain_shape(json.dumps(record.get("input_dims", [])))] += 1
    return out


def folded(table):
    """Own times as key_averages() has them around collectives: PyTorch's range of one (nccl:all_reduce) ends on another
    thread, so that it is none of the tree there, and is counted alone. What is in it is the operator's around it."""
    out = {key: row for key, row in table.items() if not str(key).startswith("nccl")}
    if "record_param_comms" in out:
        inner = [row for key, row in table.items() if str(key).startswith("nccl")]
        out["record_param_comms"] = collections.Counter(out["record_param_comms"])
        for field in ("cpu_self_us", "cpu_call_us", "gpu_self_us"):
            out["record_param_comms"][field] += sum(row[field] for row in inner)
    return out


def without(table, unseen):
    """Without these calls; what of a row's times is theirs is not known."""
    left = {key: collections.Counter({**row, "count": row["count"] - unseen[key]}) for key, row in table.items()}
    return {key: row for key, row in left.items() if row["count"] > 0}


def reported_traces(here, ranks):
    folder = here / "traces"
    folder.mkdir()
    for rank in range(ranks):
        (here / f"trace_{rank}.json").rename(folder / f"trace_{rank}.json")
    return reported(folder)


def per_cent(ours, theirs):
    return 100 * abs(ours - theirs) / theirs if theirs else 100.0 * (ours > 0)


def is_cut(key):
    """The window begins and ends in an optimizer's step: what of that is in it differs by where. By shape the range of a
    collective and the operator around it have different ones (see folded())."""
    name = key if isinstance(key, str) else key[0]
    return name.startswith("Optimizer.step#") or not isinstance(key, str) and name in ("record_param_comms",) or name.startswith("nccl:")


def counts_that_differ(ours, theirs):
    return sorted((str(key), ours.get(key, {}).get("count", 0), theirs.get(key, {}).get("count", 0))
                  for key in {*ours, *theirs} if ours.get(key, {}).get("count", 0) != theirs.get(key, {}).get("count", 0))


def largest_difference(ours, theirs, field, of_all=0.0):
    """(per cent, key, ours, theirs) of the row with the largest one among those that have at least `of_all` per cent of the
    sum of all rows."""
    least = of_all / 100 * sum(row[field] for row in theirs.values())
    return max(((per_cent(ours[key][field], row[field]), str(key), ours[key][field], row[field]) for key, row in theirs.items()
                if key in ours and not is_cut(key) and row[field] > 0 and row[field] >= least), default=(0.0, "", 0, 0))


def difference_in_all(ours, theirs, field):
    return per_cent(*(sum(table[key][field] for key in theirs if key in ours and not is_cut(key)) for table in (ours, theirs)))


def between_runs(table, ranks):
    """What kernels take in any run: a collective's, and so all that is around it, takes as long as it waits for other ranks."""
    if ranks == 1:
        return [(table, "gpu_us"), (table, "gpu_self_us")]
    return [({key: row for key, row in table.items() if key != "record_param_comms"}, "gpu_self_us")]


def dispatch(table):
    """With `cpu_self_us` as key_averages() has it where it knows CUDA's calls: without them."""
    return {key: collections.Counter({**row, "cpu_self_us": row["cpu_self_us"] - row["cpu_call_us"]}) for key, row in table.items()}


def compare(folder, name):
    """Of one script, by name and by shape: rows, the counts that differ, and differences of times in per cent."""
    ranks = SCRIPTS[name][0]
    both, ours = run(folder, "both", name), run(folder, "ours", name)
    # In some short windows it has no GPU work (docs/PYTORCH.md, "CUDA without a GPU").
    for attempt in range(5):
        torch = run(folder / str(attempt), "torch", name)
        alone = averaged(torch, ranks)
        if any(row["gpu_us"] for row in alone["name"].values()):
            break
    at_once = averaged(both, ranks)
    unseen = only_ours(both, ranks)
    of_both = {by: without(table, unseen[by]) for by, table in reported(both / "out").items()}
    of_trace, of_ours = reported_traces(torch, ranks), reported(ours / "out")
    counts = {by: [*counts_that_differ(of_both[by], at_once[by]), *counts_that_differ(of_trace[by], alone[by])] for by in of_both}
    of_both, of_trace, of_ours = ({by: folded(table) for by, table in each.items()} for each in (of_both, of_trace, of_ours))
    return {by: {
        "rows": len(at_once[by]),
        "counts": counts[by],
        "gpu": max(largest_difference(of_trace[by], alone[by], "gpu_us"), largest_difference(of_trace[by], alone[by], "gpu_self_us"),
                   *(largest_difference(of_ours[by], each, field) for each, field in between_runs(alone[by], ranks))),
        "cpu_self_read": largest_difference(dispatch(of_trace[by]), alone[by], "cpu_self_us"),
        "cpu_self_of_1_pct": largest_difference(of_both[by], at_once[by], "cpu_self_us", 1),
        "cpu_self_in_all": difference_in_all(of_both[by], at_once[by], "cpu_self_us"),
    } for by in ("name", "shape")}
