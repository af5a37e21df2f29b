"""The models of the table: one set of weights, given to transformers and to this project."""

from dataclasses import dataclass
from typing import Any

import torch
import transformers

from core.catalogue import smollm2_folder
from core.tokens import Tokenizer
from tests.full_sizes import CONFIGS
from tests.reference import random_reference, tiny_tokenizer

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


def reference(name: str) -> Any:
    """transformers' model, eager, float32: SmolLM2 from its files, others at their real size with random weights."""
    if name != "smollm2":
        return random_reference(CONFIGS[SIZES[name]])
    found = transformers.AutoModelForCausalLM.from_pretrained(
        smollm2_folder(), dtype=torch.float32, attn_implementation="eager"
    )
    return found.eval().requires_grad_(False)


def tokenizer_of(name: str) -> Tokenizer:
    """What both of them read text with; random weights know single characters."""
    if name == "smollm2":
        return Tokenizer.from_folder(smollm2_folder())
    return tiny_tokenizer(256)


def text_of(tokenizer: Tokenizer, tokens: int) -> str:
    """A text that is just so many tokens long."""
    text = PASSAGE * (2 + 8 * tokens // len(PASSAGE))
    low, high = 0, len(text)
    while low < high:  # a longer beginning of it never has fewer tokens, but for the last few characters
        middle = (low + high) // 2
        low, high = (middle + 1, high) if len(tokenizer.encode(text[:middle])) < tokens else (low, middle)
    for end in range(max(0, low - 20), low + 200):
        if len(tokenizer.encode(text[:end])) == tokens:
            return text[:end]
    raise ValueError(f"No beginning of the passage is {tokens} tokens long.")
