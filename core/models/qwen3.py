"""Qwen3 (Yang et al. 2025) and the plain Llama that it grew from (Touvron et al. 2023); SmolLM2 is one.

    x = token row
    each layer:   x = x + attention(norm(x))      RoPE on q and k; several query heads share one kv head;
                                                  Qwen3 also norms every head's q and k ("QK-norm")
                  x = x + FFN(norm(x))            SwiGLU: silu(gate) · up, then down
    logits = norm(x) · token rows                 or · rows of their own, where the file has an lm_head

Qwen3's head_dim is a setting of its own: 128 on a width of 1,024 in the 0.6B.
"""

import torch.nn.functional as F
from torch import Tensor

from core import sites
from core.config import Config
from core.layout import Layout, project, score_rows
from core.mixers import attention, rms_norm, rope, rope_table, split_heads
from core.model import Model, Rotary
from core.specs import ATTENTION
from core.taps import PLAIN, Site, Tap


class Qwen3(Model):
    model_types = ("qwen3", "llama")

    head_count: int
    kv_heads: int
    head_dim: int

    def read(self, config: Config) -> None:
        self.qk_norm = config.get("model_type") == "qwen3"
        self.width = config.get("hidden_size")
        self.vocabulary = config.get("vocab_size")
        self.context = config.get("max_position_embeddings", 32768 if self.qk_norm else 2048)
        self.mixers = (ATTENTION,) * config.get("num_hidden_layers")
        self.neurons = config.get("intermediate_size")
        self.head_count = config.get("num_attention_heads")
        self.kv_heads = config.get("num_key_value_heads", self.head_count)
        self.head_dim = config.get("head_dim", 128 if self.qk_norm else self.width // self.head_count)
        self.eps = config.get("rms_norm_eps", 1e-6)
        self.tied = config.get("tie_word_embeddings", False)
        self.rope = config.rope(10_000.0)
        config.require("hidden_act", "silu")
        config.require("attention_bias", False)
        config.require("mlp_bias", False)
        config.require("use_sliding_window", False)
        config.ignore("sliding_window", "max_window_layers", "rope_interleaved")  # without use_sliding_window: nothing
        for kind in config.get("layer_types", []):
            if kind != "full_attention":
                config.require("layer_types")

    def tensors(self) -> Layout:
        width, neurons = self.width, self.neurons
        q, kv = self.head_count * self.head_dim, self.kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (self.vocabulary, width)}
        for layer in range(self.layers):
            of_layer: dict[str, tuple[int, ...]] = {
                "input_layernorm.weight": (width,),
                "self_attn.q_proj.weight": (q, width),
                "self_attn.k_proj.weight": (kv, width),
                "self_attn.v_proj.weight": (kv, width),
                "self_attn.o_proj.weight": (width, q),
                "post_attention_layernorm.weight": (width,),
                "mlp.gate_proj.weight": (neurons, width),
                "mlp.up_proj.weight": (neurons, width),
                "mlp.down_proj.weight": (width, neurons),
            }
            if self.qk_norm:
                of_layer |= {"self_attn.q_norm.weight": (self.head_dim,), "self_attn.k_norm.weight": (self.head_dim,)}
            shapes |= {f"layers.{layer}.{name}": shape for name, shape in of_layer.items()}
        shapes["norm.weight"] = (width,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, width)
        return Layout(
            shapes,
            prefixes=("model.", ""),
            layer_prefix="layers.",
            layers=self.layers,
            together=(
                ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                ("mlp.gate_proj", "mlp.up_proj"),
            ),
            one_sum=("mlp.gate_proj",),
            row_tables=("embed_tokens.weight", "lm_head.weight"),
            passengers=(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq",),
        )

    def catalogue(self) -> tuple[Site, ...]:
        return sites.in_order(*sites.ATTENTION_SITES)

    def heads(self, layer: int) -> int:
        return self.head_count

    def rotary(self, layer: int) -> Rotary:
        return Rotary(self.head_dim, self.head_dim, self.rope.theta, self.rope.factor)

    def output_matrices(self, layer: int) -> tuple[str, str]:
        return "self_attn.o_proj.weight", "mlp.down_proj.weight"

    def kept(self, layer: int, tokens: int) -> int:
        return 2 * self.kv_heads * self.head_dim * tokens

    def readout(self, token: int) -> tuple[Tensor, Tensor]:
        w = self.weights.outside
        row = w["embed_tokens.weight" if self.tied else "lm_head.weight"][token]
        return w["norm.weight"] * row, row.new_zeros(())

    def embed(self, ids: Tensor, tap: Tap = PLAIN) -> Tensor:
        return tap("embedding", self.weights.outside["embed_tokens.weight"][ids])

    def block(self, layer: int, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w, tap = self.weights.layers[layer], tap.at(layer)
        x = tap("residual.before", x)

        h = tap("mixer.input", rms_norm(x, w["input_layernorm.weight"], self.eps))
        qkv = project(h, w, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        q, k, v = (split_heads(part, self.head_dim) for part in qkv)  # (batch, head, token, head_dim)
        if self.qk_norm:
            q = rms_norm(q, w["self_attn.q_norm.weight"], self.eps)
            k = rms_norm(k, w["self_attn.k_norm.weight"], self.eps)
        table = rope_table(x.shape[1], self.head_dim, self.rope.theta, self.rope.factor, x.dtype)
        z = attention(rope(q, table), rope(k, table), v, self.head_dim**-0.5, tap)
        z = tap("mixer.heads", z)  # (batch, token, head, head_dim)
        x = tap("residual.between", x + tap("mixer.write", project(z.flatten(2), w, "self_attn.o_proj")))

        h = tap("ffn.input", rms_norm(x, w["post_attention_layernorm.weight"], self.eps))
        gate, up = project(h, w, "mlp.gate_proj", "mlp.up_proj")
        a = tap("ffn.neurons", F.silu(gate).mul_(up))
        return tap("residual.after", x + tap("ffn.write", project(a, w, "mlp.down_proj")))

    def unembed(self, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w = self.weights.outside
        h = tap("final.norm", rms_norm(x, w["norm.weight"], self.eps))
        return tap("logits", score_rows(h, w["embed_tokens.weight" if self.tied else "lm_head.weight"]))
