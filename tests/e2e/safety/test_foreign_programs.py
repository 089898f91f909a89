# SPDX-License-Identifier: Apache-2.0
"""Programs that have nothing to do with CUDA, and that others wrote: language runtimes, servers, tracers, sandboxes. Each script of
tests/foreign prints what they do and how they end. It is the same with the library in all processes, asleep, and with a live session
in each of them.

GPUPROF_LONG_TESTS=1 runs all whose programs are installed, some 12 minutes on two cores; else the short ones run."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

SCRIPTS = harness.SOURCE / "tests/foreign"
SHORT = ("perl", "mallocs")
LONG = os.environ.get("GPUPROF_LONG_TESTS") == "1"


def missing(script):
    """What it needs and is not installed."""
    needs = re.search(r"^# needs: (.*)$", script.read_text(), re.MULTILINE).group(1).split()
    return [name for name in needs if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]


def outcome(script, folder, **environment):
    """Its exit code and output, with the library as the environment says."""
    folder.mkdir()
    folder.chmod(0o755)
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("GPUPROF_")}, "LC_ALL": "C.UTF-8", "PROGRAMS": str(SCRIPTS / "programs"),
           **{k: str(v) for k, v in environment.items()}}
    done = subprocess.run(["bash", script], env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600, check=False)
    return done.returncode, done.stdout.decode(errors="replace").replace(str(folder), "FOLDER"), done.stderr.decode(errors="replace")


@pytest.mark.parametrize("script", [pytest.param(path, id=path.stem) for path in sorted(SCRIPTS.glob("*.sh"))])
def test_a_foreign_program(script, tmp_path_factory):
    if not LONG and script.stem not in SHORT:
        pytest.skip("GPUPROF_LONG_TESTS=1 runs it")
    if missing(script):
        pytest.skip(f"not installed: {', '.join(missing(script))}")
    work = pathlib.Path(tmp_path_factory.mktemp(script.stem))
    for above in (work, work.parent):
        above.chmod(0o755)  # servers run as users of their own
    out = work / "out"
    out.mkdir()
    out.chmod(0o1777)
    live = {"GPUPROF_OUTPUT": out, "GPUPROF_RUN": "%p", "GPUPROF_SCHEDULE": "all", "GPUPROF_BUFFER_MB": 4, "GPUPROF_LOG": "error",
            "LD_LIBRARY_PATH": harness.SIMCUDA, "LD_PRELOAD": f"{harness.LIB}:{harness.HAZARDS / 'libcuda_first.so'}"}
    bare = outcome(script, work / "bare")
    asleep = outcome(script, work / "asleep", LD_PRELOAD=harness.LIB)
    assert asleep[:2] == bare[:2], asleep[2]
    assert "gpuprof:" not in asleep[2], asleep[2]
    recorded = outcome(script, work / "recorded", **live)
    assert recorded[:2] == bare[:2], recorded[2]
    assert bare[1].strip() and list(out.glob("*/*.gpuprof"))
