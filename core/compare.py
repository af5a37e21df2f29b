"""Two models on one text: how far their next-token distributions are apart."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.run import Run


@dataclass(frozen=True)
class Divergence:
    """KL(A ‖ B) after each token, in nats: what it costs to expect B's words where A speaks. (token,)."""

    nats: Tensor

    @property
    def mean(self) -> float:
        return float(self.nats.mean())

    @property
    def median(self) -> float:
        return float(self.nats.median())


def same_tokens(a: Run, b: Run) -> bool:
    """Whether two runs cut the text into the same tokens under the same ids, so that distributions can be compared."""
    tokenizers = a.model.tokenizer, b.model.tokenizer
    return a.ids == b.ids and tokenizers[0].fast.get_vocab() == tokenizers[1].fast.get_vocab()


@torch.no_grad()
def divergence(a: Run, b: Run, chunk: int = 256) -> Divergence:
    """KL(A ‖ B) after every token of a text that both cut alike. Spare rows of a table are left out."""
    size = a.model.tokenizer.size
    parts = []
    for begin in range(0, len(a.ids), chunk):
        logs = [
            run.model.unembed(run.stream[None, begin : begin + chunk])[0, :, :size].float().log_softmax(-1)
            for run in (a, b)
        ]
        parts.append((logs[0].exp() * (logs[0] - logs[1])).sum(-1))
    return Divergence(torch.cat(parts).clamp(min=0))
