# SPDX-License-Identifier: Apache-2.0
"""Files of `gpuprof convert`: where they lie, what is beside them, and what is said of them."""
import json
import pathlib
import pickle
import re
import shutil

import harness
import pytest
from support import kineto_traces
from test_cli import assert_one_line
from test_inputs import dump  # noqa: F401


@pytest.mark.parametrize("target, suffix", [("perfetto", ".pftrace"), ("chrome", ".json")])
def test_convert_writes_beside_the_input(dump, target, suffix, tmp_path):
    shutil.copy(dump, tmp_path / "a.gpuprof")
    run = harness.checked("convert", "a.gpuprof", "--to", target, cwd=tmp_path)
    written = tmp_path / f"a{suffix}"
    assert written.name in run.out and written.stat().st_size > 0
    run = harness.checked("convert", ".", "--to", target, cwd=tmp_path)
    assert (tmp_path / f"trace{suffix}").stat().st_size > 0
    run = harness.checked("convert", "a.gpuprof", "--to", target, "-o", "other", cwd=tmp_path)
    assert (tmp_path / "other").stat().st_size > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["a.gpuprof", f"a{suffix}", f"trace{suffix}", "other"])
    if target == "chrome":
        for file in ("a.json", "trace.json", "other"):
            assert json.loads((tmp_path / file).read_text())["traceEvents"]


def test_convert_counts_the_windows_of_a_process_together(tmp_path):
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="skip_first=2,wait=2,warmup=0,active=3,repeat=3",
                            GPUPROF_STEP="nvtx:step")
    assert harness.run([harness.SIMTRAIN, "--steps", "25", "--ranks", "2"], env).code == 0
    assert len(harness.dumps(tmp_path / "out")) == 6
    said = harness.checked("convert", tmp_path / "out", "--to", "chrome", "-o", tmp_path / "x.json").out
    assert re.search(r"events in 9 steps of 2 processes$", said, re.M), said
    said = harness.checked("convert", tmp_path / "out", "--to", "chrome", "-o", tmp_path / "x.json", "--ranks", "1", "--steps", "4").out
    assert re.search(r"events in 1 step of 1 process$", said, re.M), said


@pytest.mark.parametrize("target", ["kineto", "xplane", "perfetto-ranks", "tensorboard"])
def test_convert_names_traces_that_were_in_the_folder(dump, target, tmp_path):
    """Viewers read them as the same run."""
    folder = tmp_path / "out"
    first = harness.gpuprof("convert", dump, "--to", target, "-o", folder)
    again = harness.gpuprof("convert", dump, "--to", target, "-o", folder)
    assert first.err == again.err == ""
    other = {"kineto": "b_1.2.pt.trace.json.gz", "perfetto-ranks": "b_r7.pftrace"}.get(target, "b_r7.xplane.pb")
    written, = {path.parent for path in folder.rglob("*.xplane.pb" if target == "tensorboard" else "*") if path.is_file()}
    (written / other).write_bytes(b"")
    for name in ("notes.txt", "b_r7.gpuprof", "b.json"):
        (written / name).write_text("mine")
    said = harness.gpuprof("convert", dump, "--to", target, "-o", folder)
    assert said.code == 0 and f"{folder} holds 1 trace of before, too ({other})" in said.err, said.err
    assert len(said.err.splitlines()) == 1 and (written / other).exists()
    elsewhere = tmp_path / "runs" / "mine"
    elsewhere.mkdir(parents=True)
    (tmp_path / "runs" / other).write_bytes(b"")
    assert harness.gpuprof("convert", dump, "--to", target, "-o", elsewhere).err == ""


def test_a_snapshot_without_allocations_says_so(dump, tmp_path):
    """And what would help: where allocations were recorded, a window had none."""
    done = harness.gpuprof("convert", dump, "--to", "memory-viz", "-o", tmp_path / "with.pickle")
    assert "no allocation" not in done.err
    run = harness.run([harness.SIMTRAIN, "--steps", "3"],
                      harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_ACTIVITIES="step,kernel", **harness.WHOLE_RUN))
    assert run.code == 0, run.err
    done = harness.gpuprof("convert", tmp_path / "out", "--to", "memory-viz", "-o", tmp_path / "without.pickle")
    assert done.code == 0 and "no allocation on a GPU was recorded" in done.err and "GPUPROF_ACTIVITIES" in done.err
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "late", GPUPROF_SCHEDULE="skip_first=3,warmup=0,active=2", GPUPROF_STEP="nvtx:step")
    assert harness.run([harness.SIMTRAIN, "--steps", "8"], env).code == 0
    done = harness.gpuprof("convert", tmp_path / "late", "--to", "memory-viz", "-o", tmp_path / "late.pickle")
    assert "GPUPROF_MEMORY=1" in done.err and "--all" in done.err and "GPUPROF_ACTIVITIES" not in done.err, done.err
    foreign = tmp_path / "trace.json"
    trained = kineto_traces.training()
    trained.events[:] = [event for event in trained.events if event["name"] != "[memory]"]
    foreign.write_text(json.dumps(trained.document()))
    done = harness.gpuprof("convert", foreign, "--to", "memory-viz", "-o", tmp_path / "foreign.pickle")
    assert "profile_memory=True" in done.err and "GPUPROF_" not in done.err, done.err


def test_convert_to_a_place_that_cannot_be_written(dump, tmp_path):
    target = tmp_path / "none" / "x.json"
    assert_one_line(harness.gpuprof("convert", dump, "--to", "chrome", "-o", target), str(target))
    assert list(tmp_path.iterdir()) == []


def test_convert_does_not_overwrite_its_input(dump, tmp_path):
    file = pathlib.Path(shutil.copy(dump, tmp_path / "a.gpuprof"))
    before = file.read_bytes()
    assert_one_line(harness.gpuprof("convert", file, "--to", "chrome", "-o", file), str(file))
    assert file.read_bytes() == before


def test_each_block_of_a_memory_snapshot_is_in_a_segment(tmp_path):
    """memory_viz looks for it. A trace of torch.profiler's tells of blocks alone."""
    changes = [(0x1000, 512), (0x1200, 512), (0x9000, 4096), (0x1200, -512)]
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 40, "tid": 40, "ts": 1000.0 + at,
         "args": {"Bytes": size, "Addr": address, "Total Allocated": 0, "Total Reserved": 0, "Device Id": 0, "Device Type": 1}}
        for at, (address, size) in enumerate(changes)]}))
    run = harness.checked("convert", tmp_path / "t.json", "--to", "memory-viz", "-o", tmp_path / "t.pickle")
    assert "does not tell all segments" in run.out and run.err == "", run.out
    snapshot = pickle.loads((tmp_path / "t.pickle").read_bytes())
    segments = [(segment["address"], segment["total_size"]) for segment in snapshot["segments"]]
    assert segments == [(0x1000, 1024), (0x9000, 4096)]
    assert all(any(begin <= entry["addr"] and entry["addr"] + entry["size"] <= begin + size for begin, size in segments)
               for entry in snapshot["device_traces"][0])
    held = [(block["address"], block["size"], block["state"]) for segment in snapshot["segments"] for block in segment["blocks"]]
    assert held == [(0x1000, 512, "active_allocated"), (0x1200, 512, "inactive"), (0x9000, 4096, "active_allocated")]
