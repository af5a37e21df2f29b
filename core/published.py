"""The article's figures, recomputed for the models at hand.

    python -m core.published        prints the table; exit status 1 where a figure that was run differs

An article traced one sentence through GPT-2, Qwen3-0.6B-Base and Granite-4.0-H-350M, float32 on a CPU. `FIGURES` holds
what it published. A probability may differ by 0.002, a layer or a count by 1, a length by 1 %.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch

from core.ablation import switched
from core.errors import TokenwalkError
from core.lens import lens
from core.model import Model
from core.run import Run
from core.weights import load

PROMPT = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to"
NAME = " Alice"
MODELS = ("gpt2", "qwen3-0.6b-base", "granite-4.0-h-350m-base")
TOLERANCE = {"probability": 0.002, "layer": 1.0, "count": 0.0, "length": 0.01}


class _Traced:
    """A model's run over the sentence, and the name's id."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.run: Run = model.run(PROMPT, record=["residual.before", "residual.after"])
        self.name = model.tokenizer.first(NAME)
        self.last = len(self.run.ids) - 1

    def p(self, *off: str) -> float:
        """The name's probability with parts switched off."""
        logits = switched(self.run, [self.model.switches(off)])[0]
        return float(logits.softmax(-1)[self.name])

    def one_mixer_off(self) -> torch.Tensor:
        """The name's probability with each layer's mixer off in turn: (layer,)."""
        variants = [self.model.switches([f"mixer:{layer}"]) for layer in range(self.model.layers)]
        return switched(self.run, variants).softmax(-1)[:, self.name]

    def first_on_top(self) -> float:
        """The first layer whose lens has the name on top; −1 for none."""
        first = lens(self.run, self.name, [self.last]).first_on_top()
        return -1.0 if first is None else float(first)

    def length(self, layer: int) -> float:
        return float(self.run.values["residual.after"][layer][self.last].norm())

    def longest(self) -> float:
        return max(self.length(layer) for layer in range(self.model.layers))


@dataclass(frozen=True)
class Figure:
    """One published figure: of which model, what, its kind (a key of TOLERANCE), its value, and how to get it."""

    model: str
    name: str
    kind: str
    published: float
    compute: Callable[[_Traced], float]


GPT2, QWEN3, GRANITE = MODELS
FIGURES = (
    *(Figure(model, "tokens of the sentence", "count", 18, lambda t: len(t.run.ids)) for model in MODELS),
    Figure(GPT2, "P(“ Alice”)", "probability", 0.776, lambda t: t.p()),
    Figure(QWEN3, "P(“ Alice”)", "probability", 0.980, lambda t: t.p()),
    Figure(GRANITE, "P(“ Alice”)", "probability", 0.986, lambda t: t.p()),
    Figure(GPT2, "P of the second word", "probability", 0.057, lambda t: t.run.top(2)[1].p),
    Figure(QWEN3, "P of the second word", "probability", 0.006, lambda t: t.run.top(2)[1].p),
    Figure(GRANITE, "P of the second word", "probability", 0.006, lambda t: t.run.top(2)[1].p),
    Figure(GPT2, "first layer with “ Alice” on top", "layer", 9, _Traced.first_on_top),
    Figure(QWEN3, "first layer with “ Alice” on top", "layer", 24, _Traced.first_on_top),
    Figure(GRANITE, "first layer with “ Alice” on top", "layer", 27, _Traced.first_on_top),
    Figure(GPT2, "length of “ to” after layer 0", "length", 52, lambda t: t.length(0)),
    Figure(GPT2, "largest length of “ to”", "length", 512, _Traced.longest),
    Figure(QWEN3, "largest length of “ to”", "length", 696, _Traced.longest),
    Figure(GRANITE, "largest length of “ to”", "length", 67, _Traced.longest),
    Figure(GPT2, "lowest P, one mixer off", "probability", 0.427, lambda t: float(t.one_mixer_off().min())),
    Figure(GPT2, "layer of the lowest", "layer", 5, lambda t: float(t.one_mixer_off().argmin())),
    Figure(
        QWEN3, "second lowest P, one mixer off", "probability", 0.843, lambda t: float(t.one_mixer_off().sort()[0][1])
    ),
    Figure(GRANITE, "P, all attention off", "probability", 0.988, lambda t: t.p("attention:*")),
    Figure(GRANITE, "P, all Mamba2 off", "probability", 0.0, lambda t: t.p("mamba2:*")),
    Figure(GRANITE, "P, Mamba2 from layer 16 on off", "probability", 0.0001, lambda t: t.p("mamba2:16-")),
)


@dataclass(frozen=True)
class Row:
    """A figure beside ours; `ours` is None where the model could not be had."""

    figure: Figure
    ours: float | None

    @property
    def difference(self) -> float | None:
        return None if self.ours is None else self.ours - self.figure.published

    @property
    def holds(self) -> bool:
        """Whether it is within its tolerance, or was not run."""
        if self.difference is None:
            return True
        allowed = TOLERANCE[self.figure.kind]
        rounding: float = 0.5 * 10.0 ** -_places(self.figure)
        if self.figure.kind == "length":
            allowed *= self.figure.published
        return abs(self.difference) <= allowed + rounding


def _places(figure: Figure) -> int:
    """Decimals that a figure was published with."""
    return 4 if figure.published == 0.0001 else 3 if figure.kind == "probability" else 0


def recompute(model: Model) -> list[Row]:
    """The figures of one named model."""
    traced = _Traced(model)
    return [Row(figure, float(figure.compute(traced))) for figure in FIGURES if figure.model == model.card.name]


def table(get: Callable[[str], Model] = load) -> tuple[list[Row], dict[str, str]]:
    """All figures, and for each model that could not be had the reason in a sentence."""
    rows: list[Row] = []
    reasons: dict[str, str] = {}
    for name in MODELS:
        try:
            rows += recompute(get(name))
        except TokenwalkError as error:
            reasons[name] = str(error)
            rows += [Row(figure, None) for figure in FIGURES if figure.model == name]
    return rows, reasons


def as_lines(rows: list[Row], reasons: dict[str, str]) -> str:
    """The table for a terminal."""
    lines = [f"{'model':25} {'figure':34} {'published':>9} {'ours':>10} {'difference':>11}"]
    for row in rows:
        figure = row.figure
        begin = f"{figure.model:25} {figure.name:34} {figure.published:9g}"
        if row.ours is None or row.difference is None:
            lines.append(f"{begin} {'not run':>10}")
        else:
            lines.append(f"{begin} {row.ours:10.4f} {row.difference:+11.4f}{'' if row.holds else '  differs'}")
    return "\n".join((*lines, *(f"{name}: not run. {reason}" for name, reason in reasons.items())))


def main() -> int:
    """Prints the table; 1 where a figure differs."""
    rows, reasons = table()
    print(as_lines(rows, reasons))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
