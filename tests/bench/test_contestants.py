"""What the benchmarks time is the same computation on both sides."""

import pytest
import torch

from bench import limits
from bench.models import AGREE, ENTRIES, SIZES, Pair, disagreement, runners, text_of
from bench.sweep import separately, together
from bench.timing import side_by_side
from tests.full_sizes import CONFIGS
from tests.tiny import BASE, tiny


def pair(name: str) -> Pair:
    return Pair(tiny(name).reference, tiny(name).model)


@pytest.mark.parametrize("name", BASE)
def test_peers_and_project_agree(name: str) -> None:
    assert disagreement(pair(name), text_of(tiny(name).model, 18)) <= AGREE


@pytest.mark.parametrize("tokens", [1, 18, 105])
def test_a_text_is_as_long_as_asked_for(tokens: int) -> None:
    model = tiny("qwen3").model
    assert len(model.tokenizer.encode(text_of(model, tokens))) == tokens


def test_with_maps_the_project_gives_the_same_logits() -> None:
    each = pair("qwen3")
    text = text_of(each.model, 18)
    plain, mapped = (runners(each, text, maps)[1]() for maps in (False, True))
    torch.testing.assert_close(plain, mapped, rtol=0, atol=1e-4)


def test_a_sweep_is_the_separate_runs() -> None:
    each = pair("llama")
    text = text_of(each.model, 18)
    ids = torch.tensor([[token.id for token in each.model.tokenizer.encode(text)]])
    with torch.no_grad():
        apart, at_once = separately(each, ids)(), together(each, text)()
    assert apart.shape == at_once.shape == (each.model.layers, each.model.vocabulary)
    torch.testing.assert_close(apart.softmax(-1), at_once.softmax(-1), rtol=0, atol=1e-5)


def test_every_size_has_its_settings() -> None:
    assert {entry.name for entry in ENTRIES} - {"smollm2"} == set(SIZES)
    assert set(SIZES.values()) == set(CONFIGS)


def test_contestants_take_turns_and_the_median_counts() -> None:
    order: list[str] = []
    found = side_by_side({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3)
    assert order == ["a", "b"] * 4  # one warm-up, three rounds
    assert set(found) == {"a", "b"}
    assert all(seconds >= 0 for seconds in found.values())


def test_the_operations_are_those_of_the_matrices_attention_and_one_head() -> None:
    model = tiny("llama").model
    matrices = sum(channels * out for channels, out in limits.shapes(model))
    stored = sum(t.numel() for w in model.weights.layers for m in w.matrices.values() for t in m.pieces)
    assert matrices == stored
    inside = model.weights.layers[0]["self_attn.o_proj.weight"].shape[0]
    expected = 2 * 10 * matrices + model.layers * 2 * 100 * inside + 2 * model.width * model.vocabulary
    assert limits.operations(model, 10) == expected
