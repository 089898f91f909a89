# SPDX-License-Identifier: Apache-2.0
"""`gpuprof export` and `gpuprof sql` without the programs that they start. tests/fleet has the tests with these, and with
OpenTelemetry's own messages."""
import json
import os
import pathlib
import shutil

import pytest

import harness

DUMP = harness.SOURCE / "tests/golden/version1.gpuprof"


@pytest.fixture
def alone(tmp_path):
    """The command without other programs beside it."""
    shutil.copy(harness.BIN, tmp_path / "gpuprof")
    return tmp_path / "gpuprof"


def without(*names):
    """An environment whose PATH has none of these programs."""
    folders = [f for f in os.environ["PATH"].split(":") if not any((pathlib.Path(f) / name).exists() for name in names)]
    return {**harness.environment(), "PATH": ":".join(folders)}


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + text)
    (folder / name).chmod(0o755)
    return folder


def test_no_writer(alone, tmp_path):
    done = harness.run([alone, "export", DUMP, "--to", "parquet", "-o", tmp_path / "out"], without("gpuprof-parquet"))
    assert done.code == 2 and done.out == "" and not (tmp_path / "out").exists()
    line, = done.err.splitlines()
    assert "gpuprof-parquet, which is neither beside gpuprof nor in PATH" in line and "docs/PARQUET.md" in line


@pytest.mark.parametrize("beside", [True, False])
def test_writer(alone, tmp_path, beside):
    """It gets the arguments as they are, and its exit code is the command's. One beside the command comes before others."""
    elsewhere = program(tmp_path / "bin", "gpuprof-parquet", 'echo "elsewhere $@"; exit 7')
    if beside:
        program(tmp_path, "gpuprof-parquet", 'echo "beside $@"; exit 7')
    done = harness.run([alone, "export", "a", "b", "--to", "parquet", "-o", "c", "--ranks", "1-2"],
                       {**harness.environment(), "PATH": f"{elsewhere}:{os.environ['PATH']}"})
    assert (done.code, done.err) == (7, "")
    assert done.out == ("beside" if beside else "elsewhere") + " a b --to parquet -o c --ranks 1-2\n"


@pytest.mark.parametrize("arguments, told", [
    (["x"], "--to"), (["x", "--to", "parquet"], "--output"), (["x", "--to", "csv", "-o", "y"], "csv"),
    (["x", "--to", "parquet", "-o", "y", "--signal", "traces"], "--signal traces: for --to otlp"),
    (["x", "--to", "otlp", "-o", "y", "--debug-dir", "/"], "--debug-dir /: for --to parquet"),
    (["x", "--to", "otlp", "-o", "y", "--signal", "logs"], "logs"), ([DUMP, "--to", "otlp", "-o", "-"], "-o -: a file of OTLP"),
    ([DUMP, "--to", "otlp", "-o", DUMP], "a file of OTLP has traces or metrics alone; give --signal traces"),
    ([DUMP, "--to", "otlp", "-o", DUMP, "--signal", "traces"], "is an input; give -o another name"),
    ([DUMP, "--to", "otlp", "-o", "/no/such/folder/otlp"], "/no/such/folder/otlp"),
    ([DUMP, "--to", "otlp", "-o", "y", "--ranks", "7"], "--ranks 7: none of these ranks"),
])
def test_wrong_use(arguments, told, tmp_path):
    done = harness.gpuprof("export", *arguments, cwd=tmp_path)
    *before, line = done.err.splitlines()
    assert done.code == 2 and told in line and before in ([], ["gpuprof: 1 of 2 ranks have dumps; rank 1 is missing"])
    assert not list(tmp_path.iterdir())


def otlp(output, *options):
    done = harness.checked("export", DUMP, "--to", "otlp", "-o", output, *options)
    return done.out


def test_otlp_places(tmp_path):
    """Two files in a directory, that is made; with --signal one of them, in a file, a directory or on standard output."""
    told = otlp(tmp_path / "both")
    assert told == f"{tmp_path}/both/traces.jsonl: 2 spans\n{tmp_path}/both/metrics.jsonl: 15 points of metrics\n"
    both = {path.name: path.read_bytes() for path in (tmp_path / "both").iterdir()}
    assert sorted(both) == ["metrics.jsonl", "traces.jsonl"]
    otlp(tmp_path / "both")
    assert {path.name: path.read_bytes() for path in (tmp_path / "both").iterdir()} == both
    for signal in ("traces", "metrics"):
        whole = both[signal + ".jsonl"]
        assert otlp("-", "--signal", signal).encode() == whole
        otlp(tmp_path / signal, "--signal", signal)
        assert (tmp_path / signal).read_bytes() == whole
        (tmp_path / f"{signal}.d").mkdir()
        otlp(tmp_path / f"{signal}.d", "--signal", signal)
        assert [path.read_bytes() for path in (tmp_path / f"{signal}.d").iterdir()] == [whole]
        top, = json.loads(whole.splitlines()[0])
        assert top == {"traces": "resourceSpans", "metrics": "resourceMetrics"}[signal]


def test_otlp_failures(tmp_path):
    """Both files or none: a place that one of them cannot have leaves the other as it was."""
    folder = tmp_path / "out"
    (folder / "metrics.jsonl").mkdir(parents=True)
    (folder / "traces.jsonl").write_text("before")
    done = harness.gpuprof("export", DUMP, "--to", "otlp", "-o", folder)
    assert done.code == 2 and f"{folder}/metrics.jsonl" in done.err and len(harness.our_lines(done.err)) <= 2
    assert (folder / "traces.jsonl").read_text() == "before" and len(list(folder.iterdir())) == 2


def test_no_duckdb(tmp_path):
    done = harness.gpuprof("sql", tmp_path, "mfu", env=without("duckdb"))
    assert done.code == 2 and "duckdb, which is not in PATH" in done.err and len(done.err.splitlines()) == 1


def test_duckdb(tmp_path):
    """It gets the views, then the query: of a name, of a file, of SQL."""
    folder = program(tmp_path / "bin", "duckdb", 'for word; do echo "<$word>"; done')
    env = {**harness.environment(), "PATH": f"{folder}:{os.environ['PATH']}"}
    (tmp_path / "own.sql").write_text("select 1")
    for query, text in (("mfu", (harness.SOURCE / "tools/sql/mfu.sql").read_text()), (tmp_path / "own.sql", "select 1"),
                        ("select 2", "select 2")):
        done = harness.gpuprof("sql", tmp_path, query, "--format", "csv", env=env)
        assert done.code == 0 and done.out.startswith("<-csv>\n<-cmd>\n<CREATE OR REPLACE VIEW") and done.out.endswith(f"<-c>\n<{text}>\n")
    done = harness.gpuprof("sql", tmp_path, env=env)
    assert done.code == 0 and "<-c>" not in done.out
    assert done.err == f"gpuprof: warning: {tmp_path}: no table of gpuprof export is there, so nothing is found\n"
    (tmp_path / "processes").mkdir()
    (tmp_path / "processes/processes.parquet").touch()
    assert harness.checked("sql", tmp_path, "mfu", env=env).err == ""


def test_wrong_query(tmp_path):
    done = harness.gpuprof("sql", tmp_path, "mfo")
    assert done.code == 2 and "mfo is no query" in done.err and "mfu" in done.err
    done = harness.gpuprof("sql", tmp_path / "none", "mfu")
    assert done.code == 2 and "none" in done.err


def test_print(tmp_path):
    """Views of tables with files read these; the others are empty, with all columns."""
    folder = tmp_path / "it's"
    place = folder / "steps/job=1/run=2/attempt=3/part=4"
    place.mkdir(parents=True)
    (place / "steps.parquet").touch()
    for engine, quoted in (("duckdb", "it''s"), ("spark", "it\\'s")):
        lines = harness.checked("sql", folder, "--print", engine).out.splitlines()
        steps, = [line for line in lines if " VIEW steps " in line]
        assert f"{quoted}/steps" in steps
        work, = [line for line in lines if " VIEW gpu_work " in line]
        assert "CAST(NULL AS BIGINT) AS begin_ns" in work and work.endswith(" WHERE false;")
    assert harness.checked("sql", folder, "mfu", "--print", "spark").out.endswith("nulls last\n;\n")
