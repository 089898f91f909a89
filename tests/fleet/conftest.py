# SPDX-License-Identifier: Apache-2.0
"""Exported jobs, and an engine that reads them."""
import json
import pathlib
import re
import subprocess
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
sys.path.insert(0, str(HERE))

import duckdb
import pyarrow.parquet
import pytest

import harness

MAKE_JOB = harness.BUILD / "tests/bench/make_job"
QUERIES = sorted(path.stem for path in (harness.SOURCE / "tools/sql").glob("*.sql"))


def made_job(folder, *values):
    subprocess.run([MAKE_JOB, folder, *values], check=True)
    return folder


def export(tables, *inputs, options=()):
    return harness.checked("export", *inputs, "--to", "parquet", "-o", tables, *options)


def report(*inputs):
    return json.loads(harness.checked("report", "--format", "json", *inputs).out)


def statements(tables, engine, query=None):
    """What `gpuprof sql --print` gives, statement by statement; the last one is the query, if there is one."""
    text = harness.checked("sql", tables, *([query] if query else []), "--print", engine).out
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";\n") if part.strip(" \n;")]


class DuckDB:
    def __init__(self, tables):
        self.connection = duckdb.connect()
        self.connection.execute("set threads to 2")
        for statement in statements(tables, "duckdb"):
            self.connection.execute(statement)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def dicts(self, sql):
        done = self.connection.execute(sql)
        names = [column[0] for column in done.description]
        return [dict(zip(names, row)) for row in done.fetchall()]


@pytest.fixture(scope="session")
def job(tmp_path_factory):
    """64 ranks on 8 hosts, whose clocks differ, with groups, messages and a slow rank."""
    return made_job(tmp_path_factory.mktemp("job64"), "ranks=64", "layers=8", "forward=4", "backward=8", "tail=20", "steps=4",
                    "split=4", "message-us=200", "slow-rank=5", "slow-factor=1.4", "offset-ms=20", "drift-ppm=30")


@pytest.fixture(scope="session")
def tables(job, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables64")
    export(folder, job)
    return folder


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A recorded run of two ranks, with a job's id that a path has escaped, copies and allocations."""
    folder = tmp_path_factory.mktemp("run")
    command = [harness.SIMTRAIN, "--ranks", "2", "--steps", "26", "--layers", "4", "--kernel-us", "300", "--comm-mb", "8",
               "--overlap", "--data-ms", "1", "--h2d-mb", "8", "--malloc-per-step", "3"]
    done = harness.gpuprof("run", "-o", folder / "out", "--", *command, env=harness.environment(SLURM_JOB_ID="a/b=c 7%"))
    assert done.code == 0, done.err
    return folder / "out"


@pytest.fixture(scope="session")
def run_tables(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run_tables")
    export(folder, run)
    return folder


WEEK_NS = 7 * 86_400 * 10**9


def altered(source, target, job, changes):
    """Files of `source` again as another job. `changes`: table -> column -> what its value becomes, of the row."""
    for path in sorted(source.rglob("*.parquet")):
        name = path.relative_to(source).parts[0]
        table = pyarrow.parquet.read_table(path, partitioning=None)
        rows = table.to_pylist()
        for row in rows:
            new = {column: change(row) for column, change in changes.get(name, {}).items()}
            if "process" in row:
                new["process"] = row["process"] ^ zlib.crc32(job.encode())
            row.update(new)
        place = target / re.sub(r"job=[^/]*", f"job={job}", str(path.relative_to(source)))
        place.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, table.schema), place)


@pytest.fixture(scope="session")
def weeks(tmp_path_factory):
    """One job of four ranks in two weeks. In the second one the driver is another, kernels take 1.25 times as long and steps 1.5
    times; both weeks have figures that no simulated GPU gives."""
    folder = tmp_path_factory.mktemp("weeks")
    export(folder / "first", made_job(folder / "job", "ranks=4", "layers=2", "steps=3"))
    hours = 3_600 * 10**9
    for week, kernels, steps in ((0, 1.0, 1.0), (1, 1.25, 1.5)):
        later = week * WEEK_NS
        altered(folder / "first", folder / "tables", f"week{week}", {
            "processes": {"driver_version": lambda row: 13000 + 10 * week, "user_name": lambda row: "ann" if row["rank"] < 3 else "ben",
                          "gpu": lambda row: "GPU A", "run_begin_ns": lambda row: later, "run_end_ns": lambda row: later + 2 * hours,
                          "gpus": lambda row: 1, "energy_j": lambda row: 1500.0, "energy_time_ns": lambda row: 3 * 10**9,
                          "window_begin_ns": lambda row: row["window_begin_ns"] + later,
                          "window_end_ns": lambda row: row["window_end_ns"] + later},
            "gpu_work": {"duration_ns": lambda row: int(row["duration_ns"] * kernels) // 5 * 5},
            "reports": {"command": lambda row: "train.py", "gpu": lambda row: "GPU A", "begin_ns": lambda row: later + hours,
                        "step_median_us": lambda row: 1000 * steps, "tflops": lambda row: 200.0, "mfu_pct": lambda row: 40.0 + 2 * week,
                        "counted_time_pct": lambda row: 90.0},
        })
    return folder / "tables"


@pytest.fixture(scope="session")
def budgeted(tmp_path_factory):
    """One job that is recorded as a whole, and one with a budget that it is above by far: their dumps by name, and both exported."""
    folder = tmp_path_factory.mktemp("budgeted")
    dumps = {}
    for name, budget in (("whole", "none"), ("lean", "0.2")):
        settings = harness.preloaded(**{"GPUPROF_OUTPUT": folder / name, "GPUPROF_BUDGET": budget, "GPUPROF_BUFFER_MB": 256, "SLURM_JOB_ID": name,
                                        **harness.WHOLE_RUN})
        arguments = ["launches=4", "events=20000", "waits=20000", "allocations=2000", "operators=20000"]
        done = harness.run([harness.HAZARDS / "costly", 1500, 10000, *arguments], settings)
        assert done.code == 0, done.err
        dumps[name], = harness.dumps(folder / name)
        export(folder / "tables", dumps[name])
    return dumps, folder / "tables"
