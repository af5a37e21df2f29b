"""What each specimen is, and how it is trained."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.config import Config
from core.layout import Layout
from core.weights import read_config
from tools.batches import Phase

WIDTH = 128
CONTEXT = 1024


@dataclass(frozen=True)
class Recipe:
    """One specimen's settings (config.json, without the vocabulary's size) and its phases of training."""

    settings: dict[str, Any]
    prefix: str
    phases: tuple[Phase, ...]
    cooldown: int  # steps at the end in which the rates fall
    bos: bool = False
    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    seed: int = 0

    @property
    def steps(self) -> int:
        return sum(phase.steps for phase in self.phases)

    def phase(self, step: int) -> Phase:
        """The phase that a step, counted from 0, belongs to."""
        for phase in self.phases:
            if step < phase.steps:
                return phase
            step -= phase.steps
        raise IndexError("past the last step")

    def rate(self, step: int) -> float:
        """The share of the full rates: up in 20 steps, then flat, then down to a twentieth."""
        return min(1.0, (step + 1) / 20, max(0.05, (self.steps - step) / self.cooldown))


ATTENTION = {
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "attention_bias": False,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "max_position_embeddings": CONTEXT,
    "hidden_size": WIDTH,
    "dtype": "float16",
}

QWEN3 = Recipe(
    {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **ATTENTION,
        "num_hidden_layers": 6,
        "intermediate_size": 256,
        "hidden_act": "silu",
        "rope_theta": 10_000.0,
    },
    "model.",
    (
        Phase(330, 16, 256, 0),
        Phase(70, 16, 256, 120),
        Phase(80, 16, 256, 120, nonsense=8, copies=2.5),
        Phase(20, 8, 512, 440, nonsense=4, copies=2.5),
        Phase(150, 16, 256, 120, nonsense=6, copies=2.5, short=0.7),
        Phase(220, 8, 512, 440, nonsense=4, copies=2.5, short=0.3),
    ),
    cooldown=200,
)
GPT2 = Recipe(
    {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": WIDTH,
        "n_layer": 6,
        "n_head": 4,
        "n_inner": 384,
        "n_positions": CONTEXT,
        "n_ctx": CONTEXT,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
        "dtype": "float16",
    },
    "transformer.",
    (
        Phase(260, 16, 256, 0, nonsense=4, copies=1.5, short=0.7),
        Phase(60, 16, 256, 120, nonsense=4, copies=1.5, short=0.7),
        Phase(80, 8, 512, 120, nonsense=4, copies=1.5, short=0.5),
        Phase(220, 16, 256, 120, nonsense=8, copies=2.5, short=0.8),
        Phase(320, 8, 512, 440, nonsense=5, copies=2.5, short=0.4),
        Phase(80, 4, 1024, 460, nonsense=4, copies=2.5, short=0.3),
    ),
    cooldown=300,
)
GEMMA3 = Recipe(
    {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        **ATTENTION,
        "query_pre_attn_scalar": 32,
        "num_hidden_layers": 6,
        "intermediate_size": 256,
        "hidden_activation": "gelu_pytorch_tanh",
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
        "sliding_window": 128,
        "rope_local_base_freq": 10_000.0,
        "rope_theta": 1_000_000.0,
    },
    "model.",
    (
        Phase(270, 16, 256, 0, nonsense=4, copies=1.5, short=0.7),
        Phase(130, 16, 256, 120, nonsense=8, copies=2.5, short=0.8),
        Phase(220, 8, 512, 440, nonsense=5, copies=2.5, short=0.4),
    ),
    cooldown=200,
    bos=True,
)
GRANITE = Recipe(
    {
        "architectures": ["GraniteMoeHybridForCausalLM"],
        "model_type": "granitemoehybrid",
        **{name: value for name, value in ATTENTION.items() if name != "head_dim"},
        "num_hidden_layers": 8,
        "layer_types": ["attention" if layer in (3, 6) else "mamba" for layer in range(8)],
        "shared_intermediate_size": 256,
        "intermediate_size": 256,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "hidden_act": "silu",
        "normalization_function": "rmsnorm",
        "position_embedding_type": "nope",
        "embedding_multiplier": 6.0,
        "residual_multiplier": 0.5,
        "attention_multiplier": 0.17677669529663687,
        "logits_scaling": 2.0,
        "mamba_n_heads": 8,
        "mamba_d_head": 32,
        "mamba_expand": 2,
        "mamba_n_groups": 1,
        "mamba_d_state": 64,
        "mamba_d_conv": 4,
        "mamba_conv_bias": True,
        "mamba_proj_bias": False,
        "mamba_chunk_size": 64,
    },
    "model.",
    (
        Phase(550, 24, 128, 0, nonsense=3, copies=1.5, short=0.7, off=0.75, rare=0.1),
        Phase(50, 16, 256, 120, nonsense=4, copies=1.5, short=0.5, off=0.5),
        Phase(150, 16, 256, 120, nonsense=8, copies=2.5, short=0.8, off=0.25),
        Phase(200, 8, 512, 440, nonsense=5, copies=2.5, short=0.4, off=0.3),
    ),
    cooldown=200,
)
QWEN3_5 = Recipe(
    {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        **ATTENTION,
        "num_hidden_layers": 8,
        "layer_types": ["full_attention" if layer in (3, 7) else "linear_attention" for layer in range(8)],
        "intermediate_size": 256,
        "hidden_act": "silu",
        "attn_output_gate": True,
        "linear_num_key_heads": 4,
        "linear_num_value_heads": 8,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.25},
    },
    "model.",
    (
        Phase(400, 24, 128, 0, nonsense=5, copies=2.5, short=0.8, off=0.5, rare=0.1),
        Phase(150, 16, 256, 120, nonsense=6, copies=2.5, short=0.7, off=0.4),
        Phase(180, 8, 512, 440, nonsense=5, copies=2.5, short=0.4, off=0.4),
    ),
    cooldown=200,
)
RECIPES = {"gpt2": GPT2, "qwen3": QWEN3, "granite": GRANITE, "gemma3": GEMMA3, "qwen3_5": QWEN3_5}


def first_tensors(settings: dict[str, Any], prefix: str, seed: int) -> dict[str, Tensor]:
    """The weights that training starts from, by the file's names."""
    layout = read_config(Config(settings)).layout
    generator = torch.Generator().manual_seed(seed)
    zero_based = settings["model_type"] in ("gemma3_text", "qwen3_5_text")  # their norms add 1 to the weight
    return {prefix + name: _first(name, shape, layout, generator, zero_based) for name, shape in layout.shapes.items()}


def _first(name: str, shape: tuple[int, ...], layout: Layout, generator: torch.Generator, zero_based: bool) -> Tensor:
    spread = torch.linspace(0, 1, shape[0])
    # Heads forget between 0.2 and 30 % of their state a token, and write at full strength. With Mamba2's usual start
    # (steps of 0.001 to 0.1) a head that remembers for long writes a thousandth of what D passes by, and learns late.
    if name.endswith("A_log"):
        return math.log(0.004) + spread * math.log(150)
    if name.endswith("dt_bias"):
        return torch.zeros(shape)  # softplus gives 0.69
    if name.endswith(".bias"):
        return torch.zeros(shape)
    if name.endswith(".D"):
        return torch.full(shape, 0.3)
    if len(shape) == 1:
        return torch.zeros(shape) if zero_based and "linear_attn.norm" not in name else torch.ones(shape)
    if len(shape) == 3:  # mostly the token itself
        return torch.rand(shape, generator=generator) * 0.8 - 0.4 + torch.tensor([0.0] * (shape[2] - 1) + [0.6])
    if name == "wpe.weight":
        return _waves(*shape)
    noise = torch.randn(shape, generator=generator)
    if name in layout.row_tables:
        return noise * (0.05 if "wte.weight" in layout.shapes else 0.03)
    inputs = shape[0] if layout.in_out else shape[1]
    writes = any(part in name for part in ("o_proj", "down_proj", "out_proj", "output_linear", "c_proj"))
    return noise * inputs**-0.5 * (0.2 if writes else 0.7)


def _waves(rows: int, width: int) -> Tensor:
    """Position rows as sines and cosines (Vaswani et al. 2017), of lengths from 2π to 2π · 32 positions.

    Rows that begin as noise have to learn for each position anew which one stands before it; from waves one head can
    look back by one at all positions at once. No wave is longer than the first training texts, so that the rows past
    their end look like those before it.
    """
    angle = torch.arange(rows)[:, None] / 32 ** (torch.arange(width // 2) / (width // 2))
    return torch.cat((angle.sin(), angle.cos()), dim=1) * 0.2
