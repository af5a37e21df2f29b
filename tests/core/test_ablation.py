"""Many switched-off runs at once are the runs one by one."""

import itertools

import pytest
import torch

from core.ablation import switched
from core.errors import TokenwalkError
from core.model import Model
from core.run import Run
from core.specs import MAMBA2
from tests.tiny import BASE, tiny

TEXT = "Alice gave Bob a book"
NAMES = [*BASE, "granite, two groups", "granite, attention first", "gemma3, two kv heads", "qwen3.5, deltanet only"]


def plain(model: Model, text: str = TEXT) -> Run:
    return model.run(text, record=["residual.before"])


def check(model: Model, variants: list[list[str]], text: str = TEXT) -> None:
    found = switched(plain(model, text), [model.switches(off) for off in variants])
    assert found.dtype == torch.float32
    assert found.shape == (len(variants), model.vocabulary)
    for logits, off in zip(found, variants, strict=True):
        right = model.run(text, off=off).probabilities()
        torch.testing.assert_close(logits.softmax(-1), right, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_every_mixer_and_every_ffn_off_alone(name: str) -> None:
    model = tiny(name).model
    check(model, [[f"{part}:{layer}"] for part in ("mixer", "ffn") for layer in range(model.layers)])


@pytest.mark.parametrize("name", NAMES)
def test_every_head_off_alone(name: str) -> None:
    model = tiny(name).model
    check(model, [[f"head:{layer}.{head}"] for layer in range(model.layers) for head in range(model.heads(layer))])


@pytest.mark.parametrize("name", NAMES)
def test_neurons_off(name: str) -> None:
    model = tiny(name).model
    check(model, [[f"neuron:{layer}.{neuron}"] for layer in range(model.layers) for neuron in (0, 17, 79)])


@pytest.mark.parametrize("name", NAMES)
def test_pairs_and_larger_sets_off_together(name: str) -> None:
    model = tiny(name).model
    layers = range(model.layers)
    pairs = [[f"mixer:{a}", f"ffn:{b}"] for a, b in itertools.product(layers, layers)]
    check(model, [*pairs, ["mixer:*"], ["ffn:*"], ["mixer:*", "ffn:*"], ["head:1.0", "head:1.1", "neuron:2.5"]])


def test_variants_in_any_order_each_get_their_own_answer() -> None:
    model = tiny("llama").model
    variants = [["mixer:2"], [], ["ffn:0"], ["neuron:1.3"], ["mixer:0", "mixer:2"], ["head:2.1"], [], ["mixer:1"]]
    check(model, variants)
    check(model, variants[::-1])


def test_a_variant_with_nothing_off_is_the_plain_run() -> None:
    model = tiny("granite").model
    run = plain(model)
    found = switched(run, [model.switches([])])
    torch.testing.assert_close(found[0].softmax(-1), run.probabilities(), rtol=0, atol=1e-6)


def test_no_variants_is_no_answer() -> None:
    model = tiny("gpt2").model
    assert switched(plain(model), []).shape == (0, model.vocabulary)


def test_the_answers_differ_from_the_plain_one() -> None:
    model = tiny("qwen3.5").model
    run = plain(model)
    found = switched(run, [model.switches([f"mixer:{layer}"]) for layer in range(4)])
    assert ((found - run.logits_at()).abs().amax(-1) > 0.1).all()


def test_several_batches_are_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("qwen3").model
    run = plain(model)
    monkeypatch.setattr("core.ablation.ROWS", 3 * len(run.ids))
    heard: list[float] = []
    variants = [[f"head:{layer}.{head}"] for layer in (2, 0, 1) for head in range(4)]
    found = switched(run, [model.switches(off) for off in variants], heard.append)
    assert heard == pytest.approx([0.25, 0.5, 0.75, 1.0])
    for logits, off in zip(found, variants, strict=True):
        torch.testing.assert_close(logits.softmax(-1), model.run(TEXT, off=off).probabilities(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "text", ["a", "ab", "a long enough text for more than one chunk of sixty-four tokens, which it is"]
)
def test_texts_of_one_token_and_of_several_chunks(text: str) -> None:
    for name in ("granite", "qwen3.5", "gemma3"):
        check(tiny(name).model, [["mixer:0"], ["mixer:3", "ffn:1"], []], text)


def test_the_run_that_it_starts_from_is_left_as_it_was() -> None:
    model = tiny("llama").model
    run = plain(model)
    before = {layer: stream.clone() for layer, stream in run.values["residual.before"].items()}
    switched(run, [model.switches(["mixer:*", "ffn:*"])] * 3)
    for layer, stream in run.values["residual.before"].items():
        assert torch.equal(stream, before[layer])


def test_all_of_a_kind_is_each_layer_of_that_kind() -> None:
    model = tiny("granite").model
    run = plain(model)
    layers = [layer for layer, kind in enumerate(model.mixers) if kind == MAMBA2]
    kind, one_by_one = switched(run, [model.switches(["mamba2:*"]), model.switches([f"mixer:{i}" for i in layers])])
    torch.testing.assert_close(kind, one_by_one)


@pytest.mark.parametrize(
    ("record", "off"),
    [([], []), (["residual.before:1"], []), (["residual.before"], ["mixer:0"])],
    ids=["nothing recorded", "one layer recorded", "a part off already"],
)
def test_a_run_that_it_cannot_start_from_is_refused(record: list[str], off: list[str]) -> None:
    model = tiny("llama").model
    with pytest.raises(TokenwalkError, match="starts from a plain run that recorded “residual"):
        switched(model.run(TEXT, record=record, off=off), [model.switches(["mixer:1"])])
