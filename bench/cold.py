"""Cold starts: processes that take turns, each timed from its start to its end."""

import subprocess
import sys
from collections.abc import Callable

from bench.timing import seconds, side_by_side

BARE = "import torch, streamlit, altair"
FIRST = """
import sys
import altair, streamlit, torch
torch.set_num_threads(2)
from charts.words import top_bars
from core.weights import load
run = load(sys.argv[1]).run("Alice gave the book to Bob, so the book belongs to")
words = [(each.text, each.p) for each in run.top(10)]
top_bars(words, colour="#336699", dark=False).to_json()
"""


def _process(*arguments: str) -> Callable[[], float]:
    command = [sys.executable, "-c", *arguments]
    return lambda: seconds(lambda: subprocess.run(command, check=True, stderr=subprocess.DEVNULL))


def measure(specimen: str, large: str, rounds: int) -> dict[str, float]:
    """Seconds of a process that imports, of one that draws a specimen's picture, of one that draws SmolLM2's."""
    contestants = {"bare": _process(BARE), "specimen": _process(FIRST, specimen), "smollm2": _process(FIRST, large)}
    return side_by_side(contestants, rounds)
