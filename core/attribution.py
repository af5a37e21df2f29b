"""Direct logit attribution: how much each part writes straight along a token's row of the unembedding.

The final logit is linear in what was added to the stream, once the final norm's divisor is held fixed. So it falls into
one term for the embedding and one for each mixer, FFN, bias, head and neuron, and the terms add up to the logit. A term
says what a part writes directly: what it does through later layers is not in it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.run import Run
from core.specs import HALVES


@dataclass(frozen=True)
class Attribution:
    """Terms of one token's logit at one position, in logits. They add up to `logit`.

    `mixer` and `ffn` (layer,) hold what a half adds, its output bias included. `heads` holds one (head,) a layer: the
    mixer's term without its bias, head by head.
    """

    logit: float
    embedding: float
    constant: float
    mixer: Tensor
    ffn: Tensor
    heads: tuple[Tensor, ...]

    def largest(self) -> tuple[str, int, float]:
        """The half of a layer with the largest term: "mixer" or "ffn", its layer, its logits."""
        half = max(HALVES, key=lambda each: float(getattr(self, each).max()))
        terms: Tensor = getattr(self, half)
        layer = int(terms.argmax())
        return half, layer, float(terms[layer])


@dataclass(frozen=True)
class Neuron:
    """A neuron's direct contribution, in logits, at one position."""

    layer: int
    neuron: int
    activation: float
    contribution: float


class _Readout:
    """One token's row as the final norm of one position reads by it."""

    def __init__(self, run: Run, target: int, position: int) -> None:
        self.centred = run.model.norm == "LayerNorm"
        self.direction, constant = run.model.readout(target)
        self.constant = float(constant)
        x = self._centre(run.stream[position])
        self.divisor = float((x.pow(2).mean() + run.model.eps).sqrt())

    def _centre(self, x: Tensor) -> Tensor:
        return x - x.mean(-1, keepdim=True) if self.centred else x

    def of(self, written: Tensor) -> Tensor:
        """What vectors (…, width) add to the logit: (…)."""
        return self._centre(written) @ self.direction / self.divisor


@torch.no_grad()
def attribution(run: Run, target: int, position: int) -> Attribution:
    """The terms of `target`'s logit at `position`.

    `run` recorded "residual.before" in every layer. Raises TokenwalkError where it did not.
    """
    model = run.model
    readout = _Readout(run, target, position)
    terms: dict[str, list[Tensor]] = {half: [] for half in HALVES}
    heads = []
    for layer in range(model.layers):
        found = run.again(layer, "mixer.heads", "residual.before", "residual.between", "residual.after")
        before, between, after = (found[f"residual.{at}"][position] for at in ("before", "between", "after"))
        terms["mixer"].append(readout.of(between - before))
        terms["ffn"].append(readout.of(after - between))
        heads.append(readout.of(_head_writes(run, layer, found["mixer.heads"][position])))
    return Attribution(
        logit=float(run.logits_at(position)[target]),
        embedding=float(readout.of(run.values["residual.before"][0][position])),
        constant=readout.constant,
        mixer=torch.stack(terms["mixer"]),
        ffn=torch.stack(terms["ffn"]),
        heads=tuple(heads),
    )


def _head_writes(run: Run, layer: int, z: Tensor) -> Tensor:
    """What each head adds to the stream: z (head, channel) -> (head, width)."""
    matrix = run.model.weights.layers[layer][run.model.output_matrices(layer)[0]]
    raw = torch.einsum("hc,hcw->hw", z, matrix.unflatten(0, z.shape))
    if layer in run.off.mixers:
        return raw * 0
    return raw * run.model.write_scale(layer, "mixer", raw.sum(0))


@torch.no_grad()
def top_neurons(run: Run, target: int, position: int, k: int = 10) -> list[Neuron]:
    """The k neurons, over all layers, whose direct contribution to `target` is largest, largest first.

    A neuron's contribution is its activation times the component of its write-back along the token's row, the final
    norm's scale included. `run` recorded "residual.before" in every layer.
    """
    readout = _Readout(run, target, position)
    found: list[Neuron] = []
    for layer in range(run.model.layers):
        if layer in run.off.ffns:
            continue
        a = run.again(layer, "ffn.neurons")["ffn.neurons"][position]
        contribution = a * readout.of(write_back(run, layer, a))
        best, neurons = contribution.topk(min(k, len(a)))
        found += [
            Neuron(layer, neuron, float(a[neuron]), float(each))
            for neuron, each in zip(neurons.tolist(), best, strict=True)
        ]
    return sorted(found, key=lambda each: -each.contribution)[:k]


def write_back(run: Run, layer: int, a: Tensor) -> Tensor:
    """What each neuron of a layer adds to the stream when its activation is 1: (neuron, width).

    `a` (neuron,): all activations, which decide the scale where the FFN's output is normed before it is added.
    """
    matrix = run.model.weights.layers[layer][run.model.output_matrices(layer)[1]]
    return matrix * run.model.write_scale(layer, "ffn", a @ matrix)


@torch.no_grad()
def activations(run: Run, layer: int, position: int) -> Tensor:
    """The activation of each neuron of a layer at one position, its gate included: (neuron,)."""
    return run.again(layer, "ffn.neurons")["ffn.neurons"][position]


@torch.no_grad()
def promoted(
    run: Run, layer: int, neuron: int, position: int, k: int = 6
) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """The tokens whose logit a neuron's write-back raises most, and those that it lowers most: (id, component) each.

    The components are those of the write-back alone, read by the final norm and unembedding as if it were the whole
    stream: they rank tokens, and do not compare neurons.
    """
    row = write_back(run, layer, activations(run, layer, position))[neuron]
    alone = run.model.unembed(torch.stack((row, torch.zeros_like(row)))[None])[0]
    raised = alone[0] - alone[1]
    best, worst = raised.topk(k), (-raised).topk(k)
    return (
        list(zip(best.indices.tolist(), best.values.tolist(), strict=True)),
        list(zip(worst.indices.tolist(), (-worst.values).tolist(), strict=True)),
    )
