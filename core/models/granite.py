"""Granite 4.0-H (IBM 2025): Mamba2 layers (Dao & Gu 2024) with a few attention layers, and no positions anywhere.

    x = token row · embedding multiplier
    each layer:   x = x + mixer(norm(x)) · residual multiplier      Mamba2, or attention without positions
                  x = x + FFN(norm(x)) · residual multiplier        SwiGLU; gate and up lie in one matrix
    logits = norm(x) · token rows / logits scaling

    Mamba2:   z, xBC, dt = h · in_proj            z the gate, x the values
              x, B, C = silu(conv(xBC))           each channel with its last 4 tokens: where order comes from
              dt = softplus(dt + dt_bias)         clamped to the config's time_step_limit, and to nothing else
              y = scan(x, dt, A, B, C) + D · x    A = −exp(A_log)
              y = norm(y · silu(z)) · out_proj    gate first, then the norm within each group

Differs from `transformers`: the scan runs in chunks of 64 whatever mamba_chunk_size says; the result is the same.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from core import sites
from core.config import Config
from core.layout import LayerWeights, Layout, project, score_rows
from core.mixers import attention, causal_conv, mamba2, mamba2_map, rms_norm, split_heads
from core.model import Model
from core.specs import ATTENTION, MAMBA2
from core.taps import PLAIN, Site, Tap

# Old and new files spell the kinds of layer differently.
KINDS = {"mamba": MAMBA2, "linear_attention": MAMBA2, "attention": ATTENTION, "full_attention": ATTENTION}


class Granite(Model):
    model_types = ("granitemoehybrid",)

    head_count: int
    mamba_heads: int
    kv_heads: int
    head_dim: int
    inner: int
    state: int
    groups: int
    conv: int

    def read(self, config: Config) -> None:
        self.width = config.get("hidden_size")
        self.vocabulary = config.get("vocab_size")
        self.context = config.get("max_position_embeddings", 2048)
        self.neurons = config.get("shared_intermediate_size", 1024)
        self.eps = config.get("rms_norm_eps", 1e-6)
        self.tied = config.get("tie_word_embeddings", False)
        self.embedding_multiplier = config.get("embedding_multiplier", 1.0)
        self.residual_multiplier = config.get("residual_multiplier", 1.0)
        self.attention_multiplier = config.get("attention_multiplier", 1.0)
        self.logits_scaling = config.get("logits_scaling", 1.0)
        self.mixers = self._kinds(config)
        self.head_count = config.get("num_attention_heads", 32)
        self.kv_heads = config.get("num_key_value_heads", self.head_count)
        self.head_dim = config.get("head_dim", self.width // self.head_count)
        self._read_mamba2(config)
        config.require("hidden_act", "silu")
        config.require("normalization_function", "rmsnorm")
        config.require("attention_bias", False)
        config.require("position_embedding_type", "nope")
        if config.get("num_local_experts", 8) != 0:  # absent means 8 in the reference
            config.require("num_local_experts", 0)
            config.get("num_local_experts")
        # What experts and positions would have used; and the chunk, which changes no result.
        config.ignore("intermediate_size", "num_experts_per_tok", "rope_theta", "rope_scaling", "rope_parameters")
        config.ignore("mamba_chunk_size")

    def _kinds(self, config: Config) -> tuple[str, ...]:
        kinds = config.get("layer_types", config.get("layers_block_type", ["mamba"] * config.get("num_hidden_layers")))
        if len(kinds) != config.get("num_hidden_layers") or any(kind not in KINDS for kind in kinds):
            config.require("layer_types")
            config.require("layers_block_type")
        return tuple(KINDS[kind] for kind in kinds)

    def _read_mamba2(self, config: Config) -> None:
        self.inner = int(config.get("mamba_expand", 2) * self.width)
        self.mamba_heads = config.get("mamba_n_heads", 128)
        self.groups = config.get("mamba_n_groups", 1)
        self.state = config.get("mamba_d_state", 256)
        self.conv = config.get("mamba_d_conv", 4)
        self.conv_bias = config.get("mamba_conv_bias", True)
        self.dt_limit = [float(limit) for limit in config.get("time_step_limit", (0.0, float("inf")))]
        config.require("mamba_d_head", "auto", self.inner // self.mamba_heads)
        config.require("mamba_proj_bias", False)

    def tensors(self) -> Layout:
        shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (self.vocabulary, self.width)}
        for layer, kind in enumerate(self.mixers):
            of_layer = {
                "input_layernorm.weight": (self.width,),
                "post_attention_layernorm.weight": (self.width,),
                "shared_mlp.input_linear.weight": (2 * self.neurons, self.width),
                "shared_mlp.output_linear.weight": (self.width, self.neurons),
                **(self._mamba2_tensors() if kind == MAMBA2 else self._attention_tensors()),
            }
            shapes |= {f"layers.{layer}.{name}": shape for name, shape in of_layer.items()}
        shapes["norm.weight"] = (self.width,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, self.width)
        return Layout(
            shapes,
            prefixes=("model.", ""),
            layer_prefix="layers.",
            layers=self.layers,
            together=(("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),),
            one_sum=("shared_mlp.input_linear", "shared_mlp.output_linear", "mamba.out_proj"),
            row_tables=("embed_tokens.weight", "lm_head.weight"),
        )

    def _mamba2_tensors(self) -> dict[str, tuple[int, ...]]:
        channels = self.inner + 2 * self.groups * self.state
        tensors: dict[str, tuple[int, ...]] = {
            "mamba.in_proj.weight": (self.inner + channels + self.mamba_heads, self.width),
            "mamba.conv1d.weight": (channels, 1, self.conv),
            "mamba.dt_bias": (self.mamba_heads,),
            "mamba.A_log": (self.mamba_heads,),
            "mamba.D": (self.mamba_heads,),
            "mamba.norm.weight": (self.inner,),
            "mamba.out_proj.weight": (self.width, self.inner),
        }
        return tensors | ({"mamba.conv1d.bias": (channels,)} if self.conv_bias else {})

    def _attention_tensors(self) -> dict[str, tuple[int, ...]]:
        q, kv = self.head_count * self.head_dim, self.kv_heads * self.head_dim
        return {
            "self_attn.q_proj.weight": (q, self.width),
            "self_attn.k_proj.weight": (kv, self.width),
            "self_attn.v_proj.weight": (kv, self.width),
            "self_attn.o_proj.weight": (self.width, q),
        }

    def catalogue(self) -> tuple[Site, ...]:
        return sites.in_order(
            *(sites.MAMBA2_SITES if MAMBA2 in self.mixers else ()),
            *(sites.ATTENTION_SITES if ATTENTION in self.mixers else ()),
        )

    def heads(self, layer: int) -> int:
        return self.mamba_heads if self.mixers[layer] == MAMBA2 else self.head_count

    def output_matrices(self, layer: int) -> tuple[str, str]:
        mixer = "mamba.out_proj" if self.mixers[layer] == MAMBA2 else "self_attn.o_proj"
        return f"{mixer}.weight", "shared_mlp.output_linear.weight"

    def kept(self, layer: int, tokens: int) -> int:
        if self.mixers[layer] == ATTENTION:
            return 2 * self.kv_heads * self.head_dim * tokens
        return self.inner * self.state + (self.inner + 2 * self.groups * self.state) * (self.conv - 1)

    def readout(self, token: int) -> tuple[Tensor, Tensor]:
        w = self.weights.outside
        row = w["embed_tokens.weight" if self.tied else "lm_head.weight"][token]
        return w["norm.weight"] * row / self.logits_scaling, row.new_zeros(())

    def write_scale(self, layer: int, half: str, raw: Tensor) -> Tensor:
        return raw.new_tensor(self.residual_multiplier)

    def embed(self, ids: Tensor, tap: Tap = PLAIN) -> Tensor:
        return tap("embedding", self.weights.outside["embed_tokens.weight"][ids] * self.embedding_multiplier)

    def block(self, layer: int, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w, tap = self.weights.layers[layer], tap.at(layer)
        x = tap("residual.before", x)

        h = tap("mixer.input", rms_norm(x, w["input_layernorm.weight"], self.eps))
        mix = self.mamba2 if self.mixers[layer] == MAMBA2 else self.attention
        x = tap("residual.between", x + tap("mixer.write", mix(w, h, tap) * self.residual_multiplier))

        h = tap("ffn.input", rms_norm(x, w["post_attention_layernorm.weight"], self.eps))
        gate, up = project(h, w, "shared_mlp.input_linear").chunk(2, dim=-1)
        a = tap("ffn.neurons", F.silu(gate).mul_(up))
        write = project(a, w, "shared_mlp.output_linear") * self.residual_multiplier
        return tap("residual.after", x + tap("ffn.write", write))

    def attention(self, w: LayerWeights, h: Tensor, tap: Tap) -> Tensor:
        qkv = project(h, w, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        q, k, v = (split_heads(part, self.head_dim) for part in qkv)
        z = tap("mixer.heads", attention(q, k, v, self.attention_multiplier, tap))
        return project(z.flatten(2), w, "self_attn.o_proj")

    def mamba2(self, w: LayerWeights, h: Tensor, tap: Tap) -> Tensor:
        bc = self.groups * self.state
        parts = [self.inner, self.inner + 2 * bc, self.mamba_heads]
        z, xbc, dt = project(h, w, "mamba.in_proj").split(parts, dim=-1)
        xbc = F.silu(causal_conv(xbc, w["mamba.conv1d.weight"], w.get("mamba.conv1d.bias")), inplace=True)
        x, B, C = xbc.split([self.inner, bc, bc], dim=-1)
        x = tap("mamba2.x", split_heads(x, self.inner // self.mamba_heads))  # (batch, head, token, channel)
        B, C = tap("mamba2.B", split_heads(B, self.state)), tap("mamba2.C", split_heads(C, self.state))
        dt = F.softplus(dt + w["mamba.dt_bias"]).clamp(*self.dt_limit).transpose(1, 2)
        dt = tap("mamba2.dt", dt)  # (batch, head, token)
        A = -torch.exp(w["mamba.A_log"])
        if tap.wants("mamba2.decay"):
            tap("mamba2.decay", torch.exp(dt * A[:, None]))
        if tap.wants("mamba2.map"):
            tap("mamba2.map", mamba2_map(dt, A, B, C, tap.heads("mamba2.map", self.mamba_heads)))
        y = tap("mamba2.y", (w["mamba.D"][:, None, None] * x).add_(mamba2(x, dt, A, B, C)))

        gated = y.transpose(1, 2).flatten(2) * tap("mamba2.gate", F.silu(z))
        gated, weight = (each.unflatten(-1, (self.groups, -1)) for each in (gated, w["mamba.norm.weight"]))
        heads = rms_norm(gated, weight, self.eps).flatten(2).unflatten(-1, (self.mamba_heads, -1))
        return project(tap("mixer.heads", heads).flatten(2), w, "mamba.out_proj")

    def unembed(self, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w = self.weights.outside
        h = tap("final.norm", rms_norm(x, w["norm.weight"], self.eps))
        return tap(
            "logits", score_rows(h, w["embed_tokens.weight" if self.tied else "lm_head.weight"]) / self.logits_scaling
        )
