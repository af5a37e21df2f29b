"""Medians of runs that take turns."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch


@torch.no_grad()
def side_by_side(contestants: Mapping[str, Callable[[], Any]], rounds: int, warm: int = 1) -> dict[str, float]:
    """Each contestant's median time in seconds over `rounds`, all of them in each round, after `warm` runs each.

    Taking turns, they share whatever else the machine is doing.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(warm + rounds):
        for name, run in contestants.items():
            began = time.perf_counter()
            result = run()
            if turn >= warm:
                taken[name].append(time.perf_counter() - began)
            del result  # its memory goes back outside the time, for every contestant alike
    return {name: statistics.median(times) for name, times in taken.items()}
