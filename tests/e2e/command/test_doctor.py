# SPDX-License-Identifier: Apache-2.0
"""gpuprof doctor: what would be captured, what not, and why."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import harness


def findings(*program, env=None, cwd=None):
    done = harness.gpuprof("doctor", "--format", "json", *(["--", *program] if program else []),
                           env=env or harness.environment(), cwd=cwd)
    found = json.loads(done.out)["checks"]
    assert done.code == int(any(f["state"] == "missing" for f in found)), done.err
    return found


def of(found, subject):
    return [f for f in found if f["subject"] == subject]


def state(found, subject):
    return of(found, subject)[0]["state"]


def test_a_machine_where_all_is_there(tmp_path):
    found = findings(cwd=tmp_path)
    assert {state(found, s) for s in ("library", "settings", "output", "driver", "CUPTI")} == {"ok"}
    assert of(found, "driver")[0]["text"] == "CUDA 13.0, 8 GPUs"
    assert "libcupti.so.13" in of(found, "CUPTI")[0]["text"]
    assert any("dlmopen" in f["text"] for f in of(found, "escapes"))
    assert not list(tmp_path.iterdir())  # it only looks


def test_what_is_missing_is_said(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    env = harness.environment(GPUPROF_OUTPUT=blocked / "out", GPUPROF_CUPTI="/nowhere/libcupti.so",
                              NVTX_INJECTION64_PATH="/opt/other.so")
    del env["LD_LIBRARY_PATH"]
    found = findings(env=env)
    assert state(found, "output") == "missing" and str(blocked) in of(found, "output")[0]["text"]
    assert state(found, "driver") == "missing"
    assert of(found, "CUPTI")[0] == {"subject": "CUPTI", "state": "limited",
                                     "text": 'GPUPROF_CUPTI="/nowhere/libcupti.so" cannot be loaded',
                                     "advice": of(found, "CUPTI")[0]["advice"]}
    assert "NVTX_INJECTION64_PATH=/opt/other.so" in of(found, "others")[0]["text"]


def test_injection(tmp_path):
    """The library named for the driver to load: it is not loaded into the command, and its limits are said."""
    env = harness.environment(CUDA_INJECTION64_PATH=harness.LIB, GPUPROF_OUTPUT=tmp_path / "out")
    found = findings(env=env)
    rows = of(found, "injection")
    assert [r["state"] for r in rows] == ["ok", "limited", "limited", "limited"]
    assert "NVTX_INJECTION64_PATH" in rows[3]["advice"] and not of(found, "others")
    assert len(of(findings(env={**env, "NVTX_INJECTION64_PATH": harness.LIB}), "injection")) == 3
    assert [r["state"] for r in of(findings(env={**env, "LD_PRELOAD": harness.LIB}), "injection")] == ["ok"]
    assert not (tmp_path / "out").exists()
    row, = of(findings(env=harness.environment(CUDA_INJECTION64_PATH="/opt/tool.so")), "others")
    assert row["text"] == "CUDA_INJECTION64_PATH=/opt/tool.so"


def test_bad_settings_are_said():
    found = findings(env=harness.environment(GPUPROF_STEP="never"))
    assert state(found, "settings") == "missing" and "GPUPROF_STEP" in of(found, "settings")[0]["text"]
    assert state(findings(env=harness.environment(GPUPROF_MODE="off")), "settings") == "missing"


@pytest.mark.parametrize("program, expected", [
    ("runtime_linked", "is linked to libcudart.so.13: its calls are seen"),
    ("driver_linked", "is linked to libcuda.so.1: its calls are seen"),
    ("runtime_static", "asks the driver for its functions itself"),
    ("runtime_opened", "brings no CUDA library itself"),
])
def test_what_a_program_brings(program, expected):
    rows = of(findings(harness.HAZARDS / program), "program")
    assert [r["state"] for r in rows] == ["ok", "ok"] and expected in rows[1]["text"]


def environment_of(folder, *libraries):
    """A virtual environment with these files below its packages; they are the simulated libcupti."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python3").symlink_to(os.path.realpath("/usr/bin/python3"))
    (folder / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    packages = folder / "lib/python3.12/site-packages"
    for library in libraries:
        (packages / library).parent.mkdir(parents=True)
        shutil.copy(f"{harness.SIMCUDA}/libcupti.so.13", packages / library)
    return folder / "bin/python3", packages


def test_what_pythons_packages_bring(tmp_path):
    """The libcupti of the interpreter's packages, in the order in which programs come to them."""
    env = harness.environment()
    del env["LD_LIBRARY_PATH"]
    python, packages = environment_of(tmp_path / "one", "nvidia/cuda_cupti/lib/libcupti.so.12", "torch/lib/libcupti.so.13")
    rows = of(findings(python, env=env), "packages")
    assert [r["text"] for r in rows] == [f"{packages}/torch/lib/libcupti.so.13 (torch), version 130001",
                                         f"{packages}/nvidia/cuda_cupti/lib/libcupti.so.12 (nvidia/cuda_cupti), version 24"]
    assert rows[0]["advice"].startswith("used unless") and rows[1]["advice"].startswith("not used")
    script = tmp_path / "train"
    script.write_text(f"#!{python}\n")
    script.chmod(0o755)
    assert of(findings(script, env=env), "packages") == rows
    script.write_text("#!/usr/bin/env python3\n")
    assert of(findings(script, env={**env, "PATH": f"{python.parent}:{env['PATH']}"}), "packages") == rows


def test_packages_without_cupti(tmp_path):
    python, packages = environment_of(tmp_path / "one")
    (packages / "torch").mkdir(parents=True)
    row, = of(findings(python), "packages")
    assert row["state"] == "limited" and str(packages) in row["text"]
    (packages / "nvidia/cu13/lib").mkdir(parents=True)
    (packages / "nvidia/cu13/lib/libcupti.so.13").write_text("not a library")
    row, = of(findings(python), "packages")
    assert row["state"] == "limited" and row["text"].endswith("libcupti.so.13 cannot be loaded")
    assert not of(findings("/bin/true"), "packages")


def test_a_program_that_cannot_be_preloaded(tmp_path):
    static = tmp_path / "static"
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", static, source], check=True)
    [row] = of(findings(static), "program")
    assert row["state"] == "missing" and "linked statically" in row["text"]
    [row] = of(findings("no-such-program"), "program")
    assert row["state"] == "missing"


def test_a_static_program_that_finds_the_driver_itself(tmp_path):
    """It looks cuGetProcAddress up in the driver, but nothing can be put before that."""
    (tmp_path / "static.c").write_text("""
        #include <stdio.h>
        static const char* volatile names[] = {"libcuda.so.1", "cuGetProcAddress_v2"};
        int main(void) { return printf("%s %s\\n", names[0], names[1]) < 0; }
    """)
    subprocess.run(["cc", "-static", "-o", tmp_path / "static", tmp_path / "static.c"], check=True)
    [row] = of(findings(tmp_path / "static"), "program")
    assert row["state"] == "missing" and "linked statically" in row["text"]
    assert "none of its CUDA calls is seen" in row["advice"]


@pytest.mark.skipif(not harness.can_give_files_to_somebody(), reason="needs root and a second user")
@pytest.mark.parametrize("bit, word", [(0o4755, "setuid"), (0o2755, "setgid")])
def test_a_program_that_gains_rights(bit, word, tmp_path):
    """The kernel makes ld.so ignore LD_PRELOAD there."""
    program = pathlib.Path(shutil.copy(harness.HAZARDS / "runtime_linked", tmp_path / "gains"))
    os.chown(program, harness.SOMEBODY, harness.SOMEBODY)
    program.chmod(bit)
    [row] = of(findings(program), "program")
    assert row["state"] == "missing" and f"it is {word}" in row["text"]
    assert "runs unprofiled" in row["advice"]
    if "NoNewPrivs:\t1" in pathlib.Path("/proc/self/status").read_text() or os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("no program gains rights here: what doctor says was checked, running it was not")
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    done = harness.run([program], env)
    assert harness.our_lines(done.err) == [] and not (tmp_path / "out").exists()


@pytest.mark.skipif(harness.SANITIZER == "address", reason="its runtime cannot be in a process twice")
def test_a_program_that_opens_namespaces(tmp_path):
    """What it does there is not seen by hooks, nothing goes wrong, and it is named."""
    program = harness.HAZARDS / "namespace"
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", **harness.WHOLE_RUN)
    bare, done = harness.run([program, "libruntime_plugin.so"]), harness.run([program, "libruntime_plugin.so"], env)
    assert (done.code, done.out, done.err) == (bare.code, bare.out, bare.err) and done.code == 0, done.out + done.err
    assert not (tmp_path / "out").exists()
    rows = [r for r in of(findings(program), "program") if "dlmopen" in r["text"]]
    assert len(rows) == 1 and rows[0]["state"] == "limited" and "hooks do not see" in rows[0]["text"]
    assert not [r for r in of(findings(harness.HAZARDS / "runtime_opened"), "program") if "dlmopen" in r["text"]]


def test_a_library_that_does_not_load_here(tmp_path):
    """The command looks for the library beside itself; one that ld.so refuses is named with ld.so's reason."""
    command = tmp_path / "gpuprof"
    shutil.copy(harness.BIN, command)
    library = tmp_path / "libgpuprof.so"
    library.write_bytes(pathlib.Path(harness.LIB).read_bytes()[:200])
    os.chmod(library, 0o755)
    done = harness.run([command, "doctor", "--format", "json"])
    row = of(json.loads(done.out)["checks"], "library")[0]
    assert row["state"] == "missing" and "ld.so" in row["text"]


def test_text(tmp_path):
    out = harness.gpuprof("doctor", "--", "true", cwd=tmp_path).out
    assert "ok       settings   valid; gpuprof config prints them" in out
    assert harness.gpuprof("doctor", "--format", "xml").code == 2


def stress(cwd, *program, runs=2):
    done = harness.gpuprof("doctor", "--stress", "--runs", str(runs), "--format", "json", "--", *program, cwd=cwd)
    found = json.loads(done.out)["checks"]
    assert done.code == int(any(f["state"] == "missing" for f in found)), done.err
    said = re.findall(r"^gpuprof: doctor: (\d+) of (\d+) runs are done, \d+ s so far$", done.err, re.M)
    assert {int(number) for number, _ in said} >= {5 * (round + 1) for round in range(runs)} and {int(of) for _, of in said} == {5 * runs}
    return {f["subject"]: f for f in found}


def test_stress_of_a_program_that_runs_the_same(tmp_path):
    found = stress(tmp_path, harness.SIMTRAIN, "--steps", "20")
    assert list(found) == ["bare", "mode off", "mode armed", "mode on", "mode all"]
    assert all(f["state"] != "missing" and (name == "bare" or f["text"].startswith("2 of 2 runs as bare;")) for name, f in found.items()), found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("others", ["libm.so.6", ""])
def test_stress_runs_bare_where_the_library_is_for_every_program(others, tmp_path):
    """What LD_PRELOAD and injection name beside it stays."""
    (tmp_path / "here").mkdir()
    script = (f'echo "$GPUPROF_MODE $(grep -c libgpuprof /proc/$$/maps) $LD_PRELOAD $CUDA_INJECTION64_PATH $NVTX_INJECTION64_PATH" '
              f">>{tmp_path}/seen")
    env = harness.environment(LD_PRELOAD=f"{harness.RUNTIME}:{harness.LIB} {others}", CUDA_INJECTION64_PATH=harness.LIB,
                              NVTX_INJECTION64_PATH="/other.so" if others else harness.LIB)
    done = harness.gpuprof("doctor", "--stress", "--runs", "1", "--", "sh", "-c", script, cwd=tmp_path / "here", env=env)
    assert done.code == 0, done.out + done.err
    bare, *modes = [line.split(" ") for line in (tmp_path / "seen").read_text().splitlines()]
    assert bare == ["", "0", ":".join(filter(None, [harness.RUNTIME, others])), "", "/other.so" if others else ""]
    assert [mode[0] for mode in modes] == ["off", "armed", "on", "on"]
    for _, mapped, preloaded, *_ in modes:
        assert int(mapped) > 0 and preloaded == ":".join(filter(None, [harness.LIB, harness.RUNTIME, others]))


@pytest.mark.parametrize("script, what", [
    ('test -z "$GPUPROF_MODE"', "exit code 1, exit code 0 bare"),
    ('test -z "$GPUPROF_MODE" || echo "$GPUPROF_MODE"', "another standard output"),
    ('test -z "$GPUPROF_MODE" || echo x >&2', "another standard error"),
    ('test -z "$GPUPROF_MODE" || touch "f$$"', "other files in this directory: f"),
    ('test -z "$GPUPROF_MODE" || (sleep 60 >/dev/null 2>&1 &)', "1 processes left over"),
])
def test_stress_sees_a_difference(script, what, tmp_path):
    found = stress(tmp_path, "sh", "-c", script, runs=1)
    assert found["bare"]["state"] == "ok"
    for mode in ("off", "armed", "on", "all"):
        assert found[f"mode {mode}"]["state"] == "missing" and what in found[f"mode {mode}"]["text"], found


def test_stress_says_what_helps_a_slower_mode(tmp_path):
    """Recording less does not help where nothing is recorded."""
    found = stress(tmp_path, "sh", "-c", 'test -z "$GPUPROF_MODE" || sleep 1')
    advice = {name: f["advice"] for name, f in found.items() if name != "bare"}
    for mode in ("off", "armed", "on", "all"):
        text = advice[f"mode {mode}"]
        assert text.startswith("every run was slower than each bare one; ") and "start and end count" in text, advice
        assert ("GPUPROF_PRESET" in text) == (mode in ("on", "all")), advice
        assert ("nothing is recorded" in text) == (mode in ("off", "armed")), advice


def test_stress_compares_only_what_bare_runs_agree_on(tmp_path):
    found = stress(tmp_path, "sh", "-c", "date +%N; exit 3")
    assert found["bare"]["advice"] == "not compared, since bare runs differ in it: standard output"
    assert "exit code 3" in found["bare"]["text"]
    assert {f["state"] for name, f in found.items() if name != "bare"} <= {"ok", "limited"}


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_stress_that_is_interrupted_leaves_nothing(name, tmp_path):
    """No folder and no process, also where the program does not end by the signal."""
    marker = f"{3000 + os.getpid()}.125"
    script = f"trap '' INT TERM HUP; touch {tmp_path}/runs; sleep {marker}; sleep {marker}"
    child = subprocess.Popen([harness.BIN, "doctor", "--stress", "--", "sh", "-c", script], cwd=tmp_path,
                             env=harness.environment(TMPDIR=tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (tmp_path / "runs").exists():
        time.sleep(0.01)
    child.send_signal(getattr(signal, name))
    assert child.wait(timeout=60) == 128 + getattr(signal, name)
    assert not list(tmp_path.glob("gpuprof-stress-*"))
    running = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if marker.encode() in read_bytes(path)]
    assert not running


def read_bytes(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def test_stress_needs_a_program():
    done = harness.gpuprof("doctor", "--stress")
    assert done.code == 2 and "--stress needs a program" in done.err
