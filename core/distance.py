"""How far a name can be carried: HEAD + filler × n + TAIL, as trained and with the attention off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from core.errors import TokenwalkError
from core.model import Model

HEAD = "In the morning, Alice gave Bob a book."
TAIL = " Later, Bob gave the book back to"
# No people, no book and nothing that is given: what is carried across it comes from before it.
FILLER = (
    " Rain had fallen through most of the night, and the streets were still wet. A cold wind came from the harbour and"
    " moved the signs above the shops. The bakery on the corner opened first, then the market hall, and a smell of"
    " fresh bread drifted over the square. By noon the clouds were thinner, and a pale light lay on the roofs. The"
    " trams ran every ten minutes, half empty, with their windows fogged."
)
REPEATS = (0, 1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Point:
    """One text: filler repeated `n` times, `tokens` long, and what the model says at its end."""

    n: int
    tokens: int
    p: float
    top: int


def split(text: str) -> tuple[str, str]:
    """A text's own head and tail, which together are the text: after its first full stop, else before its last word."""
    stop = text.find(". ")
    if stop >= 0 and text[stop + 1 :].strip():
        return text[: stop + 1], text[stop + 1 :]
    last = max(0, text.rstrip().rfind(" "))
    return text[:last], text[last:]


@torch.no_grad()
def by_distance(
    model: Model,
    head: str,
    tail: str,
    target: int,
    off: Sequence[str] = (),
    repeats: Sequence[int] = REPEATS,
    most: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> list[Point]:
    """The target's probability at the end of head + filler × n + tail, for each n that the model can take.

    `most` bounds the tokens below the model's own context. Raises TokenwalkError where not even n = 0 fits.
    """
    limit = min(model.context, most or model.context)
    found: list[Point] = []
    for i, n in enumerate(repeats):
        text = head + FILLER * n + tail
        tokens = len(model.tokenizer.encode(text))
        if tokens > limit:
            break
        p = model.run(text, off=off).probabilities()
        found.append(Point(n, tokens, float(p[target]), int(p.argmax())))
        progress((i + 1) / len(repeats))
    if not found:
        raise TokenwalkError(f"The text is too long: {model.card.name} takes {limit:,} tokens here.")
    return found
