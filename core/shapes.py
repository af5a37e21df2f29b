"""The shapes that one layer's values have in a run: what a page writes beside the code that ran."""

import torch
from torch import Tensor

from core.run import Run
from core.taps import Tap


class _Shapes(Tap):
    def __init__(self) -> None:
        self.found: dict[str, tuple[int, ...]] = {}

    def __call__(self, site: str, value: Tensor) -> Tensor:
        self.found[site] = tuple(value.shape)
        return value


@torch.no_grad()
def block_shapes(run: Run, layer: int) -> dict[str, tuple[int, ...]]:
    """Each named value of a layer with its shape, batch axis first, in execution order.

    `run` recorded "residual.before" in that layer. Maps are left out: a block builds one only where it is asked for.
    """
    tap = _Shapes()
    run.model.block(layer, run.values["residual.before"][layer][None], tap)
    return tap.found
