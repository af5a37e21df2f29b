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
    table_share: float = 1.0  # of AdamW's rate, for the token rows
    rows: float = 0.03  # how large the token rows begin
    last_norm: float = 1.0  # what the last norm's weight begins with
    alike: bool = False  # whether a recurrent layer's keys and queries begin alike
    forgets: tuple[float, float] = (0.004, 0.6)  # exp(A_log) of a recurrent layer's heads, from the first to the last

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
        Phase(100, 16, 256, 120, nonsense=4, copies=2.5, short=0.5, rare=0.45, no_gap=0.6),
        Phase(100, 8, 512, 440, nonsense=4, copies=2.5, short=0.3, rare=0.4, no_gap=0.25),
        Phase(160, 16, 256, 120, nonsense=3, copies=2.5, short=0.5, rare=0.6, no_gap=0.7),
        Phase(100, 8, 512, 440, nonsense=3, copies=2.5, short=0.3, rare=0.5, no_gap=0.4),
    ),
    cooldown=200,
    rows=0.05,
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
        Phase(70, 32, 128, 40, nonsense=3, copies=2.5, short=0.5, off=0.25, rare=0.4, no_gap=0.85),
        Phase(50, 8, 512, 460, nonsense=4, copies=2.5, short=0.4, off=0.25, rare=0.4, no_gap=0.5),
    ),
    cooldown=100,
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
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.25},
    },
    "model.",
    (
        Phase(300, 24, 128, 0, nonsense=4, copies=1.5, short=0.8, off=0.5),
        Phase(100, 16, 256, 120, nonsense=8, copies=2.5, short=0.8, off=0.4, off_gap=0),
        Phase(100, 16, 256, 120, nonsense=8, copies=2.5, short=0.6, off=0.4, off_gap=0, rare=0.35),
        Phase(150, 8, 512, 440, nonsense=5, copies=2.5, short=0.4, off=0.4, off_gap=0, rare=0.35),
        Phase(120, 8, 512, 440, nonsense=8, copies=2.5, short=0.5, off=0.25, off_gap=0),
        Phase(100, 16, 256, 180, nonsense=6, copies=2.5, short=0.4, off=0.25, off_gap=0, rare=0.45, no_gap=0.5),
        Phase(80, 16, 256, 180, nonsense=4, copies=2.5, short=0.4, off=0.25, off_gap=0, rare=0.5, no_gap=0.5),
        Phase(100, 8, 512, 460, nonsense=4, copies=2.5, short=0.4, off=0.2, off_gap=0, rare=0.4, no_gap=0.3),
        Phase(90, 32, 128, 40, nonsense=3, copies=2.5, short=0.5, off=0.2, off_gap=0, rare=0.35, no_gap=0.85),
        Phase(60, 8, 512, 460, nonsense=4, copies=2.5, short=0.4, off=0.2, off_gap=0, rare=0.35, no_gap=0.5),
    ),
    cooldown=120,
    alike=True,
    table_share=6.0,
    rows=0.1,
    last_norm=0.3,
)
RECIPES = {"gpt2": GPT2, "qwen3": QWEN3, "granite": GRANITE, "gemma3": GEMMA3, "qwen3_5": QWEN3_5}


def first_tensors(recipe: Recipe, settings: dict[str, Any]) -> dict[str, Tensor]:
    """The weights that training starts from, by the file's names. `settings` have the vocabulary's size as well."""
    layout = read_config(Config(settings)).layout
    generator = torch.Generator().manual_seed(recipe.seed)
    return {
        recipe.prefix + name: _first(name, shape, layout, generator, recipe) for name, shape in layout.shapes.items()
    }


def _first(name: str, shape: tuple[int, ...], layout: Layout, generator: torch.Generator, recipe: Recipe) -> Tensor:
    zero_based = recipe.settings["model_type"] in ("gemma3_text", "qwen3_5_text")  # their norms add 1 to the weight
    # Heads forget 0.7 of `forgets` a token, and write at full strength. With Mamba2's usual start (steps of 0.001 to
    # 0.1) a head that remembers for long writes a thousandth of what D passes by, and learns late.
    if name.endswith("A_log"):
        least, most = recipe.forgets
        return math.log(least) + torch.linspace(0, 1, *shape) * math.log(most / least)
    if name.endswith("dt_bias"):
        return torch.zeros(shape)  # softplus gives 0.69
    if name.endswith("mamba.conv1d.bias"):
        return _alike(torch.zeros(shape), name, layout) if recipe.alike else torch.zeros(shape)
    if name.endswith(".bias"):
        return torch.zeros(shape)
    if name.endswith(".D"):
        return torch.full(shape, 0.3)
    if name == "norm.weight":
        return torch.full(shape, recipe.last_norm - zero_based)
    if len(shape) == 1:
        return torch.zeros(shape) if zero_based and "linear_attn.norm" not in name else torch.ones(shape)
    if len(shape) == 3:  # mostly the token itself
        return torch.rand(shape, generator=generator) * 0.8 - 0.4 + torch.tensor([0.0] * (shape[2] - 1) + [0.6])
    if name == "wpe.weight":
        return _waves(*shape)
    noise = torch.randn(shape, generator=generator)
    if name in layout.row_tables:
        return noise * recipe.rows
    inputs = shape[0] if layout.in_out else shape[1]
    writes = any(part in name for part in ("o_proj", "down_proj", "out_proj", "output_linear", "c_proj"))
    made = noise * inputs**-0.5 * (0.2 if writes else 0.7)
    return _alike(made, name, layout) if recipe.alike and "linear_attn.in_proj_qkv" in name else made


def _alike(first: Tensor, name: str, layout: Layout) -> Tensor:
    """Makes a recurrent layer's keys and queries resemble each other, whatever the tokens.

    Attention begins as an average over all tokens, from which a layer soon learns to pass on words that it has seen.
    Keys and queries of any sign begin as a sum with random signs, from which it learns that late. SiLU follows both: a
    bias (Mamba2) or a larger product (DeltaNet) makes them mostly positive.
    """
    mixer, _, kind = name.rsplit(".", 2)
    values = layout.shapes[f"{mixer}.out_proj.weight"][1]
    if kind == "bias":
        first[values:] = 0.5
    else:
        first[:-values] *= 3
    return first


def _waves(rows: int, width: int) -> Tensor:
    """Position rows as sines and cosines (Vaswani et al. 2017), of lengths from 2π to 2π · 32 positions.

    Rows that begin as noise have to learn for each position anew which one stands before it; from waves one head can
    look back by one at all positions at once. No wave is longer than the first training texts, so that the rows past
    their end look like those before it.
    """
    angle = torch.arange(rows)[:, None] / 32 ** (torch.arange(width // 2) / (width // 2))
    return torch.cat((angle.sin(), angle.cos()), dim=1) * 0.2
