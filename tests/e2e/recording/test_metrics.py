# SPDX-License-Identifier: Apache-2.0
"""GPUPROF_METRICS: what its files say, against dumps and the programs, and that they come and go with the process. Where Debian's
prometheus and prometheus-node-exporter are installed, these read them. GPUPROF_LONG_TESTS=1: of 64 processes."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

import harness
from test_trigger import wait_until

PROCESSES = 64 if os.environ.get("GPUPROF_LONG_TESTS") == "1" else 3
SAMPLE = re.compile(r'(gpuprof_\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\d+(?:\.\d+)?)')
DASHBOARD = harness.SOURCE / "packaging/grafana/gpuprof.json"


def parsed(path):
    """Values by name and labels. Each family is declared before its samples, and once."""
    found, families = {}, []
    for line in path.read_text().splitlines():
        if line.startswith("# TYPE "):
            families.append(line.split()[2])
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name.startswith(families[-1]), line
            found[name, tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels)))] = float(value)
    assert len(set(families)) == len(families)
    return found


def value(found, name, **labels):
    matching = [v for (n, l), v in found.items() if n == f"gpuprof_{name}" and set(labels.items()) <= set(l)]
    assert len(matching) == 1, (name, labels, matching)
    return matching[0]


def files(folder):
    return sorted(folder.glob("*.prom"))


@contextlib.contextmanager
def running(folder, *flags, **settings):
    """simtrain with metrics in folder/metrics; yields it once its file is there."""
    (folder / "metrics").mkdir(exist_ok=True)
    before = files(folder / "metrics")
    env = harness.preloaded(GPUPROF_METRICS=f"prometheus:{folder}/metrics", GPUPROF_OUTPUT=folder / "out", **settings)
    process = subprocess.Popen([harness.SIMTRAIN, "--layers", "2", *map(str, flags)], env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: set(files(folder / "metrics")) - set(before))
        yield process
    finally:
        process.kill()
        process.communicate()


def test_an_armed_process(tmp_path):
    begun = time.time()
    with running(tmp_path, "--steps", 900, "--data-ms", 20, GPUPROF_MODE="armed", GPUPROF_STEP="nvtx:step", RANK="5", WORLD_SIZE="8") as process:
        file, = files(tmp_path / "metrics")
        assert file.stat().st_mode & 0o777 == 0o644
        first = parsed(file)
        wait_until(lambda: parsed(file) != first, 60)
        later = parsed(file)
        now = time.time()
        elapsed = value(later, "written_timestamp_seconds") - value(first, "written_timestamp_seconds")
        assert 14.9 < elapsed < 30
        assert begun - 1 < value(later, "start_timestamp_seconds") < value(later, "last_step_timestamp_seconds") <= now
        assert value(later, "process_info", mode="armed", step_source="nvtx:step", rank="5", pid=str(process.pid)) == 1
        steps, took = value(later, "step_seconds_count"), value(later, "step_seconds_sum")
        assert 50 < steps < 900 and 0.02 < took / steps < 0.2
        assert 0.02 < value(later, "step_seconds", quantile="0.5") <= value(later, "step_seconds", quantile="0.99")
        assert value(later, "windows_total", result="complete") == 0 and not any("last_window" in name for name, _ in later)
        assert value(later, "writer_cpu_seconds_total") < 0.2
        assert process.wait(60) == 0
    assert list((tmp_path / "metrics").iterdir()) == []


def covered(spans, begin, end):
    total, at = 0, begin
    for b, e in sorted(spans):
        b, e = max(b, at), min(e, end)
        if b < e:
            total, at = total + e - b, e
    return total


def test_the_last_window_is_used_as_its_dump_says(tmp_path):
    with running(tmp_path, "--steps", 2000, "--data-ms", 15, "--ranks", 2, "--comm-mb", 64, GPUPROF_STEP="nvtx:step",
                 GPUPROF_SCHEDULE="skip_first=5,warmup=2,active=10"):
        folder = tmp_path / "metrics"
        wait_until(lambda: any("last_window" in path.read_text() for path in folder.glob("*_r0_*.prom")), 60)
        file, = folder.glob("*_r0_*.prom")
        found = parsed(file)
        dump, = (path for path in harness.dumps(tmp_path / "out") if path.suffix == ".gpuprof" and "_r0_" in path.name)
    records = harness.records(dump)
    header = records[0]
    work = [(r["begin_mono_ns"], r["end_mono_ns"], "ncclDevKernel" in r.get("name", ""))
            for r in harness.of_kind(records, "gpu_kernel", "gpu_copy", "gpu_set")]
    opened, end = header["window_begin_mono_ns"], header["window_end_mono_ns"]
    # The first step of the window begins after the wait for the profiler.
    begin = min(r["begin_mono_ns"] for r in harness.of_kind(records, "step") if r["begin_mono_ns"] >= opened)
    assert begin < end
    busy = covered([w[:2] for w in work], begin, end)
    computing = covered([w[:2] for w in work if not w[2]], begin, end)
    assert len(work) > 40 and busy > computing > 0
    assert value(found, "last_window_gpu_idle_ratio", gpu="0") == pytest.approx(1 - busy / (end - begin), abs=0.01)
    assert value(found, "last_window_exposed_communication_ratio", gpu="0") == pytest.approx((busy - computing) / (end - begin), abs=0.01)
    assert value(found, "last_window_seconds") == pytest.approx((end - opened) / 1e9, rel=0.01)
    assert value(found, "windows_total", result="complete") == 1 and value(found, "losses_total") == 0
    assert not any("data_wait" in name for name, _ in found)  # no data loader of PyTorch's was seen


def test_what_a_budget_left_out_is_told_of_the_last_window(tmp_path):
    (tmp_path / "metrics").mkdir()
    env = harness.preloaded(GPUPROF_METRICS=f"prometheus:{tmp_path}/metrics", GPUPROF_OUTPUT=tmp_path / "out", GPUPROF_BUDGET="2",
                            GPUPROF_CUPTI="off", GPUPROF_BUFFER_MB="256", GPUPROF_STEP="sync:1",
                            GPUPROF_SCHEDULE="skip_first=2,warmup=1,active=100,repeat=1", LD_LIBRARY_PATH=harness.HAZARDS / "quick_cudart")
    with subprocess.Popen([harness.HAZARDS / "costly_calls", "120000", "10000", "events=120000"], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: any("last_window" in path.read_text() for path in files(tmp_path / "metrics")), 60)
            found = parsed(*files(tmp_path / "metrics"))
        finally:
            process.kill()
    dump, = (path for path in harness.dumps(tmp_path / "out") if path.suffix == ".gpuprof")
    header = harness.info(dump)["files"][0]
    begin, end = header["window_begin_mono_ns"], header["window_end_mono_ns"]
    left_out = header["budget"]["left_out"]
    assert "calls" in [each["kind"] for each in left_out]
    for each in left_out:
        share = (end - each["since_mono_ns"]) / (end - begin)
        assert 0 < share < 1 and value(found, "last_window_left_out_ratio", kind=each["kind"]) == pytest.approx(share, abs=0.01)
    assert len([name for name, _ in found if name == "gpuprof_last_window_left_out_ratio"]) == len(left_out)


def test_a_killed_process_leaves_its_last_file_until_another_comes(tmp_path):
    with running(tmp_path, "--steps", 100000, "--data-ms", 20, GPUPROF_MODE="armed") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    left, = files(tmp_path / "metrics")
    assert time.time() - value(parsed(left), "written_timestamp_seconds") < 60
    foreign = tmp_path / "metrics/gpuprof_other.prom"
    foreign.write_text("# not ours\n")
    alive = tmp_path / f"metrics/gpuprof_{socket.gethostname()}_r0_{os.getpid()}_1.prom"
    alive.write_text("# of a process that lives\n")
    for path in (left, foreign, alive):
        os.utime(path, (time.time() - 7200,) * 2)
    with running(tmp_path, "--steps", 100000, "--data-ms", 20, GPUPROF_MODE="armed"):
        wait_until(lambda: not left.exists())
        assert foreign.exists() and alive.exists() and len(files(tmp_path / "metrics")) == 3


CHANGES = """import ctypes, os, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
memory = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(memory), 64) == 0 and cuda.cudaDeviceSynchronize() == 0
folder = sys.argv[1]
while not os.listdir(folder): time.sleep(0.01)
child = os.fork()
if not child:
    time.sleep(0.5)
    os._exit(len(os.listdir(folder)))
assert os.waitpid(child, 0)[1] >> 8 == 1
try:
    os.execv("/no/such/program", ["x"])
except OSError:
    pass
end = time.time() + 10
while not os.listdir(folder):
    assert time.time() < end, "a failed exec ended the metrics"
    time.sleep(0.01)
os.execv("/bin/ls", ["ls", folder])
"""


def test_fork_and_exec(tmp_path):
    (tmp_path / "metrics").mkdir()
    done = harness.run([sys.executable, "-c", CHANGES, tmp_path / "metrics"],
                       env=harness.preloaded(GPUPROF_METRICS=f"prometheus:{tmp_path}/metrics", GPUPROF_OUTPUT=tmp_path / "out"))
    assert (done.code, done.out) == (0, ""), done.err


@pytest.mark.parametrize("setting, said", [("prometheus:{}/none", "no such directory|No such file or directory"),
                                           ("prometheus:relative", "absolute path"), ("statsd:/tmp", "must begin with prometheus:")])
def test_a_setting_that_cannot_be_followed(tmp_path, setting, said):
    env = harness.preloaded(GPUPROF_METRICS=setting.format(tmp_path), GPUPROF_OUTPUT=tmp_path / "out")
    done = harness.run([harness.SIMTRAIN, "--steps", "3", "--layers", "1"], env=env)
    lines = [line for line in harness.our_lines(done.err) if "METRICS" in line]
    assert done.code == 0 and len(lines) == 1 and re.search(said, lines[0]), done.err


def test_a_directory_that_cannot_be_written_for_a_while(tmp_path):
    """They are tried again every 15 s."""
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics").chmod(0o555)
    env = harness.preloaded(GPUPROF_METRICS=f"prometheus:{tmp_path}/metrics", GPUPROF_OUTPUT=tmp_path / "out")
    command = [*harness.BOUND_BY_MODES, harness.SIMTRAIN, "--steps", "100000", "--layers", "1", "--data-ms", "50"]
    said = tmp_path / "said"

    def lines():
        return [line for line in harness.our_lines(said.read_text()) if "metrics" in line]

    with said.open("w") as err, subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=err) as process:
        try:
            wait_until(lines)
            assert "cannot write metrics" in lines()[0] and files(tmp_path / "metrics") == []
            (tmp_path / "metrics").chmod(0o755)
            wait_until(lambda: len(lines()) > 1)
            assert "metrics are written again" in lines()[1] and len(files(tmp_path / "metrics")) == 1
        finally:
            process.kill()


def test_a_disk_that_is_full_costs_a_line(tmp_path):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics").chmod(0o555)
    env = harness.preloaded(GPUPROF_METRICS=f"prometheus:{tmp_path}/metrics", GPUPROF_OUTPUT=tmp_path / "out")
    done = harness.run([*harness.BOUND_BY_MODES, harness.SIMTRAIN, "--steps", "5", "--layers", "1", "--data-ms", "150"], env=env)
    assert done.code == 0 and len([line for line in harness.our_lines(done.err) if "metrics" in line]) == 1, done.err


# ---- Prometheus itself --------------------------------------------------------------------------

needs_prometheus = pytest.mark.skipif(
    not all(map(shutil.which, ("prometheus", "promtool", "prometheus-node-exporter"))),
    reason="no prometheus, promtool, prometheus-node-exporter (Debian: prometheus, prometheus-node-exporter)")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def scraped(folder):
    """A function that asks a Prometheus, which reads folder/metrics by a node exporter each second."""
    exporter, port = free_port(), free_port()
    (folder / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"}, "scrape_configs": [{"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}]}]}))
    env = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    commands = [["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                 f"--collector.textfile.directory={folder}/metrics", f"--web.listen-address=127.0.0.1:{exporter}"],
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{port}"]]
    started = [subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]

    def ask(query):
        url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except (OSError, ValueError):
            return []
    try:
        yield ask
    finally:
        for process in started:
            process.kill()
            process.wait()


def is_query(ask, query):
    """Whether Prometheus takes it, even if there is nothing to answer."""
    return ask(f"vector(1) or ({query})") != []


def asked_by_dashboard():
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$__rate_interval", "1m").replace("$run", ".*")


def asked_in_docs():
    table = (harness.SOURCE / "docs/METRICS.md").read_text().partition("## What to look at")[2]
    found = re.findall(r"^\|[^|`]+\| `([^`]+)` \|$", table, re.MULTILINE)
    assert len(found) >= 4
    return found


@needs_prometheus
def test_prometheus_reads_them(tmp_path):
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(running(tmp_path, "--steps", 100000, "--data-ms", 200, GPUPROF_MODE="armed", GPUPROF_STEP="nvtx:step",
                                                GPUPROF_BUFFER_MB="4", RANK=str(rank), WORLD_SIZE=str(PROCESSES)))
                    for rank in range(PROCESSES)]
        text = b"".join(path.read_bytes() for path in files(tmp_path / "metrics")[:1])
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
        assert checked.returncode == 0 and not checked.stderr, checked.stderr
        ask = stack.enter_context(scraped(tmp_path))
        wait_until(lambda: len(ask("gpuprof_process_info")) == PROCESSES, 90)
        assert {row["metric"]["rank"] for row in ask("gpuprof_process_info")} == {str(rank) for rank in range(PROCESSES)}
        assert ask("node_textfile_scrape_error")[0]["value"][1] == "0"
        wait_until(lambda: len(ask("gpuprof_step_seconds_count > 0")) == PROCESSES, 90)
        # One is killed: it is named as stale, and no other.
        programs[0].kill()
        programs[0].wait()
        stale = "time() - gpuprof_written_timestamp_seconds > 45"
        wait_until(lambda: ask(stale), 90)
        wait_until(lambda: {row["metric"]["pid"] for row in ask(stale)} >= {str(programs[0].pid)}, 30)
        lively = {str(program.pid) for program in programs[1:]}
        wait_until(lambda: not lively & {row["metric"]["pid"] for row in ask(stale)}, 60)
        # One that was stopped stands, and no other.
        programs[2].send_signal(signal.SIGSTOP)
        stands = "time() - gpuprof_last_step_timestamp_seconds > 30 + 10 * gpuprof_step_seconds_sum / gpuprof_step_seconds_count"
        assert stands in asked_in_docs()
        wait_until(lambda: {row["metric"]["pid"] for row in ask(stands)} == {str(programs[0].pid), str(programs[2].pid)}, 90)
        for query in [*asked_by_dashboard(), *asked_in_docs()]:
            assert is_query(ask, query), query
            if not re.search("last_window|by_cause|offset|> 45", query):
                wait_until(lambda query=query: ask(query), 30)
