"""Probabilities of next words: as bars, by layer, and as the grid of the logit lens."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from charts.theme import LEGEND_ROW, Chart, named, palette, probability_colour

GRID_AROUND = 170  # pixels of labels, titles and legend, which the height includes
GRID_WIDTH = 900  # pixels, where the words leave room for it
GRID_LEAST = 320  # pixels: the legend and the titles need them, however few the tokens
GRID_CELL = 44, 64  # pixels a cell, least and most: a short word fits


AROUND = 56  # pixels of axis and title, which a height includes


def word_axis() -> alt.Axis:
    """Words down the side: the place before each, which keeps equal words apart, is cut off."""
    word = "slice(datum.label, indexof(datum.label, ' ') + 1)"
    return alt.Axis(ticks=False, domain=False, labelOverlap=False, labelExpr=word)


def share(p: float) -> str:
    """A probability beside its bar, to a tenth of a per cent: never "100.0%" or "0.0%"."""
    return ">99.9%" if p >= 0.9995 else "<0.1%" if p < 0.0005 else f"{p:.1%}"


def top_bars(words: Sequence[tuple[str, float]], *, colour: str, dark: bool) -> Chart:
    """The likeliest next tokens: (visible text, probability), likeliest first."""
    labels = [f"{place} {word}" for place, (word, _) in enumerate(words)]
    rows = [{"word": label, "p": p, "said": share(p)} for label, (_, p) in zip(labels, words, strict=True)]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y(
            "word:N",
            sort=None,
            title=None,
            scale=alt.Scale(domain=labels),
            axis=word_axis(),
        ),
        tooltip=[alt.Tooltip("word:N", title="place, token"), alt.Tooltip("p:Q", title="probability", format=".4f")],
    )
    bars = base.mark_bar(color=colour, cornerRadiusEnd=2).encode(
        x=alt.X("p:Q", title="probability", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
    )
    text = base.mark_text(align="left", dx=4, color=palette(dark).text).encode(x=alt.X("p:Q"), text="said:N")
    return alt.layer(bars, text).properties(height=24 * len(words) + AROUND, width="container")


def by_layer(lines: Mapping[str, Sequence[float]], *, ytitle: str, marked: int | None, dark: bool) -> Chart:
    """One line a model: its target's probability after each layer, over the share of the stack that is passed.

    `lines` maps a label to one value a layer. Models differ in depth, so the axis is the layer's number.
    """
    rows = [
        {"model": label, "layer": layer, "p": value}
        for label, values in lines.items()
        for layer, value in enumerate(values)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("layer:Q", title="after layer", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        y=alt.Y("p:Q", title=ytitle, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=named("model", list(lines), dark),
        tooltip=[
            alt.Tooltip("model:N", title="model, target"),
            alt.Tooltip("layer:Q", title="after layer"),
            alt.Tooltip("p:Q", title="probability", format=".4f"),
        ],
    )
    layers = [base.mark_line(point=True, strokeWidth=2)]
    if marked is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{"layer": marked}]))
            .mark_rule(color=palette(dark).accent, strokeWidth=2)
            .encode(x="layer:Q")
        )
    return alt.layer(*layers).properties(height=300 + LEGEND_ROW * len(lines), width="container")


def by_half(lines: Mapping[str, tuple[float, Sequence[Sequence[float]]]], *, marked: int, dark: bool) -> Chart:
    """A line a word: its probability after each half of each layer.

    lines[word] is its probability before layer 0, then (after the mixer, after the FFN) for each layer. The axis counts
    layers passed: layer 3's mixer stands at 3.5, its FFN at 4. `marked` shades one layer.
    """
    rows: list[dict[str, Any]] = []
    for word, (start, layers) in lines.items():
        rows.append({"word": word, "x": 0.0, "after": "embedding", "p": start})
        for layer, (mixer, ffn) in enumerate(layers):
            rows.append({"word": word, "x": layer + 0.5, "after": "mixer", "at": layer, "p": mixer})
            rows.append({"word": word, "x": layer + 1.0, "after": "FFN", "at": layer, "p": ffn})
    halves = ["embedding", "mixer", "FFN"]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("x:Q", title="layers passed", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        y=alt.Y("p:Q", title="probability", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=named("word", list(lines), dark),
    )
    points = base.mark_point(filled=True, size=55).encode(
        shape=alt.Shape(
            "after:N",
            title="read after",
            scale=alt.Scale(domain=halves, range=["diamond", "circle", "square"]),
            legend=alt.Legend(orient="top", columns=1, symbolFillColor=palette(dark).text),  # else black on black
        ),
        tooltip=[
            alt.Tooltip("word:N", title="word"),
            alt.Tooltip("at:N", title="layer"),
            alt.Tooltip("after:N", title="read after its"),
            alt.Tooltip("p:Q", title="probability", format=".4f"),
        ],
    )
    here = alt.Chart(alt.Data(values=[{"a": marked, "b": marked + 1}])).encode(x="a:Q", x2="b:Q")
    shade = here.mark_rect(color=palette(dark).accent, opacity=0.12)
    return alt.layer(shade, base.mark_line(strokeWidth=2), points).properties(
        height=300 + LEGEND_ROW * len(lines), width="container"
    )


def lens_grid(
    words: Sequence[Sequence[str]],
    shares: Sequence[Sequence[float]],
    labels: Sequence[str],
    *,
    layer: int,
    focus: int | None,
    dark: bool,
) -> Chart:
    """Layers (down) × positions (across): the likeliest word in each cell, tinted by its probability.

    words[layer][position] and shares[layer][position]; labels name the positions. The row of `layer` and the column of
    `focus` are outlined.
    """
    tones = palette(dark)
    rows: list[dict[str, Any]] = [
        {"l": at, "c": labels[i], "w": word, "p": float(f"{shares[at][i]:.4g}")}
        for at, line in enumerate(words)
        for i, word in enumerate(line)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "c:N",
            sort=None,
            title="position",
            scale=alt.Scale(domain=list(labels)),
            axis=alt.Axis(orient="top", ticks=False, domain=False, labelAngle=-40, labelOverlap=False),
        ),
        y=alt.Y("l:O", title="after layer", sort="ascending", axis=alt.Axis(ticks=False, labelOverlap=False)),
        tooltip=[
            alt.Tooltip("c:N", title="position, token"),
            alt.Tooltip("l:O", title="after layer"),
            alt.Tooltip("w:N", title="would say"),
            alt.Tooltip("p:Q", title="probability", format=".4f"),
        ],
    )
    cells = base.mark_rect(stroke=tones.grid, strokeWidth=0.5).encode(
        color=alt.Color(
            "p:Q",
            title="its probability",
            scale=alt.Scale(domain=[0, 1], range=[tones.background, probability_colour(dark)], interpolate="rgb"),
            legend=alt.Legend(orient="bottom", gradientLength=200, format="%"),
        ),
    )
    cell = max(GRID_CELL[0], min(GRID_CELL[1], GRID_WIDTH // len(labels)))
    text = base.mark_text(fontSize=11, limit=cell - 4).encode(
        text="w:N",
        color=alt.condition("datum.p > 0.55", alt.value("#ffffff"), alt.value(tones.text)),
    )
    here = alt.Chart(alt.Data(values=[{"l": layer}])).encode(y="l:O")
    marks = [here.mark_rect(fillOpacity=0, stroke=tones.accent, strokeWidth=2)]
    if focus is not None:
        column = alt.Chart(alt.Data(values=[{"c": labels[focus]}])).encode(x="c:N")
        marks.append(column.mark_rect(fillOpacity=0, stroke=tones.accent, strokeWidth=2))
    return alt.layer(cells, text, *marks).properties(
        width=max(GRID_LEAST, cell * len(labels)), height=22 * len(words) + GRID_AROUND
    )


def before_after(rows: Sequence[tuple[str, float, float]], *, dark: bool) -> Chart:
    """Next tokens with and without the switches: (visible text, probability as trained, switched off)."""
    labels = [f"{place} {word}" for place, (word, _, _) in enumerate(rows)]
    data = [
        {"word": label, "run": run, "p": p}
        for label, (_, plain, off) in zip(labels, rows, strict=True)
        for run, p in (("as trained", plain), ("switched off", off))
    ]
    tones = palette(dark)
    chart: alt.Chart = (
        alt.Chart(alt.Data(values=data))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            y=alt.Y(
                "word:N",
                sort=None,
                title=None,
                scale=alt.Scale(domain=labels),
                axis=word_axis(),
            ),
            yOffset=alt.YOffset("run:N", sort=["as trained", "switched off"]),
            x=alt.X("p:Q", title="probability", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5)),
            color=alt.Color(
                "run:N",
                title=None,
                scale=alt.Scale(domain=["as trained", "switched off"], range=[probability_colour(dark), tones.off]),
                legend=alt.Legend(orient="top", direction="vertical"),
            ),
            tooltip=[
                alt.Tooltip("word:N", title="place, token"),
                alt.Tooltip("run:N", title="run"),
                alt.Tooltip("p:Q", title="probability", format=".4f"),
            ],
        )
        .properties(height=34 * len(rows) + AROUND + 30, width="container")
    )
    return chart
