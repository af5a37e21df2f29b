"""What the operations of a run take one by one, each at its best: what is left where none is in another's way."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TIMES = 5  # in a row
RUNS = 2  # what is there only once in a run has its first call in the first


class _Alone(TorchDispatchMode):
    """Times every operation that it sees, and counts it: one kind is one operation on values of one shape and order."""

    def __init__(self, matrices: Collection[Tensor]) -> None:
        super().__init__()
        self.matrices = {id(matrix) for matrix in matrices}
        self.work = torch.zeros(1 << 17)
        self.best: dict[tuple[object, ...], float] = {}
        self.count: Counter[tuple[object, ...]] = Counter()

    def __torch_dispatch__(
        self, operation: Any, types: object, given: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        named = named or {}
        if operation.is_view:
            return operation(*given, **named)
        leaves = tree_leaves((given, named))
        kind = (operation, *(_order(leaf) if isinstance(leaf, Tensor) else repr(leaf) for leaf in leaves))
        self.count[kind] += 1
        if any(id(leaf) in self.matrices for leaf in leaves):
            return self._timed(kind, operation, given, named)
        if kind not in self.best:
            for _ in range(TIMES):
                # What writes into its first argument gets a copy of it: these turns would change the result.
                written = [given[0].clone(), *given[1:]] if operation._schema.is_mutable else given
                self._timed(kind, operation, written, named)
        return operation(*given, **named)

    def _timed(self, kind: tuple[object, ...], operation: Any, given: Any, named: dict[str, Any]) -> Any:
        self.work.add_(1)  # all threads are awake, as they are in a run
        began = time.perf_counter()
        found = operation(*given, **named)
        taken = time.perf_counter() - began
        self.best[kind] = min(taken, self.best.get(kind, taken))
        return found


def _order(tensor: Tensor) -> object:
    return tensor.shape, tensor.stride() if tensor.layout == torch.strided else None


@torch.no_grad()
def alone(run: Callable[[], object], matrices: Collection[Tensor]) -> float:
    """Seconds of all operations of a run, each of a kind at the best time seen of that kind.

    What reads one of `matrices` is timed where it stands in the run, since a model's matrices come from memory; every
    other operation several times in a row, where its values are in the cache.
    """
    with _Alone(matrices) as seen:
        for _ in range(RUNS):
            run()
    return sum(seen.best[kind] * count for kind, count in seen.count.items()) / RUNS
