"""A page of the app as a test sees it."""

import re
from pathlib import Path

from streamlit.testing.v1 import AppTest

APP = str(Path(__file__).parents[2] / "app.py")


def walk(page: str, **query: str) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=120)
    for name, value in query.items():
        at.query_params[name] = value
    if page != "start":
        at.switch_page(f"pages/{page}.py")
    at.run()
    assert not at.exception, at.exception
    return at


def plain(at: AppTest) -> list[str]:
    """The page's paragraphs as a reader sees them."""
    return [re.sub(r"\\(.)", r"\1", element.value).replace("**", "").replace("−", "-") for element in at.markdown]
