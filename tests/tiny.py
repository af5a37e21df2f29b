"""Small random models, one an architecture and variant, each with its reference and its float64 run."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from core.model import Model
from tests.reference import ours, random_reference

VOCABULARY = 300
_ROPED = {"hidden_size": 48, "num_hidden_layers": 3, "intermediate_size": 80, "num_attention_heads": 4}
_COMMON = {"vocab_size": VOCABULARY, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}

GPT2 = {**_COMMON, "model_type": "gpt2", "n_embd": 48, "n_head": 4, "n_layer": 3, "n_positions": 512}
LLAMA = {
    **_COMMON,
    **_ROPED,
    "model_type": "llama",
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rope_theta": 100_000.0,
    "tie_word_embeddings": True,
}
QWEN3 = {**LLAMA, "model_type": "qwen3", "head_dim": 16, "rope_theta": 1_000_000.0}
GRANITE = {
    **_COMMON,
    "model_type": "granitemoehybrid",
    "hidden_size": 48,
    "num_hidden_layers": 4,
    "shared_intermediate_size": 80,
    "layer_types": ["mamba", "attention", "mamba", "mamba"],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "mamba_n_heads": 6,
    "mamba_d_head": 16,
    "mamba_d_state": 16,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 32,
    "embedding_multiplier": 12,
    "residual_multiplier": 0.246,
    "attention_multiplier": 0.1,
    "logits_scaling": 3,
    "max_position_embeddings": 512,
    "position_embedding_type": "nope",
    "tie_word_embeddings": True,
}
GEMMA3 = {
    **_COMMON,
    **_ROPED,
    "model_type": "gemma3_text",
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
    "num_key_value_heads": 1,
    "head_dim": 16,
    "query_pre_attn_scalar": 24,
    "sliding_window": 16,
    "max_position_embeddings": 512,
}
QWEN35 = {
    **_COMMON,
    "model_type": "qwen3_5_text",
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "intermediate_size": 160,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}
BASE: dict[str, dict[str, Any]] = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "qwen3": QWEN3,
    "granite": GRANITE,
    "gemma3": GEMMA3,
    "qwen3.5": QWEN35,
}
VARIANTS: dict[str, dict[str, Any]] = {
    **BASE,
    "gpt2, own head": {**GPT2, "tie_word_embeddings": False},
    "gpt2, n_inner": {**GPT2, "n_inner": 72},
    "llama, own head": {**LLAMA, "tie_word_embeddings": False},
    "llama, each head its keys": {**LLAMA, "num_key_value_heads": 4},
    "llama, one kv head": {**LLAMA, "num_key_value_heads": 1},
    "llama, wide heads": {**LLAMA, "head_dim": 20},
    "llama, linear rope": {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "qwen3, own head": {**QWEN3, "tie_word_embeddings": False},
    "qwen3, each head its keys": {**QWEN3, "num_key_value_heads": 4},
    "qwen3, one kv head": {**QWEN3, "num_key_value_heads": 1},
    "qwen3, narrow heads": {**QWEN3, "head_dim": 8},
    "granite, two groups": {**GRANITE, "mamba_n_groups": 2},
    "granite, attention only": {**GRANITE, "layer_types": ["attention"] * 4},
    "granite, mamba only": {**GRANITE, "layer_types": ["mamba"] * 4},
    "granite, attention first": {**GRANITE, "layer_types": ["attention", "mamba", "mamba", "attention"]},
    "granite, dt unlimited": {**GRANITE, "time_step_limit": [0.0, float("inf")]},
    "granite, dt limited": {**GRANITE, "time_step_limit": [0.01, 0.1]},
    "granite, one kv head": {**GRANITE, "num_key_value_heads": 1},
    "granite, own head": {**GRANITE, "tie_word_embeddings": False},
    "granite, no conv bias": {**GRANITE, "mamba_conv_bias": False},
    "gemma3, two kv heads": {**GEMMA3, "num_key_value_heads": 2},
    "gemma3, each head its keys": {**GEMMA3, "num_key_value_heads": 4},
    "gemma3, linear rope": {**GEMMA3, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "gemma3, no qk norm": {
        **GEMMA3,
        "use_qk_norm": False,
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
    },
    "qwen3.5, two value heads a key": {**QWEN35, "linear_num_value_heads": 4},
    "qwen3.5, half rope": {**QWEN35, "rope_parameters": {"rope_theta": 10_000.0, "partial_rotary_factor": 0.5}},
    "qwen3.5, deltanet only": {**QWEN35, "layer_types": ["linear_attention"] * 4},
    "qwen3.5, own head": {**QWEN35, "tie_word_embeddings": False},
    "qwen3.5, one kv head": {**QWEN35, "num_key_value_heads": 1},
}


@dataclass(frozen=True)
class Tiny:
    """A random model three times: transformers, ours, and ours in float64."""

    settings: dict[str, Any]
    reference: Any
    model: Model
    exact: Model


def made(settings: dict[str, Any], reference: Any) -> Tiny:
    """Our two models on the weights of a reference."""
    return Tiny(settings, reference, ours(reference, settings), ours(reference, settings, torch.float64))


@cache
def tiny(name: str) -> Tiny:
    """One of VARIANTS. Nothing changes it, so that all tests share it; change a `fresh` one."""
    return fresh(name)


def fresh(name: str, **changes: Any) -> Tiny:
    """One of VARIANTS, with settings changed, for a test of its own."""
    settings = {**VARIANTS[name], **changes}
    reference = random_reference(settings)
    if not settings.get("use_qk_norm", True):
        without_qk_norm(reference)
    return made(settings, reference)


def without_qk_norm(reference: Any) -> None:
    """Takes the norms of queries and keys out of a reference that has no setting for it."""
    for block in reference.base_model.layers:
        block.self_attn.q_norm = block.self_attn.k_norm = torch.nn.Identity()
