# SPDX-License-Identifier: Apache-2.0
"""Exported jobs, and an engine that reads them."""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
sys.path.insert(0, str(HERE))

import duckdb
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
    """A recorded run of two ranks, with a job's id that a path cannot have as it is, copies, allocations, NVTX and samples."""
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
