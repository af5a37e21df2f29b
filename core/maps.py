"""Mixing maps: who reads from whom, token by token, for any layer and head.

Every mixer has such a map: attention's pattern (0 to 1, a row sums to 1), Mamba2's and gated DeltaNet's (signed). A map
is built by running that one layer's block once more from the saved stream, for the heads that are looked at: all maps
of a long text at once would be gigabytes.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from core.run import Run
from core.specs import ATTENTION, DELTANET, LOCAL_ATTENTION, MAMBA2

SITE = {
    ATTENTION: "attention.pattern",
    LOCAL_ATTENTION: "attention.pattern",
    MAMBA2: "mamba2.map",
    DELTANET: "deltanet.map",
}
CELLS = 1 << 24  # map cells built at once: 64 MB


def is_signed(mixer: str) -> bool:
    """Whether a mixer's map has negative entries: all but attention's have."""
    return SITE[mixer] != "attention.pattern"


@torch.no_grad()
def maps(run: Run, layer: int, heads: Sequence[int]) -> Tensor:
    """The maps of some heads of a layer: (len(heads), token that reads, token read), in the order given.

    `run` recorded "residual.before" in that layer; its switches stay off. Raises TokenwalkError where it did not.
    """
    site, rising = SITE[run.model.mixers[layer]], sorted(set(heads))
    return run.again(layer, site, heads=rising)[site][[rising.index(head) for head in heads]]


def small_maps(run: Run, layer: int, size: int) -> Tensor:
    """Every head's map in at most size × size tiles, and their mean as the last one: (head + 1, tile, tile)."""
    count, tokens = run.model.heads(layer), len(run.ids)
    at_once = max(1, CELLS // tokens**2)
    tiled, total = [], torch.zeros(tokens, tokens)
    for begin in range(0, count, at_once):
        some = maps(run, layer, range(begin, min(begin + at_once, count)))
        tiled.append(tiles(some, size))
        total += some.sum(0)
    return torch.cat((*tiled, tiles((total / count)[None], size)))


def mean_map(run: Run, layer: int) -> Tensor:
    """The mean over the layer's heads: (token that reads, token read)."""
    count, tokens = run.model.heads(layer), len(run.ids)
    at_once = max(1, CELLS // tokens**2)
    parts = [maps(run, layer, range(begin, min(begin + at_once, count))).sum(0) for begin in range(0, count, at_once)]
    return torch.stack(parts).sum(0) / count


def tiles(map: Tensor, size: int) -> Tensor:
    """A map in at most size × size tiles, each the entry of it that is furthest from 0: (…, tile, tile)."""
    tokens = map.shape[-1]
    if tokens <= size:
        return map
    edge = -(-tokens // size)
    padded = F.pad(map, (0, -tokens % edge, 0, -tokens % edge))
    high, low = (F.max_pool2d(sign * padded.reshape(-1, 1, *padded.shape[-2:]), edge) for sign in (1, -1))
    furthest = torch.where(high >= low, high, -low)
    return furthest.view(*map.shape[:-2], *furthest.shape[-2:])
