# SPDX-License-Identifier: Apache-2.0
"""What `gpuprof info` says of what is not known, and of several windows together."""
import harness

JOB = ["--layers", "2"]


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
