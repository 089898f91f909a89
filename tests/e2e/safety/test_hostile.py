# SPDX-License-Identifier: Apache-2.0
"""Files and users that mean harm: what they can name, how much memory they can ask for, where they can lead us."""
import contextlib
import gzip
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import harness
from support import kineto_traces
import pytest

# C0 but line breaks and tabs, DEL, C1, marks and overrides of direction, separators.
HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202egnp.exe\u2066\u2028x\nVerdict\n1. forged\r"


def shown(done):
    """What a terminal gets; text of ours alone is in it, and it is UTF-8."""
    for stream in (done.stdout, done.stderr):
        text = stream.decode()  # raises where it is no UTF-8
        found = HOSTILE.search(text)
        assert not found, repr(text[max(0, found.start() - 60):found.end() + 20])
        yield text


def command(*arguments):
    done = subprocess.run([harness.BIN, *map(str, arguments)], env=harness.environment(), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    return done.returncode, *shown(done)


@pytest.fixture(name="trace")
def hostile_trace(tmp_path):
    """Every text of it is hostile, its file's name, too."""
    document = kineto_traces.training(steps=8).document()
    for number, event in enumerate(document["traceEvents"]):
        if event["ph"] == "X" and not event["name"].startswith(("cuda", "ProfilerStep", "Memcpy", "Memset")):
            event["name"] += EVIL + str(number % 5)
        if event["ph"] == "M":
            event["args"]["name"] = EVIL
        for key, value in event.get("args", {}).items():
            if isinstance(value, str):
                event["args"][key] = value + EVIL
    for device in document["deviceProperties"]:
        device["name"] = EVIL
    document["distributedInfo"]["backend"] = EVIL
    path = tmp_path / ("a" + EVIL.replace("\n", "").replace("\r", "") + ".pt.trace.json")
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("arguments", [
    ["report"], ["report", "--format", "json"], ["info"], ["info", "--format", "json"], ["parse"],
    ["parse", "--format", "json"],
], ids=" ".join)
def test_names_reach_no_terminal(arguments, trace):
    code, out, err = command(arguments[0], trace, *arguments[1:])
    assert code == 0, err
    assert out.count("\\u001b") + err.count("\\u001b") > 0, "the names are shown"
    assert "\n1. forged" not in out and "\nVerdict\n1. forged" not in out
    if "json" in arguments:
        for text in out.splitlines() if arguments[0] == "parse" else [out]:
            json.loads(text)


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_names_reach_no_terminal_by_diff(form, trace, tmp_path):
    slow = json.loads(trace.read_text())
    for event in slow["traceEvents"]:
        if event.get("cat") == "kernel":
            event["dur"] *= 3
    (tmp_path / "slow.json").write_text(json.dumps(slow))
    code, out, err = command("diff", trace, tmp_path / "slow.json", "--format", form)
    assert code in (0, 2), err
    assert "\n1. forged" not in out


def significant_change(folder):
    """Two traces of many steps; kernels of the second take three times as long. Their names would leave a table's cell."""
    name = "sgemm` | <script>alert(1)</script> **now** [x](http://evil)|\n|---|\n" + EVIL
    paths = []
    for number, factor in enumerate((1, 3)):
        document = kineto_traces.training(steps=12).document()
        for event in document["traceEvents"]:
            if event.get("cat") == "kernel":
                event["name"] = name
                event["dur"] *= factor
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(json.dumps(document))
    return paths


def test_a_name_stays_in_its_cell(tmp_path):
    code, out, err = command("diff", *significant_change(tmp_path), "--format", "markdown")
    assert code == 0, err
    rows = [line for line in out.splitlines() if "sgemm" in line]
    assert rows, out
    for row in rows:
        assert row.startswith("| ") and row.endswith(" |")
        assert len(re.findall(r"(?<!\\)\|", row)) == 6, row  # the bars of five cells
        assert row.count("`") == 2 and "\\u001b" in row, row  # all of it is code
    assert "\n|---|\n" not in out


@pytest.mark.parametrize("form", ["report", "diff"])
def test_pages_hold_nothing_that_acts(form, trace, tmp_path):
    page = tmp_path / "page.html"
    inputs = significant_change(tmp_path) if form == "diff" else [trace]
    code, _, err = command(form, *inputs, "--format", "html", "-o", page)
    assert code == 0, err
    text = page.read_bytes().decode()
    found = HOSTILE.search(text)
    assert not found, repr(text[max(0, found.start() - 60):found.end() + 20])
    assert "\\u202e" in text and "<script>alert" not in text
    data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    json.loads(data[1])


@pytest.mark.parametrize("name", ["x.gpuprof", "x.gpuprof.part", "x.gpuprof.ring", "x.json", "x.json.gz"])
@pytest.mark.parametrize("head", [b"", b'{"traceEvents":[', b"GPRFRNG1", b"\x1f\x8b"], ids=["nothing", "json", "ring", "gzip"])
def test_a_sparse_file_is_not_read(name, head, tmp_path):
    path = tmp_path / name
    path.write_bytes(head)
    os.truncate(path, 1 << 40)
    code, err, peak = peak_of("info", path)
    assert code == 2 and "sparse" in err and len(err.splitlines()) == 1, err
    assert peak < 200 * MIB


def test_messages_spell_file_names_out(tmp_path):
    for name in (os.fsencode("no\x1b[2J\u202e"), b"bytes\x9b\xff", b"two\nlines"):
        path = os.fsencode(tmp_path) + b"/" + name
        for content in (None, b"not a dump"):
            if content:
                pathlib.Path(os.fsdecode(path)).write_bytes(content)
            for verb in ("info", "report", "parse"):
                done = subprocess.run([os.fsencode(harness.BIN), verb.encode(), path], env=harness.environment(),
                                      capture_output=True, check=False)
                assert done.returncode == 2
                assert [len(text.splitlines()) for text in shown(done)] == [0, 1]


def test_the_librarys_lines_spell_settings_out():
    done = subprocess.run([harness.SIMTRAIN, "--steps", "3"], capture_output=True, check=True,
                          env=harness.preloaded(GPUPROF_OUTPUT="/dev/null/\x1b]0;owned\x07\u202e"))
    _, err = shown(done)
    assert "\\u001b]0;owned\\u0007\\u202e" in err


# How much a file may ask for.
def peak_of(*arguments):
    """Exit code, messages and resident bytes at most."""
    with subprocess.Popen([harness.BIN, *map(str, arguments)], env=harness.environment(), stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        err = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, err, usage.ru_maxrss * 1024


def bomb(path, before, piece, count, after):
    """Members of gzip one after the other: a GiB in no time."""
    at_once = 64
    path.write_bytes(gzip.compress(before) + gzip.compress(piece * at_once) * (count // at_once) + gzip.compress(after))
    return path


MIB = 1 << 20
EVENT = b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"%s'
REST = b'","pid":1,"tid":1,"ts":1.0,"dur":1.0}]}'


@pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitizer's own memory")
@pytest.mark.parametrize("before, piece, after", [
    (EVENT % b"", b"a" * MIB, REST),
    (EVENT % b"", b" " * MIB, REST),
    (b"", b" " * MIB, b"[]"),
    (b'{"traceEvents":[', b" " * MIB, b"]}"),
    (b'{"x":"', b"a" * MIB, b'","traceEvents":[]}'),
    (b'{"traceEvents":[', b"," * MIB, b"]}"),
    (b'{"traceEvents":[', b"{" * MIB, b"]}"),
], ids=["name", "blanks in a name", "blanks", "blanks between events", "member", "commas", "braces"])
def test_a_small_file_stays_small(before, piece, after, tmp_path):
    path = bomb(tmp_path / "trace.json.gz", before, piece, 1024, after)  # 1 GiB
    assert path.stat().st_size < 2 * MIB
    code, err, peak = peak_of("info", path)
    assert code in (0, 2) and len(err.splitlines()) >= 1, err
    assert "trace.json.gz" in err
    assert peak < 900 * MIB, f"{peak // MIB} MiB"


def test_what_compresses_too_well_is_said(tmp_path):
    path = bomb(tmp_path / "trace.json.gz", b'{"traceEvents":[', b" " * MIB, 1024, b"]}")
    _, err, _ = peak_of("info", path)
    assert "256 times the file's size" in err


@pytest.mark.skipif(bool(harness.SANITIZER), reason="a sanitizer's own memory")
def test_a_short_mangled_name_stays_short(tmp_path):
    """Each part names the one before twice: demangled, the last has 9 GB."""
    parts = [f"S_IS{digit}_S{digit}_E" for digit in "0123456789ABCDEFGHIJKLMNOPQR"]
    name = "_Z1fSt4pairIiiE" + "".join(parts)
    kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1.0, "dur": 1.0,
              "args": {"device": 0, "stream": 7, "correlation": 1}}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [kernel]}))
    for command in (["report", path], ["convert", path, "--to", "perfetto", "-o", tmp_path / "out"]):
        code, err, peak = peak_of(*command)
        assert code == 0, err
        assert peak < 200 * MIB, f"{peak // MIB} MiB"


# Where another user may rename things. Not below pytest's folder: each session that begins closes that to others.
@pytest.fixture(name="theirs")
def directory_of_somebody():
    if not harness.can_give_files_to_somebody():
        pytest.skip("needs root and a second user")
    with tempfile.TemporaryDirectory(prefix="gpuprof_theirs_") as parent:
        os.chmod(parent, 0o711)
        folder = pathlib.Path(parent) / "theirs"
        folder.mkdir(mode=0o755)
        os.chown(folder, harness.SOMEBODY, harness.SOMEBODY)
        yield folder


@contextlib.contextmanager
def as_somebody():
    os.setegid(harness.SOMEBODY)
    os.seteuid(harness.SOMEBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextlib.contextmanager
def windows_all_the_time(output, **settings):
    env = harness.preloaded(GPUPROF_OUTPUT=output, GPUPROF_STEP="sync:1", GPUPROF_RUN="run",
                            GPUPROF_SCHEDULE="skip_first=0,wait=0,warmup=0,active=20,repeat=0", **settings)
    with subprocess.Popen([harness.SIMTRAIN, "--steps", "100000", "--markers", "sync"], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_link_in_the_runs_place_leads_nowhere(theirs, tmp_path):
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    with windows_all_the_time(theirs) as process:
        wait_for(lambda: list(theirs.glob("run/*_w1.gpuprof")))
        with as_somebody():
            (theirs / "run").rename(theirs / "moved")
            (theirs / "run").symlink_to(target)
        moved = theirs / "moved"
        seen = len(list(moved.iterdir()))
        wait_for(lambda: len(list(moved.glob("*.gpuprof"))) > seen + 2)
        process.kill()
    assert list(target.iterdir()) == []
    assert harness.info(next(moved.glob("*.gpuprof")))["files"]


def test_a_link_that_waits_is_not_followed(theirs, tmp_path):
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    for path, output in ((theirs / "run", theirs), (theirs / "out", theirs / "out")):
        with as_somebody():
            path.symlink_to(target)
        done = harness.run([harness.SIMTRAIN, "--steps", "5"],
                           env=harness.preloaded(GPUPROF_OUTPUT=output, GPUPROF_RUN="run", **harness.WHOLE_RUN))
        assert done.code == 0 and len(harness.our_lines(done.err)) == 1 and "runs unprofiled" in done.err, done.err
        assert list(target.iterdir()) == []
        path.unlink()


def test_what_lies_in_a_sticky_directory_must_be_ours(theirs):
    shared = theirs.parent / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with as_somebody():
        (shared / "out").mkdir(mode=0o777)
    done = harness.run([harness.SIMTRAIN, "--steps", "5"],
                       env=harness.preloaded(GPUPROF_OUTPUT=shared / "out", **harness.WHOLE_RUN))
    assert done.code == 0 and "belongs to user 54321" in done.err
    assert list((shared / "out").iterdir()) == []
    assert theirs.exists()
