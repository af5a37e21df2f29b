"""One model's rows of the table: its forward pass on every side, one number of tokens after the other."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.contestants import ours, theirs
from bench.timing import Process, side_by_side
from core.catalogue import smollm2_folder
from core.threads import WAITING

PEERS = ("recorded", "transformer_lens", "nnsight")
WITH_PEERS = ("smollm2", "gpt2")
PEERS_UP_TO = 105  # tokens
WARM_UP_TO = 105  # tokens: longer texts are warmed up by the comparison of the logits alone


def measure(name: str, tokens: list[int], rounds: int, threads: int) -> dict[str, Any]:
    """The medians in seconds, by number of tokens, the limits beside them, and notes on peers that do not run."""
    rows: dict[str, Any] = {}
    notes: set[str] = set()
    with Process(theirs, name, threads) as reference, ExitStack() as more:
        folder = smollm2_folder()
        if name != "smollm2":
            folder = Path(more.enter_context(TemporaryDirectory()))
            reference.call("save", folder)
        project = more.enter_context(Process(ours, folder, threads, waiting=WAITING))
        kept = more.enter_context(Process(theirs, name, threads, True)) if name in WITH_PEERS else None
        for count in tokens:
            off = disagreement(
                reference.call("result", "transformers", count), project.call("result", "project", count)
            )
            contestants = {
                "transformers": reference.turn("transformers", count),
                "project": project.turn("project", count),
                "project, maps": project.turn("maps", count),
            }
            if kept:
                kept.call("result", "transformers", count)
                contestants["kept"] = kept.turn("transformers", count)
            for peer in PEERS if name in WITH_PEERS and count <= PEERS_UP_TO else ():
                try:
                    reference.call("result", peer, count)
                except RuntimeError as error:  # a peer that cannot run this model is left out, and the page says so
                    notes.add(f"{peer}: {str(error).splitlines()[0][:120]}")
                else:
                    contestants[peer] = reference.turn(peer, count)
            found = side_by_side(contestants, rounds, warm=1 if count <= WARM_UP_TO else 0)
            rows[str(count)] = {"seconds": found, "limits": project.call("limits", count), "off": off}
    return {"rows": rows, "notes": "; ".join(sorted(notes))}


def disagreement(theirs: np.ndarray, mine: np.ndarray) -> float:
    """The largest difference of a logit, as a part of the largest |logit|."""
    return float(np.abs(mine - theirs).max() / np.abs(theirs).max())
