# SPDX-License-Identifier: Apache-2.0
"""What the gpuprof command is given to read, and who reads what it prints: files that are absent, of another kind or cut, and
pipes that nobody reads."""
import gzip
import json
import os
import random
import subprocess

import harness
import pytest
from test_cli import assert_one_line, clean_environment

# Inputs that are no dumps, or no longer whole.
READERS = [["info"], ["info", "--format", "json"], ["parse"], ["parse", "--format", "json"],
           ["convert", "--to", "perfetto"], ["convert", "--to", "chrome"]]


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_input_that_is_not_there(command, tmp_path):
    assert_one_line(harness.gpuprof(*command, tmp_path / "none.gpuprof"), "none.gpuprof")


def test_a_pipe_is_refused_with_what_reads_it(tmp_path):
    pipe = tmp_path / "pipe.gpuprof"
    os.mkfifo(pipe)
    assert_one_line(harness.gpuprof("info", pipe), "pipe.gpuprof", "is not a regular file but a pipe; - in its place reads standard input")


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_empty_directory(command, tmp_path):
    assert_one_line(harness.gpuprof(*command, tmp_path), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_directory_that_may_not_be_read(tmp_path):
    (tmp_path / "closed").mkdir(mode=0)
    done = harness.run([*harness.BOUND_BY_MODES, harness.BIN, "info", tmp_path / "closed"])
    assert_one_line(done, "closed", "Permission denied")


NO_DUMPS = {"empty": b"", "text": b"hello\n" * 100, "zeros": bytes(70000), "random": random.Random(1).randbytes(70000)}


@pytest.mark.parametrize("content", NO_DUMPS.values(), ids=NO_DUMPS.keys())
@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_no_dump(command, content, tmp_path):
    file = tmp_path / "x.gpuprof"
    file.write_bytes(content)
    run = harness.gpuprof(*command, file)
    assert_one_line(run, str(file), "empty" if not content else "")
    assert [p.name for p in tmp_path.iterdir()] == ["x.gpuprof"]


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """A dump of a small program with a few steps."""
    folder = tmp_path_factory.mktemp("dump")
    run = harness.run([harness.SIMTRAIN, "--steps", "8", "--layers", "4", "--seed", "1"],
                      harness.preloaded(GPUPROF_OUTPUT=folder, **harness.WHOLE_RUN))
    assert run.code == 0, run.err
    found, = harness.dumps(folder)
    return found


def test_parse_lines(dump):
    header, *lines, summary = harness.records(dump)
    assert header["kind"] == "header" and summary["kind"] == "summary"
    assert summary["complete"] is True and header["completeness"] == "complete"
    steps = harness.of_kind(lines, "step")
    records = [line for line in lines if line["kind"] != "step"]
    assert [step["number"] for step in steps] == list(range(len(steps))) and any(step["in_window"] for step in steps)
    assert all(a["end_mono_ns"] == b["begin_mono_ns"] for a, b in zip(steps, steps[1:]))
    assert len(records) == summary["event_count"] == sum(summary["events"].values())
    assert all(a["begin_mono_ns"] <= b["begin_mono_ns"] for a, b in zip(records, records[1:]))
    by_index = {record["index"]: record for record in records}
    kernels = harness.of_kind(records, "gpu_kernel")
    assert kernels
    for kernel in kernels:
        launch = by_index[kernel["partner"]]
        assert launch["kind"] == "launch" and launch["correlation"] == kernel["correlation"] != 0
        assert (launch["kernel"], launch["grid"], launch["block"], launch["stream"]) == (
            kernel["name"], kernel["grid"], kernel["block"], kernel["lane"]["stream"])
    text = harness.checked("parse", dump).out.splitlines()
    assert len(text) == len(lines) + 3  # two headings and the summary


def test_info_agrees_with_parse(dump):
    summary = harness.records(dump)[-1]
    info = harness.info(dump)
    assert info["events"] == summary["events"] and info["losses"] == summary["losses"]
    assert info["files"][0]["path"] == str(dump) and info["problems"] == []
    text = harness.checked("info", dump).out
    assert str(dump) in text and f"events     {info['event_count']}: " in text


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_truncated_dump_gives_what_is_left(dump, part, tmp_path):
    cut = tmp_path / "cut.gpuprof"
    cut.write_bytes(dump.read_bytes()[:int(dump.stat().st_size * part)])
    run = harness.gpuprof("info", "--format", "json", cut)
    if not run.err:  # cut where a chunk ends, by chance: nothing of it is damaged
        assert json.loads(run.out)["files"][0]["completeness"] == "truncated"
        cut.write_bytes(cut.read_bytes()[:-1])
        run = harness.gpuprof("info", "--format", "json", cut)
    assert run.code == 0
    assert "cut.gpuprof" in run.err and "offset" in run.err and len(run.err.splitlines()) == 1
    assert json.loads(run.out)["files"][0]["completeness"] == "truncated"
    for target, suffix in (("perfetto", ".pftrace"), ("chrome", ".json")):
        run = harness.gpuprof("convert", cut, "--to", target, cwd=tmp_path)
        assert run.code == 0 and len(run.err.splitlines()) == 1, run.err
        assert (tmp_path / f"cut{suffix}").stat().st_size > 0


def test_one_readable_input_is_enough(dump, tmp_path):
    bad = tmp_path / "bad.gpuprof"
    bad.write_bytes(b"nothing of the kind")
    run = harness.gpuprof("info", "--format", "json", bad, dump)
    assert run.code == 0 and "bad.gpuprof" in run.err
    assert len(json.loads(run.out)["files"]) == 1


# Packing gains nothing where a dump is packed already: most of it is in such a file as it is.
@pytest.mark.parametrize("name", ["x.gpuprof.gz", "x.gpuprof"])
@pytest.mark.parametrize("level", [0, 9])
def test_a_dump_in_gzip_is_named_as_such(dump, name, level, tmp_path):
    packed = tmp_path / name
    packed.write_bytes(gzip.compress(dump.read_bytes(), level))
    for command in READERS:
        assert_one_line(harness.gpuprof(*command, packed), str(packed), "gzip", "decompress it", "its own dumps, and JSON traces")


def test_full_disk_is_said(dump):
    with open("/dev/full", "w") as full:
        done = subprocess.run([harness.BIN, "parse", dump], stdout=full, stderr=subprocess.PIPE, text=True,
                              env=clean_environment())
    assert done.returncode == 2 and done.stderr.startswith("gpuprof: standard output cannot be written")
    assert len(done.stderr.splitlines()) == 1


def test_closed_pipe_ends_quietly(dump):
    done = subprocess.run(["bash", "-c", '"$0" parse "$1" | head -1; echo "${PIPESTATUS[0]}"', harness.BIN, str(dump)],
                          capture_output=True, text=True, env=clean_environment())
    assert done.stderr == "" and done.stdout.splitlines()[-1] == "0"


@pytest.mark.parametrize("command", [["parse"], ["report"], ["convert", "--to", "chrome", "-o", "-"], ["convert", "--to", "perfetto", "-o", "-"],
                                     ["export", "--to", "otlp", "--signal", "metrics", "-o", "-"]])
def test_a_pipe_that_nobody_reads_ends_quietly(command, dump):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([harness.BIN, *command, dump], stdout=writer, stderr=subprocess.PIPE, text=True, env=clean_environment())
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
