# SPDX-License-Identifier: Apache-2.0
"""What `gpuprof info` says of what is not known, and of several windows together."""
import json
import subprocess
import time

import harness

JOB = ["--layers", "2"]


def parts_of(folder):
    return [dump for dump in harness.dumps(folder) if dump.suffix == ".part"]


def killed_in_its_window(folder):
    """What a program leaves whose GPU has work of which CUPTI has not told yet."""
    command = [harness.SIMTRAIN, "--steps", "1000000", *JOB]
    with subprocess.Popen(command, env=harness.preloaded(**harness.WHOLE_RUN, GPUPROF_OUTPUT=folder), stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and sum(part.stat().st_size for part in parts_of(folder)) < 20000:
            time.sleep(0.05)
        process.kill()
    found = [record["kind"] for part in parts_of(folder) for record in harness.records(part)]
    calls, works = (sum(map(found.count, kinds)) for kinds in (("launch", "copy", "set"), ("gpu_kernel", "gpu_copy", "gpu_set")))
    assert calls > works > 0, (calls, works)
    return calls - works


def test_what_a_killed_process_lost_is_not_known(tmp_path):
    missing = killed_in_its_window(tmp_path)
    text = harness.checked("info", tmp_path).out
    assert f"lost       not known: GPU work of {missing} calls had not come from CUPTI" in text, text
    told = harness.info(tmp_path)
    assert "losses" not in told and "losses" not in told["files"][0] and told["files"][0]["own_cost"] is None
    assert "Lost: not known" in harness.checked("report", tmp_path).out
    assert "losses" not in json.loads(harness.checked("report", "--format", "json", tmp_path).out)


def test_a_cut_dump_does_not_tell_what_recording_cost(tmp_path):
    harness.checked("run", "-o", tmp_path / "out", "--", harness.SIMTRAIN, "--steps", "30", *JOB, env=harness.environment())
    dump, = harness.dumps(tmp_path / "out")
    assert harness.info(dump)["files"][0]["own_cost"]["hooks_ns"] > 0
    cut = tmp_path / "cut.gpuprof"
    cut.write_bytes(dump.read_bytes()[:-1])
    assert harness.info(cut)["files"][0]["own_cost"] is None
    assert "own cost" in harness.checked("info", dump).out and "own cost" not in harness.checked("info", cut).out


def test_steps_between_windows_are_not_counted(tmp_path):
    harness.checked("run", "-o", tmp_path, "--schedule", "skip_first=2,wait=2,warmup=1,active=2,repeat=3", "--", harness.SIMTRAIN,
                    "--steps", "40", *JOB, env=harness.environment())
    steps = harness.info(tmp_path)["steps"]
    assert steps["count"] == 6 and steps["last"] - steps["first"] > 6, steps
