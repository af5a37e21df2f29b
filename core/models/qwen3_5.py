"""Qwen3.5's text model (Qwen Team 2026): three gated-DeltaNet layers (Yang et al. 2024) for one of attention.

x = token row
each layer:   x = x + mixer(norm(x))          gated DeltaNet, or attention with an output gate
              x = x + FFN(norm(x))            SwiGLU
logits = norm(x) · token rows                 or · rows of their own

norm(x) = x / √(mean of x² + eps) · (1 + weight)

gated DeltaNet:   q, k, v = silu(conv(h · in_proj_qkv))      each channel with its last 4 tokens
                  q, k L2-normalised, q times 1/√d; several value heads may share a key head
                  α = exp(−exp(A_log) · softplus(a + dt_bias)),  β = sigmoid(b)
                  y = gated delta rule(q, k, v, α, β)
                  out = norm(y) · silu(z) · out_proj         the norm first, then the gate: Mamba2 has it the other
                                                             way round; this norm's weight is not 1 + weight
attention:        q and a gate from one projection, head by head; QK-norm; RoPE on a quarter of the channels;
                  out = z · sigmoid(gate) · o_proj
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from core import sites
from core.config import Config
from core.layout import LayerWeights, Layout, project, score_rows
from core.mixers import (
    attention,
    causal_conv,
    gated_delta,
    gated_delta_map,
    l2_norm,
    repeat_heads,
    rms_norm,
    rope,
    rope_table,
    split_heads,
)
from core.model import Model, Rotary
from core.specs import ATTENTION, DELTANET
from core.taps import PLAIN, Site, Tap

KINDS = {"linear_attention": DELTANET, "full_attention": ATTENTION}


class Qwen35(Model):
    model_types = ("qwen3_5_text",)

    head_count: int
    value_heads: int
    kv_heads: int
    head_dim: int
    key_heads: int
    key_dim: int
    value_dim: int
    conv: int

    def read(self, config: Config) -> None:
        self.width = config.get("hidden_size", 4096)
        self.vocabulary = config.get("vocab_size", 248_320)
        self.context = config.get("max_position_embeddings", 32_768)
        self.neurons = config.get("intermediate_size", 12_288)
        self.head_count = config.get("num_attention_heads", 16)
        self.kv_heads = config.get("num_key_value_heads", 4)
        self.head_dim = config.get("head_dim", 256)
        self.key_heads = config.get("linear_num_key_heads", 16)
        self.value_heads = config.get("linear_num_value_heads", 32)
        self.key_dim = config.get("linear_key_head_dim", 128)
        self.value_dim = config.get("linear_value_head_dim", 128)
        self.conv = config.get("linear_conv_kernel_dim", 4)
        self.eps = config.get("rms_norm_eps", 1e-6)
        self.tied = config.get("tie_word_embeddings", False)
        self.rope = config.rope(10_000.0, default_partial=0.25)
        self.mixers = self._kinds(config)
        config.require("hidden_act", "silu")
        config.require("attention_bias", False)
        config.require("attn_output_gate", True)
        config.require("mamba_ssm_dtype", "float32")
        config.ignore("mtp_num_hidden_layers", "mtp_use_dedicated_embeddings")  # a second head, for drafting ahead

    def _kinds(self, config: Config) -> tuple[str, ...]:
        layers = config.get("num_hidden_layers", 32)
        every = config.get("full_attention_interval", 4)
        by_rhythm = ["full_attention" if (i + 1) % every == 0 else "linear_attention" for i in range(layers)]
        kinds = config.get("layer_types", by_rhythm)
        if len(kinds) != layers or any(kind not in KINDS for kind in kinds):
            config.require("layer_types")
        return tuple(KINDS[kind] for kind in kinds)

    def tensors(self) -> Layout:
        shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (self.vocabulary, self.width)}
        for layer, kind in enumerate(self.mixers):
            of_layer = {
                "input_layernorm.weight": (self.width,),
                **(self._deltanet_tensors() if kind == DELTANET else self._attention_tensors()),
                "post_attention_layernorm.weight": (self.width,),
                "mlp.gate_proj.weight": (self.neurons, self.width),
                "mlp.up_proj.weight": (self.neurons, self.width),
                "mlp.down_proj.weight": (self.width, self.neurons),
            }
            shapes |= {f"layers.{layer}.{name}": shape for name, shape in of_layer.items()}
        shapes["norm.weight"] = (self.width,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, self.width)
        return Layout(
            shapes,
            prefixes=("model.language_model.", "language_model.model.", "model.", ""),
            layer_prefix="layers.",
            layers=self.layers,
            together=(
                ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "linear_attn.in_proj_b", "linear_attn.in_proj_a"),
                ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                ("mlp.gate_proj", "mlp.up_proj"),
            ),
            one_sum=("mlp.gate_proj", "self_attn.q_proj"),
            row_tables=("embed_tokens.weight", "lm_head.weight"),
            passengers=(r"(model\.)?visual\..*", r"mtp\..*"),
        )

    def _deltanet_tensors(self) -> dict[str, tuple[int, ...]]:
        values = self.value_heads * self.value_dim
        channels = 2 * self.key_heads * self.key_dim + values
        return {
            "linear_attn.in_proj_qkv.weight": (channels, self.width),
            "linear_attn.in_proj_z.weight": (values, self.width),
            "linear_attn.in_proj_b.weight": (self.value_heads, self.width),
            "linear_attn.in_proj_a.weight": (self.value_heads, self.width),
            "linear_attn.conv1d.weight": (channels, 1, self.conv),
            "linear_attn.dt_bias": (self.value_heads,),
            "linear_attn.A_log": (self.value_heads,),
            "linear_attn.norm.weight": (self.value_dim,),
            "linear_attn.out_proj.weight": (self.width, values),
        }

    def _attention_tensors(self) -> dict[str, tuple[int, ...]]:
        q, kv = self.head_count * self.head_dim, self.kv_heads * self.head_dim
        return {
            "self_attn.q_proj.weight": (2 * q, self.width),
            "self_attn.k_proj.weight": (kv, self.width),
            "self_attn.v_proj.weight": (kv, self.width),
            "self_attn.q_norm.weight": (self.head_dim,),
            "self_attn.k_norm.weight": (self.head_dim,),
            "self_attn.o_proj.weight": (self.width, q),
        }

    def catalogue(self) -> tuple[Site, ...]:
        return sites.in_order(
            *(sites.DELTANET_SITES if DELTANET in self.mixers else ()),
            *((*sites.ATTENTION_SITES, sites.ATTENTION_GATE) if ATTENTION in self.mixers else ()),
        )

    def heads(self, layer: int) -> int:
        return self.value_heads if self.mixers[layer] == DELTANET else self.head_count

    def rotary(self, layer: int) -> Rotary | None:
        if self.mixers[layer] == DELTANET:
            return None
        turning = int(self.head_dim * self.rope.partial)
        return Rotary(turning, self.head_dim, self.rope.theta, self.rope.factor)

    def output_matrices(self, layer: int) -> tuple[str, str]:
        mixer = "linear_attn.out_proj" if self.mixers[layer] == DELTANET else "self_attn.o_proj"
        return f"{mixer}.weight", "mlp.down_proj.weight"

    def kept(self, layer: int, tokens: int) -> int:
        if self.mixers[layer] == ATTENTION:
            return 2 * self.kv_heads * self.head_dim * tokens
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        return values * self.key_dim + (2 * keys + values) * (self.conv - 1)

    def readout(self, token: int) -> tuple[Tensor, Tensor]:
        w = self.weights.outside
        row = w["embed_tokens.weight" if self.tied else "lm_head.weight"][token]
        return (1 + w["norm.weight"]) * row, row.new_zeros(())

    def embed(self, ids: Tensor, tap: Tap = PLAIN) -> Tensor:
        return tap("embedding", self.weights.outside["embed_tokens.weight"][ids])

    def block(self, layer: int, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w, tap = self.weights.layers[layer], tap.at(layer)
        x = tap("residual.before", x)

        h = tap("mixer.input", rms_norm(x, 1 + w["input_layernorm.weight"], self.eps))
        mix = self.deltanet if self.mixers[layer] == DELTANET else self.attention
        x = tap("residual.between", x + tap("mixer.write", mix(w, h, tap)))

        h = tap("ffn.input", rms_norm(x, 1 + w["post_attention_layernorm.weight"], self.eps))
        gate, up = project(h, w, "mlp.gate_proj", "mlp.up_proj")
        a = tap("ffn.neurons", F.silu(gate).mul_(up))
        return tap("residual.after", x + tap("ffn.write", project(a, w, "mlp.down_proj")))

    def attention(self, w: LayerWeights, h: Tensor, tap: Tap) -> Tensor:
        q, k, v = project(h, w, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        q, gate = split_heads(q, 2 * self.head_dim).chunk(2, dim=-1)  # (batch, head, token, head_dim)
        k, v = split_heads(k, self.head_dim), split_heads(v, self.head_dim)
        q = rms_norm(q, 1 + w["self_attn.q_norm.weight"], self.eps)
        k = rms_norm(k, 1 + w["self_attn.k_norm.weight"], self.eps)
        turning = int(self.head_dim * self.rope.partial)
        table = rope_table(h.shape[1], turning, self.rope.theta, self.rope.factor, h.dtype)
        z = attention(rope(q, table), rope(k, table), v, self.head_dim**-0.5, tap)
        z = z * tap("attention.gate", gate.transpose(1, 2).sigmoid())
        return project(tap("mixer.heads", z).flatten(2), w, "self_attn.o_proj")

    def deltanet(self, w: LayerWeights, h: Tensor, tap: Tap) -> Tensor:
        qkv, z, b, a = project(
            h, w, "linear_attn.in_proj_qkv", "linear_attn.in_proj_z", "linear_attn.in_proj_b", "linear_attn.in_proj_a"
        )
        qkv = F.silu(causal_conv(qkv, w["linear_attn.conv1d.weight"]), inplace=True)
        keys = self.key_heads * self.key_dim
        q, k, v = qkv.split([keys, keys, self.value_heads * self.value_dim], dim=-1)
        share = self.value_heads // self.key_heads
        q, k = l2_norm(split_heads(q, self.key_dim), self.key_dim**-0.5), l2_norm(split_heads(k, self.key_dim))
        q = tap("deltanet.query", repeat_heads(q, share))  # (batch, value head, token, key_dim)
        k, v = tap("deltanet.key", repeat_heads(k, share)), tap("deltanet.value", split_heads(v, self.value_dim))
        log_alpha = (-torch.exp(w["linear_attn.A_log"]) * F.softplus(a + w["linear_attn.dt_bias"])).transpose(1, 2)
        if tap.wants("deltanet.alpha"):
            tap("deltanet.alpha", log_alpha.exp())
        beta = tap("deltanet.beta", b.sigmoid().transpose(1, 2))  # (batch, value head, token)
        if tap.wants("deltanet.map"):
            heads = tap.heads("deltanet.map", self.value_heads)
            tap("deltanet.map", gated_delta_map(q[:, heads], k[:, heads], log_alpha[:, heads], beta[:, heads]))
        y = tap("deltanet.y", gated_delta(q, k, v, log_alpha, beta))

        gate = tap("deltanet.gate", F.silu(z.unflatten(-1, (-1, self.value_dim))))
        heads_out = rms_norm(y.transpose(1, 2), w["linear_attn.norm.weight"], self.eps) * gate
        return project(tap("mixer.heads", heads_out).flatten(2), w, "linear_attn.out_proj")

    def unembed(self, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w = self.weights.outside
        h = tap("final.norm", rms_norm(x, 1 + w["norm.weight"], self.eps))
        return tap("logits", score_rows(h, w["embed_tokens.weight" if self.tied else "lm_head.weight"]))
