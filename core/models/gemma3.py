"""Gemma 3's text model (Gemma Team 2025): five layers with a local window for one that sees everything.

    x = token row · √width                                     the text begins with a BOS token
    each layer:   x = x + norm(attention(norm(x)))             sandwich: a norm before and one after each half
                  x = x + norm(FFN(norm(x)))                   GeGLU: gelu(gate) · up, then down
    logits = norm(x) · token rows

    norm(x) = x / √(mean of x² + eps) · (1 + weight)
    attention: QK-norm, then RoPE: base 10,000 within a window, 1,000,000 in the global layers; scores are scaled by
    query_pre_attn_scalar^−½. In a local layer a token sees itself and the sliding_window − 1 tokens before it.

By its settings the same file runs models of this family without QK-norm (`use_qk_norm: false`, a setting of this
project's own) and with another rhythm of local and global layers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from core import sites
from core.config import Config
from core.layout import LayerWeights, Layout, project, score_rows
from core.mixers import attention, rms_norm, rope, rope_table, split_heads
from core.model import Model, Rotary
from core.specs import ATTENTION, LOCAL_ATTENTION
from core.taps import PLAIN, Site, Tap

KINDS = {"sliding_attention": LOCAL_ATTENTION, "full_attention": ATTENTION}


class Gemma3(Model):
    model_types = ("gemma3_text",)

    head_count: int
    kv_heads: int
    head_dim: int
    window: int

    def read(self, config: Config) -> None:
        self.width = config.get("hidden_size", 2304)
        self.vocabulary = config.get("vocab_size", 262_208)
        self.context = config.get("max_position_embeddings", 131_072)
        self.neurons = config.get("intermediate_size", 9216)
        self.head_count = config.get("num_attention_heads", 8)
        self.kv_heads = config.get("num_key_value_heads", 4)
        self.head_dim = config.get("head_dim", 256)
        self.scale = config.get("query_pre_attn_scalar", 256) ** -0.5
        self.eps = config.get("rms_norm_eps", 1e-6)
        self.tied = config.get("tie_word_embeddings", True)
        self.qk_norm = config.get("use_qk_norm", True)
        self.window = config.get("sliding_window", 4096)
        self.mixers = self._kinds(config)
        self.ropes = {
            LOCAL_ATTENTION: config.rope(10_000.0, layer_type="sliding_attention", old_theta="rope_local_base_freq"),
            ATTENTION: config.rope(1_000_000.0, layer_type="full_attention"),
        }
        config.require("hidden_activation", "gelu_pytorch_tanh")
        config.require("hidden_act", "gelu_pytorch_tanh")
        config.require("attention_bias", False)
        config.require("use_bidirectional_attention", False)
        config.require("attn_logit_softcapping")
        config.require("final_logit_softcapping")

    def _kinds(self, config: Config) -> tuple[str, ...]:
        layers = config.get("num_hidden_layers", 26)
        every = config.get("sliding_window_pattern", 6)  # older files: each so-manieth layer is global
        by_rhythm = ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(layers)]
        kinds = config.get("layer_types", by_rhythm)
        if len(kinds) != layers or any(kind not in KINDS for kind in kinds):
            config.require("layer_types")
        return tuple(KINDS[kind] for kind in kinds)

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
                "pre_feedforward_layernorm.weight": (width,),
                "mlp.gate_proj.weight": (neurons, width),
                "mlp.up_proj.weight": (neurons, width),
                "mlp.down_proj.weight": (width, neurons),
                "post_feedforward_layernorm.weight": (width,),
            }
            if self.qk_norm:
                of_layer |= {"self_attn.q_norm.weight": (self.head_dim,), "self_attn.k_norm.weight": (self.head_dim,)}
            shapes |= {f"layers.{layer}.{name}": shape for name, shape in of_layer.items()}
        shapes["norm.weight"] = (width,)
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, width)
        return Layout(
            shapes,
            prefixes=("model.language_model.", "language_model.model.", "model.", ""),
            layer_prefix="layers.",
            layers=self.layers,
            together=(
                ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                ("mlp.gate_proj", "mlp.up_proj"),
            ),
            one_sum=("mlp.gate_proj",),
            row_tables=("embed_tokens.weight", "lm_head.weight"),
            passengers=(r"(model\.)?(vision_tower|multi_modal_projector)\..*",),
        )

    def catalogue(self) -> tuple[Site, ...]:
        return sites.in_order(*sites.ATTENTION_SITES)

    def heads(self, layer: int) -> int:
        return self.head_count

    def rotary(self, layer: int) -> Rotary:
        rope = self.ropes[self.mixers[layer]]
        return Rotary(self.head_dim, self.head_dim, rope.theta, rope.factor)

    def output_matrices(self, layer: int) -> tuple[str, str]:
        return "self_attn.o_proj.weight", "mlp.down_proj.weight"

    def kept(self, layer: int, tokens: int) -> int:
        seen = tokens if self.mixers[layer] == ATTENTION else min(tokens, self.window - 1)
        return 2 * self.kv_heads * self.head_dim * seen

    def readout(self, token: int) -> tuple[Tensor, Tensor]:
        w = self.weights.outside
        row = w["embed_tokens.weight" if self.tied else "lm_head.weight"][token]
        return (1 + w["norm.weight"]) * row, row.new_zeros(())

    def write_scale(self, layer: int, half: str, raw: Tensor) -> Tensor:
        name = "post_attention_layernorm" if half == "mixer" else "post_feedforward_layernorm"
        weight = 1 + self.weights.layers[layer][f"{name}.weight"]
        return weight * torch.rsqrt(raw.pow(2).mean(-1, keepdim=True) + self.eps)

    def embed(self, ids: Tensor, tap: Tap = PLAIN) -> Tensor:
        return tap("embedding", self.weights.outside["embed_tokens.weight"][ids] * self.width**0.5)

    def block(self, layer: int, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w, tap = self.weights.layers[layer], tap.at(layer)
        x = tap("residual.before", x)

        h = tap("mixer.input", rms_norm(x, 1 + w["input_layernorm.weight"], self.eps))
        write = rms_norm(
            self.attention(w, h, self.mixers[layer], tap), 1 + w["post_attention_layernorm.weight"], self.eps
        )
        x = tap("residual.between", x + tap("mixer.write", write))

        h = tap("ffn.input", rms_norm(x, 1 + w["pre_feedforward_layernorm.weight"], self.eps))
        gate, up = project(h, w, "mlp.gate_proj", "mlp.up_proj")
        a = tap("ffn.neurons", F.gelu(gate, approximate="tanh").mul_(up))
        write = rms_norm(project(a, w, "mlp.down_proj"), 1 + w["post_feedforward_layernorm.weight"], self.eps)
        return tap("residual.after", x + tap("ffn.write", write))

    def attention(self, w: LayerWeights, h: Tensor, kind: str, tap: Tap) -> Tensor:
        qkv = project(h, w, "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        q, k, v = (split_heads(part, self.head_dim) for part in qkv)  # (batch, head, token, head_dim)
        if self.qk_norm:
            q = rms_norm(q, 1 + w["self_attn.q_norm.weight"], self.eps)
            k = rms_norm(k, 1 + w["self_attn.k_norm.weight"], self.eps)
        table = rope_table(h.shape[1], self.head_dim, self.ropes[kind].theta, self.ropes[kind].factor, h.dtype)
        window = self.window if kind == LOCAL_ATTENTION else None
        z = tap("mixer.heads", attention(rope(q, table), rope(k, table), v, self.scale, tap, window))
        return project(z.flatten(2), w, "self_attn.o_proj")

    def unembed(self, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w = self.weights.outside
        h = tap("final.norm", rms_norm(x, 1 + w["norm.weight"], self.eps))
        return tap("logits", score_rows(h, w["embed_tokens.weight" if self.tied else "lm_head.weight"]))
