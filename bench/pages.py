"""What a change costs a visitor: bytes on the wire, and the time until the new picture stands.

    python -m bench.pages

A server of its own and a real Chromium, which share the machine's cores. A change is a click on another layer of the
strip. `drawn` is the time from the click to the last change that the page makes of it. Of that, `compute` and `chart`
are what the server's script spends in core and in charts (bench/timed.py); `wire` is the rest until the last message
has reached the browser: Streamlit, its messages and the way; `browser` is what comes after.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from core import load
from core.distance import FILLER, HEAD, TAIL
from pages.frame.walk import STEPS
from tools.browser import find

PAGE = Path(__file__).parent / "PAGES.md"
SHORT = HEAD + TAIL
LONG = HEAD + FILLER * 16 + TAIL
MOST = {"short": 150_000, "long": 600_000}  # bytes to the browser for one change
ROUNDS = 5
QUIET = 400  # milliseconds without a change: the picture stands
# Notes when a message last came through the page's web socket.
LISTEN = """
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', () => { window.lastMessage = performance.now(); });
  }
};
"""
# Clicks a cell of the strip, and gives the milliseconds from then to the last message and to the page's last change.
CLICK = """
(cell, quiet) => new Promise(resolve => {
  const main = document.querySelector('[data-testid="stMain"]');
  let last = 0;
  const observer = new MutationObserver(() => { last = performance.now(); });
  observer.observe(main, {subtree: true, childList: true, attributes: true, characterData: true});
  const began = performance.now();
  cell.click();
  const app = document.querySelector('[data-testid="stApp"]');
  const wait = () => {
    const now = performance.now();
    const rests = app.getAttribute('data-test-script-state') === 'notRunning';
    if (rests && last > began + 20 && now - last > quiet) {
      observer.disconnect();
      resolve([window.lastMessage - began, last - began]);
    } else setTimeout(wait, 10);
  };
  setTimeout(wait, 50);
})
"""


@dataclass(frozen=True)
class Change:
    """One page's cost of one change: bytes, and milliseconds until it is drawn, by part."""

    bytes: int
    drawn: float
    compute: float
    chart: float
    wire: float
    browser: float


@contextmanager
def served(*program: str) -> Iterator[str]:
    """The address of an app that runs for so long: `python -m` with this program and its arguments."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", *program, f"--server.port={port}"]
    root = Path(__file__).parents[1]
    process = subprocess.Popen(command, cwd=root, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


class Wire:
    """Counts what a page receives through its web socket."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self._add))

    def _add(self, payload: bytes | str) -> None:
        self.bytes += len(payload)


class Clocks:
    """What the server's clocks have said since they were last read."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.seen = 0

    def read(self) -> dict[str, float]:
        """Milliseconds by part, over all runs of the script since the last reading."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        new, self.seen = [json.loads(line) for line in lines[self.seen :]], len(lines)
        return {part: 1000 * sum(each[part] for each in new) for part in ("compute", "chart")}


def change(page: Page, clocks: Clocks, address: str) -> Change:
    """The median of several changes of the layer on one page."""
    wire = Wire(page)
    page.add_init_script(LISTEN)
    page.goto(address)
    page.wait_for_selector('[data-testid="stMain"] [data-testid="stPageLink"]')
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_timeout(1500)
    clocks.read()
    found = []
    for place in range(1, ROUNDS + 1):
        wire.bytes = 0
        arrived, drawn = page.locator(".strip .cell").nth(place).evaluate(CLICK, QUIET)
        spent = clocks.read()
        on_the_way = arrived - spent["compute"] - spent["chart"]
        found.append(Change(wire.bytes, drawn, spent["compute"], spent["chart"], on_the_way, max(0, drawn - arrived)))
    return Change(
        max(each.bytes for each in found),
        *(
            statistics.median(getattr(each, part) for each in found)
            for part in ("drawn", "compute", "chart", "wire", "browser")
        ),
    )


def texts() -> Iterator[tuple[str, str, str, str]]:
    """(path, model, text, which) of each row."""
    for model, text, which in (
        ("specimen-qwen3", SHORT, "short"),
        ("smollm2-135m", SHORT, "short"),
        ("smollm2-135m", LONG, "long"),
    ):
        for step in STEPS:
            if step.path in ("compare", "article") or (which == "long" and step.path in ("distance", "switch_off")):
                continue  # the first two have no layer; the others would run the long text anew for each layer
            yield step.path, model, text, which


def measure() -> str:
    """The table, in Markdown."""
    lines = [
        "| page, after a change of layer | model | tokens | kB to the browser (at most) | drawn, ms "
        "| compute | chart | wire | browser |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    titles = {step.path: step.title for step in STEPS}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        log = Path(folder) / "clocks"
        with served("bench.timed", str(log)) as url:
            browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
            for path, model, text, which in texts():
                context = browser.new_context(viewport={"width": 1440, "height": 1000})
                page = context.new_page()
                page.set_default_timeout(180_000)
                query = urlencode({"models": model, "text": text, "layer": "0"})
                found = change(page, Clocks(log), f"{url}/{'' if path == 'start' else path}?{query}")
                lines.append(
                    f"| {titles[path]} | {model} | {len(load(model).tokenizer.encode(text)):,} "
                    f"| {found.bytes / 1000:.0f} ({MOST[which] // 1000}) | {found.drawn:.0f} "
                    f"| {found.compute:.0f} | {found.chart:.0f} | {found.wire:.0f} | {found.browser:.0f} |"
                )
                print(lines[-1], flush=True)
                context.close()
            browser.close()
    return "\n".join([*lines, "", *__doc__.split("\n\n", 3)[2].strip().splitlines()])


if __name__ == "__main__":
    PAGE.write_text(
        f"# What a change costs a visitor\n\n`python -m bench.pages` wrote this page.\n\n{measure()}\n", "utf-8"
    )
