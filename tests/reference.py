"""The reference, transformers in eager float32, beside our models: random weights that matter, and comparisons."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from torch import Tensor
from transformers.initialization import no_init_weights

from core.config import Config
from core.model import Model
from core.taps import PLAIN, Recorder, Request
from core.tokens import Tokenizer
from core.weights import from_tensors

RELATIVE = 1e-5  # of the largest |logit|
OWN_DISTANCE = 1.5  # times the reference's own distance from float64
POOL = 1 << 24  # random values drawn; a model of 600 M would otherwise take most of its test to draw


def tiny_tokenizer(vocabulary: int = 99) -> Tokenizer:
    """Byte-level BPE over single characters: enough for a model whose words do not matter."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={char: i for i, char in enumerate(alphabet[:vocabulary])}, merges=[])
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return Tokenizer(made)


def random_reference(settings: dict[str, Any], seed: int = 0) -> Any:
    """The reference model of these settings, with weights none of which is at an init that hides a mistake."""
    rest = {name: value for name, value in settings.items() if name != "model_type"}
    config = transformers.AutoConfig.for_model(settings["model_type"], **rest)
    with no_init_weights():
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    generator = torch.Generator().manual_seed(seed)
    pool = torch.randn(POOL, generator=generator)
    for name, parameter in model.named_parameters():
        parameter.data.copy_(_random(name, parameter.shape, pool, generator))
    model.tie_weights()
    return model.eval()


def _random(name: str, shape: torch.Size, pool: Tensor, generator: torch.Generator) -> Tensor:
    """Random values in the range where this tensor acts. Large ones repeat the pool, from a place of their own."""
    begin = int(torch.randint(POOL, (1,), generator=generator))
    size = shape.numel()
    noise = pool.roll(-begin)[:size] if size <= POOL else pool.repeat(-(-size // POOL))[:size]
    noise = noise.view(shape)
    if name.endswith("A_log"):
        return 0.7 * noise - 0.7
    if name.endswith("dt_bias"):
        return 1.5 * noise - 1.5
    if name.endswith(".D"):
        return 1 + 0.5 * noise
    if "conv1d.weight" in name:
        return 0.4 + 0.5 * noise
    if len(shape) == 1:  # norms and biases
        return (0.5 if name.endswith("weight") else 0) + 0.3 * noise  # some models add 1 to a norm's weight
    if "embed" in name or "wte" in name or "wpe" in name:
        return 0.5 * noise
    return noise * (1.0 / min(shape)) ** 0.5


def ours(reference: Any, settings: dict[str, Any], dtype: torch.dtype = torch.float32) -> Model:
    """Our model on the very tensors of a reference model."""
    tensors = {name: tensor.detach().to(dtype) for name, tensor in reference.state_dict().items()}
    return from_tensors(settings, tensors, tiny_tokenizer(min(256, settings.get("vocab_size", 256))))


@torch.no_grad()
def compare(reference: Any, model: Model, exact: Model, ids: Tensor) -> None:
    """Our logits against the reference's, and both against a float64 run. Names the first site that differs."""
    theirs = reference(ids, use_cache=False).logits
    mine = model.unembed(model.forward(ids))
    true = exact.unembed(exact.forward(ids))
    assert mine.isfinite().all()
    largest = theirs.abs().max().item()
    difference = (mine - theirs).abs().max().item()
    # The root mean square over all logits: the largest single one of two equal programs differs by chance.
    own = (theirs - true).pow(2).mean().sqrt().item()
    ours_off = (mine - true).pow(2).mean().sqrt().item()
    where = "" if difference <= RELATIVE * largest else first_difference(reference, model, ids)
    assert difference <= RELATIVE * largest, f"{difference:.2e} of {largest:.1f}; {where}"
    assert ours_off <= OWN_DISTANCE * own, f"{ours_off:.2e} from float64, theirs {own:.2e}"


@torch.no_grad()
def first_difference(reference: Any, model: Model, ids: Tensor, tolerance: float = 1e-4) -> str:
    """The first layer and site whose value is not the reference's: "layer 3, mixer.write (1.2e-2 of 4.0)"."""
    found: dict[tuple[int, str], Tensor] = {}
    hooks = [
        module.register_forward_hook(_keep(found, layer, site)) for layer, site, module in reference_sites(reference)
    ]
    try:
        output = reference(ids, use_cache=False, output_hidden_states=True)
    finally:
        for hook in hooks:
            hook.remove()
    names = ["residual.before", "mixer.input", "residual.between", "ffn.input", "residual.after"]
    recorder = Recorder([Request(name) for name in (*names, "embedding")])
    model.forward(ids, recorder)
    for layer in range(model.layers):
        found[layer, "residual.before"] = output.hidden_states[layer]
        for site in names:
            if (layer, site) not in found:
                continue
            mine, theirs = recorder.values[site][layer], found[layer, site]
            off = (mine - theirs).abs().max().item()
            if not off <= tolerance * theirs.abs().max().item():
                return f"layer {layer} ({model.mixers[layer]}), {site}: {off:.1e} of {theirs.abs().max().item():.1f}"
    return "no layer differs: look at the unembedding"


def _keep(found: dict[tuple[int, str], Tensor], layer: int, site: str) -> Callable[..., None]:
    def hook(module: Any, inputs: Any, output: Any) -> None:
        found[layer, site] = output[0] if isinstance(output, tuple) else output

    return hook


def reference_sites(reference: Any) -> list[tuple[int, str, Any]]:
    """The reference's modules whose output is one of our sites."""
    body = reference.base_model
    blocks = body.h if hasattr(body, "h") else body.layers
    found = []
    for layer, block in enumerate(blocks):
        sandwich = hasattr(block, "pre_feedforward_layernorm")
        names = {
            "ln_1": "mixer.input",
            "ln_2": "ffn.input",
            "input_layernorm": "mixer.input",
            "pre_feedforward_layernorm": "ffn.input",
            **({} if sandwich else {"post_attention_layernorm": "ffn.input"}),
        }
        found += [(layer, site, getattr(block, name)) for name, site in names.items() if hasattr(block, name)]
    return found


def save(reference: Any, settings: dict[str, Any], folder: Path, tokenizer: Tokenizer) -> Path:
    """A model folder in Hugging Face layout."""
    reference.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(settings), "utf-8")
    tokenizer.fast.save(str(folder / "tokenizer.json"))
    return folder


__all__ = ["PLAIN", "Config", "compare", "first_difference", "ours", "random_reference", "save", "tiny_tokenizer"]
