"""The logit lens (nostalgebraist 2020): what the model would say if it stopped after a layer.

The stream after a layer goes through the model's own final norm and unembedding, the same `unembed` that ends a run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.run import Run
from core.specs import HALVES

ROWS = 2048  # stream rows that go through the unembedding at once: 400 MB of logits at a vocabulary of 49,152


@dataclass(frozen=True)
class Lens:
    """One number or word for each layer and position asked for. Layer l is the stream after layer l.

    `top` (layer, position): id of the likeliest token. `top_p`: its probability. `p`: the target's probability.
    `rank`: the target's place, 1 for the likeliest; equal logits share the better place.
    """

    target: int
    positions: tuple[int, ...]
    top: Tensor
    top_p: Tensor
    p: Tensor
    rank: Tensor

    def first_on_top(self, position: int = -1) -> int | None:
        """The first layer after which the target is the likeliest token at a position, or None."""
        layers = (self.rank[:, position] == 1).nonzero()
        return int(layers[0]) if len(layers) else None

    def leads_from(self, position: int = -1) -> int | None:
        """The first layer from which on the target stays the likeliest token to the end, or None."""
        behind = (self.rank[:, position] != 1).nonzero()
        first = int(behind[-1]) + 1 if len(behind) else 0
        return first if first < len(self.rank) else None


@torch.no_grad()
def lens(
    run: Run, target: int, positions: Sequence[int] | None = None, progress: Callable[[float], None] = lambda _: None
) -> Lens:
    """The lens over every layer of a run that recorded "residual.after", at the positions given (None: all).

    Raises TokenwalkError where the run did not record it. `progress` hears of the share that is done.
    """
    streams = run.values.get("residual.after", {})
    if len(streams) != run.model.layers:
        raise TokenwalkError("The logit lens needs a run that recorded “residual.after” in every layer.")
    chosen = list(range(len(run.ids)) if positions is None else positions)
    columns: list[list[Tensor]] = [[], [], [], []]
    for layer in range(run.model.layers):
        rows = streams[layer][chosen]
        for begin in range(0, len(rows), ROWS):
            logits = run.model.unembed(rows[None, begin : begin + ROWS])[0].float()
            best, top = logits.max(-1)
            total = logits.logsumexp(-1)
            own = logits[:, target]
            rank = (logits > own[:, None]).sum(-1) + 1
            for column, value in zip(columns, (top, (best - total).exp(), (own - total).exp(), rank), strict=True):
                column.append(value)
        progress((layer + 1) / run.model.layers)
    top, top_p, p, rank = (torch.cat(column).view(run.model.layers, -1) for column in columns)
    return Lens(target, tuple(chosen), top, top_p, p, rank)


@dataclass(frozen=True)
class Halves:
    """Words' probabilities at one position, read after each half of each layer.

    `p` (word, layer, half): half 0 is after the mixer, half 1 after the FFN. `start` (word,): before layer 0.
    """

    words: tuple[int, ...]
    start: Tensor
    p: Tensor

    def gains(self, word: int = 0) -> Tensor:
        """What each half adds to the probability of the word at this place in `words`: (layer, half)."""
        after = self.p[word].flatten()
        return torch.diff(after, prepend=self.start[word, None]).view(-1, 2)

    def largest_gain(self, word: int = 0) -> tuple[str, int, float, float]:
        """The half that raises a word most: "mixer" or "ffn", its layer, the probability before it and after it."""
        gains = self.gains(word)
        layer, half = divmod(int(gains.argmax()), 2)
        after = float(self.p[word, layer, half])
        return HALVES[half], layer, after - float(gains[layer, half]), after


@torch.no_grad()
def halves(run: Run, words: Sequence[int], position: int) -> Halves:
    """The lens after each mixer and each FFN, at one position, from a run that recorded "residual.before" everywhere.

    Each layer's block runs once more for the stream between its halves. Raises TokenwalkError where the run did not
    record that.
    """
    rows = [run.again(0, "residual.before")["residual.before"][position]]
    for layer in range(run.model.layers):
        found = run.again(layer, "residual.between", "residual.after")
        rows += [found["residual.between"][position], found["residual.after"][position]]
    p = run.model.unembed(torch.stack(rows)[None])[0].float().softmax(-1)[:, list(words)].t()
    return Halves(tuple(words), p[:, 0], p[:, 1:].reshape(len(p), -1, 2))
