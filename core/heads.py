"""Which head of which layer reads what."""

from collections.abc import Collection
from dataclasses import dataclass

import torch

from core.maps import maps
from core.run import Run
from core.specs import ATTENTION, MIXER_WORDS

ATTENDING = MIXER_WORDS["attention"]


@dataclass(frozen=True)
class Reader:
    """A head that reads `weight` (0 to 1) of what it reads at one position from another one."""

    layer: int
    head: int
    read: int
    weight: float


@torch.no_grad()
def strongest_reader(run: Run, position: int, wanted: Collection[int] = ()) -> Reader | None:
    """The attention head that reads most at `position` from one of the `wanted` positions.

    With none wanted: from any but the token itself, the one before it and position 0, where heads park weight that
    they have no use for. None where no attention layer or no such position is there. `run` recorded "residual.before".
    """
    columns = sorted(each for each in (wanted or range(1, position - 1)) if each < position)
    best: Reader | None = None
    for layer, mixer in enumerate(run.model.mixers):
        if mixer not in ATTENDING or not columns:
            continue
        rows = maps(run, layer, range(run.model.heads(layer)))[:, position, columns]
        head, column = divmod(int(rows.argmax()), len(columns))
        if best is None or float(rows[head, column]) > best.weight:
            best = Reader(layer, head, columns[column], float(rows[head, column]))
    return best


@torch.no_grad()
def sink_shares(run: Run) -> dict[int, list[float]]:
    """How much each attention head puts on position 0: a mean over all later tokens, by layer, then by head.

    Weight parked on the first token, whatever it is, is called an attention sink (Xiao et al. 2023). Empty for a
    text of one token. `run` recorded "residual.before".
    """
    if len(run.ids) < 2:
        return {}
    return {
        layer: maps(run, layer, range(run.model.heads(layer)))[:, 1:, 0].mean(-1).tolist()
        for layer, mixer in enumerate(run.model.mixers)
        if mixer in ATTENDING
    }


@torch.no_grad()
def gates(run: Run, position: int) -> dict[int, list[float]]:
    """How open each head's output gate is at a position, 0 to 1: a mean over its channels, by layer, then by head.

    Empty for a model whose attention has no gate. `run` recorded "residual.before".
    """
    if all(site.name != "attention.gate" for site in run.model.sites):
        return {}
    found = {}
    for layer, mixer in enumerate(run.model.mixers):
        if mixer == ATTENTION:
            found[layer] = run.again(layer, "attention.gate")["attention.gate"][position].mean(-1).tolist()
    return found
