"""The visitors that the benchmark sends: each sees a page, and an error in its place is said."""

import asyncio
from pathlib import Path

import pytest

from bench import visitors
from bench.pages import served


def test_every_sentence_is_another_one() -> None:
    assert len({visitors.sentence(number) for number in range(40 * len(visitors.PAGES))}) == 40 * len(visitors.PAGES)


def test_visitors_see_their_pages_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "VISITORS", 3)
    with served(tmp_path / "clocks") as url:
        found = asyncio.run(visitors.occasions(url, "mixing", "specimen-qwen3", 0))
        with pytest.raises(RuntimeError, match="There is no page “nowhere”"):
            asyncio.run(visitors.occasions(url, "nowhere", "specimen-qwen3", 0))
    assert {name: len(each) for name, each in found.items()} == {
        "alone": 1,
        "one link": 3,
        "one sentence": 3,
        "their own": 3,
    }
    assert all(0.01 < each < 60 for times in found.values() for each in times)
