# SPDX-License-Identifier: Apache-2.0
"""Call stacks of a Python program: at each call the frames that Python itself sees, in each CPython that the machine
has, among the native ones."""
import itertools
import json
import platform
import re
import sys

import pytest

import harness
from support.pythons import each_python, pythons

PROGRAM = harness.SOURCE / "tests/programs/python/call_stacks.py"
MOST_FRAMES = 192


def run(folder, python, stacks="sync", **settings):
    bare = harness.run([python, PROGRAM, folder / "bare.json"])
    done = harness.run([python, PROGRAM, folder / "seen.json"], harness.preloaded(
        GPUPROF_OUTPUT=folder / "out", GPUPROF_STACKS=stacks, **harness.WHOLE_RUN, **settings))
    assert (done.code, done.out) == (bare.code, bare.out) and done.code == 0, done.err
    [dump] = harness.dumps(folder / "out")
    return json.loads((folder / "seen.json").read_text()), dump, done


def stacks_of(dump):
    """Those of the program's own calls: the first call comes before frames are known."""
    calls = [r for r in harness.records(dump) if r["kind"] == "sync" and r["name"] == "cudaDeviceSynchronize"]
    return [r["stack"] for r in sorted(calls, key=lambda r: r["begin_mono_ns"])][1:]


def assert_among_native_frames(stacks):
    """Each frame lies where the native one that runs it was: outside of it what called the interpreter."""
    whole = [stack for stack in stacks if any(line.startswith("<module> (") for line in stack)]
    assert len(whole) > 15
    for stack in whole:
        outermost = next(i for i, line in enumerate(stack) if line.startswith("<module> ("))
        assert any("libc" in line for line in stack[outermost:]), stack
        assert not any("libc_start" in line or "libc.so" in line for line in stack[:outermost]), stack
    [callback] = [order for order in map(order_of_calls, whole) if order.count("ffi_call") == 2]
    assert callback == ["ffi_call", "call", "ffi_call", "main"]


def order_of_calls(stack):
    """Of ffi_call and two functions of the program, innermost first. On aarch64 ffi_call leaves no frame, but what it goes on to does."""
    unnamed = "libffi.so" if platform.machine() == "aarch64" else "ffi_call"
    names = ["ffi_call" if line.startswith(unnamed) else line.split(" (")[0] for line in stack]
    return [name for name, _ in itertools.groupby(name for name in names if name in ("ffi_call", "call", "main"))]


def assert_same(stacks, seen):
    assert len(stacks) == len(seen) > 15
    assert_among_native_frames(stacks)
    for stack, frames in zip(stacks, seen):
        expected = [f"{function} ({file}:{line})" for file, function, line in frames]
        of_python = [line for line in stack if re.search(r"\((.*\.py|<made>|__init__):\d+\)$", line)]
        if len(frames) < MOST_FRAMES / 2:
            assert of_python == expected
        else:
            assert len(of_python) > MOST_FRAMES / 2 and of_python == expected[:len(of_python)]
        assert stack.index(expected[0]) > 0, "no native frame calls CUDA"
        assert any("ffi" in line for line in stack[:stack.index(expected[0])]), stack[:5]
        # The interpreter's own functions are left out.
        assert not any(word in line for line in stack for word in ("Vectorcall", "EvalFrame", "Py_RunMain"))


@each_python()
def test_frames_are_pythons_own(version, tmp_path):
    seen, dump, _ = run(tmp_path, pythons()[version])
    assert_same(stacks_of(dump), seen)


def test_the_systems_python(tmp_path):
    """Stripped, with what its distribution changed."""
    seen, dump, _ = run(tmp_path, "/usr/bin/python3")
    assert_same(stacks_of(dump), seen)


@pytest.mark.parametrize("killed", [False, True], ids=["to_the_end", "killed"])
def test_calls_captured_into_a_graph(killed, tmp_path):
    """A kernel of a graph has the lines that asked for it at capture."""
    program = PROGRAM.with_name("captured_calls.py")
    done = harness.run([sys.executable, program, *["kill"] * killed], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STACKS="launch", GPUPROF_ACTIVITIES="+graph:node", **harness.WHOLE_RUN))
    assert done.code == (-9 if killed else 0), done.err
    kernels = [r for r in harness.records(harness.dumps(tmp_path / "out")[0])
               if r["kind"] == "gpu_kernel" and r.get("captured_by")]
    lines = {text: number for number, text in enumerate(program.read_text().splitlines(), 1)}
    frames = {"launch": "    check(cudart.cudaLaunchKernel(", "Model.backward": "        launch(stream)",
              "Model.forward": "        self.backward(stream)", "captured": "    Model().forward(stream)",
              "main": "    executable = captured(stream)"}
    expected = [f"{function} ({program}:{next(n for line, n in lines.items() if line.startswith(text))})"
                for function, text in frames.items()]
    whole = [[line for line in r["captured_stack"] if str(program) in line][:5] for r in kernels]
    assert len(whole) == 6 and whole.count(expected) == 3, whole


@pytest.mark.parametrize("version", [(3, 14), (3, 15)], ids=["3.14", "3.15"])
def test_calls_from_code_that_the_jit_compiled(version, tmp_path):
    """Which has no name. 3.14's keeps no frame pointer, either: there the native frames end, and Python's follow."""
    python = pythons().get(version)
    ask = "import sys; sys.exit(not (hasattr(sys, '_jit') and sys._jit.is_available()))"
    if not python or harness.run([python, "-c", ask]).code:
        pytest.skip("no CPython of this version with its JIT here: tests/e2e/newer_python.sh makes one")
    script = tmp_path / "hot.py"
    script.write_text("import ctypes\ncall = ctypes.CDLL('libcudart.so.13').cudaDeviceSynchronize\ncall()\n"
                      "def inner():\n    call()\ndef outer():\n    for _ in range(6000):\n        inner()\nouter()\n")
    done = harness.run([python, script], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STACKS="sync", PYTHON_JIT=1, **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    stacks = stacks_of(dump)
    assert len(stacks) == 6000
    compiled = 0
    for stack in stacks:
        assert [line for line in stack if str(script) in line] == [
            f"inner ({script}:5)", f"outer ({script}:8)", f"<module> ({script}:9)"]
        in_jit = any(line.startswith("0x") for line in stack)
        assert stack[-1].startswith("<module>") == (in_jit and version == (3, 14)), stack
        compiled += in_jit
    assert 0 < compiled < 6000, "the first calls are the interpreter's"


def test_an_interpreter_that_is_not_known(tmp_path):
    """Native stacks are as they were."""
    if not any(v < (3, 8) for v in pythons()):
        pytest.skip("no Python before 3.8 here")
    python = next(p for v, p in sorted(pythons().items()) if (3, 0) <= v < (3, 8))
    done = harness.run([python, "-c", "import ctypes; ctypes.CDLL('libcudart.so.13').cudaDeviceSynchronize()"], harness.preloaded(
        GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_STACKS="sync", **harness.WHOLE_RUN))
    assert done.code == 0, done.err
    [dump] = harness.dumps(tmp_path / "out")
    [call] = [r for r in harness.records(dump) if r["kind"] == "sync" and r.get("stack")]
    assert any("ffi" in line for line in call["stack"])


def test_perfetto_has_them(tmp_path):
    _, dump, _ = run(tmp_path, sys.executable)
    harness.checked("convert", dump, "--to", "perfetto", "-o", tmp_path / "x.pftrace")
    line = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "self(depth - 1)" in text)
    assert re.search(rf"forward \([^)\n]*call_stacks.py:{line}\)".encode(), (tmp_path / "x.pftrace").read_bytes())
