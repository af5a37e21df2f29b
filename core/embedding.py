"""The embedding table: the row that a token is looked up by, its length, and the rows that point the same way."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.model import Model
from core.run import Run

ROWS = 16384  # table rows compared at once: 64 MB at a width of 1,024


@dataclass(frozen=True)
class Neighbour:
    """Another token, and the cosine of its row with the one that was asked about."""

    id: int
    text: str
    cosine: float


def row(model: Model, id: int) -> Tensor:
    """The token's row of the table as it is stored, (width,): before any scale or position."""
    return model.table()[id]


@torch.no_grad()
def nearest(model: Model, id: int, k: int = 8) -> list[Neighbour]:
    """The k other tokens whose rows have the largest cosine with this token's, largest first.

    Rows that no token has, and rows of length 0, are left out.
    """
    table, own = model.table(), row(model, id)
    cosines = torch.cat(
        [
            torch.cosine_similarity(table[begin : begin + ROWS], own[None], dim=-1)
            for begin in range(0, len(table), ROWS)
        ]
    )
    known = min(len(table), model.tokenizer.size)
    cosines[id] = -2
    cosines[known:] = -2
    best, ids = cosines.topk(min(k, known - 1))
    text = model.tokenizer.text
    return [Neighbour(i, text(i), float(cosine)) for i, cosine in zip(ids.tolist(), best, strict=True)]


def scale(run: Run, position: int) -> float:
    """By how much the row is multiplied on its way into the stream: 1 in most models.

    `run` recorded "embedding.token" where the model has it, else "embedding".
    """
    entered = run.outside.get("embedding.token", run.outside.get("embedding"))
    assert entered is not None
    own = row(run.model, run.ids[position])
    return float(entered[position].norm() / own.norm()) if float(own.norm()) else 1.0
