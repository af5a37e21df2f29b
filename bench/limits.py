"""What the machine can do at best: how fast it reads, how fast it multiplies, and what a run would take at that."""

import mmap
import statistics
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from bench.timing import seconds
from core.model import Model
from core.specs import ATTENTION, LOCAL_ATTENTION

READ = 1 << 28  # bytes read at once: more than any cache holds
COLD = 1 << 26  # bytes of matrices between two reads of the same one: it comes from memory, as in a run


def _median(run: Callable[[], object], times: int = 7) -> float:
    return statistics.median([seconds(run) for _ in range(times + 1)][1:])


@cache
@torch.no_grad()
def read_bandwidth() -> float:
    """Bytes a second: the sum of a long float32 vector, with all threads."""
    x = torch.zeros(READ // 4)
    return x.nbytes / _median(x.sum)


@cache
def fresh_bandwidth() -> float:
    """Bytes a second that the system hands out and a program fills for the first time, with all threads."""

    def fill() -> object:
        return torch.frombuffer(mmap.mmap(-1, READ), dtype=torch.uint8).fill_(1)

    return READ / _median(fill)


@cache
@torch.no_grad()
def multiply(rows: int, channels: int, out: int) -> float:
    """Float32 operations a second of a product at this shape: the better of torch's own and oneDNN's packed one.

    The matrix is read from memory, as a run's are: of as many as no cache holds, each in its turn.
    """
    h = torch.randn(rows, channels)
    matrices = [torch.randn(out, channels)]
    matrices += [matrices[0].clone() for _ in range(COLD // matrices[0].nbytes)]

    def all_in_turn(product: Callable[[Tensor], Tensor]) -> float:
        def run() -> None:
            for matrix in matrices:
                product(matrix)

        return _median(run, 3)

    best = all_in_turn(lambda matrix: torch.nn.functional.linear(h, matrix))
    try:
        matrices = [torch.ops.mkldnn._reorder_linear_weight(matrix, rows) for matrix in matrices]
        pointwise = torch.ops.mkldnn._linear_pointwise
        best = min(best, all_in_turn(lambda packed: pointwise(h, packed, None, "none", [], "")))
    except (AttributeError, RuntimeError):
        pass  # a build without it
    return 2 * rows * channels * out * len(matrices) / best


def shapes(model: Model) -> list[tuple[int, int]]:
    """(in, out) of every product of a run, one for each matrix of each layer."""
    return [
        (matrix.plain().shape[0], sum(matrix.widths)) for w in model.weights.layers for matrix in w.matrices.values()
    ]


def operations(model: Model, tokens: int) -> float:
    """Float32 operations of a run's products over all tokens: every matrix, and causal attention.

    What the recurrent mixers multiply is left out: it is small beside their projections.
    """
    total = sum(2.0 * tokens * channels * out for channels, out in shapes(model))
    for layer, kind in enumerate(model.mixers):
        if kind in (ATTENTION, LOCAL_ATTENTION):
            inside = model.weights.layers[layer][model.output_matrices(layer)[0]].shape[0]
            total += 2.0 * tokens * tokens * inside  # scores and values, each half of tokens²
    return total


def of_products(model: Model, rows: int, at: int) -> float:
    """Seconds that all layers' matrices take for so many rows, at the best speed seen for `at` rows at once."""
    speeds = {shape: multiply(at, *shape) for shape in set(shapes(model))}
    return sum(2.0 * rows * c * o / speeds[c, o] for c, o in shapes(model))


def map_bytes(model: Model, tokens: int) -> int:
    """What all attention maps take in memory, float32."""
    attending = [layer for layer, kind in enumerate(model.mixers) if kind in (ATTENTION, LOCAL_ATTENTION)]
    return sum(4 * model.heads(layer) * tokens * tokens for layer in attending)


def of_run(model: Model, tokens: int) -> dict[str, float]:
    """Seconds that a run takes at least: one read of all weights; its products at the best speed at their shapes.

    To the products belong the last position's logits: one read of the vocabulary's rows.
    "maps" is what recording every map adds at least, where the process has not held that memory before.
    """
    products = of_products(model, tokens, tokens)
    inside = operations(model, tokens) - sum(2.0 * tokens * c * o for c, o in shapes(model))
    best = max(multiply(tokens, *shape) for shape in set(shapes(model)))
    return {
        "read": model.weights.nbytes / read_bandwidth(),
        "products": products + inside / best + 4 * model.width * model.vocabulary / read_bandwidth(),
        "maps": map_bytes(model, tokens) / fresh_bandwidth(),
    }


def of_sweep(model: Model, tokens: int) -> dict[str, float]:
    """Seconds that the products of a sweep take at least: of one variant in its first layer, of two in the next, …"""
    layers = model.layers
    return {"products": of_products(model, tokens, tokens * layers // 2) * (layers + 1) / 2}
