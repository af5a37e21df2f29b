"""Where order comes from: RoPE's bands, and GPT-2's learned table of positions."""

from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.mixers import attention_mask, rope_frequencies
from core.model import Model, Rotary
from core.run import Run

FAST_TURNS = 32.0  # within the context: a fast band makes at least so many, a slow one less than one
PAIRS_UP_TO = 128  # tokens whose every pair is looked at in `band_weights`


@dataclass(frozen=True)
class Band:
    """One frequency of RoPE: a pair of channels that turns as one hand of a clock.

    `radians`: a position's turn. `wavelength`: positions for a whole turn. `turns`: within the model's context.
    """

    index: int
    radians: float
    wavelength: float
    turns: float

    @property
    def speed(self) -> str:
        """ "fast" (32 turns and more within the context), "middle", or "slow" (never a whole one)."""
        return "fast" if self.turns >= FAST_TURNS else "middle" if self.turns >= 1 else "slow"


def bands(rotary: Rotary, context: int) -> list[Band]:
    """The bands of one head, fastest first."""
    return [
        Band(i, radians, 2 * pi / radians, context * radians / (2 * pi))
        for i, radians in enumerate(rope_frequencies(rotary.dim, rotary.theta, rotary.factor).tolist())
    ]


@torch.no_grad()
def band_weights(run: Run, layer: int) -> Tensor:
    """How much of each head's query·key products sits in each band: (head, band), each row summing to 1.

    The products of all pairs that attention sees, each band's by its absolute value; of a long text its last 128
    tokens. `run` recorded "residual.before" in that layer. Raises TokenwalkError where the layer has no RoPE.
    """
    rotary = run.model.rotary(layer)
    if rotary is None:
        raise TokenwalkError(f"Layer {layer} has no RoPE.")
    found = run.again(layer, "attention.query", "attention.key")
    q, k = (found[f"attention.{name}"][:, -PAIRS_UP_TO:] for name in ("query", "key"))
    k = k.repeat_interleave(len(q) // len(k), dim=0)
    half = rotary.dim // 2
    seen = attention_mask(q.shape[1], None)
    shares = torch.stack(
        [
            ((q[..., [i, half + i]] @ k[..., [i, half + i]].transpose(-1, -2)).abs() * seen).sum((-1, -2))
            for i in range(half)
        ],
        dim=-1,
    )
    return shares / shares.sum(-1, keepdim=True)


@dataclass(frozen=True)
class LearnedPositions:
    """What a table of positions has learned about distance.

    `similarity[d]`: mean cosine of the rows of two positions d apart. `r_squared`: the share of the variance of all
    pairs' cosines that their distance alone explains. `components` (position, 3): the rows along their first three
    principal components.
    """

    similarity: Tensor
    r_squared: float
    components: Tensor


@torch.no_grad()
def learned_positions(model: Model) -> LearnedPositions | None:
    """The analysis of a model's position table, or None where it has none."""
    table = model.weights.outside.get("wpe.weight")
    if table is None:
        return None
    rows = torch.nn.functional.normalize(table, dim=-1)
    cosine = rows @ rows.T
    size = len(table)
    by_distance = [cosine.diagonal(offset) for offset in range(size)]
    similarity = torch.stack([each.mean() for each in by_distance])
    pairs = torch.cat(by_distance[1:])
    within = sum(float((each - each.mean()).pow(2).sum()) for each in by_distance[1:])
    total = float((pairs - pairs.mean()).pow(2).sum())
    centred = table - table.mean(0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    return LearnedPositions(similarity, 1 - within / total, centred @ directions[:3].T)


def rope_similarity(rotary: Rotary, distances: int) -> Tensor:
    """The match of one vector with itself at each distance, all bands equally long: (distance,), 1 at distance 0."""
    angle = torch.arange(distances)[:, None] * rope_frequencies(rotary.dim, rotary.theta, rotary.factor)
    return angle.cos().mean(-1)
