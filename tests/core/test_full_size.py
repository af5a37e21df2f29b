"""Parity with transformers at the real models' size, on random weights. Slow: a minute or two, and up to 10 GB."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from core.model import Model
from tests.reference import compare, ours, random_ids, random_reference

LAST = 4  # positions whose logits are compared: a float64 head over 250,000 words is dear

CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", "vocab_size": 50257},
    "qwen3-0.6b": {
        "model_type": "qwen3",
        "head_dim": 128,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "max_position_embeddings": 32768,
        "num_attention_heads": 16,
        "num_hidden_layers": 28,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1_000_000,
        "tie_word_embeddings": True,
        "vocab_size": 151936,
    },
    "granite-4.0-h-350m": {
        "model_type": "granitemoehybrid",
        "attention_multiplier": 0.015625,
        "embedding_multiplier": 12,
        "hidden_size": 768,
        "layer_types": ["attention" if layer in (10, 13, 17, 27) else "mamba" for layer in range(32)],
        "logits_scaling": 3,
        "mamba_conv_bias": True,
        "mamba_d_conv": 4,
        "mamba_d_head": 32,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "mamba_n_heads": 48,
        "max_position_embeddings": 32768,
        "num_attention_heads": 12,
        "num_experts_per_tok": 0,
        "num_hidden_layers": 32,
        "num_key_value_heads": 4,
        "num_local_experts": 0,
        "position_embedding_type": "nope",
        "residual_multiplier": 0.246,
        "rms_norm_eps": 1e-05,
        "shared_intermediate_size": 2048,
        "tie_word_embeddings": True,
        "vocab_size": 100352,
    },
    "gemma-3-270m": {
        "model_type": "gemma3_text",
        "head_dim": 256,
        "hidden_size": 640,
        "intermediate_size": 2048,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 3,
        "max_position_embeddings": 32768,
        "num_attention_heads": 4,
        "num_hidden_layers": 18,
        "num_key_value_heads": 1,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-06,
        "rope_local_base_freq": 10000.0,
        "rope_theta": 1000000.0,
        "sliding_window": 512,
        "vocab_size": 262144,
    },
    "qwen3.5-0.8b, 8 of 24 layers": {
        "model_type": "qwen3_5_text",
        "head_dim": 256,
        "hidden_size": 1024,
        "intermediate_size": 3584,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 16,
        "max_position_embeddings": 262144,
        "num_attention_heads": 8,
        "num_hidden_layers": 8,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25},
        "tie_word_embeddings": True,
        "vocab_size": 248320,
    },
}
PARAMETERS = {
    "gpt2": 124_439_808,
    "qwen3-0.6b": 596_049_920,
    "granite-4.0-h-350m": 340_332_224,
    "gemma-3-270m": 268_098_176,
}


@dataclass(frozen=True)
class Big:
    name: str
    reference: Any
    model: Model
    exact: Model
    vocabulary: int


@pytest.fixture(scope="module", params=CONFIGS)
def big(request: pytest.FixtureRequest) -> Iterator[Big]:
    """One model at a time: pytest ends one parameter's fixture before it makes the next."""
    settings = CONFIGS[request.param]
    reference = random_reference(settings)
    model, exact = ours(reference, settings), ours(reference, settings, torch.float64)
    yield Big(request.param, reference, model, exact, settings["vocab_size"])
    del reference, model, exact
    gc.collect()


@pytest.mark.parametrize("tokens", [18, 105])
def test_logits_are_the_references_and_as_near_to_float64(big: Big, tokens: int) -> None:
    ids: Tensor = random_ids(tokens, big.vocabulary, rows=1)
    compare(big.reference, big.model, big.exact, ids, last=LAST)


def test_the_model_has_as_many_parameters_as_the_real_one(big: Big) -> None:
    held = sum(tensor.numel() for tensor in big.model.weights.parameters)
    assert held == PARAMETERS.get(big.name, held)
    assert held == sum(parameter.numel() for parameter in big.reference.parameters())
