"""A page of the app as a test sees it."""

import re
from pathlib import Path

from streamlit.testing.v1 import AppTest

from core.catalogue import SMOLLM2

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
