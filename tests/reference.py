"""The reference, transformers in eager float32, beside our models: random weights that matter, and comparisons."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from torch import Tensor
from transformers.initialization import no_init_weights

from core.model import Model
from core.taps import Recorder, Request
from core.tokens import Tokenizer
from core.weights import from_tensors

RELATIVE = 1e-5  # of the largest |logit|
OWN_DISTANCE = 1.5  # times the reference's own distance from float64
POOL = 1 << 24  # random values drawn at most: a model of 600 M would otherwise take most of its test to draw
STREAM = ("residual.before", "mixer.input", "residual.between", "ffn.input", "residual.after")


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
    # The reference writes into the dicts that it is given.
    rest = {name: copy.deepcopy(value) for name, value in settings.items() if name != "model_type"}
    config = transformers.AutoConfig.for_model(settings["model_type"], **rest)
    with no_init_weights():
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    generator = torch.Generator().manual_seed(seed)
    largest = max(parameter.numel() for parameter in model.parameters())
    pool = torch.randn(min(POOL, 4 * largest), generator=generator)
    for name, parameter in model.named_parameters():
        parameter.data.copy_(_random(name, parameter.shape, pool, generator))
    model.tie_weights()
    return model.eval().requires_grad_(False)


def _random(name: str, shape: torch.Size, pool: Tensor, generator: torch.Generator) -> Tensor:
    """Random values in the range where this tensor acts. Large ones repeat the pool, from a place of their own."""
    size = shape.numel()
    begin = int(torch.randint(max(1, len(pool) - size), (1,), generator=generator))
    noise = pool[begin : begin + size] if size <= len(pool) else pool.repeat(-(-size // len(pool)))[:size]
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
    if name.endswith(("in_proj_a.weight", "in_proj_b.weight")):  # few rows: gates that are neither open nor shut
        return noise * (1.0 / shape[-1]) ** 0.5
    return noise * (1.0 / min(shape)) ** 0.5


def ours(reference: Any, settings: dict[str, Any], dtype: torch.dtype = torch.float32, packed: bool = True) -> Model:
    """Our model on the very tensors of a reference model."""
    tokenizer = tiny_tokenizer(min(256, settings.get("vocab_size", 256)))
    return from_tensors(settings, reference.state_dict(), tokenizer, dtype, packed)


def random_ids(tokens: int, vocabulary: int, rows: int | None = None) -> Tensor:
    """(row, token): several rows, the more the shorter they are, so that a root mean square over them is stable."""
    generator = torch.Generator().manual_seed(tokens)
    return torch.randint(vocabulary, (rows or max(2, 128 // tokens), tokens), generator=generator)


@dataclass(frozen=True)
class Compared:
    """The largest difference and the largest |logit|; and how far each, as a root mean square, is from float64.

    Over all logits: the largest single distance of two equally good programs differs by chance.
    """

    difference: float
    largest: float
    ours_off: float
    own: float


@torch.no_grad()
def compare(reference: Any, model: Model, exact: Model | None, ids: Tensor, last: int | None = None) -> Compared:
    """Our logits against the reference's, and both against a float64 run, at the `last` positions (None: all).

    Asserts both bounds, and names the first site that differs. Without `exact` only the first bound is held.
    """
    kept = slice(-last if last else None, None)
    theirs = reference(ids, use_cache=False, logits_to_keep=last or 0).logits
    mine = model.unembed(model.forward(ids)[:, kept])
    true = theirs if exact is None else exact.unembed(exact.forward(ids)[:, kept])
    assert mine.isfinite().all()
    assert mine.shape == theirs.shape
    found = Compared(
        difference=(mine - theirs).abs().max().item(),
        largest=theirs.abs().max().item(),
        ours_off=(mine - true).pow(2).mean().sqrt().item(),
        own=(theirs - true).pow(2).mean().sqrt().item(),
    )
    where = "" if found.difference <= RELATIVE * found.largest else first_difference(reference, model, ids)
    assert found.difference <= RELATIVE * found.largest, f"{found.difference:.2e} of {found.largest:.1f}; {where}"
    if exact is not None:
        assert found.ours_off <= OWN_DISTANCE * found.own, f"{found.ours_off:.2e} from float64, theirs {found.own:.2e}"
    return found


@torch.no_grad()
def first_difference(reference: Any, model: Model, ids: Tensor, tolerance: float = RELATIVE) -> str:
    """The first layer and site whose value is not the reference's: "layer 3 (mamba2), ffn.input: 1.2e-02 of 4.0"."""
    found = reference_values(reference, ids)
    recorder = Recorder([Request(site) for site in STREAM])
    model.forward(ids, recorder)
    for layer in range(model.layers):
        for site in STREAM:
            mine, theirs = recorder.values[site][layer], found[layer, site]
            off, largest = (mine - theirs).abs().max().item(), theirs.abs().max().item()
            if not off <= tolerance * largest:
                return f"layer {layer} ({model.mixers[layer]}), {site}: {off:.1e} of {largest:.1f}"
    return "no layer differs: look at the unembedding"


@torch.no_grad()
def reference_values(reference: Any, ids: Tensor) -> dict[tuple[int, str], Tensor]:
    """(layer, site) -> what the reference has at those of our sites that stand around its norms and blocks."""
    found: dict[tuple[int, str], Tensor] = {}
    body = reference.base_model
    hooks = []
    for layer, block in enumerate(body.h if hasattr(body, "h") else body.layers):
        first, second = _norms(block)
        hooks += [
            first.register_forward_hook(_keep(found, (layer, "residual.before"), (layer, "mixer.input"))),
            second.register_forward_hook(_keep(found, (layer, "residual.between"), (layer, "ffn.input"))),
            block.register_forward_hook(_keep(found, None, (layer, "residual.after"))),
        ]
    try:
        reference(ids, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _norms(block: Any) -> tuple[Any, Any]:
    """The norm before the mixer and the norm before the FFN."""
    if hasattr(block, "ln_1"):
        return block.ln_1, block.ln_2
    sandwich = hasattr(block, "pre_feedforward_layernorm")
    second = block.pre_feedforward_layernorm if sandwich else block.post_attention_layernorm
    return block.input_layernorm, second


_Place = tuple[int, str]


def _keep(found: dict[_Place, Tensor], before: _Place | None, after: _Place) -> Callable[..., None]:
    def hook(module: Any, inputs: Any, output: Any) -> None:
        if before is not None:
            found[before] = inputs[0]
        found[after] = output[0] if isinstance(output, tuple) else output

    return hook


def save(reference: Any, settings: dict[str, Any], folder: Path, tokenizer: Tokenizer) -> Path:
    """A model folder in Hugging Face layout."""
    reference.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(settings), "utf-8")
    tokenizer.fast.save(str(folder / "tokenizer.json"))
    return folder
