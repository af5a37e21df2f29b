"""A Chromium for the browser tests: one that is there, else Debian's where it may be installed, else Playwright's own.

python -m tools.browser        sees to one and prints its path
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """The path of a Chromium on this machine, or None. TOKENWALK_BROWSER names one outright."""
    if chosen := os.environ.get("TOKENWALK_BROWSER"):
        return chosen
    for name in NAMES:
        if path := shutil.which(name):
            return path
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).is_file() else None


def install() -> None:
    """Installs one, by whichever way is open here."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=quiet, check=False)
        if subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], env=quiet, check=False).returncode == 0:
            return
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> int:
    """Sees to a browser; returns 1, with a sentence, where none can be had."""
    path = find()
    if path is None:
        install()
        path = find()
    if path is None:
        print(
            "The browser tests need a Chromium, and none could be installed here: install one, or name it in "
            "TOKENWALK_BROWSER.",
            file=sys.stderr,
        )
        return 1
    print(f"Browser: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
