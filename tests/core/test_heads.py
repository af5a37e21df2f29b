"""Sinks and gates, head by head, against a computation of their own."""

import pytest
import torch

from core.heads import gates, sink_shares
from core.specs import ATTENTION, LOCAL_ATTENTION
from tests.tiny import BASE, tiny

TEXT = "where does it look"


@pytest.mark.parametrize("name", BASE)
def test_a_sink_is_the_mean_weight_of_later_tokens_on_position_0(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["residual.before", "attention.pattern"])
    found = sink_shares(run)
    assert set(found) == {at for at, kind in enumerate(model.mixers) if kind in (ATTENTION, LOCAL_ATTENTION)}
    for layer, heads in found.items():
        pattern = run.values["attention.pattern"][layer]
        assert heads == pytest.approx([float(head[1:, 0].mean()) for head in pattern], rel=1e-4, abs=1e-6)


def test_a_text_of_one_token_has_no_sink() -> None:
    assert sink_shares(tiny("llama").model.run("a", record=["residual.before"])) == {}


def test_a_gate_is_read_where_attention_has_one() -> None:
    model = tiny("qwen3.5").model
    run = model.run(TEXT, record=["residual.before", "mixer.input:3"])
    found = gates(run, 5)
    assert list(found) == [at for at, kind in enumerate(model.mixers) if kind == ATTENTION]
    w = model.weights.layers[3]["self_attn.q_proj.weight"]
    both = (run.values["mixer.input"][3][5] @ w).view(4, 2, 32)  # for each head its query, then its gate
    assert found[3] == pytest.approx(torch.sigmoid(both[:, 1]).mean(-1).tolist(), abs=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "llama", "granite"])
def test_other_models_have_no_gate(name: str) -> None:
    assert gates(tiny(name).model.run(TEXT, record=["residual.before"]), 0) == {}
