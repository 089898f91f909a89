# SPDX-License-Identifier: Apache-2.0
"""Outputs whose names the command chose: what another user puts in their place leads nowhere."""
import contextlib
import os
import subprocess
import threading

import pytest

import harness
from support import kineto_traces

FILES = {"perfetto": "x.pftrace", "chrome": "x.json", "memory-viz": "x.pickle", "speedscope": "x.speedscope.json"}
STATE = "gpuprof-state-1 1 {} 34 0 0 100 0 0 0\n"
FOLDERS = {"perfetto-ranks": "x.pftraces", "kineto": "x.kineto", "tensorboard": "x.tensorboard", "xplane": "x.xplane"}


@pytest.fixture(name="trace")
def trace_beside_which_we_write(tmp_path):
    path = tmp_path / "there" / "x.pt.trace.json"
    path.parent.mkdir()
    path.write_text(kineto_traces.training().text())
    return path


@pytest.fixture(name="precious")
def file_of_somebody_else(tmp_path):
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


def refused(done, path):
    assert done.code == 2 and len(done.err.splitlines()) == 1 and f"{path}: " in done.err and "remove it" in done.err, done.err


@pytest.mark.parametrize("name", FILES)
def test_a_link_beside_the_input_is_replaced(name, trace, precious):
    for target in (precious, precious.with_name("new")):
        path = trace.with_name(FILES[name])
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        harness.checked("convert", trace, "--to", name)
        assert path.is_file() and not path.is_symlink()
    assert precious.read_text() == "precious"
    assert not precious.with_name("new").exists()


@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_a_pipe_beside_the_input_is_refused(name, trace):
    path = trace.with_name({**FILES, **FOLDERS}[name])
    os.mkfifo(path)
    done = harness.gpuprof("convert", trace, "--to", name, timeout=20)
    if name in FILES:
        refused(done, path)
    assert done.code == 2 and len(done.err.splitlines()) == 1 and f"{path}: " in done.err


@pytest.mark.parametrize("name", FOLDERS)
def test_a_linked_directory_beside_the_input_is_refused(name, trace, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    path = trace.with_name(FOLDERS[name])
    path.symlink_to(target)
    refused(harness.gpuprof("convert", trace, "--to", name), path)
    assert not list(target.iterdir())


def test_a_link_that_the_user_names_is_followed(trace, precious, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(precious)
    harness.checked("convert", trace, "--to", "chrome", "-o", link)
    assert link.is_symlink() and precious.read_text().startswith("{")
    (tmp_path / "target").mkdir()
    folder = tmp_path / "folder"
    folder.symlink_to("target")
    harness.checked("convert", trace, "--to", "kineto", "-o", folder)
    assert folder.is_symlink() and list((tmp_path / "target").iterdir())


@pytest.mark.parametrize("name", [*FILES, *FOLDERS, "otlp", "otlp traces"])
def test_links_in_a_directory_that_the_user_names_are_replaced(name, trace, precious, tmp_path):
    folder = tmp_path / "folder"
    if name in FILES or "traces" in name:
        folder.mkdir()
    arguments = ["export", trace, "--to", "otlp", *(["--signal", "traces"] if "traces" in name else [])]
    arguments = arguments if "otlp" in name else ["convert", trace, "--to", name]
    harness.checked(*arguments, "-o", folder)
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    assert written
    for path in written:
        path.unlink()
        path.symlink_to(precious)
    harness.checked(*arguments, "-o", folder)
    assert not any(path.is_symlink() for path in written)
    assert precious.read_text() == "precious"


def test_a_linked_directory_in_a_log_directory_is_refused(trace, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "target").mkdir()
    link = tmp_path / "logs" / "plugins"
    link.symlink_to(tmp_path / "target")
    refused(harness.gpuprof("convert", trace, "--to", "tensorboard", "-o", tmp_path / "logs"), link)
    assert not list((tmp_path / "target").iterdir())


def test_a_link_in_the_pages_place_is_replaced(trace, precious):
    page = trace.with_name(trace.name + ".html")
    page.symlink_to(precious)
    harness.checked("open", trace, env=harness.environment(BROWSER="true"))
    assert not page.is_symlink() and page.read_text().startswith("<!")
    assert precious.read_text() == "precious"
    page.unlink()
    os.mkfifo(page)
    refused(harness.gpuprof("open", trace, env=harness.environment(BROWSER="true"), timeout=20), page)


def test_a_link_in_the_place_of_a_baseline_is_replaced(trace, tmp_path):
    target, baseline = tmp_path / "target", tmp_path / "baseline"
    target.mkdir()
    baseline.mkdir()
    script = 'ln -s "$1" "$2/.unfinished-$$" && exec "$3" diff --baseline "$2" --update "$4"'
    done = subprocess.run(["sh", "-c", script, "sh", target, baseline, harness.BIN, trace], env=harness.environment(),
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not list(target.iterdir())
    assert not (baseline / "0001").is_symlink() and list((baseline / "0001").iterdir())


@contextlib.contextmanager
def armed_elsewhere(run):
    """What an armed process on another machine tells."""
    ended = threading.Event()

    def tell(beat):
        (run / "state.new").write_text(STATE.format(beat))
        (run / "state.new").rename(run / "node7_r0_12_34.gpuprof.state")

    def go_on():
        for beat in range(2, 1000):
            if ended.wait(0.1):
                return
            tell(beat)

    tell(1)
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_link_in_the_requests_place_is_replaced(precious, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    request = run / "gpuprof.control"
    request.symlink_to(precious)
    with armed_elsewhere(run):
        done = harness.gpuprof("trigger", run, "--off")
    assert "node7" in done.err, done.err
    assert not request.is_symlink() and request.read_text()
    assert precious.read_text() == "precious"


def test_a_pipe_in_the_place_of_a_state_is_passed_over(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    os.mkfifo(run / "vm_r0_12_34.gpuprof.state")
    (run / "vm_r1_12_34.gpuprof.state").symlink_to(run / "vm_r0_12_34.gpuprof.state")
    done = harness.gpuprof("trigger", run, timeout=20)
    assert done.code == 2 and len(done.err.splitlines()) == 1 and str(run) in done.err
