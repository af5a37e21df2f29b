"""The sentences further down the pages, each against a direct computation."""

from pathlib import Path

import pytest
import torch

from core import load
from core.model import Model
from pages.frame.state import PROMPT
from pages.frame.words import percent, size
from tests.hub_server import Hub
from tests.pages.walking import plain, serve, walk

TO, ALICE = 17, 4  # positions


@pytest.fixture(autouse=True)
def _packaged_model(smollm2_path: Path) -> None:
    """SmolLM2 lies where the app looks for it."""


def said(page: str, begin: str, **query: str) -> str:
    """The paragraph of a page that begins so."""
    return next(line for line in plain(walk(page, **query)) if line.startswith(begin))


def test_tokens_says_what_greetings_cost(smollm2: Model) -> None:
    cost = {text: len(smollm2.tokenizer.encode(text)) for text in ("Hello", "👋🤗")}
    assert said("tokens", "SmolLM2 135M takes") == (
        f"SmolLM2 135M takes {cost['Hello']} token for “Hello” (5 characters) and {cost['👋🤗']} tokens for “👋🤗” "
        "(2 characters, emoji)."
    )


def test_mixing_says_how_much_is_parked_on_position_0(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["attention.pattern"])
    shares = torch.stack([run.values["attention.pattern"][layer][:, 1:, 0].mean(-1) for layer in range(30)])
    layer, head = divmod(int(shares.argmax()), 9)
    assert said("mixing", "Position 0 as a sink.") == (
        f"Position 0 as a sink. All tokens after it put {percent(float(shares.mean()))} of their reading on “In”, a "
        f"mean over all heads of attention of SmolLM2 135M; in head {head} of layer {layer} it is "
        f"{percent(float(shares.max()))}."
    )


def test_mixing_says_what_is_left_in_a_state() -> None:
    run = load("specimen-granite").run(PROMPT, record=["mamba2.decay:1"])
    left = run.values["mamba2.decay"][1][:, ALICE + 1 : TO + 1].prod(-1)
    assert said("mixing", "The state fades.", models="specimen-granite", layer="1") == (
        f"The state fades. At “␣to” (position 17), head {int(left.argmax())} of layer 1 still has "
        f"{percent(float(left.max()))} of what “␣Alice” (position 4) wrote into its state, head {int(left.argmin())} "
        f"{percent(float(left.min()))}."
    )


def test_mixing_says_what_has_to_be_kept() -> None:
    model = load("specimen-granite")
    mamba, attention = model.mixers.count("mamba2"), model.mixers.count("attention")
    states = 4 * mamba * (256 * _state(model) + (256 + 2 * _state(model)) * 3)
    caches = [4 * attention * 2 * 2 * 32 * tokens for tokens in (18, 1024)]
    assert said("mixing", "What has to be kept", models="specimen-granite", layer="1") == (
        f"What has to be kept to write on. Granite hybrid specimen keeps {size(states + caches[0])} after 18 tokens, "
        f"of which {size(states)} are states that never grow, and {size(states + caches[1])} after 1,024."
    )


def _state(model: Model) -> int:
    """Rows of a head's state: the channels of the convolution that are not values, by two."""
    channels: int = model.weights.layers[0]["mamba.conv1d.weight"].shape[0]
    return (channels - 256) // 2


def test_the_lens_says_which_half_brought_the_word(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["embedding", "residual.between", "residual.after"])
    alice = smollm2.tokenizer.first(" Alice")
    rows = [run.outside["embedding"][TO]]
    for layer in range(30):
        rows += [run.values[site][layer][TO] for site in ("residual.between", "residual.after")]
    p = smollm2.unembed(torch.stack(rows)[None])[0].softmax(-1)[:, alice]
    gains = p.diff()
    most = int(gains.argmax())
    part = "FFN" if most % 2 else "mixer (attention)"
    assert said("logit_lens", "Read after each half") == (
        f"Read after each half of each layer of SmolLM2 135M, “␣Alice” rises most at the {part} of layer {most // 2}: "
        f"from {percent(float(p[most]))} to {percent(float(p[most + 1]))}."
    )


def test_switch_off_says_which_single_head_the_name_needs_most() -> None:
    model = load("specimen-qwen3")
    alice = model.tokenizer.first(" Alice")
    p = torch.stack(
        [
            torch.stack([model.run(PROMPT, off=[f"head:{layer}.{head}"]).probabilities() for head in range(4)])
            for layer in range(6)
        ]
    ).view(24, -1)
    layer, head = divmod(int(p[:, alice].argmin()), 4)
    kept = int((p.argmax(-1) == alice).sum())
    assert said("switch_off", "One head of attention off", models="specimen-qwen3") == (
        f"One head of attention off at a time in Qwen3 specimen: “␣Alice” is on top for {kept} of 24; it is lowest "
        f"without head {head} of layer {layer}, at {percent(float(p[:, alice].min()))}."
    )


def test_switch_off_offers_what_the_article_switched_off() -> None:
    at = walk("switch_off", models="specimen-granite")
    labels = [each.label for each in at.button]
    wanted = ["the first mixer", "all attention", "attention from layer 4 on", "all Mamba2", "Mamba2 from layer 4 on"]
    assert [label for label in labels if label in wanted] == wanted
    next(each for each in at.button if each.label == "Mamba2 from layer 4 on").click().run()
    assert at.session_state["off"] == ["mamba2:4-"]
    model = load("specimen-granite")
    off = model.run(PROMPT, off=["mixer:4", "mixer:5", "mixer:7"]).probabilities()
    assert f"to {percent(float(off[model.tokenizer.first(' Alice')]))}" in plain(at)[0]


def test_ffn_says_how_open_the_attentions_gates_are(
    hub: Hub, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(hub, "qwen3.5-0.8b", smollm2_path, monkeypatch)
    model = load("qwen3.5-0.8b")
    run = model.run("A cat sat.", record=["attention.gate"])
    means = {layer: float(gate[-1].mean()) for layer, gate in run.values["attention.gate"].items()}
    widest = max(means, key=lambda layer: means[layer])
    line = said("ffn", "The attention has gates", models="qwen3.5-0.8b", text="A cat sat.")
    assert f"the gates of layer {widest} are open widest: {percent(means[widest])} on average" in line
    assert line.endswith(f"where all these layers have {percent(sum(means.values()) / len(means))}.")


def test_a_model_without_gates_is_not_said_to_have_them() -> None:
    assert not any("gates" in line for line in plain(walk("ffn", models="specimen-qwen3")))


def test_distance_says_what_a_dashed_line_is_where_there_is_one() -> None:
    for model, dashed in (("specimen-granite", True), ("specimen-qwen3", False)):
        captions = [each.value for each in walk("distance", models=model).caption]
        assert ("Dashed: the same model with its attention off." in captions) == dashed


def test_compare_says_which_two_models_in_view_can_be_compared() -> None:
    models = "smollm2-135m,specimen-gpt2,specimen-qwen3"
    assert said("compare", "SmolLM2 135M and GPT-2 specimen cut", models=models).endswith(
        " GPT-2 specimen and Qwen3 specimen cut it alike: pick a layer of one of them to compare those."
    )
    assert plain(walk("compare", models=models, hand="specimen-qwen3"))[0].startswith(
        "From Qwen3 specimen to GPT-2 specimen, KL is "
    )


@pytest.mark.parametrize(
    ("model", "layer", "looks_for"),
    [
        ("specimen-qwen3", "0", "Move one slider"),
        ("specimen-gpt2", "0", "How far the curve stays above 0"),
        ("specimen-granite", "0", "Pick a layer of another kind"),
    ],
)
def test_position_explains_the_picture_that_is_there(model: str, layer: str, looks_for: str) -> None:
    assert any(
        line.startswith(f"What to look for. {looks_for}") for line in plain(walk("position", models=model, layer=layer))
    )


@pytest.mark.parametrize(("tokens", "closer"), [(80, False), (81, True)])
def test_a_map_in_tiles_comes_with_a_close_up_of_its_cells(tokens: int, closer: bool) -> None:
    said = [each.value for each in walk("mixing", text="a" + " a" * (tokens - 1)).caption]
    close_ups = [each for each in said if each.startswith("Cell by cell: what positions 45 to 80 read from")]
    assert len(close_ups) == closer
