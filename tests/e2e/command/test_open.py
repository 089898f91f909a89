# SPDX-License-Identifier: Apache-2.0
"""From a run to a picture: `run --report`, `run --open`, `gpuprof open`, and the server for Perfetto's page."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import harness
from support import kineto_traces

PROGRAM = ("import ctypes, time; c = ctypes.CDLL('libcudart.so.13')\n"
           "for _ in range(60): time.sleep(0.002); c.cudaDeviceSynchronize()")
ORIGIN = "https://ui.perfetto.dev"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "x.json"
    path.write_text(kineto_traces.training().text())
    return path


def browser(tmp_path):
    """A browser that notes what it is asked for."""
    path = tmp_path / "browser"
    path.write_text(f'#!/bin/sh\necho "$1" >>"{tmp_path}/asked"\n')
    path.chmod(0o755)
    return path


def asked(tmp_path):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (tmp_path / "asked").exists() and (tmp_path / "asked").read_text():
            return (tmp_path / "asked").read_text().splitlines()
        time.sleep(0.05)
    return []


def recorded(tmp_path, *flags, env=None, program=PROGRAM):
    return harness.gpuprof("run", "-o", tmp_path / "out", "--step", "sync:1", *flags, "--", harness.PYTHON, "-c", program, env=env)


@pytest.mark.parametrize("code", [0, 3])
def test_the_verdict_ends_a_run(tmp_path, code):
    done = recorded(tmp_path, "--report", program=PROGRAM + f"\nraise SystemExit({code})")
    assert done.code == code and not done.out
    closing, report = done.err.split("Next: ", 1)
    lines = report.splitlines()[1:]
    assert re.match(r"Steps 12 to 21: ", lines[0]) and 2 <= len(lines) <= 10


def test_the_whole_report_ends_a_run(tmp_path):
    done = recorded(tmp_path, "--report=text")
    assert harness.checked("report", tmp_path / "out/latest").out.strip() in done.err


@pytest.mark.parametrize("form", ["json", "html"])
def test_a_report_goes_into_the_runs_folder(tmp_path, form):
    done = recorded(tmp_path, f"--report={form}")
    path = tmp_path / "out/latest" / f"report.{form}"
    assert f"the report: {path}" in done.err
    if form == "json":
        assert json.loads(path.read_text())["schema"] == 1
    else:
        assert "Chart.js v3" in path.read_text()


def test_a_format_that_is_none_stops_before_the_program(tmp_path):
    done = harness.gpuprof("run", "--report=pdf", "touch", tmp_path / "ran")
    assert done.code == 2 and "pdf" in done.err and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("flags, program, why", [
    (["--report", "--open"], ["true"], "no CUDA call was seen"),
    (["--open"], ["true"], "no CUDA call was seen"),
    (["--report", "--set", "GPUPROF_MODE=off"], [harness.SIMTRAIN, "--steps", "3"], "GPUPROF_MODE=off"),
    (["--report", "--set", "GPUPROF_MODE=armed"], [harness.SIMTRAIN, "--steps", "3"], "GPUPROF_MODE=armed waits for gpuprof trigger"),
    (["--report", "--ranks", "7"], [harness.SIMTRAIN, "--ranks", "2", "--steps", "3"], "none of the ranks that GPUPROF_RANKS=7 names"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_a_run_with_nothing_to_report_says_so(flags, program, why, tmp_path):
    done = harness.gpuprof("run", "-o", tmp_path / "out", *flags, "--", *program)
    lines = harness.our_lines(done.err)
    assert done.code == 0 and len(lines) == (3 if "GPUPROF_MODE=armed" in flags else 1), done.err
    assert lines[-1].startswith(f"gpuprof: nothing to report in {tmp_path}/out: ") and why in lines[-1], lines


def test_a_folder_that_only_the_program_may_know_is_said(tmp_path):
    done = harness.gpuprof("run", "-o", "%q{NOPE}/%h", "--report", "true", cwd=tmp_path)
    assert done.code == 0 and done.err == ('gpuprof: the run\'s folder is not known here: GPUPROF_OUTPUT="%q{NOPE}/%h": NOPE is not set '
                                           "in the environment; set it or leave %q out\n")


def test_without_report_or_open_nothing_is_said(tmp_path):
    done = harness.gpuprof("run", "-o", tmp_path / "out", "true")
    assert (done.code, done.out, done.err) == (0, "", "")
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--report", "no-such-program")
    assert done.code == 127 and len(done.err.splitlines()) == 1, done.err


def test_a_verdict_that_is_cut_names_where_the_rest_is(tmp_path):
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--report", "--", harness.SIMTRAIN, "--steps", "30", "--data-ms", "4",
                           env=harness.environment(COLUMNS="50"))
    lines = done.err.split("Next: ", 1)[1].splitlines()[1:]
    lines = [line for line in lines if not line.startswith("simtrain: ")]
    assert len(lines) <= 10, lines
    whole = " ".join(harness.checked("report", tmp_path / "out/latest", env=harness.environment(COLUMNS="50")).out.split())
    shown = " ".join(" ".join(lines[:-1]).split())
    assert re.fullmatch(rf"  (\d+ more causes?|more): gpuprof report {tmp_path}/out/latest", lines[-1]), lines
    verdict = shown[shown.index("Verdict"):]
    assert verdict in whole
    assert re.match(r" (- |\d+\. |[A-Z(])", whole[whole.index(verdict) + len(verdict):]), verdict


def test_run_opens_the_page(tmp_path):
    done = recorded(tmp_path, "--open", env=harness.environment(BROWSER=browser(tmp_path)))
    assert done.code == 0 and asked(tmp_path) == [f"file://{tmp_path}/out/latest/report.html"]


class Beside:
    """`gpuprof run` whose program goes on until told to end, so that others can record beside it."""

    def __init__(self, tmp_path, *command, flags=()):
        self.go = tmp_path / "go"
        self.child = subprocess.Popen([harness.BIN, "run", "-o", tmp_path / "out", "--step", "sync:1", *flags, "--", *command],
                                      env=harness.environment(), stderr=subprocess.PIPE, text=True)
        wait_until((tmp_path / "ready").exists)

    def end(self):
        self.go.touch()
        said = self.child.communicate(timeout=60)[1]
        return harness.Run(self.child.returncode, "", said)


def wait_until(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def until_told(tmp_path):
    """Python, and the shell's words: say that this is there, and wait."""
    return (f"\nimport os\nopen('{tmp_path}/ready', 'w').close()\nwhile not os.path.exists('{tmp_path}/go'): time.sleep(0.02)",
            f"touch {tmp_path}/ready; while ! test -e {tmp_path}/go; do sleep 0.05; done")


def test_each_of_two_runs_shows_its_own(tmp_path):
    first = Beside(tmp_path, harness.PYTHON, "-c", PROGRAM + until_told(tmp_path)[0], flags=["--report=json"])
    second = recorded(tmp_path, "--report=json")
    done = first.end()
    latest = (tmp_path / "out/latest").resolve()
    own, = set((tmp_path / "out").glob(f"*-{first.child.pid}")) - {latest}
    assert f"the report: {tmp_path}/out/latest/report.json" in second.err
    assert done.code == 0 and f"the report: {own}/report.json" in done.err, done.err
    assert (own / "report.json").exists() and (latest / "report.json").exists()


def test_a_run_without_records_does_not_show_anothers(tmp_path):
    waits = until_told(tmp_path)
    first = Beside(tmp_path, "sh", "-c", waits[1], flags=["--report"])
    (tmp_path / "ready").unlink()
    other = tmp_path / "other"  # which goes on as the first one ends
    other.mkdir()
    program = [harness.PYTHON, "-c", PROGRAM + until_told(other)[0]]
    second = subprocess.Popen([harness.BIN, "run", "-o", tmp_path / "out", "--step", "sync:1", "--", *program],
                              env=harness.environment(), stderr=subprocess.PIPE)
    wait_until((other / "ready").exists)
    assert list((tmp_path / "out/latest").glob("*.gpuprof"))
    done = first.end()
    assert done.code == 0 and re.fullmatch(rf"gpuprof: nothing to report in {tmp_path}/out: no CUDA call .*\n", done.err), done.err
    (other / "go").touch()
    second.communicate(timeout=60)


def test_a_killed_run_is_named_though_another_is_the_latest(tmp_path):
    first = Beside(tmp_path, harness.PYTHON, "-c", PROGRAM + until_told(tmp_path)[0])
    recorded(tmp_path)
    first.child.terminate()  # passed on to the program
    said = first.child.communicate(timeout=60)[1]
    own, = (tmp_path / "out").glob(f"*-{first.child.pid}")
    assert first.child.returncode == 128 + signal.SIGTERM and f"what was recorded: gpuprof report {own}\n" in said, said


@pytest.mark.parametrize("depth, taken", [(1, False), (2, True)])
def test_processes_below_the_program_are_of_its_run(depth, taken, tmp_path):
    """Those that it starts have it in the name of their run; of those further below none can be told from another's."""
    command = [harness.PYTHON, "-c", PROGRAM]
    for _ in range(depth):
        command = ["sh", "-c", f"{shlex.join(command)}; exit 5"]
    done = harness.gpuprof("run", "-o", tmp_path / "out", "--step", "sync:1", "--report", "--", *command)
    said = f"{tmp_path}/out/latest is taken for the program's run: no other began and ended meanwhile" in done.err
    assert done.code == 5 and "Steps 12 to 21: " in done.err and said == taken, done.err


@contextlib.contextmanager
def held_up_by_its_reader(tmp_path, **options):
    """`gpuprof run` whose program has ended, and which writes its report to a pipe that is full."""
    there, ours = os.pipe()
    command = [harness.BIN, "run", "-o", tmp_path / "out", "--step", "sync:1", "--report", "--", harness.PYTHON, "-c",
               PROGRAM + until_told(tmp_path)[0]]
    with subprocess.Popen(command, env=harness.environment(GPUPROF_LOG="error"), stderr=ours, **options) as child, open(there, "rb") as said:
        wait_until((tmp_path / "ready").exists)
        os.write(ours, b"x" * fcntl.fcntl(ours, fcntl.F_GETPIPE_SZ))
        os.close(ours)
        (tmp_path / "go").touch()
        wait_until(lambda: not pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text())
        time.sleep(0.2)
        yield child, said
        child.kill()


@pytest.mark.parametrize("chosen", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_report_after_a_run_can_be_interrupted(tmp_path, chosen):
    with held_up_by_its_reader(tmp_path) as (child, _):
        child.send_signal(chosen)
        code = child.wait(10)
    assert code == (-chosen if chosen == signal.SIGQUIT else 128 + chosen)


def test_a_signal_that_is_ignored_does_not_end_a_report(tmp_path):
    with held_up_by_its_reader(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as (child, said):
        child.send_signal(signal.SIGHUP)
        assert b"Steps 12 to 21: " in said.read() and child.wait(10) == 0


def test_open_makes_a_page_beside_the_input_and_names_it_where_there_is_no_browser(trace, tmp_path):
    path = tmp_path / "a b.json"
    path.write_bytes(trace.read_bytes())
    env = harness.environment()
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SSH_CONNECTION", "SSH_TTY", "WSL_DISTRO_NAME"):
        env.pop(name, None)
    done = harness.checked("open", path, env=env)
    assert f"no browser could be started here; the page is file://{tmp_path}/a%20b.json.html" in done.err
    assert "Chart.js v3" in (tmp_path / "a b.json.html").read_text()


@pytest.mark.parametrize("fails", ["false", "kill -9 $$"])
def test_a_browser_that_fails_is_none(fails, trace, tmp_path):
    script = tmp_path / "browser"
    script.write_text(f"#!/bin/sh\n{fails}\n")
    script.chmod(0o755)
    env = {k: v for k, v in harness.environment(BROWSER=script).items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")}
    done = harness.checked("open", trace, "-o", tmp_path / "page.html", env=env)
    assert f"no browser could be started here; the page is file://{tmp_path}/page.html" in done.err
    script.write_text("#!/bin/sh\nexec sleep 3\n")  # as a browser that goes on
    done = harness.checked("open", trace, "-o", tmp_path / "page.html", env=env)
    assert f"{tmp_path}/page.html is in the browser" in done.err


class Server:
    """`gpuprof open` that waits for a browser, on a port that the kernel chooses."""

    def __init__(self, *arguments, **env):
        clean = {k: v for k, v in harness.environment(**env).items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.child = subprocess.Popen([harness.BIN, "open", *arguments, "--port", "0"], stderr=subprocess.PIPE, text=True, env=clean)
        self.said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{16}/[^\s&]+)", self.said)):
            line = self.child.stderr.readline()
            assert line, self.said
            self.said += line
        self.port, self.path = int(found[1]), found[2]

    def ask(self, path=None, method="GET", **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path or self.path}", method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def test_perfettos_page_gets_the_trace_once(trace, tmp_path):
    harness.checked("convert", trace, "--to", "perfetto", "-o", tmp_path / "whole")
    with Server(trace, "--perfetto", TMPDIR=tmp_path) as server:
        assert f"{ORIGIN}/#!/?url=http://127.0.0.1:{server.port}" in server.said
        assert server.ask("/") [0] == 404
        assert server.ask(server.path + "x")[0] == 404
        assert server.ask(Origin="https://example.org")[0] == 403
        assert server.ask(Host="example.org")[0] == 403  # a name that was made to point here
        assert server.ask(method="POST")[0] == 405
        status, headers, _ = server.ask(method="OPTIONS", Origin=ORIGIN, **{"Access-Control-Request-Private-Network": "true"})
        assert (status, headers["Access-Control-Allow-Origin"], headers["Access-Control-Allow-Private-Network"]) == (204, ORIGIN, "true")
        status, headers, body = server.ask(Origin=ORIGIN)
        assert (status, headers["Access-Control-Allow-Origin"]) == (200, ORIGIN)
        assert body == (tmp_path / "whole").read_bytes()
        assert server.child.wait(10) == 0
    assert os.listdir(tmp_path) == ["whole"]


def test_only_this_machine_is_listened_to(trace, tmp_path):
    with Server(trace, "--perfetto", TMPDIR=tmp_path) as server:
        rows = [line.split() for line in open("/proc/net/tcp").read().splitlines()[1:]]
        places = {row[1] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == server.port}
        assert places == {f"0100007F:{server.port:04X}"}
        with open("/proc/net/tcp6") as other:
            assert not [line for line in other if f":{server.port:04X} " in line]


def test_one_who_says_nothing_does_not_stop_the_others(trace, tmp_path):
    with Server(trace, "--perfetto", TMPDIR=tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as silent:
            silent.send(b"not http\r\n\r\n")
            assert server.ask()[0] == 200
        assert server.child.wait(10) == 0


def test_silent_ones_wait_beside_the_others_and_are_sent_away(trace, tmp_path):
    with Server(trace, "--perfetto", TMPDIR=tmp_path) as server, contextlib.ExitStack() as silent:
        opened = [silent.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60)) for _ in range(3)]
        opened[1].send(b"GET ")
        assert server.ask("/")[0] == 404
        assert [one.recv(1) for one in opened] == [b""] * 3
        silent.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        assert server.ask()[0] == 200
        assert server.child.wait(10) == 0


def test_one_who_stops_reading_does_not_stop_the_others(trace, tmp_path):
    with Server(trace, "-o", tmp_path / "page.html", SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22") as server:
        os.truncate(tmp_path / "page.html", 32 << 20)  # more than sockets hold
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with slow:
            slow.connect(("127.0.0.1", server.port))
            slow.sendall(f"GET {server.path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
            assert slow.recv(1) == b"H"
            assert len(server.ask()[2]) == 32 << 20
        assert server.child.wait(10) == 0


def test_the_browsers_page_is_no_standard_output(trace, tmp_path):
    done = harness.gpuprof("open", trace, "-o", "-", cwd=tmp_path)
    assert done.code == 2 and "open: -o -: a browser opens a file" in done.err and len(done.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("chosen", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_server_leaves_nothing(trace, tmp_path, chosen):
    with Server(trace, "--perfetto", TMPDIR=tmp_path) as server:
        assert os.listdir(tmp_path)
        server.child.send_signal(chosen)
        assert server.child.wait(10) == 128 + chosen
    assert not os.listdir(tmp_path)


def test_over_ssh_the_page_is_served_and_the_forwarding_said(trace, tmp_path):
    with Server(trace, "-o", tmp_path / "page.html", SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22") as server:
        assert re.search(r"ssh -L \d+:127\.0\.0\.1:\d+ ", server.said)
        status, headers, body = server.ask()
        assert status == 200 and headers["Content-Type"].startswith("text/html") and "Access-Control-Allow-Origin" not in headers
        assert body == (tmp_path / "page.html").read_bytes()


def test_perfettos_page_is_opened(trace, tmp_path):
    child = subprocess.Popen([harness.BIN, "open", trace, "--perfetto", "--port", "0"],
                             env=harness.environment(BROWSER=browser(tmp_path)), stderr=subprocess.PIPE)
    try:
        address, = asked(tmp_path)
        assert address.startswith(f"{ORIGIN}/#!/?url=http://127.0.0.1:")
        with urllib.request.urlopen(address.split("?url=")[1].partition("&")[0], timeout=10) as answer:
            assert answer.status == 200 and answer.read()
        assert child.wait(10) == 0
        port = re.search(r"127\.0\.0\.1:(\d+)", address)[1]
        said = child.stderr.read().decode()
        assert f"{ORIGIN} is in the browser and fetches the trace from 127.0.0.1:{port} once" in said and "Ctrl-C ends it" in said
    finally:
        child.kill()
        child.wait()
