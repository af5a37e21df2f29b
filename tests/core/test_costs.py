"""What a model keeps while it writes on, against published figures and against what transformers keeps."""

from typing import Any

import pytest
import torch

from core.config import Config
from core.costs import kept_bytes
from core.specs import ATTENTION, LOCAL_ATTENTION
from core.weights import read_config
from tests.tiny import BASE, GEMMA3, GPT2, tiny

ATTENDING = (ATTENTION, LOCAL_ATTENTION)


def total(settings: dict[str, Any], tokens: int) -> float:
    """Megabytes, from a config alone."""
    return sum(kept_bytes(read_config(Config(settings)), tokens)) / 1e6


def test_the_published_gpt_2_keeps_75_5_megabytes_of_1024_tokens() -> None:
    settings = {**GPT2, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024}
    assert total(settings, 1024) == pytest.approx(75.5, abs=0.05)


def test_the_published_gemma_style_model_keeps_11_8_megabytes_of_1024_tokens() -> None:
    settings = {
        **GEMMA3,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "sliding_window": 512,
        "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 3,
        "max_position_embeddings": 1024,
    }
    assert total(settings, 1024) == pytest.approx(11.8, abs=0.05)


@pytest.mark.parametrize("name", BASE)
def test_transformers_keeps_as_much(name: str) -> None:
    both, tokens = tiny(name), 24  # longer than Gemma's window of 16
    with torch.no_grad():
        cache = both.reference(torch.arange(tokens)[None], use_cache=True).past_key_values
    for layer, kind in enumerate(both.model.mixers):
        theirs = cache.layers[layer]
        if kind in ATTENDING:
            assert both.model.kept(layer, tokens) == theirs.keys.numel() + theirs.values.numel()
        else:
            (recent,), (state,) = theirs.conv_states.values(), theirs.recurrent_states.values()
            # Theirs holds one input more than the next token's convolution needs of the past.
            needed = recent.numel() // recent.shape[-1] * (recent.shape[-1] - 1)
            assert both.model.kept(layer, tokens) == state.numel() + needed


@pytest.mark.parametrize("name", BASE)
def test_only_attention_grows(name: str) -> None:
    model = tiny(name).model
    short, long = kept_bytes(model, 100), kept_bytes(model, 200)
    assert [a < b for a, b in zip(short, long, strict=True)] == [kind == ATTENTION for kind in model.mixers]
