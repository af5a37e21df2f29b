"""The residual stream as lengths: how long a token's vector is after each layer, and what each half of a layer adds."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.run import Run

SITES = ("residual.before", "residual.between", "residual.after")


@dataclass(frozen=True)
class Growth:
    """Lengths are Euclidean norms. Each tensor is (layer, token); layer l as it stands after layer l.

    `before`, `between`, `after`: the stream's length before the layer, after its mixer, after its FFN. `mixer`, `ffn`:
    the length of what each added. `mixer_cosine`, `ffn_cosine`: its cosine with the stream that it was added to: 1
    lengthens it, 0 adds something new, −1 takes away.
    """

    before: Tensor
    between: Tensor
    after: Tensor
    mixer: Tensor
    ffn: Tensor
    mixer_cosine: Tensor
    ffn_cosine: Tensor


@torch.no_grad()
def growth(run: Run) -> Growth:
    """How the stream of every token grows, from a run that recorded "residual.before" in every layer.

    What a half adds is measured as the difference of the stream around it, so that a bias is part of it. Raises
    TokenwalkError where the run did not record that.
    """
    rows: list[list[Tensor]] = [[] for _ in range(7)]
    for layer in range(run.model.layers):
        found = run.again(layer, *SITES)
        before, between, after = (found[site] for site in SITES)
        mixer, ffn = between - before, after - between
        lengths = [x.norm(dim=-1) for x in (before, between, after, mixer, ffn)]
        cosines = [torch.cosine_similarity(mixer, before, dim=-1), torch.cosine_similarity(ffn, between, dim=-1)]
        for column, value in zip(rows, (*lengths, *cosines), strict=True):
            column.append(value)
    return Growth(*(torch.stack(column) for column in rows))
