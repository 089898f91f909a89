# SPDX-License-Identifier: Apache-2.0
"""A program that is built with AddressSanitizer ends as without the library, and its leak check finds what it would."""
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.skipif(bool(harness.SANITIZER), reason="the library has a sanitizer of its own")


@pytest.fixture(name="build", params=["gcc", "clang"])
def compiler(request, tmp_path):
    """The program, and what must come first in LD_PRELOAD: GCC's runtime is a library and insists on that."""
    name = request.param
    if not shutil.which(name):
        pytest.skip(f"no {name} here")
    program = tmp_path / "leaks"
    made = subprocess.run([name, "-g", "-fsanitize=address", "-o", program, harness.SOURCE / "tests/programs/leaks.c",
                           f"-L{harness.SIMCUDA}", "-lcudart", "-Wl,--allow-shlib-undefined"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"{name} makes no such program here: {made.stderr.splitlines()[-1]}")
    runtime = subprocess.run([name, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    return program, runtime if name == "gcc" else None


def leak_lines(text):
    """What the leak check says, less what differs from run to run."""
    return [re.sub(r"==[0-9]+==|0x[0-9a-f]+", "", line) for line in text.splitlines() if re.search("LeakSanitizer|leak of", line)]


@pytest.mark.parametrize("settings", [
    harness.WHOLE_RUN, {"GPUPROF_SCHEDULE": "skip_first=1,warmup=2,active=3,repeat=0", "GPUPROF_STEP": "sync:1", "GPUPROF_PRESET": "full"},
    {"GPUPROF_MODE": "armed"}, {"GPUPROF_MODE": "off"}], ids=["whole", "windows", "armed", "off"])
def test_leaks_are_found_as_ever(build, settings, tmp_path):
    program, runtime = build
    for arguments, code, lines in (([], 0, 0), (["lose"], 23, 2)):
        bare = harness.run([program, *arguments], harness.environment(LSAN_OPTIONS="exitcode=23"))
        env = harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out", LSAN_OPTIONS="exitcode=23", **settings)
        env["LD_PRELOAD"] = ":".join(filter(None, [runtime, harness.LIB]))
        done = harness.run([program, *arguments], env)
        assert (bare.code, bare.out, len(leak_lines(bare.err))) == (code, "done\n", lines), bare.err
        assert (done.code, done.out, leak_lines(done.err)) == (bare.code, bare.out, leak_lines(bare.err)), done.err
    assert harness.dumps(tmp_path / "out") or "GPUPROF_MODE" in settings
