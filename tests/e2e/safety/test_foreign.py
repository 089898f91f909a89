# SPDX-License-Identifier: Apache-2.0
"""Programs that the library can do nothing for behave as without it: of another libc, linked statically, and a CPython
whose allocator is chosen after the library was loaded."""
import os
import shutil
import subprocess

import pytest

import harness
from support.pythons import each_python, pythons

SOURCE = harness.SOURCE / "tests/programs/foreign.c"


def same_with_and_without(command, folder, **settings):
    bare = harness.run(command, env=harness.environment(**settings))
    loaded = harness.run(command, env=harness.preloaded(GPUPROF_OUTPUT=folder / "out", GPUPROF_LOG="debug", **settings))
    assert (loaded.code, loaded.out, loaded.err) == (bare.code, bare.out, bare.err)
    assert not (folder / "out").exists()
    return bare


@pytest.mark.parametrize("compiler, options", [
    ("musl-gcc", []), ("musl-gcc", ["-static", "-DFOREIGN_STATIC"]), ("gcc", ["-static", "-DFOREIGN_STATIC"])],
    ids=["musl", "musl-static", "static"])
def test_what_is_interposed_is_as_ever(tmp_path, compiler, options):
    if harness.SANITIZER and compiler == "musl-gcc":
        pytest.skip("a sanitizer's runtime needs glibc")
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here (Debian's package musl-tools)")
    program = tmp_path / "foreign"
    subprocess.run([compiler, "-D_GNU_SOURCE", "-w", "-o", program, SOURCE, *options, "-pthread", "-ldl"], check=True)
    bare = same_with_and_without([program], tmp_path)
    assert bare.code == 3 and "execve: value unset\n1024\n" in bare.out, bare.out


@pytest.mark.parametrize("program, opened", [("probe", "libcudart.so.13"), ("open", "library.so")])
@pytest.mark.parametrize("mode", ["off", "on"])
def test_musl_opens_a_cuda_runtime(tmp_path, program, opened, mode):
    """musl leaves the tables of what it has loaded as they are in the file."""
    if harness.SANITIZER:
        pytest.skip("a sanitizer's runtime needs glibc")
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc here (Debian's package musl-tools)")
    sources, runtime = harness.SOURCE / "tests/programs/copies", tmp_path / "libcudart.so.13"
    compiler = ["musl-gcc", "-D_GNU_SOURCE", "-DRTLD_DEEPBIND=0", "-w"]  # musl has none
    shared = [*compiler, "-shared", "-fPIC"]
    subprocess.run([*shared, "-DRUNTIME=13", "-o", runtime, sources / "runtime.c", "-Wl,-soname,libcudart.so.13"], check=True)
    subprocess.run([*shared, "-o", tmp_path / "library.so", sources / "library.c", runtime, f"-Wl,-rpath,{tmp_path}"], check=True)
    subprocess.run([*compiler, "-rdynamic", "-o", tmp_path / program, sources / f"{program}.c", "-ldl"], check=True)
    bare = same_with_and_without([tmp_path / program, tmp_path / opened], tmp_path, GPUPROF_MODE=mode, LD_LIBRARY_PATH=tmp_path)
    assert bare.code == 0 and "runtime 13: cudaMalloc" in bare.out, bare.out


def test_a_program_of_another_user(tmp_path):
    """setuid: the loader leaves out what is preloaded by a path."""
    if not harness.can_give_files_to_somebody():
        pytest.skip("needs root and a second user")
    program = tmp_path / "id"
    shutil.copy("/usr/bin/id", program)
    os.chown(program, harness.SOMEBODY, harness.SOMEBODY)
    program.chmod(0o4755)
    bare = same_with_and_without([program, "-u"], tmp_path)
    assert (bare.code, bare.out) == (0, f"{harness.SOMEBODY}\n")


def test_a_program_of_32_bits(tmp_path):
    """The loader says that it leaves out a library of 64 bits; all else is as without."""
    program = tmp_path / "foreign"
    made = subprocess.run(["gcc", "-m32", "-D_GNU_SOURCE", "-w", "-o", program, SOURCE, "-pthread", "-ldl"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("gcc makes no 32-bit programs here (Debian's package gcc-multilib)")
    bare = harness.run([program])
    loaded = harness.run([program], harness.preloaded(GPUPROF_OUTPUT=tmp_path / "out"))
    said, said_bare = ([line for line in run.err.splitlines() if "wrong ELF class" not in line] for run in (loaded, bare))
    assert (loaded.code, loaded.out, said) == (bare.code, bare.out, said_bare)
    assert not (tmp_path / "out").exists()


def test_run_says_that_a_musl_program_runs_unprofiled(tmp_path):
    if harness.SANITIZER:
        pytest.skip("a sanitizer's runtime needs glibc")
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc here (Debian's package musl-tools)")
    program = tmp_path / "foreign"
    subprocess.run(["musl-gcc", "-D_GNU_SOURCE", "-w", "-o", program, SOURCE], check=True)
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--", program)
    assert done.code == 3 and done.err.strip() == f"gpuprof: warning: {program} runs unprofiled: it uses musl; gpuprof works with glibc only"


@each_python()
@pytest.mark.parametrize("settings, options", [
    ({}, ["-X", "dev"]), ({"PYTHONMALLOC": "debug"}, []), ({"PYTHONMALLOC": "malloc_debug"}, []),
    ({"PYTHONMALLOC": "pymalloc_debug"}, []), ({"PYTHONMALLOC": "malloc"}, []), ({"PYTHONTRACEMALLOC": "5"}, [])],
    ids=["dev", "debug", "malloc_debug", "pymalloc_debug", "malloc", "tracemalloc"])
def test_a_python_with_another_allocator(tmp_path, version, settings, options):
    done = same_with_and_without([pythons()[version], *options, "-c", "import ctypes, socket; print(ctypes.CDLL(None) is not None)"],
                                 tmp_path, **settings)
    assert (done.code, done.out) == (0, "True\n")
