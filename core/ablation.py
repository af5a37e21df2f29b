"""Switching parts off, starting where the switched-off run first differs from the plain one.

A run with layer j off equals the plain run up to layer j, so it starts from the plain run's saved stream there.
Several variants join one batch, each at its own layer, so that each weight is read once for all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.run import Run
from core.specs import Switches
from core.taps import Both, Newest, SwitchOff

ROWS = 2048  # stream rows a batch: larger ones leave the cache


@dataclass(frozen=True)
class Swept:
    """A sweep of switch-offs, one entry a variant: the target's probability, and the id of the token on top."""

    p: Tensor
    top: Tensor


def sweep(run: Run, variants: Sequence[str], target: int) -> Swept:
    """Each spec off alone, as in `sweep(run, ["mixer:0", "head:3.1"], target)`; `run` as in `switched`."""
    p = switched(run, [run.model.switches([spec]) for spec in variants]).softmax(-1)
    return Swept(p[:, target], p.argmax(-1))


@torch.no_grad()
def switched(run: Run, variants: Sequence[Switches], progress: Callable[[float], None] = lambda _: None) -> Tensor:
    """Logits at the last position for each variant: (variant, vocabulary), float32.

    `run` is the plain run, with "residual.before" recorded in every layer. Raises TokenwalkError where it is not.
    """
    streams = run.values.get("residual.before", {})
    if run.off or len(streams) != run.model.layers:
        raise TokenwalkError("Switching off starts from a plain run that recorded “residual.before” in every layer.")
    logits = torch.empty(len(variants), run.model.vocabulary)
    order = sorted(range(len(variants)), key=lambda i: _start(variants[i], run.model.layers))
    size = max(1, ROWS // len(run.ids))
    for begin in range(0, len(order), size):
        batch = order[begin : begin + size]
        logits[batch] = _together(run, [variants[i] for i in batch])
        progress(min(1.0, (begin + size) / len(order)))
    return logits


def _start(variant: Switches, layers: int) -> int:
    first = variant.first_layer()
    return layers if first is None else first


def _together(run: Run, variants: list[Switches]) -> Tensor:
    """The variants, in the order of their first layer, as one growing batch: (variant, vocabulary)."""
    model, streams = run.model, run.values["residual.before"]
    x = streams[0].new_empty(0, *streams[0].shape)
    for layer in range(_start(variants[0], model.layers), model.layers):
        joining = sum(_start(variant, model.layers) == layer for variant in variants)
        x = torch.cat((x, streams[layer].expand(joining, -1, -1)))
        off = SwitchOff(variants[: len(x)])
        x = model.block(layer, x, Both(off, Newest(1, x.shape[1])) if layer == model.layers - 1 else off)
    plain = run.stream[-1].expand(len(variants) - len(x), 1, -1)  # nothing is off in these
    return model.unembed(torch.cat((x[:, -1:], plain)))[:, 0].float()
