import pytest

from core.catalogue import SMOLLM2
from pages.frame.state import LINK_CHARACTERS, PROMPT, View, defaults, from_query

FULL = {
    "text": "a=b&c <b> $x$ 안녕\n",
    "models": "gpt2,smollm2-135m",
    "hand": "smollm2-135m",
    "target": " Alice",
    "off": "mixer:3,head:5.2",
    "layer": "7",
    "head": "0",
    "focus": "4",
    "tour": "1",
}


def as_view(found: dict[str, object]) -> View:
    return View(**{**found, "models": tuple(found["models"]), "off": tuple(found["off"])})  # type: ignore[arg-type]


def test_a_view_goes_into_the_url_and_back() -> None:
    view = as_view(from_query(FULL))
    assert view.as_query() == FULL
    assert as_view(from_query(view.as_query())) == view


def test_without_a_link_the_view_is_the_default() -> None:
    assert from_query({}) == defaults()
    specimens = ["specimen-gpt2", "specimen-qwen3", "specimen-granite"]
    assert (defaults()["text"], defaults()["models"]) == (PROMPT, [SMOLLM2, *specimens])


def test_an_empty_sentence_in_a_link_stays_empty() -> None:
    assert from_query({"text": ""})["text"] == ""


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ({"models": "no-such-model"}, "models", defaults()["models"]),
        ({"models": "gpt2,gpt2"}, "models", ["gpt2"]),
        ({"models": "gpt2", "hand": "qwen3-0.6b-base"}, "hand", "gpt2"),
        ({"layer": "-1"}, "layer", None),
        ({"layer": "x"}, "layer", None),
        ({"focus": "99999999999"}, "focus", None),
        ({"off": ",,mixer:3,"}, "off", ["mixer:3"]),
    ],
)
def test_what_a_link_says_wrongly_falls_back(query: dict[str, str], name: str, value: object) -> None:
    assert from_query(query)[name] == value


def test_at_most_four_models_come_from_a_link() -> None:
    query = {"models": "smollm2-135m,gpt2,qwen3-0.6b-base,granite-4.0-h-350m-base,gemma-3-270m"}
    assert len(from_query(query)["models"]) == 4


def test_a_text_too_long_for_a_link_is_left_out_of_it() -> None:
    view = as_view({**defaults(), "text": "x" * (LINK_CHARACTERS + 1)})
    assert "text" not in view.as_query()
