"""Contestants in processes of their own that take turns, and the medians of their times.

A process of its own has its allocator, its threads and its caches as its own program sets them: what one contestant
does to its process is no help to the other.
"""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

PAUSE = 0.1  # seconds
AT_LEAST = 20  # seconds
AS_TORCH_COMES = {"GOMP_SPINCOUNT": "300000"}  # its OpenMP's own default


class Process:
    """An object that lives in a fresh process: `Process(Theirs, "gpt2").call("logits", 18)`."""

    def __init__(self, kind: Callable[..., Any], *arguments: Any, waiting: Mapping[str, str] = AS_TORCH_COMES) -> None:
        """`kind(*arguments)` is made over there; kind and arguments must be importable and picklable.

        `waiting` is how its threads wait for each other: for the project's own `core.threads.WAITING`.
        """
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, kind, arguments), daemon=True)
        with patch.dict(os.environ, waiting):
            self.process.start()
        other.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """What the method returns. Raises RuntimeError with its traceback's last line where it failed."""
        self.pipe.send((method, arguments))
        worked, found = self.pipe.recv()
        if not worked:
            raise RuntimeError(found)
        return found

    def turn(self, name: str, tokens: int) -> Callable[[], float]:
        """For `side_by_side`: a contestant of the `Side` that lives there."""
        return lambda: float(self.call("seconds", name, tokens))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.pipe.close()
        self.process.join(timeout=10)
        self.process.kill()


def _serve(pipe: Connection, kind: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    it = None
    while True:
        try:
            method, given = pipe.recv()
        except EOFError:  # the other end is gone
            return
        try:
            it = kind(*arguments) if it is None else it
            pipe.send((True, getattr(it, method)(*given)))
        except Exception as error:  # said over there
            pipe.send((False, f"{type(error).__name__}: {error}"))


def seconds(run: Callable[[], object]) -> float:
    """How long one call takes. What it returns is let go afterwards, outside the time."""
    began = time.perf_counter()
    found = run()
    taken = time.perf_counter() - began
    del found
    return taken


def side_by_side(contestants: Mapping[str, Callable[[], float]], rounds: int, warm: int = 1) -> dict[str, float]:
    """Each contestant's median over `rounds`, all of them in each round, after `warm` turns each that do not count.

    Short ones go on for `AT_LEAST` seconds, of three times as many rounds at most: noise is a larger part of theirs.
    A contestant is called and says how many seconds it took. Taking turns, they share whatever else the machine does;
    between turns there is a pause, since threads that have done their work keep a core busy for a moment.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(warm + 3 * rounds):
        if turn >= warm + rounds and sum(map(sum, taken.values())) >= AT_LEAST:
            break
        for name, run in contestants.items():
            time.sleep(PAUSE)
            took = run()
            if turn >= warm:
                taken[name].append(took)
    return {name: statistics.median(times) for name, times in taken.items()}
