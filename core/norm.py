"""The norm before a layer's mixer, taken apart: what it measures, what it divides by, what its learned weight does."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.run import Run


@dataclass(frozen=True)
class Normed:
    """One token's vector through a norm. Each vector is (width,).

    `before`: the stream. `scaled`: divided by its root mean square (LayerNorm takes its mean off first). `after`: that
    times the learned weight, plus LayerNorm's learned bias: what the mixer reads.
    """

    kind: str
    before: Tensor
    scaled: Tensor
    after: Tensor


def mean(x: Tensor) -> float:
    """The mean of a vector's entries."""
    return float(x.mean())


def root_mean_square(x: Tensor) -> float:
    """√(mean of the squared entries): the length over √width."""
    return float(x.pow(2).mean().sqrt())


@torch.no_grad()
def normed(run: Run, layer: int, position: int) -> Normed:
    """The norm that the mixer of a layer reads through, at one position.

    `run` recorded "residual.before" in that layer. LayerNorm: Ba et al. 2016. RMSNorm: Zhang & Sennrich 2019.
    """
    found = run.again(layer, "residual.before", "mixer.input")
    before, after = found["residual.before"][position], found["mixer.input"][position]
    centred = before - before.mean() if run.model.norm == "LayerNorm" else before
    scaled = centred * torch.rsqrt(centred.pow(2).mean() + run.model.eps)
    return Normed(run.model.norm, before, scaled, after)
