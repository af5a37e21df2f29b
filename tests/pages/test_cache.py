"""What is kept between reruns, and what a long text's run starts from."""

from collections.abc import Iterator

import pytest
import torch

from charts.theme import Chart
from charts.words import top_bars
from core.model import Model
from core.run import Run
from pages.frame import cache
from tests.tiny import tiny

DRAWN = cache.drawn
LONG = "Alice gave the book to Bob, and then he went to the old house by the river. " * 4  # 304 tokens of a letter each


@pytest.fixture
def went_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts whose runs went on from another one."""
    texts: list[str] = []

    def watch(run: Run, text: str) -> Run:
        texts.append(text)
        return extended(run, text)

    extended = cache.extended
    monkeypatch.setattr(cache, "extended", watch)
    cache._last_long_runs.clear()
    cache._long_run.clear()
    yield texts
    cache._last_long_runs.clear()
    cache._long_run.clear()


@pytest.fixture
def model() -> Model:
    return tiny("qwen3").model


def test_a_long_text_with_more_at_its_end_goes_on_from_the_last_run(model: Model, went_on: list[str]) -> None:
    assert len(model.tokenizer.encode(LONG)) > cache.SHORT
    cache.run(model, LONG)
    found = cache.run(model, LONG + "So")
    assert went_on == [LONG + "So"]
    whole = model.run(LONG + "So", record=cache.recorded(model))
    torch.testing.assert_close(found.logits, whole.logits, rtol=0, atol=1e-4)
    assert sorted(found.values) == sorted(whole.values)
    assert cache.run(model, LONG + "So") is found


def test_another_text_other_switches_and_short_texts_run_anew(model: Model, went_on: list[str]) -> None:
    cache.run(model, LONG)
    cache.run(model, LONG[::-1])
    cache.run(model, LONG[::-1] + "!", off=("mixer:0",))
    cache.run(model, "a")
    cache.run(model, "ab")
    assert went_on == []
    cache.run(model, LONG[::-1] + "?", off=("mixer:0",))
    assert went_on == [LONG[::-1] + "?"]


def test_the_latest_runs_are_kept_for_it(model: Model, went_on: list[str]) -> None:
    offs = [(f"neuron:0.{neuron}",) for neuron in range(cache.LAST_RUNS + 2)]
    for off in offs:
        cache.run(model, LONG, off=off)
    assert [key[2] for key in cache._last_long_runs()] == offs[2:]
    cache.run(model, LONG + "So", off=offs[2])
    assert [key[2] for key in cache._last_long_runs()] == [*offs[3:], offs[2]]


def test_a_chart_of_the_same_data_is_made_once_and_each_visitor_has_a_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "drawn", DRAWN)  # without the check that makes each chart once more
    made: list[float] = []

    def bars(words: list[tuple[str, float]], *, dark: bool) -> Chart:
        made.append(words[0][1])
        return top_bars(words, colour="#123456", dark=dark)

    cache._drawn.clear()
    first = cache.drawn(bars, [("a", 0.5)], dark=False)
    del first["config"]
    again = cache.drawn(bars, [("a", 0.5)], dark=False)
    assert made == [0.5]
    assert again == top_bars([("a", 0.5)], colour="#123456", dark=False).to_dict()
    for words, dark in (([("a", 0.25)], False), ([("a", 0.5)], True), ([("b", 0.5)], False)):
        other = cache.drawn(bars, words, dark=dark)
        assert other == top_bars(words, colour="#123456", dark=dark).to_dict()
        assert other != again
