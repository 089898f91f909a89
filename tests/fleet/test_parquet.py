# SPDX-License-Identifier: Apache-2.0
"""Exported tables by DuckDB and Arrow: the report's figures, and what an export does to those before it."""
import collections
import csv
import hashlib
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.parquet
import pytest

import harness
from conftest import DuckDB, QUERIES, export, made_job, report
from support import kineto_traces

WITH_DUCKDB = {**harness.environment(), "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
ROUNDED = 0.0006  # the report's JSON has thousandths
EVENTS = ("gpu_work", "calls", "operators", "collectives", "samples")
PARTS = ("compute", "communication", "transfer", "data_loading", "kernel_launch", "allocation", "synchronization", "other",
         "profiler", "unknown")


def near(value):
    return pytest.approx(value, abs=ROUNDED, rel=1e-9)


@pytest.fixture(scope="module", params=["job", "run"])
def exported(request):
    """An export as DuckDB reads it, and the report of the same input."""
    source, tables = {"job": ("job", "tables"), "run": ("run", "run_tables")}[request.param]
    return DuckDB(request.getfixturevalue(tables)), report(request.getfixturevalue(source))


def test_steps(exported):
    db, told = exported
    found = {(row["rank"], row["window_no"], row["step"]): row for row in db.dicts("select * from steps")}
    assert len(found) == len(told["steps"]) > 0
    for step in told["steps"]:
        row = found[step["rank"], step["window"], step["step"]]
        assert row["duration_ns"] / 1000 == near(step["duration_us"])
        assert {part: row[part + "_ns"] / 1000 for part in PARTS} == {part: near(step["parts_us"][part]) for part in PARTS}
        assert sum(row[part + "_ns"] for part in PARTS) == row["duration_ns"]


def test_kernels(exported):
    db, told = exported
    found = {name: (count, total) for _, _, _, name, count, total, _, _ in db.rows(query("kernels"))}
    assert found == {row["name"]: (row["count"], near(row["total_us"])) for row in told["kernels"]} != {}


def test_copies(exported):
    db, told = exported
    found = db.rows("select name, count(*), sum(bytes), sum(duration_ns) / 1e3 from gpu_work "
                    "where in_steps and kind in ('copy', 'set') group by name")
    assert {name: rest for name, *rest in found} == \
        {row["name"]: [row["count"], row["bytes"], near(row["total_us"])] for row in told["copies"]}


def test_calls(exported):
    db, told = exported
    for kind, table in (("synchronize", "synchronizations"), ("allocate", "allocations")):
        found = db.rows(f"select name, count(*), sum(duration_ns) / 1e3 from calls where call_class = '{kind}' and "
                        "step is not null group by name")
        assert {name: rest for name, *rest in found} == {row["name"]: [row["count"], near(row["total_us"])] for row in told[table]}


def test_collectives(exported):
    db, told = exported
    rows = told["collective_times"]
    assert rows and all(row["matched"] == row["calls"] for row in rows)
    # One call, whatever ranks it has; of messages, which are calls on two ranks, the sums of both.
    found = db.rows("""
      with one as (
        select operation, communicator, sequence, case when operation in ('ncclSend', 'ncclRecv') then peer + group_rank end as pair,
               max(transfer_ns) as transfer, avg(wait_ns) as wait, avg(exposed_ns) as exposed, avg(overlapped_ns) as overlapped
        from collectives where transfer_ns is not null group by all)
      select operation, sum(transfer) / 1e3, sum(wait) / 1e3, sum(exposed) / 1e3, sum(overlapped) / 1e3 from one
      where operation not in ('ncclSend', 'ncclRecv') group by operation""")
    wanted = collections.defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        if row["name"] == "ncclSend, ncclRecv":
            continue
        sums = wanted[row["name"]]
        for i, key in enumerate(("transfer_us", "waiting_us", "exposed_us", "overlapped_us")):
            sums[i] += row[key]
    # Each figure of a row is rounded to a nanosecond, and those of the report to one for each of its rows.
    assert {name: rest for name, *rest in found} == \
        {name: [pytest.approx(value, rel=1e-5, abs=1) for value in sums] for name, sums in wanted.items()}
    counted = db.rows("select operation, group_name, count(*), sum(bytes) from collectives where step is not null group by all")
    assert {(name, group or ""): rest for name, group, *rest in counted} == \
        {(row["name"], row["group"]): [row["count"], row["bytes"]] for row in told["collectives"]}


def test_judgement(exported):
    db, told = exported
    one, = db.dicts("select * from reports")
    assert (one["ranks"], one["steps"]) == (told["ranks"], len(told["steps"]))
    assert [one["step_median_us"], one["step_mean_us"], one["step_p95_us"]] == [near(told["step_time_us"][k]) for k in ("median", "mean", "p95")]
    assert {part: one[part + "_pct"] for part in PARTS} == {part: near(told["breakdown_pct"][part]) for part in PARTS}
    assert one["gpu_utilization_pct"] == near(told["gpu"]["utilization_pct"])
    assert one["replay_error_pct"] == near(told["replay_error_pct"])
    assert db.rows("select cause, share_pct, saves_pct, confidence, few_steps, evidence, advice from verdicts order by position") == [
        (v["cause"], near(v["share_pct"]), near(v["saves_pct"]), near(v["confidence"]), v.get("few_steps"), "\n".join(v["evidence"]),
         v["advice"]) for v in told["verdict"]] != []
    assert db.rows("select kind, message, ends_program, value from findings order by position") == [
        (f["kind"], f["text"], f["ends_program"], near(f["value"])) for f in told["findings"]]


def test_processes(run, run_tables):
    db = DuckDB(run_tables)
    rows = db.dicts("select * from processes order by rank")
    assert [row["rank"] for row in rows] == [0, 1]
    headers = [next(r for r in harness.records(dump) if r["kind"] == "header") for dump in harness.dumps(run)]
    assert {row["pid"] for row in rows} == {header["pid"] for header in headers}
    for row in rows:
        assert row["job"] == "a_b=c_7%"  # as the library keeps the scheduler's
        assert row["world_size"] == 2 and row["completeness"] == "complete"
        assert row["lost"] == 0 and 0 < row["own_cost_pct"] < 100 and row["data_worker"] is False
        assert row["energy_j"] is None and row["clock_offset_ns"] is None  # not sampled; one host
        assert row["run_steps"] > 10 and row["run_begin_ns"] < row["window_begin_ns"] < row["window_end_ns"]


def test_what_a_budget_left_out_is_not_known(budgeted):
    """Rows that were not recorded are told from those that were not there, and no figure is made of what is left."""
    dumps, tables = budgeted
    db = DuckDB(tables)
    found = {row["job"]: row for row in db.dicts("select * from processes")}
    kinds = ("samples", "operators", "stacks", "calls", "waits")
    whole, lean = found["whole"], found["lean"]
    assert whole["left_out"] is None and whole["budget_pct"] is None
    assert [whole[kind + "_until_ns"] for kind in kinds] == [whole["window_end_ns"]] * 5
    header = harness.info(dumps["lean"])["files"][0]
    since = {each["kind"]: each["since_mono_ns"] - header["window_begin_mono_ns"] for each in header["budget"]["left_out"]}
    assert lean["budget_pct"] == 0.2 and set(since) >= {"operators", "calls", "waits"}
    for kind in kinds:
        assert lean[kind + "_until_ns"] - lean["window_begin_ns"] == since.get(kind, lean["window_end_ns"] - lean["window_begin_ns"])
    assert all(text in lean["left_out"] for text in ("PyTorch's operators and layers since step ", "API calls that start no GPU work since step "))
    # A step's part is there as long as all that tells it is.
    needed = {"data_loading": {"operators"}, "allocation": {"operators", "calls"}, "synchronization": {"operators", "waits"},
              "kernel_launch": {"operators", "calls", "waits"}, "other": {"operators", "calls", "waits"}}
    for row in db.dicts("select * from steps where job = 'lean'"):
        end = row["begin_ns"] + row["duration_ns"]
        for part in PARTS:
            known = all(lean[kind + "_until_ns"] >= end for kind in needed.get(part, ()))
            assert (row[part + "_ns"] is not None) == known, (row["step"], part)
    assert db.rows("select count(*) from steps where job = 'whole' and other_ns is null") == [(0,)]
    one, other = db.dicts("select * from reports order by job")
    told = report(dumps["lean"])
    assert (one["job"], one["unknown_causes"].split(", ")) == ("lean", told["unknown_causes"])
    assert all(text in one["left_out"] for text in ("PyTorch's operators and layers since step ", "calls that wait for the GPU since step "))
    assert {part for part in PARTS if one[part + "_pct"] is None} == set(needed) == set(told["unknown_parts"])
    assert other["left_out"] is other["unknown_causes"] is None and all(other[part + "_pct"] is not None for part in PARTS)
    # The queries say of how many steps and jobs they do not know.
    waits = {row["job"]: row for row in db.dicts(query("data_wait"))}
    steps = dict(db.rows("select job, count(*) from steps group by job"))
    (unknown,), = db.rows("select count(*) from steps where job = 'lean' and data_loading_ns is null")
    assert waits["whole"]["unknown_steps"] == 0 and waits["whole"]["steps"] == steps["whole"]
    assert waits["lean"]["unknown_steps"] == unknown > 0 and waits["lean"]["steps"] == steps["lean"] - unknown
    for row in db.dicts(query("verdicts")):
        assert row["unknown_jobs"] == int(row["cause"] in told["unknown_causes"]), row


def test_joins(run_tables):
    """Work points to the call that issued it, and rows to their process."""
    db = DuckDB(run_tables)
    (issued, joined), = db.rows("""
      select count(*), count(c.begin_ns) from gpu_work g
      left join calls c on g.process = c.process and g.issued_ns = c.begin_ns
      where g.issued_ns is not null""")
    assert issued == joined > 0
    for table in ("steps", *EVENTS):
        assert db.rows(f"select count(*) from {table} t anti join processes p on t.process = p.process") == [(0,)]


def test_stacks(tmp_path):
    """Host samples, as `parse` gives them."""
    settings = {"GPUPROF_STEP": "sync:1", "GPUPROF_SCHEDULE": "skip_first=1,warmup=1,active=10", "GPUPROF_OUTPUT": tmp_path / "out"}
    script = harness.SOURCE / "tests/programs/python/slow_lines.py"
    done = harness.run([harness.PYTHON, script, "list_comprehension", 14], harness.preloaded(**settings))
    assert done.code == 0, done.err
    export(tmp_path / "tables", tmp_path / "out")
    dump, = harness.dumps(tmp_path / "out")
    told = harness.of_kind(harness.records(dump), "sample")
    rows = DuckDB(tmp_path / "tables").rows("select thread, name, stack from samples where kind = 'stack'")
    assert sorted(rows) == sorted((r["tid"], r["stack"][0], "\n".join(r["stack"])) for r in told) != []


def test_counters(tmp_path):
    """Counters, as `parse` gives them, and the energy that power makes."""
    command = [harness.SIMTRAIN, "--steps", "40", "--layers", "4", "--kernel-us", "40", "--data-ms", "20"]
    settings = {"GPUPROF_SCHEDULE": "skip_first=5,warmup=1,active=30", "GPUPROF_ACTIVITIES": "+nvml"}
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--", *command, env=harness.environment(**settings))
    assert done.code == 0, done.err
    export(tmp_path / "tables", tmp_path / "out")
    dump, = harness.dumps(tmp_path / "out")
    told = harness.of_kind(harness.records(dump), "counter")
    db = DuckDB(tmp_path / "tables")
    rows = db.rows("select device, name, coalesce(unit, ''), value from samples where kind = 'counter'")
    assert sorted(rows) == sorted((r["device"], r["name"], r["unit"], r["value"]) for r in told)
    power = [(r["time_mono_ns"], r["value"]) for r in told if r["name"] == "power"]
    joules = sum((a + b) / 2e3 * (end - begin) / 1e9 for (begin, a), (end, b) in zip(power, power[1:]))
    assert db.rows("select energy_j, energy_time_ns from processes") == [(pytest.approx(joules), power[-1][0] - power[0][0])]
    assert joules > 0


def test_work_outside_steps(tmp_path):
    """Of a program that is recorded as a whole, the report's tables are of its steps alone; the exported ones have all work."""
    command = [harness.SIMTRAIN, "--steps", "12", "--layers", "3"]
    done = harness.gpuprof("run", "--all", "-o", tmp_path / "out", "--", *command, env=harness.environment())
    assert done.code == 0, done.err
    export(tmp_path / "tables", tmp_path / "out")
    db, told = DuckDB(tmp_path / "tables"), report(tmp_path / "out")
    dump, = harness.dumps(tmp_path / "out")
    kernels = len(harness.of_kind(harness.records(dump), "gpu_kernel"))
    (all_of_them, of_steps), = db.rows("select count(*), sum(in_steps::int) from gpu_work where kind = 'kernel'")
    assert all_of_them == kernels > of_steps == sum(row["count"] for row in told["kernels"]) > 0
    assert db.rows("select count(*) from gpu_work where step is not null and not in_steps") == [(0,)]


def test_trace_of_torch(tmp_path):
    """A JSON trace: operators, and the report's steps and kernels."""
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(kineto_traces.training(rank, 2).text())
    traces = sorted(tmp_path.glob("*.json"))
    export(tmp_path / "tables", *traces)
    db, told = DuckDB(tmp_path / "tables"), report(*traces)
    records = [r for trace in traces for r in harness.records(trace)]
    rows = db.rows("select kind, name from operators")
    assert sorted(rows) == sorted((r["kind"], r["name"]) for r in harness.of_kind(records, "op", "annotation")) != []
    assert {name: rest for _, _, _, name, *rest, _, _ in db.rows(query("kernels"))} == \
        {row["name"]: [row["count"], near(row["total_us"])] for row in told["kernels"]} != {}
    # The operator that launched work is the report's place of its time.
    assert db.rows("select count(*), count(o.id) from gpu_work g left join operators o on g.process = o.process and g.operator_id = o.id "
                   "where g.kind = 'kernel'") == [(sum(row["count"] for row in told["kernels"]),) * 2]
    assert len(db.rows("select * from steps")) == len(told["steps"]) > 0


def test_collectives_of_torch(tmp_path):
    """What a kernel's arguments say; and with PyTorch's numbers of the calls, who came last."""
    for rank, length in ((0, 50_000), (1, 20_000)):
        trace = kineto_traces.Trace(rank, 2)
        for number in range(3):
            begin = trace.now
            trace.launch("cudaLaunchKernelExC", "kernel", "ncclDevKernel_AllReduce", trace.external, stream=20, length=length, **{
                "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Bool",
                "Process Group Name": "7", "Process Group Description": "mesh_dp", "Process Group Ranks": "[0, 1]", "Seq": number + 5})
            trace.now = begin + 100_000
            trace.put("X", "user_annotation", f"ProfilerStep#{number}", trace.pid, trace.thread, begin, 99_000, **{"External id": 900 + number})
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(trace.text())
    export(tmp_path / "tables", *sorted(tmp_path.glob("*.json")))
    db = DuckDB(tmp_path / "tables")
    assert sorted(db.rows("select rank, sequence, operation, group_name, elements, data_type, bytes, group_size from collectives")) == \
        [(rank, number + 5, "ncclAllReduce", "mesh_dp", 1000, "Bool", 1000, 2) for rank in (0, 1) for number in range(3)]
    assert db.rows("select count(distinct communicator), count(communicator) from collectives") == [(1, 6)]
    # A run for each export: these are one.
    last = {row["rank"]: (row["collectives"], row["times_last"], row["others_waited_s"]) for row in db.dicts(query("last_ranks"))}
    assert last == {0: (3, 0, 0), 1: (3, 3, pytest.approx(90e-6))}


def query(name):
    return (harness.SOURCE / f"tools/sql/{name}.sql").read_text()


@pytest.mark.parametrize("name", QUERIES)
def test_query(name, tables, run_tables, weeks):
    for folder in (tables, run_tables, weeks):
        done = harness.checked("sql", folder, name, "--format", "csv", env=WITH_DUCKDB)
        lines = list(csv.reader(io.StringIO(done.out)))
        assert len(lines[1:]) == len(DuckDB(folder).rows(query(name)))


def last_by_call(db):
    """What last_ranks says, call by call, of ranks with a GPU each."""
    calls, ranks = collections.defaultdict(dict), collections.defaultdict(lambda: [0, 0, 0, 0])
    for row in db.dicts("select * from collectives where wait_ns is not null and communicator is not null"):
        ends = (row["group_rank"], row["peer"])
        way = {"ncclSend": ends, "ncclRecv": ends[::-1]}.get(row["operation"])
        calls[row["communicator"], row["sequence"], way][row["rank"]] = row["wait_ns"]
    for call in calls.values():
        for rank, wait in call.items():
            last = wait == min(call.values())
            for i, value in enumerate((1, last, (sum(call.values()) - wait) * last / 1e9, wait / 1e9)):
                ranks[rank][i] += value
    return {rank: [pytest.approx(value, rel=1e-6, abs=1e-9) for value in values] for rank, values in ranks.items()}


def test_answers(tables):
    db = DuckDB(tables)
    slowest = db.dicts(query("slow_hosts"))[0]
    assert slowest["rank"] == 5 and slowest["host"] == "node0" and slowest["slowdown"] > 1.1
    last = db.dicts(query("last_ranks"))
    often = max(last, key=lambda row: row["times_last"])
    assert often["rank"] == 5 and often["others_waited_s"] > 0
    # Once a step a message goes along all ranks, and all wait for the two at its end.
    assert {row["rank"] for row in last[:2]} == {62, 63} and last[2]["rank"] == 5
    assert {row["rank"]: [row[key] for key in ("collectives", "times_last", "others_waited_s", "waited_s")] for row in last} == last_by_call(db)
    exposed = db.dicts(query("exposed_communication"))
    assert len(exposed) == len({row["step"] for row in exposed}) == 4 and all(row["ranks"] == 64 for row in exposed)


def test_answers_over_weeks(weeks):
    db = DuckDB(weeks)
    slower = db.dicts(query("driver_change"))
    assert slower and all((row["gpu"], row["old_driver"], row["driver_version"]) == ("GPU A", 13000, 13010) for row in slower)
    assert all(row["slower_pct"] == pytest.approx(25, abs=0.2) for row in slower)
    assert db.rows(query("mfu")) == [("train.py", "GPU A", 2, 41, 200, 90)]
    assert db.dicts(query("energy")) == [
        {"user_name": "ann", "processes": 6, "gpu_hours": pytest.approx(12), "joules": 9000, "watts": 500},
        {"user_name": "ben", "processes": 2, "gpu_hours": pytest.approx(4), "joules": 3000, "watts": 500}]
    worse, = db.dicts(query("regressions"))
    assert (worse["week_of"].isoformat()[:10], worse["old_step_us"], worse["step_us"], worse["slower_pct"]) == ("1970-01-08", 1000, 1500, 50)


def test_energy_counts_a_process_once(tmp_path):
    """Each of its windows has the step log so far, and takes its begin by a clock of its own. A later process may have its number."""
    db, hour = DuckDB(tmp_path), 3_600 * 10**9
    begin = 1795896557568112799
    windows = [(5, begin, hour), (5, begin + 37, 2 * hour), (5, begin - 12, 3 * hour), (6, begin, 2 * hour), (5, begin + 50 * hour, hour),
               (7, "null", "null"), (7, "null", "null")]
    rows = " union all ".join(
        f"select null as job, 'r' as run, '0' as attempt, 'ann' as user_name, 'n' as host, {pid} as pid, 0 as rank, 1 as gpus, "
        f"{at} as run_begin_ns, {at} + {length} as run_end_ns, 10 as energy_j, 1000000000 as energy_time_ns, false as data_worker"
        for pid, at, length in windows)
    db.connection.execute(f"create or replace view processes as {rows}")
    assert db.dicts(query("energy")) == [
        {"user_name": "ann", "processes": 4, "gpu_hours": pytest.approx(6), "joules": 70, "watts": 10}]


def given(db, table, rows):
    """`rows` as the view of a table: lists of its columns' values, the first one of their names."""
    names, *values = rows
    db.connection.execute(f"create or replace view {table} as select * from (values {', '.join(map(str, map(tuple, values)))}) "
                          f"t({', '.join(names)})".replace("None", "null"))


def test_messages_of_other_ways_are_others(tmp_path):
    """Those of a chain of ranks have the same number: each receiver waits for its sender, 100 us. A collective has that number, too."""
    db, rows = DuckDB(tmp_path), []
    for sender in (0, 1, 2):
        rows += [["ncclSend", sender, sender + 1, sender, 0], ["ncclRecv", sender + 1, sender, sender + 1, 100_000]]
    rows += [["ncclAllReduce", rank, None, rank, 0 if rank == 3 else 10_000] for rank in range(4)]
    given(db, "collectives", [["job", "run", "attempt", "part", "communicator", "sequence", "process", "operation", "group_rank", "peer", "rank",
                               "wait_ns"], *(["j", "r", "0", "p", 77, 5, row[3], *row] for row in rows)])
    found = {row["rank"]: (row["collectives"], row["times_last"], row["others_waited_s"], row["waited_s"]) for row in db.dicts(query("last_ranks"))}
    assert found == {0: (2, 1, pytest.approx(100e-6), pytest.approx(10e-6)), 1: (3, 1, pytest.approx(100e-6), pytest.approx(110e-6)),
                     2: (3, 1, pytest.approx(100e-6), pytest.approx(110e-6)), 3: (2, 1, pytest.approx(30e-6), pytest.approx(100e-6))}


def test_gpus_of_a_process_wait_side_by_side(tmp_path):
    """Two processes of four GPUs: one of the second's is late by 130 us."""
    db = DuckDB(tmp_path)
    given(db, "collectives", [["job", "run", "attempt", "part", "communicator", "sequence", "operation", "peer", "group_rank", "rank", "process",
                               "wait_ns"],
                              *(["j", "r", "0", "p", 77, 5, "ncclAllReduce", None, gpu, gpu // 4, gpu // 4, 0 if gpu == 4 else 130_000]
                                for gpu in range(8))])
    assert db.dicts(query("last_ranks")) == [
        {"job": "j", "run": "r", "attempt": "0", "rank": 1, "collectives": 1, "times_last": 1, "others_waited_s": pytest.approx(130e-6),
         "waited_s": pytest.approx(97.5e-6)},
        {"job": "j", "run": "r", "attempt": "0", "rank": 0, "collectives": 1, "times_last": 0, "others_waited_s": 0,
         "waited_s": pytest.approx(130e-6)}]


def test_exports_without_a_run_are_runs_of_their_own(tmp_path):
    """As of torch.profiler's traces. Of a run with a name, one export of several counts where figures are the report's."""
    db, place = DuckDB(tmp_path), ["job", "run", "attempt", "part"]
    parts = ([None, None, None, "a"], [None, None, None, "b"], ["j", "r", "0", "c"], ["j", "r", "0", "d"])
    hour, figures = 3_600 * 10**9, ((20, 100), (30, 200), (40, 300), (50, 400))
    given(db, "reports", [[*place, "ranks", "command", "gpu", "begin_ns", "whole_windows", "step_median_us", "mfu_pct", "tflops",
                           "counted_time_pct", "unknown_causes"],
                          *([*part, 4 - i // 3, "train.py", "GPU A", hour + (i % 2) * 7 * 24 * hour, False, step_us, mfu, 100, 90, None]
                            for i, (part, (mfu, step_us)) in enumerate(zip(parts, figures)))])
    assert db.rows(query("mfu")) == [("train.py", "GPU A", 3, 30, 100, 90)]
    assert [(row["old_step_us"], row["step_us"], row["jobs"]) for row in db.dicts(query("regressions"))] == [(200, 200, 1)]
    given(db, "verdicts", [[*place, "ranks", "position", "cause", "saves_pct"], *([*part, 4, 1, "compute", 10] for part in parts)])
    assert [(row["cause"], row["jobs"]) for row in db.dicts(query("verdicts"))] == [("compute", 3)]

    # Ranks of the two are told apart: each rank's step is compared with that of its own run.
    processes = [["process", "host", "user_name", "command", "window_end_ns"]]
    steps = [[*place, "process", "rank", "step", "duration_ns", "compute_ns", "communication_ns", "overlapped_communication_ns", "data_loading_ns"]]
    work = [[*place, "process", "name", "kind", "in_steps", "duration_ns"]]
    for i, part in enumerate(parts[:2]):
        for rank in (0, 1):
            process = 2 * i + rank
            processes.append([process, f"node{i}", "ann", f"train{i}.py", hour])
            steps.append([*part, process, rank, 7, (i + 1) * 1000, 500, 100, 0, 200])
            work.append([*part, process, "gemm", "kernel", True, 500])
    for table, rows in (("processes", processes), ("steps", steps), ("gpu_work", work)):
        given(db, table, rows)
    assert [(row["run"], row["share_pct"], row["command"]) for row in db.dicts(query("data_wait"))] == [("a", 20, "train0.py"), ("b", 10, "train1.py")]
    assert [(row["run"], row["ranks"], row["share_pct"]) for row in db.dicts(query("exposed_communication"))] == [("a", 2, 10), ("b", 2, 5)]
    assert [(row["run"], row["launches"]) for row in db.dicts(query("kernels"))] == [("a", 2), ("b", 2)]
    assert {(row["host"], row["slowdown"]) for row in db.dicts(query("slow_hosts"))} == {("node0", 1), ("node1", 1)}


def state(folder):
    return {path.relative_to(folder): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in folder.rglob("*") if path.is_file()}


def contents(folder, where="true", left_out=()):
    """The rows of each table of events, and those of processes and steps, without what names the export."""
    db = DuckDB(folder)
    out = {}
    for table in ("processes", "steps", *EVENTS):
        names = ", ".join(["part", *left_out]) if table in ("collectives", "processes") else "part"
        names = ", ".join(name for name in names.split(", ") if name == "part" or name in db_columns(db, table))
        out[table] = sorted(db.rows(f"select * exclude ({names}) from {table} where {where}"), key=repr)
    return out


def db_columns(db, table):
    return {row[0] for row in db.rows(f"describe {table}")}


def test_second_export_changes_nothing(job, tables):
    before = state(tables)
    done = export(tables, job)
    assert state(tables) == before
    assert "has 64 windows already" in done.err and ": 0 rows of 0 windows in 0 files" in done.out


def test_same_bytes(job, tables, tmp_path):
    export(tmp_path, job)
    assert {path: digest for path, (_, digest) in state(tmp_path).items()} == {path: digest for path, (_, digest) in state(tables).items()}


def test_append(job, tables, tmp_path):
    export(tmp_path, job, options=("--ranks", "8-63"))
    before = state(tmp_path)
    export(tmp_path, job)
    after = state(tmp_path)
    assert {path: after[path] for path in before} == before and len(after) > len(before)
    assert contents(tmp_path) == contents(tables)


def test_several_at_once(job, tables, tmp_path):
    """Exports of one job at the same time, of ranks that overlap: each row is there once."""
    children = [subprocess.Popen([harness.BIN, "export", job, "--to", "parquet", "-o", tmp_path, "--ranks", ranks], env=harness.environment(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for ranks in ("0-31", "16-47", "32-63", "0-63")]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    assert contents(tmp_path) == contents(tables)


def test_cut_dump(job, tmp_path):
    """Rows of a process whose dump had no end yet stay; an export says that they are not all."""
    dump, = job.glob("*_r3_*.gpuprof")
    cut = tmp_path / dump.name
    cut.write_bytes(dump.read_bytes()[:dump.stat().st_size * 2 // 3])
    done = export(tmp_path / "tables", cut)
    assert ": 0 rows" not in done.out
    before = state(tmp_path / "tables")
    assert DuckDB(tmp_path / "tables").rows("select completeness, own_cost_pct, lost, losses from processes") == [
        ("truncated", None, None, None)]
    done = export(tmp_path / "tables", dump)
    assert "1 window had another number of records then" in done.err and state(tmp_path / "tables") == before


def test_one_rank(job, tables, tmp_path):
    """A rank's own export has the same rows: of all input all of them, of its dump alone what needs no others."""
    export(tmp_path / "chosen", job, options=("--ranks", "3"))
    assert contents(tmp_path / "chosen") == contents(tables, "rank = 3")
    dump, = job.glob("*_r3_*.gpuprof")
    export(tmp_path / "alone", dump)
    of_others = ("transfer_ns", "wait_ns", "exposed_ns", "overlapped_ns", "clock_offset_ns", "clock_drift_ppm", "clock_error_ns")
    assert contents(tmp_path / "alone", left_out=of_others) == contents(tables, "rank = 3", left_out=of_others)
    unknown = DuckDB(tmp_path / "alone").rows("select count(*), count(transfer_ns), count(wait_ns) from collectives")
    assert unknown[0][0] > 0 and unknown[0][1:] == (0, 0)


def test_order(tables):
    several = 0
    for table, moment in (("gpu_work", "begin_ns"), ("calls", "begin_ns"), ("operators", "begin_ns"), ("collectives", "entered_ns"),
                          ("samples", "time_ns"), ("steps", "begin_ns")):
        for path in (tables / table).rglob("*.parquet"):
            file = pyarrow.parquet.read_table(path, partitioning=None)
            rows = [(-1 if step is None else step, begin) for step, begin in
                    zip(file["step"].to_pylist(), file[moment].to_pylist())]
            assert rows == sorted(rows) and len(rows) <= 1 << 19
            several += len(set(file["rank"].to_pylist())) > 1
            assert pyarrow.parquet.read_schema(path).metadata[b"gpuprof.schema_version"] == b"1"
    assert several > 3


def test_large_process(tmp_path):
    """More rows than a file takes: several files of one process, in order."""
    job = made_job(tmp_path / "job", "ranks=1", "layers=32", "forward=200", "backward=300", "tail=50", "steps=40")
    export(tmp_path / "tables", job)
    files = sorted((tmp_path / "tables/gpu_work").rglob("*.parquet"))
    counts = [pyarrow.parquet.read_metadata(path).num_rows for path in files]
    assert len(files) > 1 and max(counts) <= 1 << 19 and min(counts) > 1 << 17
    last = -1
    for path in files:
        begins = pyarrow.parquet.read_table(path, partitioning=None)["begin_ns"].to_pylist()
        assert begins == sorted(begins) and begins[0] >= last
        last = begins[-1]


def test_interrupted(tmp_path):
    """A signal at any moment leaves all files, or none."""
    job = made_job(tmp_path / "job", "ranks=32", "layers=16", "forward=20", "backward=30", "tail=50", "steps=3")
    begin = time.monotonic()
    export(tmp_path / "whole", job)
    length = time.monotonic() - begin
    whole = len(state(tmp_path / "whole"))
    ended = 0
    for i in range(12):
        tables = tmp_path / f"tables{i}"
        child = subprocess.Popen([harness.BIN, "export", job, "--to", "parquet", "-o", tables], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=harness.environment())
        time.sleep(length * (i + 1) / 12)
        child.send_signal(signal.SIGTERM)
        code = child.wait()
        ended += code == 128 + signal.SIGTERM
        left = len(state(tables)) if tables.exists() else 0
        assert left == (whole if code == 0 else 0), f"code {code}"
    assert ended > 0


def test_killed_between_renames(job, tables, tmp_path):
    """What was not in place yet comes with the same export again, under the same names."""
    whole = {path: digest for path, (_, digest) in state(tables).items()}
    folder = tmp_path / "tables"
    shutil.copytree(tables, folder)
    for table in ("processes", "steps", "calls"):
        shutil.rmtree(folder / table)
    export(folder, job)
    assert {path: digest for path, (_, digest) in state(folder).items()} == whole


def test_next_version(tables, tmp_path):
    """Files of this version and of one with a column more are one table."""
    folder = tmp_path / "tables"
    shutil.copytree(tables, folder)
    next_version(folder)
    db = DuckDB(folder)
    (old,), = db.rows("select count(*) from steps where job is distinct from 'next'")
    rows = db.rows("select count(*), count(more_ns), sum(more_ns) from steps where job = 'next'")
    assert rows == [(old, old, 7 * old)]
    assert db.rows("select count(more_ns) from steps where job is distinct from 'next'") == [(0,)]
    (count,), = db.rows("select count(*) from (" + query("exposed_communication") + ")")
    assert count == 8


def next_version(folder):
    """Copies of all files as another job of the next version: each table has one column more, at its end."""
    for path in sorted(folder.rglob("*.parquet")):
        table = pyarrow.parquet.read_table(path, partitioning=None)
        more = table.append_column("more_ns", pyarrow.array([7] * table.num_rows, pyarrow.int64()))
        metadata = {**more.schema.metadata, b"gpuprof.schema_version": b"2"}
        target = folder / re.sub(r"job=[^/]*", "job=next", str(path.relative_to(folder)))
        target.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(more.replace_schema_metadata(metadata), target)
