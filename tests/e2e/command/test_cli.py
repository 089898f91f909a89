# SPDX-License-Identifier: Apache-2.0
"""The gpuprof command: exit codes, single-line messages, and `run` as a transparent wrapper."""
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import time

import harness
import pytest

PYTHON = harness.PYTHON


def clean_environment(**settings):
    """Bare surroundings: what runs here needs neither the simulated stack nor a sanitizer's runtime
    except where the library is preloaded into it."""
    return harness.environment(**settings)


def assert_one_line(run, *words, code=2):
    """Nothing on stdout, one line of ours on stderr that holds all of `words`."""
    lines = run.err.splitlines()
    assert run.code == code, run.err
    assert len(lines) == 1 and lines[0].startswith("gpuprof: "), run.err
    for word in words:
        assert word in lines[0], run.err
    assert run.out == ""


# What is asked for.
@pytest.mark.parametrize("arguments, words", [
    ([], ["no command", "--help"]),
    (["confg"], ["confg", "config"]),
    (["reprot"], ["reprot"]),
    (["--verbose"], ["--verbose"]),
    (["help", "reprot"], ['"reprot" is no command', "report"]),
    (["--help", "run", "info"], ["--help takes one command"]),
    (["lib", "extra"], ["lib", "extra"]),
    (["info"], ["info", "INPUT"]),
    (["parse"], ["parse", "INPUT"]),
    (["convert", "x"], ["convert", "--to"]),
    (["convert", "x", "--to", "pdf"], ["convert", "pdf", "perfetto", "chrome"]),
    (["info", "x", "--format", "xml"], ["info", "xml", "json"]),
    (["parse", "x", "--format", "xml"], ["parse", "xml", "json"]),
    (["config", "--format", "yaml"], ["config", "yaml", "json"]),
    (["report", "x", "--by", "foo"], ['--by: "foo"', "shape, stack"]),
    (["report", "x", "--sort", "foo"], ['--sort: "foo"', "cpu-self, ", "memory-self", "name"]),
    (["report", "x", "--format", "\033[1m"], ["--format: ", "text, json, html"]),
    (["report", "x", "--top", "many"], ['--top: "many"', "whole number from 0"]),
    (["info", "--nonsense", "x"], ["info", "--nonsense"]),
    (["export", "x", "--to", "parquet", "-o", "-"], ["-o -: tables are a directory"]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_wrong_usage(arguments, words):
    done = harness.gpuprof(*arguments)
    assert_one_line(done, *words)
    assert done.err.rstrip("\n").isprintable()


def test_version_and_help():
    assert re.fullmatch(r"gpuprof \d+\.\d+\.\d+\n", harness.checked("--version").out)
    listed = harness.checked("--help").out
    commands = re.findall(r"^  (\w+) ", listed, re.M)
    assert {"run", "convert", "info", "parse", "config", "lib", "trigger", "doctor"} <= set(commands)
    for command in commands:
        text = harness.checked(command, "--help").out
        assert text == harness.checked("help", command).out == harness.checked("--help", command).out
        usage, = re.findall(rf"^Usage: (gpuprof {command} .*)", text, re.M)
        for short, long in re.findall(r"^  (?:(-\w),)?(--[a-z-]+)", text, re.M):
            assert long == "--help" or re.search(rf"(?<![\w-]){short or long}(?![\w-])", usage), (usage, long)
    keys = harness.checked("parse", "--help").out
    assert "begin_mono_ns" in keys
    printed = re.findall(r'json_line\("(\w+)"', (harness.SOURCE / "tools/commands/cmd_parse.cpp").read_text())
    assert len(printed) > 5
    for kind in printed:
        assert re.search(rf"^  {kind}\b", keys, re.M), kind


def test_needs_only_glibc():
    if harness.SANITIZER:
        pytest.skip("a sanitizer's runtime is one more library")
    shown = harness.binutils("readelf", "-d", harness.BIN)
    needed = re.findall(r"NEEDED.*\[(.*)\]", shown)
    assert needed or "no dynamic section" in shown, "the portable builds link it statically"
    assert set(needed) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, needed


# lib
def test_lib_names_the_library():
    path = harness.checked("lib").out.rstrip("\n")
    assert os.path.isabs(path) and os.path.samefile(path, harness.LIB)


@pytest.mark.parametrize("place", ["bin", "preload", "lib/gpuprof", "lib"])
def test_lib_looks_where_it_is_installed(place, tmp_path):
    (tmp_path / "bin").mkdir()
    binary = shutil.copy(harness.BIN, tmp_path / "bin")
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    library = pathlib.Path(shutil.copy(harness.LIB, tmp_path / place / "libgpuprof.so"))
    run = harness.run([binary, "lib"])
    assert (run.code, run.out) == (0, f"{library.resolve()}\n")


def test_lib_missing(tmp_path):
    binary = shutil.copy(harness.BIN, tmp_path)
    assert_one_line(harness.run([binary, "lib"]), "libgpuprof.so", str(tmp_path))
    assert_one_line(harness.run([binary, "run", "--", "true"]), "libgpuprof.so")


# config
def test_config_says_where_each_comes_from(tmp_path):
    file = tmp_path / "settings"
    file.write_text("GPUPROF_LOG=info\nGPUPROF_STEP=sync:2\n")
    env = clean_environment(GPUPROF_CONFIG=file, GPUPROF_STEP="manual", GPUPROF_PRESET="light")
    rows = {row["name"]: row for row in json.loads(harness.checked("config", "--format", "json", env=env).out)["settings"]}
    assert (rows["GPUPROF_LOG"]["value"], rows["GPUPROF_LOG"]["source"]) == ("info", str(file))
    assert (rows["GPUPROF_STEP"]["value"], rows["GPUPROF_STEP"]["source"]) == ("manual", "environment")
    assert rows["GPUPROF_ACTIVITIES"]["value"] == "step,kernel,memcpy,memset,sync,nccl"
    assert rows["GPUPROF_BUFFER_MB"]["source"] == "default"
    text = harness.checked("config", env=env).out
    for name, row in rows.items():
        assert f"{name} = {row['value'] or '(none)'}" in text and row["allowed"] in text


@pytest.mark.parametrize("settings, name, value", [
    ({"GPUPROF_PRESET": "light", "GPUPROF_ACTIVITIES": "+graph:trace,+malloc:64"}, "ACTIVITIES",
     "step,kernel,memcpy,memset,sync,graph:trace,nccl,malloc:64"),
    ({"GPUPROF_ACTIVITIES": "graph:node,malloc"}, "ACTIVITIES", "graph:node,malloc:512"),
    ({}, "STACKS", "none"),
    ({"GPUPROF_PRESET": "full"}, "STACKS", "launch,sync,alloc,nccl"),
    ({"GPUPROF_STACKS": "nccl,launch:10"}, "STACKS", "launch:10,nccl"),
])
def test_config_prints_lists_as_they_are_in_force(settings, name, value):
    """Each can be set again as it is printed."""
    for env in (settings, {f"GPUPROF_{name}": value}):
        rows = {row["name"]: row for row in json.loads(harness.checked("config", "--format", "json", env=clean_environment(**env)).out)["settings"]}
        assert rows[f"GPUPROF_{name}"]["value"] == value


def test_config_warns_of_unknown_names():
    run = harness.checked("config", env=clean_environment(GPUPROF_SCEDULE="active=1", GPUPROF_TEST_X="1"))
    assert run.err == "gpuprof: warning: GPUPROF_SCEDULE is not a setting; did you mean GPUPROF_SCHEDULE?\n"


WRONG_SETTINGS = [
    ("GPUPROF_MODE", "fast", ["on", "off"]),
    ("GPUPROF_SCHEDULE", "active=x", ["active must be a whole number from 1 to 1000000"]),
    ("GPUPROF_STEP", "nvtx", ["nvtx:NAME", "sync:N", "time:MS"]),
    ("GPUPROF_PRESET", "heavy", ["light", "default", "full"]),
    ("GPUPROF_STACKS", "malloc", ["launch", "sync", "alloc", "nccl"]),
    ("GPUPROF_ACTIVITIES", "+kernels", ["kernel", "memcpy"]),
    ("GPUPROF_MEMORY", "on", ["0 or 1"]),
    ("GPUPROF_WORKERS", "2", ["0 or 1"]),
    ("GPUPROF_RANKS", "one", ["0,8-15"]),
    ("GPUPROF_BUFFER_MB", "lots", ["1 to 65536"]),
    ("GPUPROF_CUPTI", "maybe", ["auto", "off"]),
    ("GPUPROF_LOG", "all", ["error", "debug"]),
    ("GPUPROF_OUTPUT", "%x", ["%"]),
]


@pytest.mark.parametrize("name, value, words", WRONG_SETTINGS, ids=[row[0] for row in WRONG_SETTINGS])
def test_wrong_setting_stops_run_before_the_program(name, value, words, tmp_path):
    program = ["sh", "-c", f"touch {tmp_path / 'started'}"]
    for run in (harness.gpuprof("run", "--", *program, env=clean_environment(**{name: value})),
                harness.gpuprof("run", "--set", f"{name}={value}", "--", *program)):
        assert_one_line(run, f'{name}="{value}": ', *words)
    assert list(tmp_path.iterdir()) == []
    assert_one_line(harness.gpuprof("config", env=clean_environment(**{name: value})), f'{name}="{value}": ')


@pytest.mark.parametrize("arguments, words", [
    (["run"], ["no program given"]),
    (["run", "--"], ["no program given"]),
    (["run", "--quiet", "true"], ["--quiet"]),
    (["run", "--schedul", "active=1", "--", "true"], ["--schedul"]),
    (["run", "--schedule", "--", "true"], ["--schedule"]),
    (["run", "--set", "GPUPROF_LOG", "--", "true"], ["GPUPROF_LOG", "NAME=VALUE"]),
    (["run", "--set", "GPUPROF_LOGS=info", "--", "true"], ["GPUPROF_LOGS", "GPUPROF_LOG"]),
    (["run", "--set", "GPUPROF_CUPTI=/nonexistent/libcupti.so", "--", "true"], ["/nonexistent/libcupti.so"]),
    (["run", "--schedule", "wait=-1", "--", "true"], ["GPUPROF_SCHEDULE", "wait must be"]),
    (["run", "--set", "GPUPROF_CONFIG=/nonexistent", "--", "true"], ["/nonexistent"]),
], ids=lambda value: " ".join(value) if len(value) < 2 or value[0] == "run" else None)
def test_wrong_use_of_run(arguments, words):
    assert_one_line(harness.gpuprof(*arguments), *words)


@pytest.mark.parametrize("code", [0, 3])
def test_run_keeps_the_exit_code_where_sigchld_is_ignored(code, tmp_path):
    """As under a supervisor that does not wait for its children. The program finds the signal ignored, as without us."""
    seen = "import signal, sys; sys.exit(%d if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 90)" % code
    done = subprocess.run([harness.BIN, "run", "-o", tmp_path / "out", "--", "python3", "-c", seen], check=False,
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == code


@pytest.mark.parametrize("output", ["/dev/null/out", "/proc/x", "{tmp}/file/out", "{tmp}/file/%h/%p", "{tmp}/closed/out"])
def test_output_that_cannot_be_written_stops_run_before_the_program(output, tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "closed").mkdir(mode=0o500)
    program = ["sh", "-c", f"touch {tmp_path / 'started'}"]
    output = output.format(tmp=tmp_path)
    refused = harness.run([*harness.BOUND_BY_MODES, harness.BIN, "run", "-o", output, "--", *program])
    assert_one_line(refused, f'GPUPROF_OUTPUT="{output}": ', "cannot hold dumps", "-o")
    assert not (tmp_path / "started").exists()
    for options in (["--set", "GPUPROF_MODE=off"], ["--ranks", "7"]):
        assert harness.gpuprof("run", "-o", output, *options, "--", *program, env=clean_environment(RANK="0")).code == 0
        assert (tmp_path / "started").exists()
        (tmp_path / "started").unlink()


def test_output_that_modes_allow_and_the_file_system_refuses(tmp_path):
    """As root sees /proc: it may write there, and nothing can be made."""
    refused = harness.gpuprof("run", "-o", "/proc/x", "--", "touch", tmp_path / "started")
    assert_one_line(refused, 'GPUPROF_OUTPUT="/proc/x": /proc cannot hold dumps: ')
    assert not (tmp_path / "started").exists()


# As a file system that gives all folders one owner or mode, whatever they are made with: SMB, FUSE, NFS for root.
FIXED_MODE = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
char* mkdtemp(char* name) {
  char* const made = ((char* (*)(char*))dlsym(RTLD_NEXT, "mkdtemp"))(name);
  if (made) chmod(made, 0777);
  return made;
}
"""


@pytest.mark.parametrize("way", ["the run's own folder", "every folder that is made"])
def test_output_where_others_may_write_is_refused(way, tmp_path):
    """By run and doctor as by the library, which does not write there."""
    env = clean_environment(GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_RUN="job")
    (tmp_path / "out/job").mkdir(parents=True)
    if way == "the run's own folder":
        (tmp_path / "out/job").chmod(0o777)
        text = "job cannot hold dumps: it belongs to user "
    else:
        (tmp_path / "fixed.c").write_text(FIXED_MODE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "fixed.so", tmp_path / "fixed.c", "-ldl"], check=True)
        env["LD_PRELOAD"] = tmp_path / "fixed.so"
        text = "job cannot hold dumps: a folder that gpuprof makes in it belongs to user "
    rule = f"has mode 0777; it must belong to this user ({os.geteuid()}) and not be writable by others"
    refused = harness.gpuprof("run", "--", "touch", tmp_path / "started", env=env)
    assert_one_line(refused, f'GPUPROF_OUTPUT="{tmp_path}/out": {tmp_path}/out/{text}', rule)
    assert not (tmp_path / "started").exists()
    checks = json.loads(harness.gpuprof("doctor", "--format", "json", env=env).out)["checks"]
    output, = [row for row in checks if row["subject"] == "output"]
    assert output["state"] == "missing" and text in output["text"] and rule in output["text"]
    assert list((tmp_path / "out/job").iterdir()) == []


def test_output_is_absolute_where_a_launcher_sets_its_variable(tmp_path):
    """And a folder that was looked at is left as it was."""
    done = harness.checked("run", "-o", "out/%q{NOPE}", "--", "sh", "-c", 'echo "$GPUPROF_OUTPUT"', cwd=tmp_path)
    assert done.out == f"{tmp_path}/out/%q{{NOPE}}\n" and list(tmp_path.iterdir()) == []


def test_output_that_only_looks_unwritable(tmp_path):
    """Its name begins with a variable's directory, or the run's own directory is there already: where it lies does not matter."""
    (tmp_path / "here").mkdir()
    (tmp_path / "closed/mine").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o500)
    for output, run in (("%q{PLACE}/out", "auto"), (tmp_path / "closed", "mine")):
        done = harness.run([*harness.BOUND_BY_MODES, harness.BIN, "run", "-o", output, "--set", f"GPUPROF_RUN={run}", "--", "true"],
                           env=clean_environment(PLACE=str(tmp_path / "here")), cwd=tmp_path / "closed")
        assert (done.code, done.err) == (0, "")


# run: what the program gets
def variables_of(*arguments, env=None, cwd=None):
    run = harness.gpuprof("run", *arguments, "--", "env", "-0", env=env, cwd=cwd)
    assert run.code == 0, run.err
    return dict(entry.split("=", 1) for entry in run.out.split("\0") if entry)


def test_run_sets_only_the_programs_environment(tmp_path):
    before = dict(os.environ)
    given = variables_of("-o", "out dir", "--schedule", "active=3", "--step", "sync:1", "--preset", "light",
                         "--activities", "kernel", "--ranks", "0", "--set", "GPUPROF_LOG=info",
                         "--set", "GPUPROF_BUFFER_MB=8", cwd=tmp_path)
    assert given["GPUPROF_OUTPUT"] == str(tmp_path / "out dir")
    assert {k: v for k, v in given.items() if k.startswith("GPUPROF_") and k != "GPUPROF_OUTPUT"} == {
        "GPUPROF_SCHEDULE": "active=3", "GPUPROF_STEP": "sync:1", "GPUPROF_PRESET": "light",
        "GPUPROF_ACTIVITIES": "kernel", "GPUPROF_RANKS": "0", "GPUPROF_LOG": "info", "GPUPROF_BUFFER_MB": "8"}
    expected = clean_environment()
    for name in set(expected) - {"LD_PRELOAD", "PWD"}:
        assert given[name] == expected[name]
    assert dict(os.environ) == before and list(tmp_path.iterdir()) == []


def test_run_keeps_other_preloads(tmp_path):
    other = "/lib/x86_64-linux-gnu/libm.so.6"
    preload = variables_of(env=clean_environment(LD_PRELOAD=":".join(filter(None, [harness.RUNTIME, other]))))["LD_PRELOAD"]
    paths = preload.split(":")
    assert os.path.samefile(paths[0], harness.LIB) and paths[-1] == other
    twice = variables_of(env=clean_environment(LD_PRELOAD=preload))["LD_PRELOAD"]
    assert twice == preload


def test_run_makes_paths_absolute(tmp_path):
    odd = tmp_path / "100% odd"
    odd.mkdir()
    given = variables_of("-o", "o_%r", env=clean_environment(GPUPROF_SCRATCH="s"), cwd=odd)
    doubled = str(odd).replace("%", "%%")
    assert given["GPUPROF_OUTPUT"] == f"{doubled}/o_%r"
    assert given["GPUPROF_SCRATCH"] == f"{doubled}/s"
    assert variables_of(cwd=tmp_path)["GPUPROF_OUTPUT"] == str(tmp_path / "gpuprof-out")
    given = variables_of("-o", "%q{WHERE}/x", env=clean_environment(WHERE="/abs"), cwd=tmp_path)
    assert given["GPUPROF_OUTPUT"] == "%q{WHERE}/x"


def test_an_empty_flag_takes_the_default_back(tmp_path):
    given = variables_of("--step", "", env=clean_environment(GPUPROF_STEP="manual"), cwd=tmp_path)
    assert given["GPUPROF_STEP"] == ""


# run: exits as the program does
@pytest.mark.parametrize("code", [0, 1, 2, 42, 255])
def test_run_passes_the_exit_code(code):
    run = harness.gpuprof("run", "--", "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (run.code, run.out, run.err) == (code, "out\n", "err\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE],
                         ids=lambda s: s.name)
def test_run_passes_a_death_by_signal(number):
    run = harness.gpuprof("run", "--", "sh", "-c", f"kill -{int(number)} $$")
    assert (run.code, run.out, run.err) == (128 + number, "", "")


def test_run_of_what_cannot_be_started(tmp_path):
    assert_one_line(harness.gpuprof("run", "--", "no-such-command"), "no-such-command", "not found", code=127)
    assert_one_line(harness.gpuprof("run", "--", "./none", cwd=tmp_path), "./none", code=127)
    plain = tmp_path / "plain"
    plain.write_text("echo\n")
    assert_one_line(harness.gpuprof("run", "--", plain), str(plain), "Permission denied", code=126)
    script = tmp_path / "script"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o755)
    assert_one_line(harness.gpuprof("run", "--", script), str(script), "interpreter", code=127)


def test_run_warns_of_static_programs(tmp_path):
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 3; }\n")
    program = tmp_path / "static"
    built = harness.run(["gcc", "-static", "-o", program, source])
    if built.code != 0:
        pytest.skip("no static C library here")
    run = harness.gpuprof("run", "--", program)
    assert run.code == 3 and run.out == ""
    assert re.fullmatch(r"gpuprof: warning: .*static runs unprofiled: it is linked statically.*\n", run.err)


COUNTER = """
import os, signal, sys, time
seen = []
def note(number, frame):
    seen.append(number)
    # print() would be in itself where the signal comes before the print of "ready" is over.
    os.write(1, f"got {signal.Signals(number).name}\\n".encode())
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
    signal.signal(getattr(signal, name), note)
print("ready", flush=True)
limit = time.monotonic() + 30
while not seen and time.monotonic() < limit:
    time.sleep(0.01)
end = time.monotonic() + 1  # a second copy would come by then
while time.monotonic() < end:
    time.sleep(0.01)
print("preloaded", os.environ.get("LD_PRELOAD", "") != "", "signals", len(seen), flush=True)
sys.exit(7)
"""


def freeze(pid):
    os.kill(pid, signal.SIGSTOP)
    while pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1], ids=lambda s: s.name)
def test_run_passes_signals_on(number):
    with subprocess.Popen([harness.BIN, "run", "--", PYTHON, "-c", COUNTER], stdout=subprocess.PIPE,
                          env=clean_environment(), text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == f"got {number.name}\npreloaded True signals 1\n"
        assert process.wait() == 7


def test_run_says_what_a_killed_program_left(tmp_path):
    command = [harness.SIMTRAIN, "--steps", "1000000", "--layers", "2"]
    env = harness.environment(GPUPROF_SCHEDULE="skip_first=0,warmup=1,active=1000000", GPUPROF_OUTPUT=tmp_path / "%q{NAME}-%h/%p")
    with subprocess.Popen([harness.BIN, "run", "--", *command], env=env | {"NAME": "out"}, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("out-*/*/latest/*.part")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        assert process.wait() == 128 + signal.SIGTERM
    latest, = tmp_path.glob("out-*/*/latest")
    assert f"ended by signal 15 (Terminated); what was recorded: gpuprof report {latest}" in said
    harness.checked("info", latest)
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--", "sh", "-c", "kill -TERM $$", env=clean_environment())
    assert done.code == 128 + signal.SIGTERM and done.err == ""


BARE_END = f"""import ctypes, platform, sys
sys.path.insert(0, {str(harness.SOURCE / "tests/programs/python")!r})
import gpu
for _ in range(6):
    gpu.work()
ctypes.CDLL(None).syscall(231 if platform.machine() == "x86_64" else 94, 3)
"""


@pytest.mark.parametrize("options", [[], ["--report"]], ids=["bare", "report"])
def test_run_says_that_the_program_ended_by_a_system_call(options, tmp_path):
    """As Go programs do: no exit handler runs, and no dump is complete."""
    env = harness.environment(GPUPROF_SCHEDULE="skip_first=0,warmup=0,active=100", GPUPROF_OUTPUT=tmp_path / "out")
    done = harness.gpuprof("run", *options, "--", PYTHON, "-c", BARE_END, env=env)
    assert done.code == 3
    said = "ended without exit handlers, as by a bare system call (exit_group) of Go programs; what was recorded: gpuprof report "
    assert f"{said}{tmp_path}/out/latest" in done.err
    assert harness.checked("info", tmp_path / "out/latest").out
    assert not list(tmp_path.glob("out/*/*.gpuprof"))


def test_ctrl_c_reaches_the_program_once():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(harness.BIN, [harness.BIN, "run", "--", PYTHON, "-c", COUNTER], clean_environment())
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    freeze(pid)  # so that a signal that it passed on would come after the terminal's and be told from it
    os.write(terminal, b"\x03")
    while b"got SIGINT" not in seen:
        seen += os.read(terminal, 1000)
    os.kill(pid, signal.SIGCONT)
    try:
        while part := os.read(terminal, 1000):
            seen += part
    except OSError:  # the terminal's way of saying that the other side is closed
        pass
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert b"preloaded True signals 1" in seen, seen


def on_a_terminal(*arguments, **settings):
    """What a command writes to a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(harness.BIN, [harness.BIN, *map(str, arguments)], clean_environment(**settings))
    seen = b""
    try:
        while part := os.read(terminal, 1000):
            seen += part
    except OSError:
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen


@pytest.mark.parametrize("command", [["report", harness.SOURCE / "tests/golden/version1.gpuprof"], ["report", "absent"]],
                         ids=["output", "message"])
@pytest.mark.parametrize("settings, colours", [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": ""}, True),
                                               ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours(command, settings, colours):
    code, seen = on_a_terminal(*command, **settings)
    assert code == (2 if command[-1] == "absent" else 0) and seen
    assert (b"\x1b[" in seen) == colours, seen


def test_run_leaves_ignored_signals_ignored():
    script = f"trap '' HUP; exec {harness.BIN} run -- sh -c 'kill -HUP $$; echo alive'"
    assert harness.run(["sh", "-c", script]).out == "alive\n"


def test_run_does_not_pass_a_changed_sigpipe():
    assert harness.gpuprof("run", "--", "grep", "SigIgn", "/proc/self/status").out == \
        harness.run(["grep", "SigIgn", "/proc/self/status"]).out
