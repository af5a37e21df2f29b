"""Each page's computed sentence against a direct computation, and what a page says to every kind of input."""

from pathlib import Path

import pytest
import torch

from core import load
from core.compare import divergence
from core.distance import HEAD, TAIL, by_distance
from core.embedding import nearest
from core.maps import maps
from core.model import Model
from core.published import FIGURES, recompute
from pages.frame.state import PROMPT
from pages.frame.walk import STEPS
from pages.frame.words import percent
from tests.hub_server import Hub
from tests.pages.walking import plain, serve, walk

PAGES = [step.path for step in STEPS]
TO = 17  # the last token of the sentence


@pytest.fixture(autouse=True)
def _packaged_model(smollm2_path: Path) -> None:
    """SmolLM2 lies where the app looks for it."""


def test_start_says_the_two_likeliest_words(smollm2: Model) -> None:
    first, second = smollm2.run(PROMPT).top(2)
    assert (first.text, second.text) == (" Alice", " the")
    assert plain(walk("start"))[0] == (
        f"SmolLM2 135M goes on with “␣Alice” at {100 * first.p:.0f} %; next comes “␣the” at {100 * second.p:.1f} %."
    )


def test_tokens_counts_characters_bytes_and_tokens(smollm2: Model) -> None:
    text = "안녕하세요"
    said = plain(walk("tokens", text=text))[0]
    tokens = smollm2.tokenizer.encode(text)
    parts = sum(not token.is_text for token in tokens)
    assert said.startswith(f"SmolLM2 135M cuts 5 characters (15 bytes) into {len(tokens)} tokens")
    assert f" {parts} of them are no whole character and are shown as bytes." in said


def test_tokens_says_what_became_of_a_typed_special_token() -> None:
    assert "`<|endoftext|>`: one special token each" in plain(walk("tokens", text="a<|endoftext|>b"))[0]


def test_embedding_says_the_row_and_its_nearest(smollm2: Model) -> None:
    to = smollm2.tokenizer.first(" to")
    at = walk("embedding")
    near = nearest(smollm2, to, 1)[0]
    assert plain(at)[0] == (
        f"SmolLM2 135M looks “␣to” up in row {to} of its table: 576 numbers, of length "
        f"{float(smollm2.table()[to].norm()):.2f}."
    )
    assert plain(at)[1].startswith(
        f"The rows that point most nearly the same way, with their cosine: “{near.text.replace(' ', '␣')}” "
        f"({near.cosine:.2f})"
    )


def test_position_says_how_fast_the_hands_turn() -> None:
    assert plain(walk("position", layer="3"))[0] == (
        "SmolLM2 135M turns queries and keys (RoPE, base 100,000, layer 3): 32 bands, from 6.3 to 438,460 positions a "
        "turn; within its context of 8,192: 11 fast, 9 middle, 12 slow."
    )


def test_norm_says_the_root_mean_square_before_and_after(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["residual.before:5", "mixer.input:5"])
    before, after = (float(run.values[site][5][TO].pow(2).mean().sqrt()) for site in ("residual.before", "mixer.input"))
    mean = float(run.values["residual.before"][5][TO].mean())
    assert plain(walk("norm", layer="5"))[0] == (
        f"Before layer 5 of SmolLM2 135M, “␣to” has a root mean square of {before:.3g} (mean {mean:.3g}); RMSNorm "
        f"takes it to 1, and its learned weight to {after:.3g}."
    )


def test_add_back_says_how_long_the_vector_gets_and_what_adds_most(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["embedding", "residual.after", "mixer.write", "ffn.write"])
    after = torch.stack([run.values["residual.after"][layer][TO].norm() for layer in range(30)])
    adds = {
        (float(run.values[f"{half}.write"][layer][TO].norm()), name, layer)
        for half, name in (("mixer", "mixer"), ("ffn", "FFN"))
        for layer in range(30)
    }
    most, half, layer = max(adds)
    assert plain(walk("add_back"))[0] == (
        f"In SmolLM2 135M, the vector of “␣to” starts at a length of {float(run.outside['embedding'][TO].norm()):.3g}, "
        f"is {float(after[0]):.3g} long after layer 0 and longest after layer {int(after.argmax())}: "
        f"{float(after.max()):.3g}. The largest single addition, {most:.3g} long, is by the {half} of layer {layer}."
    )


def test_tokens_says_that_another_models_special_token_is_plain_text_here() -> None:
    said = plain(walk("tokens", text="a<|begin_of_text|>b"))[0]
    assert "`<|begin_of_text|>`: no special token of this tokenizer, so cut like any other text." in said


def test_mixing_says_what_the_focus_reads_most(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["attention.pattern:22"])
    row = run.values["attention.pattern"][22][7, TO]
    most, second = row.topk(2).indices.tolist()
    said = plain(walk("mixing", layer="22", head="7"))[0]
    assert said == (
        f"In layer 22 of SmolLM2 135M (attention), in head 7, “␣to” (position 17) takes {100 * row[most]:.0f} % from "
        f"“{run.tokens[most].visible}” (position {most}) and {100 * row[second]:.0f} % from "
        f"“{run.tokens[second].visible}” (position {second})."
    )


def test_mixing_opens_where_the_focus_reads_most_from_the_target(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["residual.before"])
    alice = run.pieces.index(" Alice")
    weights = torch.stack([maps(run, layer, range(9))[:, TO, alice] for layer in range(30)])
    layer, head = divmod(int(weights.argmax()), 9)
    said = plain(walk("mixing"))[0]
    assert said.startswith(f"In layer {layer} of SmolLM2 135M (attention), in head {head}, “␣to” (position 17) takes")


def test_the_lens_says_from_which_layer_on_the_target_leads(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["residual.after"])
    tops = [smollm2.unembed(run.values["residual.after"][layer][None, -1:])[0, 0] for layer in range(30)]
    target = int(tops[-1].argmax())
    lead = next(at for at in range(30) if all(int(logits.argmax()) == target for logits in tops[at:]))
    before = tops[lead - 1].softmax(-1)
    word = smollm2.tokenizer.text(int(before.argmax())).replace(" ", "␣")
    assert plain(walk("logit_lens"))[0] == (
        f"In SmolLM2 135M, “␣Alice” is on top from layer {lead} of 30 on, and ends at 81 %. Just before, after layer "
        f"{lead - 1}, it would say “{word}” ({100 * float(before.max()):.0f} %)."
    )


def test_a_target_that_never_leads_is_said_to(smollm2: Model) -> None:
    said = plain(walk("logit_lens", target=" zebra"))[0]
    assert "“␣z” is never on top" in said or "“␣zebra” is never on top" in said


def test_ffn_says_the_neuron_that_writes_most(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["ffn.neurons"])
    alice = smollm2.tokenizer.first(" Alice")
    direction = smollm2.weights.outside["norm.weight"] * smollm2.table()[alice]
    divisor = (run.stream[TO].pow(2).mean() + smollm2.eps).sqrt()
    a = torch.stack([run.values["ffn.neurons"][layer][TO] for layer in range(30)])
    rows = torch.stack([w["mlp.down_proj.weight"] @ direction for w in smollm2.weights.layers])
    contribution = a * rows / divisor
    layer, neuron = divmod(int(contribution.argmax()), 1536)
    assert plain(walk("ffn"))[0] == (
        f"In SmolLM2 135M, of 46,080 neurons, neuron {neuron} of layer {layer} writes most straight along “␣Alice”: "
        f"{float(contribution.max()):+.2f} logits, from an activation of {float(a[layer, neuron]):.3g}."
    )


def test_attribution_says_what_adds_up_to_the_logit(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["mixer.write", "ffn.write", "embedding"])
    alice = smollm2.tokenizer.first(" Alice")
    direction = smollm2.weights.outside["norm.weight"] * smollm2.table()[alice]
    divisor = (run.stream[TO].pow(2).mean() + smollm2.eps).sqrt()

    def term(x: torch.Tensor) -> float:
        return float(x[TO] @ direction / divisor)

    mixer = [term(run.values["mixer.write"][layer]) for layer in range(30)]
    ffn = [term(run.values["ffn.write"][layer]) for layer in range(30)]
    most, half, layer = max((max(mixer), "mixer", mixer.index(max(mixer))), (max(ffn), "FFN", ffn.index(max(ffn))))
    logit = float(run.logits[TO, alice])
    embedding = term(run.outside["embedding"])
    assert sum(mixer) + sum(ffn) + embedding == pytest.approx(logit, abs=1e-3)
    assert plain(walk("attribution"))[0] == (
        f"In SmolLM2 135M, the logit of “␣Alice” is {logit:.2f}. The largest part of it, {most:+.2f}, is by the "
        f"{half} of layer {layer}. All mixers together write {sum(mixer):+.2f}, all FFNs {sum(ffn):+.2f}, the "
        f"embedding {embedding:+.2f}."
    )


def test_switch_off_says_what_each_mixer_is_worth(smollm2: Model) -> None:
    alice = smollm2.tokenizer.first(" Alice")
    runs = [smollm2.run(PROMPT, off=[f"mixer:{layer}"]) for layer in range(30)]
    p = torch.stack([run.probabilities() for run in runs])
    kept = sum(int(row.argmax()) == alice for row in p)
    lowest = int(p[:, alice].argmin())
    said = next(line for line in plain(walk("switch_off")) if line.startswith("One mixer off at a time"))
    assert said.startswith(
        f"One mixer off at a time in SmolLM2 135M, and nothing else: “␣Alice” is on top for {kept} of 30; it is "
        f"lowest without layer {lowest}, at "
    )


def test_switch_off_says_before_and_after(smollm2: Model) -> None:
    off = smollm2.run(PROMPT, off=["mixer:0"])
    alice = smollm2.tokenizer.first(" Alice")
    best = off.top(1)[0]
    said = plain(walk("switch_off", off="mixer:0"))[0]
    assert said.startswith("SmolLM2 135M: with this off, “␣Alice” goes from 81 % to ")
    after = float(off.probabilities()[alice])
    assert ("less than 0.1 %" if after < 0.001 else f"{100 * after:.1f} %") in said
    assert best.id == alice or f"on top is “{best.text.replace(' ', '␣')}”" in said


def test_switch_off_says_that_nothing_is_off() -> None:
    assert plain(walk("switch_off"))[0] == "SmolLM2 135M: nothing is switched off. “␣Alice” is at 81 %."


def test_distance_says_how_the_answer_holds(smollm2: Model) -> None:
    alice = smollm2.tokenizer.first(" Alice")
    points = by_distance(smollm2, HEAD, TAIL, alice, most=2048)
    said = plain(walk("distance"))[0]
    assert said == (
        f"SmolLM2 135M gives “␣Alice” 81 % at 18 tokens and {percent(points[-1].p)} at {points[-1].tokens:,}."
    )


def test_compare_asks_for_a_second_model() -> None:
    assert "Choose a second model" in walk("compare").info[0].value


def test_compare_says_that_other_tokens_cannot_be_compared(
    hub: Hub, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(hub, "gpt2", smollm2_path, monkeypatch)
    said = plain(walk("compare", models="smollm2-135m,gpt2", text="A cat sat."))
    assert said[0].startswith("SmolLM2 135M and GPT-2 124M cut text into different tokens")


def test_compare_says_where_two_models_part(hub: Hub, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(hub, "gpt2", smollm2_path, monkeypatch)
    serve(hub, "qwen3-0.6b-base", smollm2_path, monkeypatch)
    text = "A cat sat."
    a, b = (load(name).run(text) for name in ("gpt2", "qwen3-0.6b-base"))
    nats = divergence(a, b)
    most = int(nats.nats.argmax())
    said = plain(walk("compare", models="gpt2,qwen3-0.6b-base", text=text))[0]
    assert said == (
        f"From GPT-2 124M to Qwen3 0.6B, KL is {nats.mean:.2f} nats a token (median {nats.median:.2f}); they part most "
        f"after “{a.tokens[most].visible}” (position {most}): {float(nats.nats.max()):.2f} nats."
    )


def test_the_article_says_that_nothing_was_run_without_its_models() -> None:
    said = plain(walk("article"))[0]
    assert said.startswith(f"None of the article’s {len(FIGURES)} figures was run here: they are of GPT-2 124M, Qwen3")


def test_the_article_says_how_many_figures_agree(hub: Hub, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(hub, "qwen3-0.6b-base", smollm2_path, monkeypatch, max_position_embeddings=512)
    rows = recompute(load("qwen3-0.6b-base"))
    said = plain(walk("article", models="qwen3-0.6b-base"))[0]
    held = sum(row.holds for row in rows)
    assert said == f"Of the article’s {len(FIGURES)} figures, {len(rows)} were run here; {held} of those agree."
