# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, driven over its debugging protocol; and a server of files for it."""
import base64
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request

import websocket

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


class Page:
    def __init__(self, width=1600, height=1000):
        self.folder = tempfile.mkdtemp(prefix="gpuprof_chromium_")
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
             "--remote-allow-origins=*", f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = self._wait(self._port, 60)
        target = self._wait(lambda: next(t for t in json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
                                         if t["type"] == "page"), 30)
        self.socket = websocket.create_connection(target["webSocketDebuggerUrl"], timeout=120)
        self.number = 0
        self.events = []  # of the domains that were enabled

    def _port(self):
        return int((pathlib.Path(self.folder) / "DevToolsActivePort").read_text().splitlines()[0])

    @staticmethod
    def _wait(ask, seconds):
        until = time.monotonic() + seconds
        while True:
            try:
                return ask()
            except (OSError, StopIteration, IndexError, ValueError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def events_of(self, method):
        self.evaluate("new Promise(done => setTimeout(done, 50))")  # what is on its way has arrived before the answer
        return [event["params"] for event in self.events if event["method"] == method]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of a JavaScript expression; of a promise, what it comes to."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression, seconds=120):
        until = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < until, f"never true: {expression}"
            time.sleep(0.5)

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        self.socket.close()
        self.process.kill()
        self.process.wait()
        for _ in range(50):  # its helper processes write a little longer
            shutil.rmtree(self.folder, ignore_errors=True)
            if not pathlib.Path(self.folder).exists():
                break
            time.sleep(0.1)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Server:
    """Serves a folder on a port of this machine."""

    def __init__(self, folder):
        handler = functools.partial(_Quiet, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
