"""A run that goes on from another one is the run that there would have been."""

import pytest
import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.extension import AROUND, extended, shared
from core.model import Model
from core.run import Run
from core.taps import Newest
from tests.tiny import tiny

KINDS = ["gpt2", "llama", "qwen3", "granite, two groups", "gemma3", "qwen3.5, two value heads a key"]
BEGINNING = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to her, " * 2  # more than one block


def recorded(model: Model) -> list[str]:
    return [*AROUND, *(site.name for site in model.sites if site.name.startswith("embedding"))]


def run(model: Model, text: str, off: tuple[str, ...] = ()) -> Run:
    return model.run(text, record=recorded(model), off=off)


def near(value: Tensor, right: Tensor) -> None:
    assert value.shape == right.shape
    assert (value - right).abs().max() <= 1e-5 * right.abs().max()


@pytest.mark.parametrize(
    "text",
    [BEGINNING + "and said", BEGINNING + "x", BEGINNING[:100] + "then she read", BEGINNING[:90], BEGINNING, "Another"],
    ids=["more text", "one more token", "another end", "a shorter text", "the same text", "nothing shared"],
)
@pytest.mark.parametrize("name", KINDS)
def test_it_is_the_whole_run(name: str, text: str) -> None:
    model = tiny(name).model
    found, right = extended(run(model, BEGINNING), text), run(model, text)
    assert (found.text, found.ids) == (text, right.ids)
    near(found.logits, right.logits)
    for mine, whole in ((found.values, right.values), ({"": found.outside}, {"": right.outside})):
        assert {site: sorted(each) for site, each in mine.items()} == {
            site: sorted(each) for site, each in whole.items()
        }
        for site, each in mine.items():
            for key, value in each.items():
                near(value, whole[site][key])


@pytest.mark.parametrize("name", KINDS)
def test_what_is_off_stays_off(name: str) -> None:
    model = tiny(name).model
    off = ("mixer:0", "head:1.1", "ffn:1", "neuron:0.3")
    found, right = extended(run(model, BEGINNING, off), BEGINNING + "and"), run(model, BEGINNING + "and", off)
    assert found.off == right.off
    near(found.logits, right.logits)
    assert not torch.allclose(found.logits, run(model, BEGINNING + "and").logits, atol=1e-3)


@pytest.mark.parametrize("name", KINDS)
def test_only_the_new_positions_go_through_the_ffns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(name).model
    first = run(model, BEGINNING)
    rows: list[int] = []

    def watch(self: Newest, site: str, value: Tensor) -> Tensor:
        if site == "ffn.neurons":
            rows.append(value.shape[1])
        return before(self, site, value)

    before = Newest.__call__
    monkeypatch.setattr(Newest, "__call__", watch)
    extended(first, BEGINNING + "and")
    assert rows == [3] * model.layers


def test_a_run_goes_on_more_than_once() -> None:
    model = tiny("granite, two groups").model
    text, found = BEGINNING, run(model, BEGINNING)
    for more in ("and ", "so ", "on"):
        text += more
        found = extended(found, text)
    near(found.logits, run(model, text).logits)


def test_the_last_token_counts_as_new_and_a_difference_ends_what_is_shared() -> None:
    model = tiny("qwen3").model
    first = run(model, "abcdef")
    for text, count in (("abcdef", 5), ("abcdefg", 6), ("abc", 2), ("abXdefgh", 2), ("X", 0)):
        assert shared(first, model.tokenizer.encode(text)) == count


@pytest.mark.parametrize("record", [[], ["residual.before"], [*AROUND, "ffn.input"], ["residual.before:0", AROUND[1]]])
def test_another_record_is_refused(record: list[str]) -> None:
    with pytest.raises(TokenwalkError, match="recorded the stream around every layer, and no more"):
        extended(tiny("qwen3").model.run("abc", record=record), "abcd")


def test_an_empty_text_and_one_that_is_too_long_are_refused() -> None:
    model = tiny("qwen3").model
    first = run(model, "abc")
    with pytest.raises(TokenwalkError, match="There is no text yet"):
        extended(first, "")
    with pytest.raises(TokenwalkError, match="tokens long"):
        extended(first, "a" * (model.context + 1))
