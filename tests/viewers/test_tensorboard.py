# SPDX-License-Identifier: Apache-2.0
"""TensorBoard, started for real on the log directory, with both plugins: what they serve, and their pages in headless
Chromium. (torch-tb-profiler's charts come from a server on the internet: here its page ends at the choices of views.)"""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

import browser


class TensorBoard:
    def __init__(self, logs):
        self.process = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", logs, "--port", "0", "--host",
                                         "127.0.0.1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            found = re.search(r"at (http://127\.0\.0\.1:[0-9]+)", line)
            if found:
                self.url = found.group(1)
                break
        else:
            raise AssertionError("".join(self.said))
        threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True).start()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            data = answer.read()
        return json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)

    def close(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def board(profiled, tmp_path_factory):
    logs = tmp_path_factory.mktemp("logs") / "tb"
    shutil.copytree(profiled.convert("tensorboard"), logs)
    board = TensorBoard(str(logs))
    board.run = next((logs / "plugins" / "profile").iterdir()).name
    yield board
    board.close()


def loaded(board):
    """The PyTorch plugin reads its files in the background."""
    for _ in range(240):
        runs = board.get("/data/plugin/pytorch_profiler/runs")
        if runs["runs"] and not runs["loading"]:
            return runs["runs"]
        time.sleep(0.5)
    raise AssertionError("".join(board.said))


def test_pytorch_plugin_serves_its_views(board):
    assert loaded(board) == [board.run]
    views = board.get(f"/data/plugin/pytorch_profiler/views?run={board.run}")
    assert {"Overview", "Operator", "Kernel", "Trace", "Memory", "Distributed"} <= set(views)
    workers = board.get(f"/data/plugin/pytorch_profiler/workers?run={board.run}&view=Overview")
    assert len(workers) == 2
    spans = board.get(f"/data/plugin/pytorch_profiler/spans?run={board.run}&worker={workers[0]}")
    overview = board.get(f"/data/plugin/pytorch_profiler/overview?run={board.run}&worker={workers[0]}&span={spans[0]}&view=Overview")
    assert len(overview["steps"]["rows"]) == 10
    assert overview["gpu_metrics"]["title"] == "GPU Summary"


def test_profile_plugin_serves_its_tools(board):
    assert board.get("/data/plugin/profile/runs") == [board.run]
    tools = board.get(f"/data/plugin/profile/run_tools?run={board.run}")
    assert {"trace_viewer@", "overview_page", "kernel_stats", "framework_op_stats"} <= set(tools)
    host = board.get(f"/data/plugin/profile/hosts?run={board.run}&tag=kernel_stats")[-1]["hostname"]
    stats = board.get(f"/data/plugin/profile/data?run={board.run}&tag=kernel_stats&host={host}")
    assert any(cell["v"].startswith("gemm_fwd") for row in stats["rows"] for cell in row["c"] if isinstance(cell["v"], str))


FRAMES = """(() => {
    const texts = [];
    const walk = root => root.querySelectorAll('*').forEach(e => {
        if (e.shadowRoot) walk(e.shadowRoot);
        if (e.tagName === 'IFRAME' && e.contentDocument && e.contentDocument.body) texts.push(e.contentDocument.body.innerText);
    });
    walk(document);
    return texts.join('\\n');
})()"""


@pytest.mark.skipif(not browser.CHROMIUM, reason="no chromium here")
def test_pages(board, tmp_path):
    loaded(board)
    folder = pathlib.Path(os.environ.get("GPUPROF_SCREENSHOTS", tmp_path))
    page = browser.Page()
    try:
        for plugin, text in (("pytorch_profiler", "Workers"), ("profile", "Performance Summary")):
            page.open(f"{board.url}/#{plugin}")
            for part in (text, board.run):
                page.wait_for(f"{FRAMES}.includes({json.dumps(part)})")
            page.screenshot(folder / f"tensorboard_{plugin}.png")
    finally:
        page.close()
