# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_REDACT: where, by whom and on what a program was run is in no dump, and in no name of one."""
import os
import shutil
import zlib

import pytest

import harness

WORD = {"command": "secretargument", "paths": "secretfolder", "host": "secrethost", "user": "secretuser", "environment": "secretjob"}
SCRIPT = """
import ctypes, glob, shutil, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
ctypes.CDLL("./libextra.so")
def train():
    for _ in range(20):
        memory = ctypes.c_void_p()
        cuda.cudaMalloc(ctypes.byref(memory), 1000)
        cuda.cudaFree(memory)
        cuda.cudaDeviceSynchronize()
        sum(range(300000))
train()
while not glob.glob("metrics/*.prom"):  # they go with the process
    time.sleep(0.05)
shutil.copytree("metrics", "kept")
"""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def contents(path):
    """All chunks of a dump, unpacked (formats/FORMAT.md), as text."""
    data, at, out = path.read_bytes(), 0, ""
    while at < len(data):
        size, begin = varint(data, at + 1)
        at = begin + size
        field = begin + 19  # magic, size and sum
        while field < at:
            tag, field = varint(data, field)
            value, field = varint(data, field)
            if tag & 7 == 2:
                raw = data[field:field + value]
                field += value
                try:
                    raw = zlib.decompress(raw, -15)
                except zlib.error:
                    pass  # not compressed
                out += raw.decode(errors="replace")
    return out


@pytest.fixture(name="dump")
def recorded(tmp_path):
    """Records a Python program in a folder of that name; returns all that its dump and its metrics say."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a host name of its own needs root and unshare")

    def run(redact):
        folder = tmp_path / "secretfolder"
        folder.mkdir()
        (folder / "train.py").write_text(SCRIPT)
        shutil.copy(harness.HAZARDS / "libheap_library.so", folder / "libextra.so")
        (folder / "gpuprof.conf").write_text("GPUPROF_LOG=warn\n")
        (folder / "metrics").mkdir()
        env = harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_REDACT=redact, GPUPROF_PRESET="full", USER="secretuser",
                                SLURM_JOB_ID="secretjob", GPUPROF_RUN="secretjob", GPUPROF_CONFIG=folder / "gpuprof.conf",
                                GPUPROF_CUPTI=folder / "libcupti.so", GPUPROF_METRICS=f"prometheus:{folder}/metrics", **harness.WHOLE_RUN)
        named = ["unshare", "-u", "sh", "-c", 'echo secrethost >/proc/sys/kernel/hostname && exec "$@"', "sh"]
        done = harness.run_within(named, [harness.PYTHON, folder / "train.py", "secretargument"], env, cwd=folder)
        assert done.code == 0, done.err
        path, = harness.dumps(folder / "out")
        shutil.move(path, tmp_path / path.name)
        metrics, = (folder / "kept").glob("*.prom")
        said = metrics.name + "\n" + metrics.read_text()
        return said + path.name + "\n" + harness.checked("parse", "--format", "json", path.name, cwd=tmp_path).out + contents(tmp_path / path.name)

    return run


def test_all_of_it_is_there_by_default(dump):
    text = dump("none")
    assert {word for word in WORD.values() if word in text} == set(WORD.values())


@pytest.mark.parametrize("what", list(WORD))
def test_what_is_redacted_is_not_told(what, dump):
    text = dump(what)
    assert WORD[what] not in text
    assert "cudaMalloc" in text and "train.py" in text or what == "command"


def test_all_is_redacted(dump):
    text = dump("all")
    assert [word for word in WORD.values() if word in text] == []
    assert '"host":"host-' in text and '"run":"run-' in text and '"job":"job-' in text, text[:2000]


def test_processes_of_a_host_have_one_name(tmp_path):
    """And runs are told apart."""
    names, runs = set(), set()
    for run in ("first", "second"):
        for _ in range(2):
            env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / run, GPUPROF_RUN=run, GPUPROF_REDACT="all", **harness.WHOLE_RUN)
            assert harness.run([harness.SIMTRAIN, "--steps", "3"], env).code == 0
        for file in harness.info(tmp_path / run)["files"]:
            names.add(file["host"])
            runs.add(file["run"])
    assert len(names) == 1 and len(runs) == 2
