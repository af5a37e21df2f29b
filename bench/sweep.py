"""One mixer off in turn for all layers of SmolLM2, against as many separate transformers runs."""

from typing import Any

import numpy as np

from bench.contestants import ours, theirs
from bench.timing import Process, side_by_side
from core.catalogue import smollm2_folder
from core.threads import WAITING


def measure(tokens: list[int], rounds: int, threads: int) -> dict[str, Any]:
    """Seconds of both, and the largest difference of a probability, by number of tokens."""
    rows = {}
    with (
        Process(theirs, "smollm2", threads) as reference,
        Process(ours, smollm2_folder(), threads, waiting=WAITING) as project,
    ):
        for count in tokens:
            separate, together = reference.call("result", "separate", count), project.call("result", "sweep", count)
            contestants = {"separate": reference.turn("separate", count), "sweep": project.turn("sweep", count)}
            off = float(np.abs(softmax(separate) - softmax(together)).max())
            found = side_by_side(contestants, rounds, warm=0)
            rows[str(count)] = {"seconds": found, "limits": project.call("sweep_limits", count), "off": off}
    return rows


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis, in float64."""
    raised = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))
