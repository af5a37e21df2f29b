"""What a recurrent layer does with its state: what each token keeps of it, and what is left of those before."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.run import Run
from core.specs import DELTANET, MAMBA2

SITES = {MAMBA2: ("mamba2.decay", "mamba2.dt"), DELTANET: ("deltanet.alpha", "deltanet.beta")}


@dataclass(frozen=True)
class Recurrence:
    """One layer's rates in one run, each (head, token).

    `keep`: the share of the state that a token keeps (Mamba2's exp(dt · A), DeltaNet's α). `write`: how strongly it is
    written (Mamba2's dt, DeltaNet's β). `left` (head, token): what is left of each token's write at the position asked
    for, by decay alone; 0 past that position. DeltaNet's erasing comes on top of it.
    """

    keep: Tensor
    write: Tensor
    left: Tensor


@torch.no_grad()
def recurrence(run: Run, layer: int, position: int) -> Recurrence:
    """The rates of a recurrent layer, from a run that recorded "residual.before" there.

    Raises TokenwalkError for a layer of attention, or where the run did not record that.
    """
    sites = SITES.get(run.model.mixers[layer])
    if sites is None:
        raise TokenwalkError(f"Layer {layer} keeps no state: its mixer is {run.model.mixers[layer]}.")
    found = run.again(layer, *sites)
    keep, write = (found[site] for site in sites)
    left = torch.zeros_like(keep)
    left[:, position] = 1
    left[:, :position] = keep[:, 1 : position + 1].flip(-1).cumprod(-1).flip(-1)  # Π keep over (token, position]
    return Recurrence(keep, write, left)
