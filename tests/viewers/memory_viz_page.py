# SPDX-License-Identifier: Apache-2.0
"""memory_viz in headless Chromium, without a network: PyTorch's MemoryViz.js and d3 as memory_viz_page.sh gets them, and a
snapshot. What it shows is taken from what it has drawn."""
import json
import os
import pathlib
import re
import subprocess
import time

import browser

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(os.environ.get("GPUPROF_VIEWERS", pathlib.Path.home() / ".cache/gpuprof/viewers")) / "memory_viz"
PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="icon" href="data:,"><script type="importmap">%s</script></head><body>
<script type="module">
import {add_remote_files} from "/MemoryViz.js";
add_remote_files([{name: "snapshot", url: "/snapshot.pickle"}]);
</script></body></html>"""
# The text that the page shows when the mouse is over a polygon, and the block that the polygon was drawn from.
SHOWN = """Array.from(document.querySelectorAll("body > div:last-child svg:first-child polygon")).filter(p => p.__data__.elem !== "summarized")
.map(p => {
  p.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
  const block = p.__data__;
  return {text: document.querySelector("body > div:last-child pre").textContent, top: Math.max(...block.offsets) + block.size,
          points: p.getAttribute("points")};
})"""


def files():
    """Gets the page's files once; the reason why they cannot be had, or None."""
    done = subprocess.run([HERE / "memory_viz_page.sh", FOLDER], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["memory_viz_page.sh failed"])[-1]


def import_map():
    """Where a browser finds what MemoryViz.js imports from the internet, modules of d3 by name, and files without their ending."""
    modules = FOLDER / "nodejs"
    found = {name: f"/nodejs/{name}/{'index.js' if name == 'd3' else 'src/index.js'}" for name in sorted(os.listdir(modules))}
    found.update({f"/{file.relative_to(FOLDER).with_suffix('')}": f"/{file.relative_to(FOLDER)}" for file in modules.glob("*/src/**/*.js")})
    urls = re.findall(r'^import .* from "(https://[^"]+)";', (FOLDER / "MemoryViz.js").read_text(), re.MULTILINE)
    return {**found, **{url: found[re.sub(r".*/|@.*", "", url)] for url in urls}}


class MemoryViz:
    """The page with a snapshot."""

    def __init__(self, folder, data):
        folder.mkdir()
        for name in ("MemoryViz.js", "nodejs"):
            (folder / name).symlink_to(FOLDER / name)
        (folder / "page.html").write_text(PAGE % json.dumps({"imports": import_map()}))
        (folder / "snapshot.pickle").write_bytes(data)
        self.server, self.page = browser.Server(folder), browser.Page()
        for domain in ("Network", "Runtime", "Log"):
            self.page.call(f"{domain}.enable")
        self.page.open(f"{self.server.url}/page.html")

    def close(self):
        self.page.close()
        self.server.close()

    def drawn(self, seconds=60):
        """Whether it has drawn something, and said of no error, before."""
        until = time.monotonic() + seconds
        while not self.errors() and time.monotonic() < until:
            if self.page.evaluate("document.querySelector('body > div:last-child svg polygon') !== null"):
                return not self.errors()
        return False

    def devices(self):
        return self.page.evaluate("Array.from(document.querySelectorAll('select')[2].options).map(o => o.text)")

    def show(self, device):
        self.page.evaluate("document.querySelectorAll('select')[2].value = %d" % device)
        self.page.evaluate("document.querySelectorAll('select')[2].dispatchEvent(new Event('change'))")

    def errors(self):
        thrown = [event["exceptionDetails"] for event in self.page.events_of("Runtime.exceptionThrown")]
        return [each.get("exception", {}).get("description", each["text"]) for each in thrown] + [
            event["entry"]["text"] for event in self.page.events_of("Log.entryAdded")]

    def elsewhere(self):
        """What it asked of any other server."""
        asked = [event["request"]["url"] for event in self.page.events_of("Network.requestWillBeSent")]
        return [url for url in asked if not url.startswith((self.server.url, "data:"))]

    def allocations(self):
        return self.page.evaluate(SHOWN)
