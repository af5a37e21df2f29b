"""The models of the table: one set of weights, given to transformers and to this project."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from core.catalogue import SMOLLM2, smollm2_folder
from core.model import Model
from core.weights import load
from tests.full_sizes import CONFIGS
from tests.reference import ours, random_reference

AGREE = 1e-5  # of the largest |logit|, as in the tests
PASSAGE = "Alice gave the book to Bob, and then he went to the old house by the river. It was late in the day. "


@dataclass(frozen=True)
class Entry:
    """A row of the table. `bars`: the ratio to reach at each number of tokens; None where the goal has no such row."""

    name: str
    title: str
    bars: dict[int, float | None]


ENTRIES = (
    Entry("smollm2", "SmolLM2-135M", {18: 0.65, 105: 0.72, 420: 0.70, 1410: 0.37}),
    Entry("gpt2", "GPT-2 124M", {18: 0.60, 105: 0.72, 420: 0.66, 1024: 0.47}),
    Entry("gemma3", "Gemma-3-270M size", {18: 0.60, 105: 0.60, 420: 0.45, 1410: 0.38}),
    Entry("qwen3", "Qwen3-0.6B size", {18: 0.65, 105: 0.65, 420: 0.68, 1410: 0.52}),
    Entry("granite", "Granite-4.0-H-350M size", {18: 0.12, 105: 0.23, 420: 0.38, 1410: 0.30}),
    Entry("qwen3.5", "Qwen3.5-0.8B size", {18: 0.50, 105: 0.62, 420: 0.62, 1410: 0.50}),
)
SIZES = {
    "gpt2": "gpt2",
    "gemma3": "gemma-3-270m",
    "qwen3": "qwen3-0.6b",
    "granite": "granite-4.0-h-350m",
    "qwen3.5": "qwen3.5-0.8b",
}


@dataclass(frozen=True)
class Pair:
    """The reference, transformers in eager float32, and this project's model on the same weights."""

    reference: Any
    model: Model


def build(name: str) -> Pair:
    """SmolLM2 from its files, the others at their real size with random weights."""
    if name == "smollm2":
        reference = transformers.AutoModelForCausalLM.from_pretrained(
            smollm2_folder(), dtype=torch.float32, attn_implementation="eager"
        )
        return Pair(reference.eval().requires_grad_(False), load(SMOLLM2))
    settings = CONFIGS[SIZES[name]]
    reference = random_reference(settings)
    return Pair(reference, ours(reference, settings))


def text_of(model: Model, tokens: int) -> str:
    """A text that is just so many tokens long."""
    text = PASSAGE * (2 + 8 * tokens // len(PASSAGE))
    low, high = 0, len(text)
    while low < high:  # a longer beginning of it never has fewer tokens, but for the last few characters
        middle = (low + high) // 2
        low, high = (middle + 1, high) if len(model.tokenizer.encode(text[:middle])) < tokens else (low, middle)
    for end in range(max(0, low - 20), low + 200):
        if len(model.tokenizer.encode(text[:end])) == tokens:
            return text[:end]
    raise ValueError(f"No beginning of the passage is {tokens} tokens long.")


def runners(pair: Pair, text: str, maps: bool = False) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The reference's forward pass over a text, and this project's run of it: what the table compares.

    The project records every layer's residual vector, and with `maps` every attention map, and computes the logits of
    the last position, which is what a page needs.
    """
    record = ["residual.after", *(["attention.pattern"] if maps else [])]

    def theirs() -> Any:
        return pair.reference(ids, use_cache=False).logits[0, -1]

    def mine() -> Any:
        return pair.model.run(text, record).logits_at()

    ids = torch.tensor([[token.id for token in pair.model.tokenizer.encode(text)]])
    return theirs, mine


@torch.no_grad()
def disagreement(pair: Pair, text: str) -> float:
    """The largest difference of the last position's logits, as a part of the largest |logit|."""
    theirs, mine = (run() for run in runners(pair, text))
    return float((mine - theirs).abs().max() / theirs.abs().max())
