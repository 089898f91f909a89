# SPDX-License-Identifier: Apache-2.0
"""Tools that change what a program sees: clocks that stand, users that are not, another tool for NVTX."""
import os
import shutil
import subprocess

import harness
import pytest


@pytest.mark.parametrize("mode", ["on", "armed"])
def test_clocks_that_stand(tmp_path, mode):
    """libfaketime with a fixed date stops CLOCK_MONOTONIC, too: waits of ours go by the kernel's."""
    copies = harness.HAZARDS / "copies"  # its runtime waits for nothing
    env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_SCHEDULE="all", GPUPROF_MODE=mode, LD_LIBRARY_PATH=copies)
    env["LD_PRELOAD"] += f":{harness.HAZARDS / 'libclock_stands.so'}"
    done = harness.run([harness.HAZARDS / "copies_open", copies / "library13.so"], env, timeout=60)
    assert done.code == 0 and "launch of its kernel" in done.out, done.err
    if mode == "on":
        file, = harness.info(tmp_path / "out")["files"]
        assert file["events"]["launch"] == 2, file


def test_fakeroot(tmp_path):
    """It answers that the user is root; files are of the user all the same."""
    if os.geteuid() != 0 or not shutil.which("fakeroot") or not shutil.which("setpriv"):
        pytest.skip("needs root, fakeroot and setpriv")
    os.chmod(tmp_path, 0o777)
    for folder in tmp_path.parents:
        if folder.stat().st_mode & 0o005 != 0o005:
            os.chmod(folder, folder.stat().st_mode | 0o055)
    env = harness.environment(GPUPROF_OUTPUT=tmp_path / "mine" / "out", GPUPROF_STEP="sync:1", HOME=tmp_path)
    script = f"mkdir -m 700 {tmp_path}/mine && LD_PRELOAD=$LD_PRELOAD:{harness.LIB} {harness.SIMTRAIN} --steps 60 --markers sync"
    done = harness.run(["setpriv", f"--reuid={harness.SOMEBODY}", f"--regid={harness.SOMEBODY}", "--clear-groups", "fakeroot", "sh", "-c",
                        script], env)
    assert done.code == 0 and "unprofiled" not in done.err, done.err
    assert len(harness.dumps(tmp_path / "mine" / "out")) == 1, done.err


@pytest.mark.parametrize("settings", [{}, {"GPUPROF_STEP": "nvtx:step"}, {"GPUPROF_MODE": "armed"}], ids=["auto", "nvtx", "armed"])
def test_nvtx_of_another_tool(tmp_path, settings):
    """Nsight Systems sets it: its ranges are not ours, which one line says."""
    other = tmp_path / "other.so"
    compiled = subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", other], input=b"int InitializeInjectionNvtx2(void* t)"
                              b"{ (void)t; return 1; }", check=False)
    if compiled.returncode:
        pytest.skip("no C compiler")
    command = [harness.SIMTRAIN, "--steps", "60", "--markers", "nvtx"]
    done = harness.run(command, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", NVTX_INJECTION64_PATH=other, **settings))
    said = [line for line in harness.our_lines(done.err) if f"NVTX_INJECTION64_PATH={other}" in line]
    assert done.code == 0 and len(said) == 1 and "none is recorded" in said[0], done.err
    done = harness.run(command, harness.preloaded(GPUPROF_OUTPUT=tmp_path / "own", NVTX_INJECTION64_PATH=harness.LIB, **settings))
    assert "NVTX_INJECTION64_PATH" not in done.err
