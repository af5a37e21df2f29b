"""GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").

    x = token row + position row
    each layer:   x = x + attention(norm(x))      pre-norm, every head with its own keys and values
                  x = x + FFN(norm(x))            one hidden layer of GELU neurons
    logits = norm(x) · token rows                 the embedding table, read once more

Positions are a learned table: past its last row the model cannot be run. The file stores matrices as (in, out).
"""

import torch.nn.functional as F
from torch import Tensor

from core import sites
from core.config import Config
from core.layout import Layout, project, score_rows
from core.mixers import attention, split_heads
from core.model import Model
from core.specs import ATTENTION
from core.taps import PLAIN, Site, Tap


class GPT2(Model):
    model_types = ("gpt2",)
    norm = "LayerNorm"

    head_count: int

    def read(self, config: Config) -> None:
        self.width = config.get("n_embd", 768)
        self.context = config.get("n_positions", 1024)
        self.vocabulary = config.get("vocab_size", 50257)
        self.mixers = (ATTENTION,) * config.get("n_layer", 12)
        self.head_count = config.get("n_head", 12)
        self.neurons = config.get("n_inner", 4 * self.width)
        self.eps = config.get("layer_norm_epsilon", 1e-5)
        self.tied = config.get("tie_word_embeddings", True)
        config.require("activation_function", "gelu_new", "gelu_pytorch_tanh")
        config.require("scale_attn_weights", True)
        config.require("scale_attn_by_inverse_layer_idx", False)
        config.require("add_cross_attention", False)
        config.ignore("reorder_and_upcast_attn")  # float32 either way

    def tensors(self) -> Layout:
        width, neurons = self.width, self.neurons
        shapes: dict[str, tuple[int, ...]] = {
            "wte.weight": (self.vocabulary, width),
            "wpe.weight": (self.context, width),
        }
        for layer in range(self.layers):
            of_layer: dict[str, tuple[int, ...]] = {
                "ln_1.weight": (width,),
                "ln_1.bias": (width,),
                "attn.c_attn.weight": (width, 3 * width),
                "attn.c_attn.bias": (3 * width,),
                "attn.c_proj.weight": (width, width),
                "attn.c_proj.bias": (width,),
                "ln_2.weight": (width,),
                "ln_2.bias": (width,),
                "mlp.c_fc.weight": (width, neurons),
                "mlp.c_fc.bias": (neurons,),
                "mlp.c_proj.weight": (neurons, width),
                "mlp.c_proj.bias": (width,),
            }
            shapes |= {f"h.{layer}.{name}": shape for name, shape in of_layer.items()}
        shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocabulary, width)
        return Layout(
            shapes,
            prefixes=("transformer.", ""),
            layer_prefix="h.",
            layers=self.layers,
            in_out=True,
            one_sum=("mlp.c_fc",),
            row_tables=("wte.weight", "wpe.weight", "lm_head.weight"),
            passengers=(r"h\.\d+\.attn\.(masked_)?bias",),
        )

    def catalogue(self) -> tuple[Site, ...]:
        rows = (
            Site("embedding.token", sites.STREAM, "each token's row of the embedding table", per_layer=False),
            Site("embedding.position", sites.STREAM, "each position's row of the position table", per_layer=False),
        )
        return sites.in_order(*sites.ATTENTION_SITES, embedding=rows, biased=True)

    def heads(self, layer: int) -> int:
        return self.head_count

    def output_matrices(self, layer: int) -> tuple[str, str]:
        return "attn.c_proj.weight", "mlp.c_proj.weight"

    def kept(self, layer: int, tokens: int) -> int:
        return 2 * self.width * tokens

    def readout(self, token: int) -> tuple[Tensor, Tensor]:
        w = self.weights.outside
        row = w["wte.weight" if self.tied else "lm_head.weight"][token]
        return w["ln_f.weight"] * row, w["ln_f.bias"] @ row

    def embed(self, ids: Tensor, tap: Tap = PLAIN) -> Tensor:
        w = self.weights.outside
        token = tap("embedding.token", w["wte.weight"][ids])
        position = tap("embedding.position", w["wpe.weight"][: ids.shape[1]].expand_as(token))
        return tap("embedding", token + position)

    def block(self, layer: int, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w, tap = self.weights.layers[layer], tap.at(layer)
        x = tap("residual.before", x)

        h = tap("mixer.input", F.layer_norm(x, (self.width,), w["ln_1.weight"], w["ln_1.bias"], self.eps))
        qkv = project(h, w, "attn.c_attn", bias=w["attn.c_attn.bias"])
        head_dim = self.width // self.head_count
        q, k, v = (split_heads(part, head_dim) for part in qkv.split(self.width, dim=-1))
        z = tap("mixer.heads", attention(q, k, v, head_dim**-0.5, tap))  # (batch, token, head, head_dim)
        write = tap("mixer.write", project(z.flatten(2), w, "attn.c_proj"))
        x = tap("residual.between", x + (write + tap("mixer.bias", w["attn.c_proj.bias"].expand(len(x), -1))[:, None]))

        h = tap("ffn.input", F.layer_norm(x, (self.width,), w["ln_2.weight"], w["ln_2.bias"], self.eps))
        a = F.gelu(project(h, w, "mlp.c_fc", bias=w["mlp.c_fc.bias"]), approximate="tanh")
        a = tap("ffn.neurons", a)
        write = tap("ffn.write", project(a, w, "mlp.c_proj"))
        return tap("residual.after", x + (write + tap("ffn.bias", w["mlp.c_proj.bias"].expand(len(x), -1))[:, None]))

    def unembed(self, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        w = self.weights.outside
        h = tap("final.norm", F.layer_norm(x, (self.width,), w["ln_f.weight"], w["ln_f.bias"], self.eps))
        return tap("logits", score_rows(h, w["wte.weight" if self.tied else "lm_head.weight"]))
