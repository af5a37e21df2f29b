"""A page of the app as a test sees it."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.catalogue import KNOWN, SMOLLM2
from tests import toy_repos
from tests.hub_server import Hub

APP = str(Path(__file__).parents[2] / "app.py")


def walk(page: str, **query: str) -> AppTest:
    """A page with a view. Where a test names no model, SmolLM2 alone; `models=""` is what nobody has chosen."""
    at = AppTest.from_file(APP, default_timeout=120)
    for name, value in {"models": SMOLLM2, **query}.items():
        at.query_params[name] = value
    if page != "start":
        at.switch_page(f"pages/{page}.py")
    at.run()
    assert not at.exception, at.exception
    return at


def plain(at: AppTest) -> list[str]:
    """The page's paragraphs as a reader sees them."""
    return [re.sub(r"\\(.)", r"\1", element.value).replace("**", "").replace("−", "-") for element in at.markdown]


def serve(hub: Hub, name: str, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch, **settings: int) -> None:
    """A named model at toy size from the stand-in for the hub, beside the packaged SmolLM2."""
    monkeypatch.setenv("TOKENWALK_CACHE", str(smollm2_path.parent))
    known = KNOWN[name]
    hub.repos[known.repo] = toy_repos.all_toys()[name].with_config(**settings).repo(known.revision or "")
