"""Parity with transformers at the real models' size, on random weights. Slow: a minute or two, and up to 10 GB."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from core import memory
from core.model import Model
from tests import full_sizes
from tests.reference import compare, ours, random_ids, random_reference

LAST = 4  # positions whose logits are compared: a float64 head over 250,000 words is dear

CONFIGS = {
    **{name: settings for name, settings in full_sizes.CONFIGS.items() if name != "qwen3.5-0.8b"},
    "qwen3.5-0.8b, 8 of 24 layers": {
        **full_sizes.CONFIGS["qwen3.5-0.8b"],
        "layer_types": full_sizes.CONFIGS["qwen3.5-0.8b"]["layer_types"][:8],
        "num_hidden_layers": 8,
    },
}
PARAMETERS = {
    "gpt2": 124_439_808,
    "qwen3-0.6b": 596_049_920,
    "granite-4.0-h-350m": 340_332_224,
    "gemma-3-270m": 268_098_176,
}


@dataclass(frozen=True)
class Big:
    name: str
    reference: Any
    model: Model
    exact: Model
    vocabulary: int


@pytest.fixture(scope="module", params=CONFIGS)
def big(request: pytest.FixtureRequest) -> Iterator[Big]:
    """One model at a time: pytest ends one parameter's fixture before it makes the next.

    What a page's test made the process keep of freed memory goes back first: two workers share a small machine.
    """
    memory.settle()
    settings = CONFIGS[request.param]
    reference = random_reference(settings)
    model, exact = ours(reference, settings), ours(reference, settings, torch.float64)
    yield Big(request.param, reference, model, exact, settings["vocab_size"])
    del reference, model, exact
    gc.collect()
    memory.settle()


@pytest.mark.parametrize("tokens", [4, 10, 12, 18, 105])
def test_logits_are_the_references_and_as_near_to_float64(big: Big, tokens: int) -> None:
    ids: Tensor = random_ids(tokens, big.vocabulary, rows=1)
    compare(big.reference, big.model, big.exact, ids, last=LAST)


def test_the_model_has_as_many_parameters_as_the_real_one(big: Big) -> None:
    held = big.model.weights.nbytes // 4  # float32
    assert held == PARAMETERS.get(big.name, held)
    assert held == sum(parameter.numel() for parameter in big.reference.parameters())
