"""The visitors that the benchmark sends: each sees a page, and an error in its place is said."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench import visitors
from bench.pages import served


def test_every_sentence_is_another_one() -> None:
    assert len({visitors.sentence(number) for number in range(40 * len(visitors.PAGES))}) == 40 * len(visitors.PAGES)


def visit(url: str, page: str) -> dict[str, list[float]]:
    """In a thread of its own: a browser's tests leave an event loop running in theirs."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(visitors.occasions(url, page, "specimen-qwen3", 0))).result()


def test_visitors_see_their_pages_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "VISITORS", 3)
    with served(*visitors.APP) as url:
        found = visit(url, "mixing")
        with pytest.raises(RuntimeError, match="There is no page “nowhere”"):
            visit(url, "nowhere")
    assert {name: len(each) for name, each in found.items()} == {
        "alone": 1,
        "one link": 3,
        "one sentence": 3,
        "their own": 3,
    }
    assert all(0.01 < each < 60 for times in found.values() for each in times)
