"""The app as a visitor has it: a server of its own, a real Chromium, and a stand-in for the hub with toy models."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from core.catalogue import KNOWN, SMOLLM2
from tests import hub_server, toy_repos
from tools.browser import find

ROOT = Path(__file__).parents[2]
MAIN = '[data-testid="stMain"]'
LAST = '[data-testid="stPageLink"], [data-testid="stAlert"]'  # what a page ends with, or stops at
UNDRAWN = '[data-testid="stVegaLiteChart"]:not(:has(svg.marks, canvas.marks))'  # Vega draws when the script has ended
PATIENCE = 60_000  # milliseconds: a loaded machine may be slow, and a picture that never comes still fails
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """Where screenshots are kept: TOKENWALK_ARTEFACTS, else a folder of the system's for temporary files."""
    folder = Path(os.environ.get("TOKENWALK_ARTEFACTS") or Path(tempfile.gettempdir()) / "tokenwalk-artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def app_url(smollm2_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running app whose hub is a stand-in: it has every named model at toy size."""
    served, server = hub_server.start()
    for name, toy in toy_repos.all_toys().items():
        served.repos[KNOWN[name].repo] = toy.repo(KNOWN[name].revision or "")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("app") / "log"
    environment = {
        **os.environ,
        "HF_ENDPOINT": served.url,
        "HF_HOME": str(tmp_path_factory.mktemp("hub")),
        "TOKENWALK_CACHE": str(smollm2_path.parent),
        "NO_PROXY": "127.0.0.1,localhost",
    }
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"],
            cwd=ROOT,
            env=environment,
            stdout=sink,
            stderr=sink,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)
            server.shutdown()
    errors = [line for line in log.read_text("utf-8").splitlines() if "Traceback" in line]
    assert not errors, log.read_text("utf-8")


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        assert process.poll() is None, log.read_text("utf-8")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"The app did not start: {log.read_text('utf-8')}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = find()
    assert path, "No Chromium was found: python -m tools.browser sees to one."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


class Visitor:
    """One browser tab."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.faults: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.faults.append(str(error)))

    def open(self, path: str = "", **query: str) -> "Visitor":
        """A page with a view. Where a test names no model, SmolLM2 alone; `models=""` is what nobody has chosen."""
        self.page.goto(f"{self.url}/{path}?{urlencode({'models': SMOLLM2, **query})}")
        return self.settled()

    def settled(self) -> "Visitor":
        """Waits until the script rests and the page has been drawn, each chart with it."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
        self.page.wait_for_selector(f"{MAIN} :is({LAST})")
        for unfinished in ('[data-stale="true"]', '[data-testid="stSkeleton"]', UNDRAWN):
            expect(self.page.locator(f"{MAIN} {unfinished}")).to_have_count(0, timeout=PATIENCE)
        return self

    def says(self, text: str) -> None:
        """Waits until the page says this in its main part."""
        expect(self.page.locator('[data-testid="stMain"]')).to_contain_text(text, timeout=PATIENCE)

    def type(self, sentence: str) -> None:
        box = self.page.get_by_role("textbox", name="Sentence")
        box.fill(sentence)
        box.press("Control+Enter")

    def chips(self) -> list[str]:
        """The tokens of the sentence as they stand on the page."""
        return [
            chip.evaluate("chip => [...chip.childNodes].slice(1).map(part => part.textContent).join('')")
            for chip in self.page.locator(".chip").all()
        ]


@pytest.fixture
def visitor(chromium: Browser, app_url: str) -> Iterator[Visitor]:
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    found = Visitor(context.new_page(), app_url)
    yield found
    context.close()
    assert not found.faults, found.faults


@pytest.fixture
def second_visitor(chromium: Browser, app_url: str) -> Iterator[Visitor]:
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    yield Visitor(context.new_page(), app_url)
    context.close()
