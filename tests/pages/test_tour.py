"""The tour: each stop's sentences against a direct computation, and true for every model and sentence."""

import re
from pathlib import Path

import pytest
import torch

from core import load
from core.attribution import attribution
from core.catalogue import SPECIMENS
from core.distance import HEAD, TAIL, by_distance
from core.heads import strongest_reader
from core.lens import halves, lens
from core.model import Model
from pages.frame.state import PROMPT
from pages.frame.tour import STOPS
from pages.frame.walk import STEPS
from pages.frame.words import percent
from tests.pages.walking import plain, walk

TO = 17


@pytest.fixture(autouse=True)
def _packaged_model(smollm2_path: Path) -> None:
    """SmolLM2 lies where the app looks for it."""


def stop(path: str, **query: str) -> str:
    """What the tour says on a page, its bold numbers and names as a reader sees them."""
    at = walk(path, tour="1", **query)
    place = next(i for i, each in enumerate(STOPS) if each.path == path)
    assert any(f"Stop {place + 1} of {len(STOPS)}" in each.value for each in at.caption)
    return plain(at)[0]


def sure(model: Model, off: list[str] | None = None) -> float:
    return float(model.run(PROMPT, off=off or []).probabilities()[model.tokenizer.first(" Alice")])


def test_there_are_nine_stops_in_the_walks_order() -> None:
    order = [step.path for step in STEPS]
    places = [order.index(each.path) for each in STOPS]
    assert len(places) == 9
    assert places == sorted(places)
    assert all(each.asks for each in STOPS[:-1])


def test_the_start_says_who_agrees_and_whether_it_may_be_copied() -> None:
    said = stop("start", models="smollm2-135m,specimen-qwen3")
    assert said == (
        "All 2 models put “␣Alice” on top. “␣Alice” stands in the sentence already, at position 4: it may have been "
        "copied from there."
    )
    assert stop("start", text="The capital of France is").endswith(
        "“␣Paris” is no token of the sentence so far: it cannot have been copied from there."
    )
    assert stop("start", models="smollm2-135m,specimen-qwen3", text="My name is").startswith(
        "The models do not agree. On top is, in SmolLM2 135M: “"
    )


def test_tokens_says_what_the_next_one_is_predicted_from() -> None:
    assert stop("tokens") == (
        "For SmolLM2 135M the sentence is 18 tokens. The next one is predicted from one vector, that of the last "
        "position: “␣to”, position 17. “␣Alice” stands 13 tokens further back, at position 4."
    )


def test_the_embedding_says_what_it_would_say_alone(smollm2: Model) -> None:
    to, alice = smollm2.tokenizer.first(" to"), smollm2.tokenizer.first(" Alice")
    p = smollm2.unembed(smollm2.table()[to][None, None])[0, 0].softmax(-1)
    assert stop("embedding") == (
        f"“␣to” becomes row {to} of a table: 576 numbers that depend on no other token. If SmolLM2 135M stopped "
        f"here, it would say “{smollm2.tokenizer.visible(int(p.argmax()))}” ({percent(float(p.max()))}); “␣Alice” has "
        f"{percent(float(p[alice]))}."
    )


def test_mixing_says_which_head_reads_most_from_the_name(smollm2: Model) -> None:
    found = strongest_reader(smollm2.run(PROMPT, record=["residual.before"]), TO, [4])
    assert found is not None
    assert stop("mixing").endswith(
        f"no head of attention in SmolLM2 135M reads more from “␣Alice” (position 4) than head {found.head} of layer "
        f"{found.layer}: {percent(found.weight)}."
    )


def test_add_back_says_what_becomes_of_the_vector(smollm2: Model) -> None:
    first = smollm2.run(PROMPT, record=["embedding"]).outside["embedding"][TO]
    final = smollm2.run(PROMPT).stream[TO]
    cosine = float(torch.cosine_similarity(first, final, dim=0))
    said = stop("add_back")
    assert "60 additions in SmolLM2 135M." in said
    numbers = [float(each.replace(",", "")) for each in re.findall(r"(?:of|to|is) (-?[\d.,]+\d)", said)]
    assert numbers == pytest.approx([float(first.norm()), float(final.norm()), cosine], rel=0.01)


def test_the_lens_says_which_half_raised_it_most(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["residual.before", "residual.after"])
    alice = smollm2.tokenizer.first(" Alice")
    seen = halves(run, [alice], TO)
    layer, half = divmod(int(seen.gains().argmax()), 2)
    before, after = float(seen.p[0, layer, half] - seen.gains()[layer, half]), float(seen.p[0, layer, half])
    assert stop("logit_lens") == (
        f"Read through the last norm after each layer of SmolLM2 135M, “␣Alice” is on top from layer "
        f"{lens(run, alice).leads_from()} of 30 on. It rises most at the {'FFN' if half else 'mixer'} of layer "
        f"{layer}: from {percent(before)} to {percent(after)}."
    )


def test_attribution_says_which_half_and_which_head_write_most(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["residual.before"])
    seen = attribution(run, smollm2.tokenizer.first(" Alice"), TO)
    heads = torch.stack(seen.heads)
    layer, head = divmod(int(heads.argmax()), 9)
    found = strongest_reader(run, TO, [4])
    assert found is not None
    same = "" if (found.layer, found.head) == (layer, head) else "not "
    said = stop("attribution")
    assert said.startswith(f"The logit of “␣Alice” in SmolLM2 135M, {seen.logit:.2f}, is a sum. ")
    assert said.endswith(
        f"Of the single heads it is head {head} of layer {layer}: {float(heads.max()):+.2f}. That is {same}the head "
        "that reads most from the word’s earlier place."
    )


@pytest.mark.parametrize("name", ["smollm2-135m", "specimen-granite"])
def test_switching_off_says_what_is_left(name: str) -> None:
    model = load(name)
    seen = attribution(model.run(PROMPT, record=["residual.before"]), model.tokenizer.first(" Alice"), TO)
    half = "mixer" if float(seen.mixer.max()) >= float(seen.ffn.max()) else "ffn"
    layer = int((seen.mixer if half == "mixer" else seen.ffn).argmax())
    said = stop("switch_off", models=name)
    assert f"“␣Alice” is at {percent(sure(model, [f'{half}:{layer}']))}, " in said
    assert f"as trained it has {percent(sure(model))}" in said
    if len(set(model.mixers)) == 1:
        assert "With all" not in said
        return
    for kind, spec in (("attention", "attention:*"), ("Mamba2", "mamba2:*")):
        assert f"With all {kind} off, “␣Alice” is at {percent(sure(model, [spec]))}" in said


def test_the_last_stop_answers_the_question(smollm2: Model) -> None:
    alice = smollm2.tokenizer.first(" Alice")
    points = by_distance(smollm2, HEAD, TAIL, alice, most=2048)
    said = stop("distance")
    assert said.startswith(
        f"With filler put between, “␣Alice” goes from 81 % at 18 tokens to {percent(points[-1].p)} at "
        f"{points[-1].tokens:,} in SmolLM2 135M. So, where does it come from? “␣Alice” stood at position 4; head "
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, PROMPT) for name in SPECIMENS),
        *(("specimen-granite", text) for text in ("The capital of France is", "a", "😀 </script> $x$ *b*")),
    ],
)
def test_every_stop_speaks_for_every_model_and_text(name: str, text: str) -> None:
    for each in STOPS:
        said = stop(each.path, models=name, text=text)
        assert said.endswith("."), said
        assert "nan" not in said.split(), said


def test_a_page_beside_the_tour_leads_back_to_it() -> None:
    at = walk("norm", tour="1")
    assert any("not one of its stops" in each.value for each in at.caption)


def test_the_tour_begins_and_ends_on_a_click() -> None:
    at = walk("start", text="Hello there", off="mixer:3", models="specimen-qwen3")
    next(each for each in at.button if each.label == "Take the tour").click().run()
    assert at.session_state["text"] == PROMPT
    assert at.session_state["off"] == []
    assert at.session_state["models"] == ["specimen-qwen3"]
    assert plain(at)[0].startswith("The model puts “␣Alice” on top.")
    at.button(key="leave").click().run()
    assert not at.session_state["tour"]
    assert plain(at)[0].startswith("Qwen3 specimen goes on with “␣Alice”")
