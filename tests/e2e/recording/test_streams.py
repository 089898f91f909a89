# SPDX-License-Identifier: Apache-2.0
"""The command among others in a shell: standard input and output, quoting, width, JSON, programs without `--`."""
import json
import pathlib
import shlex
import subprocess

import pytest

import harness
from support import kineto_traces


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "x.json"
    path.write_text(kineto_traces.training().text())
    return path


def piped(path, *arguments, cwd=None):
    return subprocess.run([harness.BIN, *arguments], stdin=open(path, "rb"), capture_output=True, cwd=cwd,
                          env=harness.environment(), timeout=60)


@pytest.mark.parametrize("command", [["report"], ["info"], ["parse"], ["report", "--format", "json"]])
def test_standard_input_is_an_input(trace, tmp_path, command):
    by_name = harness.checked(*command, trace)
    by_pipe = piped(trace, *command, "-", cwd=tmp_path)
    assert by_pipe.returncode == 0, by_pipe.stderr
    out = by_pipe.stdout.decode().replace("standard input", str(trace))
    assert out == by_name.out and not list(tmp_path.iterdir())


def test_standard_input_without_a_trace_is_named(tmp_path):
    (tmp_path / "empty").write_text("")
    done = piped(tmp_path / "empty", "report", "-")
    assert done.returncode == 2 and b"standard input" in done.stderr and b"/proc" not in done.stderr


@pytest.mark.parametrize("name", ["perfetto", "chrome", "speedscope", "memory-viz"])
def test_standard_output_is_an_output(trace, tmp_path, name):
    harness.checked("convert", trace, "--to", name, "-o", tmp_path / "by_name")
    whole = (tmp_path / "by_name").read_bytes()
    (tmp_path / "empty").mkdir()
    for arguments in ([str(trace), "-o", "-"], ["-"]):
        done = piped(trace, "convert", *arguments, "--to", name, cwd=tmp_path / "empty")
        assert done.returncode == 0, done.stderr
        assert done.stdout.replace(b"/dev/stdout", bytes(tmp_path / "by_name")) == whole  # chrome's names its file
    assert not list((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("name", ["kineto", "tensorboard"])
def test_a_directory_is_no_standard_output(trace, name):
    done = harness.gpuprof("convert", trace, "--to", name, "-o", "-")
    assert done.code == 2 and done.err == f"gpuprof: convert: {name} is a directory: give -o a name for it\n"


def test_report_and_diff_write_to_standard_output(trace, tmp_path):
    assert harness.checked("report", trace, "-o", "-", cwd=tmp_path).out == harness.checked("report", trace).out
    assert harness.checked("diff", trace, trace, "-o", "-", cwd=tmp_path).out == harness.checked("diff", trace, trace).out
    assert not list(tmp_path.iterdir())


def arguments_of(*arguments, tmp_path):
    """What a program under `gpuprof run` gets."""
    done = harness.checked("run", "-o", tmp_path / "out", *arguments)
    return done.out.split("\n")[:-1]


@pytest.mark.parametrize("separator", [["--"], []])
def test_run_takes_the_first_word_for_the_program(separator, tmp_path):
    program = ["printf", "%s\\n", "-o", "x", "--schedule", "--", "--report"]
    assert arguments_of(*separator, *program, tmp_path=tmp_path) == program[2:]


def test_a_mistyped_option_is_no_program(tmp_path):
    done = harness.gpuprof("run", "--scedule", "all", "true")
    assert done.code == 2 and done.err == "gpuprof: run: --scedule is no option; see gpuprof run --help\n"


@pytest.mark.parametrize("word,near", [("frobnicate", None), ("convrt", "convert"), ("reprot", "report"), ("x", None), ("dif", "diff")])
def test_only_a_near_command_is_suggested(word, near):
    done = harness.gpuprof(word)
    assert done.code == 2
    assert (f"did you mean {near}?" in done.err) if near else ("did you mean" not in done.err), done.err


@pytest.mark.parametrize("name,near", [("GPUPROF_FROBNICATE", None), ("GPUPROF_OUTPT", "GPUPROF_OUTPUT")])
def test_only_a_near_setting_is_suggested(name, near):
    for arguments in (["config"], ["run", "--set", f"{name}=1", "true"]):
        done = harness.gpuprof(*arguments, env=harness.environment(**({name: "1"} if arguments == ["config"] else {})))
        assert (f"did you mean {near}" in done.err) if near else ("did you mean" not in done.err), done.err
        assert "is not a setting" in done.err


def test_what_is_to_be_pasted_is_quoted(tmp_path):
    folder = tmp_path / "a 'quoted' $(blank)"
    program = "import ctypes; c = ctypes.CDLL('libcudart.so.13'); [c.cudaDeviceSynchronize() for _ in range(60)]"
    done = harness.checked("run", "-o", folder, "--step", "sync:1", harness.PYTHON, "-c", program)
    said = done.err.split("Next: ")[1].splitlines()[0]
    assert shlex.split(said) == ["gpuprof", "report", str(folder / "latest")]


@pytest.mark.parametrize("columns", [50, 66, 100])
def test_columns_are_kept(trace, columns):
    text = harness.checked("report", trace, env=harness.environment(COLUMNS=columns)).out
    widest = max(len(line) for line in text.splitlines())
    assert widest <= max(columns, 70)
    assert max(map(len, text.split("Where a step's time goes")[0].splitlines())) <= columns


def test_lib_and_info_have_json(trace):
    assert json.loads(harness.checked("lib", "--format", "json").out) == {
        "schema": 1, "library": harness.checked("lib").out.rstrip("\n"), "preload": harness.checked("lib").out.rstrip("\n")}
    assert json.loads(harness.checked("info", trace, "--format", "json").out)["schema"] == 1


def test_a_file_called_minus_is_read_by_its_path(trace, tmp_path):
    (tmp_path / "-").write_bytes(pathlib.Path(trace).read_bytes())
    assert harness.checked("info", "./-", cwd=tmp_path).out.splitlines()[0] == "./-"
