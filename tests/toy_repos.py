"""Toys with the layout of the named repos: their config keys, tensor names, dtypes, shards and passengers.

The names and shapes are written out here, as the files have them, and are taken neither from our code nor from the
reference's.
"""

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save
from torch import Tensor

from core.catalogue import KNOWN
from core.model import Model
from tests.hub_server import Repo
from tests.reference import tiny_tokenizer

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
BFLOAT, FLOAT = torch.bfloat16, torch.float32
TEXT = "The cat sat on it, twice"  # a token a byte: longer than the toy Gemma's window
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Toy:
    """A model's config and tensors as a repo has them. `passengers` are those that no forward pass reads."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    shards: tuple[str, ...] = (SINGLE,)
    passengers: tuple[str, ...] = ()

    def with_config(self, **settings: Any) -> "Toy":
        """The same weights under other settings; None takes a setting away."""
        changed = copy.deepcopy(self.config) | settings
        return replace(self, config={name: value for name, value in changed.items() if value is not None})

    def with_tensors(self, tensors: Mapping[str, Tensor | None]) -> "Toy":
        """The same config with other tensors; None takes one away."""
        changed = {**self.tensors, **tensors}
        return replace(self, tensors={name: tensor for name, tensor in changed.items() if tensor is not None})

    def files(self) -> dict[str, bytes]:
        """The repo's files by name."""
        placed: dict[str, dict[str, Tensor]] = {shard: {} for shard in self.shards}
        for i, (name, tensor) in enumerate(self.tensors.items()):
            placed[self.shards[i % len(self.shards)]][name] = tensor
        files = {shard: save(tensors, metadata={"format": "pt"}) for shard, tensors in placed.items()}
        if self.shards != (SINGLE,):
            where = {name: shard for shard, tensors in placed.items() for name in tensors}
            size = sum(tensor.nbytes for tensor in self.tensors.values())
            files[INDEX] = json.dumps({"metadata": {"total_size": size}, "weight_map": where}).encode()
        files["config.json"] = json.dumps(self.config, indent=2).encode()
        files["tokenizer.json"] = tiny_tokenizer(256).fast.to_str().encode()
        return files

    def write(self, folder: Path) -> Path:
        """The files in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in self.files().items():
            (folder / name).write_bytes(body)
        return folder

    def repo(self, commit: str = "c" * 40, *, gated: bool = False) -> Repo:
        """The files as the stand-in hub serves them."""
        return Repo(self.files(), commit, gated)


def values(shapes: Shapes, dtype_of: Callable[[str], torch.dtype], seed: int) -> dict[str, Tensor]:
    """Random tensors, each in a range where it changes the logits."""
    generator = torch.Generator().manual_seed(seed)
    return {name: _value(name, shape, generator).to(dtype_of(name)) for name, shape in shapes.items()}


def _value(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    noise = torch.randn(shape, generator=generator)
    if name.endswith(("A_log", "dt_bias")):
        return 0.7 * noise - 0.7
    if len(shape) == 1:  # norms, biases, D
        return (0 if name.endswith("bias") else 0.7) + 0.3 * noise
    if "embed" in name or name.startswith(("wte", "wpe")):
        return 0.5 * noise
    return noise * shape[1] ** -0.5


def _in_layers(layers: int, prefix: str, of_layer: Callable[[int], Shapes]) -> Shapes:
    return {f"{prefix}{i}.{name}": shape for i in range(layers) for name, shape in of_layer(i).items()}


def _swiglu(width: int, neurons: int) -> Shapes:
    return {
        "mlp.gate_proj.weight": (neurons, width),
        "mlp.up_proj.weight": (neurons, width),
        "mlp.down_proj.weight": (width, neurons),
    }


def _attention(width: int, q: int, kv: int, head_dim: int | None = None) -> Shapes:
    """`head_dim` is given where every head's q and k are normed."""
    shapes: Shapes = {
        "self_attn.q_proj.weight": (q, width),
        "self_attn.k_proj.weight": (kv, width),
        "self_attn.v_proj.weight": (kv, width),
        "self_attn.o_proj.weight": (width, q),
    }
    return shapes | (_norms(head_dim, "self_attn.q_norm", "self_attn.k_norm") if head_dim else {})


def _norms(width: int, *names: str) -> Shapes:
    return {f"{name}.weight": (width,) for name in names}


# The two norms of a layer that has one before each half.
PRE = ("input_layernorm", "post_attention_layernorm")


def gpt2() -> Toy:
    """openai-community/gpt2: float32, no prefix, a causal mask in every layer, matrices as (in, out)."""
    width, context, vocabulary = 32, 24, 256
    shapes: Shapes = {"wte.weight": (vocabulary, width), "wpe.weight": (context, width)}
    shapes |= _in_layers(
        2,
        "h.",
        lambda i: {
            **{f"{norm}.{part}": (width,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")},
            "attn.c_attn.weight": (width, 3 * width),
            "attn.c_attn.bias": (3 * width,),
            "attn.c_proj.weight": (width, width),
            "attn.c_proj.bias": (width,),
            "mlp.c_fc.weight": (width, 4 * width),
            "mlp.c_fc.bias": (4 * width,),
            "mlp.c_proj.weight": (4 * width, width),
            "mlp.c_proj.bias": (width,),
        },
    )
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    masks = {f"h.{i}.attn.bias": torch.ones(context, context).tril()[None, None].clone() for i in range(2)}
    config = {
        **{"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1},
        **{"bos_token_id": 2, "embd_pdrop": 0.1, "eos_token_id": 2, "initializer_range": 0.02},
        **{"layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": context, "n_embd": width, "n_head": 4},
        **{"n_layer": 2, "n_positions": context, "resid_pdrop": 0.1, "summary_activation": None},
        **{"summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index"},
        **{"summary_use_proj": True, "vocab_size": vocabulary},
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    }
    return Toy(config, values(shapes, lambda name: FLOAT, 1) | masks, passengers=tuple(masks))


def smollm2() -> Toy:
    """HuggingFaceTB/SmolLM2-135M: a plain Llama in bf16, tied, without an lm_head."""
    width, layers, vocabulary = 48, 3, 256
    shapes: Shapes = {"model.embed_tokens.weight": (vocabulary, width)}
    shapes |= _in_layers(
        layers,
        "model.layers.",
        lambda i: _attention(width, 48, 16) | _swiglu(width, 96) | _norms(width, *PRE),
    )
    shapes |= _norms(width, "model.norm")
    config = {
        **{"architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0},
        **{"bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": width},
        **{"initializer_range": 0.041666666666666664, "intermediate_size": 96, "is_llama_config": True},
        **{"max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 3},
        **{"num_hidden_layers": layers, "num_key_value_heads": 1, "pretraining_tp": 1, "rms_norm_eps": 1e-05},
        **{"rope_interleaved": False, "rope_scaling": None, "rope_theta": 100000, "tie_word_embeddings": True},
        **{"torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": True},
        "vocab_size": vocabulary,
    }
    return Toy(config, values(shapes, lambda name: BFLOAT, 2))


def qwen3() -> Toy:
    """Qwen/Qwen3-0.6B-Base: bf16, QK-norm, head_dim of its own, tied and so without an lm_head."""
    width, layers, vocabulary, head_dim = 32, 2, 256, 16
    shapes: Shapes = {"model.embed_tokens.weight": (vocabulary, width)}
    shapes |= _in_layers(
        layers,
        "model.layers.",
        lambda i: _attention(width, 64, 32, head_dim) | _swiglu(width, 96) | _norms(width, *PRE),
    )
    shapes |= _norms(width, "model.norm")
    config = {
        **{"architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0},
        **{"bos_token_id": 2, "eos_token_id": 2, "head_dim": head_dim, "hidden_act": "silu"},
        **{"hidden_size": width, "initializer_range": 0.02, "intermediate_size": 96},
        **{"max_position_embeddings": 32768, "max_window_layers": layers, "model_type": "qwen3"},
        **{"num_attention_heads": 4, "num_hidden_layers": layers, "num_key_value_heads": 2},
        **{"rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000, "sliding_window": None},
        **{"tie_word_embeddings": True, "torch_dtype": "bfloat16", "transformers_version": "4.51.0"},
        **{"use_cache": True, "use_sliding_window": False, "vocab_size": vocabulary},
    }
    return Toy(config, values(shapes, lambda name: BFLOAT, 3))


def with_head(toy: Toy, head: Tensor | None = None) -> Toy:
    """The same with an lm_head: a copy of the embedding table, as some Qwen3 files have it, or another matrix."""
    return replace(toy, tensors=toy.tensors | {"lm_head.weight": embedding_of(toy).clone() if head is None else head})


def granite() -> Toy:
    """ibm-granite/granite-4.0-h-350m-base: bf16, Mamba2 with attention in one layer, four multipliers."""
    width, heads, state, inner, neurons, vocabulary = 32, 8, 16, 64, 48, 256
    kinds = ["mamba", "mamba", "attention", "mamba"]
    channels = inner + 2 * state
    mamba: Shapes = {
        "mamba.in_proj.weight": (inner + channels + heads, width),
        "mamba.conv1d.weight": (channels, 1, 4),
        "mamba.conv1d.bias": (channels,),
        "mamba.A_log": (heads,),
        "mamba.D": (heads,),
        "mamba.dt_bias": (heads,),
        "mamba.norm.weight": (inner,),
        "mamba.out_proj.weight": (width, inner),
    }
    ffn: Shapes = {
        "shared_mlp.input_linear.weight": (2 * neurons, width),
        "shared_mlp.output_linear.weight": (width, neurons),
    }
    shapes: Shapes = {"model.embed_tokens.weight": (vocabulary, width)}
    shapes |= _in_layers(
        len(kinds),
        "model.layers.",
        lambda i: (mamba if kinds[i] == "mamba" else _attention(width, 32, 16)) | ffn | _norms(width, *PRE),
    )
    shapes |= _norms(width, "model.norm")
    config = {
        **{"architectures": ["GraniteMoeHybridForCausalLM"], "attention_bias": False, "attention_dropout": 0.0},
        **{"attention_multiplier": 0.015625, "bos_token_id": 2, "embedding_multiplier": 12},
        **{"eos_token_id": 2, "hidden_act": "silu", "hidden_size": width, "init_method": "mup"},
        **{"initializer_range": 0.1, "intermediate_size": neurons, "layer_types": kinds, "logits_scaling": 3},
        **{"mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_d_conv": 4, "mamba_d_head": inner // heads},
        **{"mamba_d_state": state, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": heads},
        **{"mamba_proj_bias": False, "max_position_embeddings": 32768, "model_type": "granitemoehybrid"},
        **{"normalization_function": "rmsnorm", "num_attention_heads": 4, "num_experts_per_tok": 0},
        **{"num_hidden_layers": len(kinds), "num_key_value_heads": 2, "num_local_experts": 0},
        **{"output_router_logits": False, "pad_token_id": 1, "position_embedding_type": "nope"},
        **{"residual_multiplier": 0.246, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000},
        **{"router_aux_loss_coef": 0.0, "shared_intermediate_size": neurons, "tie_word_embeddings": True},
        **{"torch_dtype": "bfloat16", "transformers_version": "4.56.0", "use_cache": True},
        "vocab_size": vocabulary,
    }
    return Toy(config, values(shapes, lambda name: BFLOAT, 4))


def gemma3() -> Toy:
    """google/gemma-3-270m: bf16, four norms a layer, local windows; the config says nothing of tying."""
    width, vocabulary, head_dim = 32, 256, 16
    kinds = ["sliding_attention", "sliding_attention", "full_attention"]
    norms = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    shapes: Shapes = {"model.embed_tokens.weight": (vocabulary, width)}
    shapes |= _in_layers(
        len(kinds),
        "model.layers.",
        lambda i: _attention(width, 64, 16, head_dim) | _swiglu(width, 64) | _norms(width, *norms),
    )
    shapes |= _norms(width, "model.norm")
    config = {
        **{"_sliding_window_pattern": 6, "architectures": ["Gemma3ForCausalLM"], "attention_bias": False},
        **{"attention_dropout": 0.0, "attn_logit_softcapping": None, "bos_token_id": 2, "eos_token_id": 1},
        **{"final_logit_softcapping": None, "head_dim": head_dim, "hidden_activation": "gelu_pytorch_tanh"},
        **{"hidden_size": width, "initializer_range": 0.02, "intermediate_size": 64, "layer_types": kinds},
        **{"max_position_embeddings": 32768, "model_type": "gemma3_text", "num_attention_heads": 4},
        **{"num_hidden_layers": len(kinds), "num_key_value_heads": 1, "pad_token_id": 0},
        **{"query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000.0},
        **{"rope_scaling": None, "rope_theta": 1000000.0, "sliding_window": 8, "torch_dtype": "bfloat16"},
        **{"transformers_version": "4.55.0.dev0", "use_bidirectional_attention": False, "use_cache": True},
        "vocab_size": vocabulary,
    }
    return Toy(config, values(shapes, lambda name: BFLOAT, 5))


def qwen35() -> Toy:
    """Qwen/Qwen3.5-0.8B: one shard with an index, a nested language model, vision and mtp towers, two dtypes."""
    width, neurons, vocabulary, head_dim, heads, kv = 32, 48, 256, 16, 4, 2
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
    keys = values_ = 32  # two heads of 16 each
    deltanet: Shapes = {
        "linear_attn.A_log": (2,),
        "linear_attn.dt_bias": (2,),
        "linear_attn.conv1d.weight": (2 * keys + values_, 1, 4),
        "linear_attn.in_proj_a.weight": (2, width),
        "linear_attn.in_proj_b.weight": (2, width),
        "linear_attn.in_proj_qkv.weight": (2 * keys + values_, width),
        "linear_attn.in_proj_z.weight": (values_, width),
        "linear_attn.norm.weight": (16,),
        "linear_attn.out_proj.weight": (width, values_),
    }
    attention = _attention(width, 2 * heads * head_dim, kv * head_dim, head_dim)  # q and its gate, side by side
    attention["self_attn.o_proj.weight"] = (width, heads * head_dim)
    ffn = _swiglu(width, neurons) | _norms(width, *PRE)
    shapes: Shapes = {"model.language_model.embed_tokens.weight": (vocabulary, width)}
    shapes |= _norms(width, "model.language_model.norm")
    shapes |= _in_layers(
        len(kinds),
        "model.language_model.layers.",
        lambda i: ffn | (deltanet if kinds[i] == "linear_attention" else attention),
    )
    passengers: Shapes = {"model.visual.patch_embed.proj.weight": (16, 3, 2, 4, 4), "mtp.fc.weight": (width, 2 * width)}
    passengers |= {"model.visual.patch_embed.proj.bias": (16,), "model.visual.pos_embed.weight": (9, 16)}
    passengers |= {f"model.visual.blocks.0.attn.{name}": (16,) for name in ("qkv.bias", "proj.bias")}
    passengers |= {f"model.visual.merger.{name}.weight": (16, 16) for name in ("norm", "linear_fc1", "linear_fc2")}
    passengers |= _norms(width, "mtp.norm", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden")
    passengers |= {f"mtp.layers.0.{name}": shape for name, shape in (ffn | attention).items()}

    def dtype_of(name: str) -> torch.dtype:
        return FLOAT if name.endswith(("linear_attn.A_log", "linear_attn.norm.weight")) else BFLOAT

    text = {
        **{"attention_bias": False, "attention_dropout": 0.0, "attn_output_gate": True, "dtype": "bfloat16"},
        **{"eos_token_id": 2, "full_attention_interval": 4, "head_dim": head_dim, "hidden_act": "silu"},
        **{"hidden_size": width, "initializer_range": 0.02, "intermediate_size": neurons, "layer_types": kinds},
        **{"linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_num_key_heads": 2},
        **{"linear_num_value_heads": 2, "linear_value_head_dim": 16, "max_position_embeddings": 262144},
        **{"mlp_only_layers": [], "model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1},
        **{"mtp_use_dedicated_embeddings": False, "num_attention_heads": heads, "num_hidden_layers": len(kinds)},
        **{"num_key_value_heads": kv, "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "use_cache": True},
        **{"vocab_size": vocabulary, "mamba_ssm_dtype": "float32"},
        "rope_parameters": {
            **{"mrope_interleaved": True, "mrope_section": [1, 1, 0], "rope_type": "default"},
            **{"rope_theta": 10000000, "partial_rotary_factor": 0.25},
        },
    }
    vision = {"depth": 1, "hidden_size": 16, "model_type": "qwen3_5", "num_heads": 2, "out_hidden_size": width}
    config = {
        **{"architectures": ["Qwen3_5ForConditionalGeneration"], "image_token_id": 250, "model_type": "qwen3_5"},
        **{"text_config": text, "tie_word_embeddings": True, "transformers_version": "4.57.0.dev0"},
        **{"video_token_id": 251, "vision_config": vision, "vision_end_token_id": 252, "vision_start_token_id": 253},
    }
    return Toy(
        config,
        values(shapes | passengers, dtype_of, 6),
        shards=("model.safetensors-00001-of-00001.safetensors",),
        passengers=tuple(passengers),
    )


def in_two_shards(toy: Toy) -> Toy:
    """The same in two files, as a repo has it whose weights are larger."""
    return replace(toy, shards=tuple(f"model-0000{i}-of-00002.safetensors" for i in (1, 2)))


def all_toys() -> dict[str, Toy]:
    """The toy of each named model, by its known name."""
    toys = {
        "smollm2-135m": smollm2(),
        "gpt2": gpt2(),
        "qwen3-0.6b-base": qwen3(),
        "granite-4.0-h-350m-base": granite(),
        "gemma-3-270m": gemma3(),
        "qwen3.5-0.8b": qwen35(),
    }
    assert toys.keys() == KNOWN.keys(), "a named model without a toy"
    return toys


def reference(folder: Path) -> Any:
    """The reference's model of a folder, float32, eager, with every tensor that it needs found in the files."""
    model, found = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=FLOAT, attn_implementation="eager", output_loading_info=True, local_files_only=True
    )
    assert found["missing_keys"] == found["mismatched_keys"] == set(), found
    return model.eval()


@torch.no_grad()
def assert_equal_to_reference(model: Model, folder: Path, text: str = TEXT) -> None:
    """The logits are those of the reference on the same files, to 1e-5 of the largest."""
    run = model.run(text)
    theirs = reference(folder)(torch.tensor([run.ids]), use_cache=False).logits[0]
    assert theirs.std() > 0.5  # a model that says something
    difference = (run.logits - theirs).abs().max()
    assert difference <= 1e-5 * theirs.abs().max(), f"{difference:.1e} of {theirs.abs().max():.1f}"


def embedding_of(toy: Toy) -> Tensor:
    """The toy's embedding table."""
    return next(tensor for name, tensor in toy.tensors.items() if name.endswith(("embed_tokens.weight", "wte.weight")))
