"""What the machine can do at best: how fast it reads, how fast it multiplies, and what a run would take at that."""

import statistics
from collections.abc import Callable
from functools import cache

import torch

from bench.timing import seconds
from core.model import Model
from core.specs import ATTENTION, LOCAL_ATTENTION

READ = 1 << 28  # bytes read at once: more than any cache holds


def _median(run: Callable[[], object], times: int = 7) -> float:
    return statistics.median([seconds(run) for _ in range(times + 1)][1:])


@cache
@torch.no_grad()
def read_bandwidth() -> float:
    """Bytes a second: the sum of a long float32 vector, with all threads."""
    x = torch.zeros(READ // 4)
    return x.nbytes / _median(x.sum)


@torch.no_grad()
def multiply(rows: int, channels: int, out: int) -> float:
    """Float32 operations a second of a product at this shape: the better of torch's own and oneDNN's packed one."""
    h, matrix = torch.randn(rows, channels), torch.randn(out, channels)
    best = _median(lambda: torch.nn.functional.linear(h, matrix), 3)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(matrix, rows)
        pointwise = torch.ops.mkldnn._linear_pointwise
        best = min(best, _median(lambda: pointwise(h, packed, None, "none", [], ""), 3))
    except (AttributeError, RuntimeError):
        pass  # a build without it
    return 2 * rows * channels * out / best


def shapes(model: Model) -> list[tuple[int, int]]:
    """(in, out) of every product of a run, one for each matrix of each layer."""
    return [
        (matrix.plain().shape[0], sum(matrix.widths)) for w in model.weights.layers for matrix in w.matrices.values()
    ]


def operations(model: Model, tokens: int) -> float:
    """Float32 operations of a run's products: every matrix, causal attention, the last position's logits.

    What the recurrent mixers multiply is left out: it is small beside their projections.
    """
    total = sum(2.0 * tokens * channels * out for channels, out in shapes(model))
    for layer, kind in enumerate(model.mixers):
        if kind in (ATTENTION, LOCAL_ATTENTION):
            inside = model.weights.layers[layer][model.output_matrices(layer)[0]].shape[0]
            total += 2.0 * tokens * tokens * inside  # scores and values, each half of tokens²
    return total + 2.0 * model.width * model.vocabulary


def of_run(model: Model, tokens: int) -> dict[str, float]:
    """Seconds that a run takes at least: one read of all weights; its products at the best speed at their shapes."""
    distinct = set(shapes(model))
    speeds = {shape: multiply(tokens, *shape) for shape in distinct}
    products = sum(2.0 * tokens * c * o / speeds[c, o] for c, o in shapes(model))
    rest = operations(model, tokens) - sum(2.0 * tokens * c * o for c, o in shapes(model))
    return {"read": model.weights.nbytes / read_bandwidth(), "products": products + rest / max(speeds.values())}
