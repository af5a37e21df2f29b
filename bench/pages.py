"""What a change costs a visitor: bytes on the wire, and the time until the new picture stands.

    python -m bench.pages

A server of its own, a real Chromium. A change is a click on another layer of the strip. `drawn` is the time from the
click to the last change that the page makes of it; `compute` and `chart` are parts of it, measured apart in this
process (the numbers of the map in hand, and its chart as JSON); the rest is Streamlit, the wire and the browser.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from charts.heatmap import EXACT_UP_TO, TILES, heatmap
from core import load
from core.distance import FILLER, HEAD, TAIL
from core.maps import maps, tiles
from pages.frame.walk import STEPS
from tools.browser import find

PAGE = Path(__file__).parent / "PAGES.md"
SHORT = HEAD + TAIL
LONG = HEAD + FILLER * 16 + TAIL
MOST = {"short": 150_000, "long": 600_000}  # bytes to the browser for one change
ROUNDS = 5
QUIET = 400  # milliseconds without a change: the picture stands
# Clicks a cell of the strip, and gives the milliseconds from then to the page's last change.
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
    if (rests && last > began + 20 && now - last > quiet) { observer.disconnect(); resolve(last - began); }
    else setTimeout(wait, 10);
  };
  setTimeout(wait, 50);
})
"""


@dataclass(frozen=True)
class Change:
    """One page's cost of one change: bytes and milliseconds."""

    page: str
    text: str
    bytes: int
    drawn: float


@contextmanager
def served() -> Iterator[str]:
    """The address of an app that runs for so long."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
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


def change(page: Page, url: str, path: str, model: str, text: str, which: str) -> Change:
    """The median of several changes of the layer on one page."""
    wire = Wire(page)
    page.goto(f"{url}/{path}?{urlencode({'models': model, 'text': text, 'layer': '0'})}")
    page.wait_for_selector('[data-testid="stMain"] [data-testid="stPageLink"]')
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_timeout(1500)
    sizes, times = [], []
    for place in range(1, ROUNDS + 1):
        wire.bytes = 0
        times.append(float(page.locator(".strip .cell").nth(place).evaluate(CLICK, QUIET)))
        sizes.append(wire.bytes)
    return Change(path, which, max(sizes), statistics.median(times))


def parts(model: str, text: str) -> tuple[float, float]:
    """Milliseconds to compute a map and to make its chart."""
    run = load(model).run(text, record=["residual.before"])
    labels = [str(i) for i in range(len(run.ids))]
    computed, charted = [], []
    for layer in range(ROUNDS):
        began = time.perf_counter()
        values = maps(run, layer, [0])[0]
        computed.append(time.perf_counter() - began)
        edge = 1
        if len(labels) > EXACT_UP_TO:
            edge = -(-len(labels) // TILES)
            values = tiles(values, TILES)
        began = time.perf_counter()
        heatmap(values.tolist(), labels[::edge], mixer="attention", dark=False, focus=0, edge=edge).to_json()
        charted.append(time.perf_counter() - began)
    return 1000 * statistics.median(computed), 1000 * statistics.median(charted)


def measure() -> str:
    """The table, in Markdown."""
    lines = [
        "| page, after a change of layer | model | tokens | kB to the browser (at most) | drawn, ms |",
        "|---|---|---|---|---|",
    ]
    with served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
        for model, text, which in (
            ("specimen-qwen3", SHORT, "short"),
            ("smollm2-135m", SHORT, "short"),
            ("smollm2-135m", LONG, "long"),
        ):
            tokens = len(load(model).tokenizer.encode(text))
            for step in STEPS:
                if step.path in ("compare", "article") or (which == "long" and step.path in ("distance", "switch_off")):
                    continue  # the first two have no layer; the others would run the long text anew for each layer
                context = browser.new_context(viewport={"width": 1440, "height": 1000})
                page = context.new_page()
                page.set_default_timeout(180_000)
                found = change(page, url, "" if step.path == "start" else step.path, model, text, which)
                lines.append(
                    f"| {step.title} | {model} | {tokens:,} | {found.bytes / 1000:.0f} ({MOST[which] // 1000}) | "
                    f"{found.drawn:.0f} |"
                )
                print(lines[-1], flush=True)
                context.close()
        browser.close()
    computed, charted = parts("specimen-qwen3", SHORT)
    lines += [
        "",
        f"Of a change on the Mixing page of specimen-qwen3 the map takes {computed:.1f} ms and its chart "
        f"{charted:.1f} ms; the rest is Streamlit, the wire and the browser.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(
        f"# What a change costs a visitor\n\n`python -m bench.pages` wrote this page.\n\n{measure()}\n", "utf-8"
    )
