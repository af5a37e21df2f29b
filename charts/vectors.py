"""Vectors as rows of colour, and quantities by layer and token."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from charts.theme import LEGEND_ROW, Chart, mix, named, palette

ROW = 50  # pixels a vector
TOKENS_NAMED = 40
MAP_ROW, MAP_LEAST = 14, 110  # pixels a row of a map by token, and all its rows at least


def vector_rows(vectors: Mapping[str, Sequence[float]], *, colour: str, dark: bool) -> Chart:
    """Each vector as one row, a channel a cell, coloured around 0.

    The unit is each row's own root mean square, clamped at 3 of them, so that a row shows its shape and one huge
    channel does not drown the rest: lengths are said in the text.
    """
    rows: list[dict[str, Any]] = []
    for label, values in vectors.items():
        unit = (sum(value * value for value in values) / max(1, len(values))) ** 0.5 or 1.0
        rows += [
            {"name": label, "i": i, "j": i + 1, "v": float(f"{value:.4g}"), "u": round(value / unit, 2)}
            for i, value in enumerate(values)
        ]
    tones = palette(dark)
    zero = mix(tones.background, tones.text, 0.05)
    chart: Chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(
            x=alt.X("i:Q", title="channel", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=8, grid=False)),
            x2="j:Q",
            y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=260)),
            color=alt.Color(
                "u:Q",
                scale=alt.Scale(domain=[-3, 0, 3], range=[tones.negative, zero, colour], interpolate="rgb", clamp=True),
                legend=alt.Legend(title="value, in root mean squares of its row", orient="top", gradientLength=200),
            ),
            tooltip=[
                alt.Tooltip("name:N", title="vector"),
                alt.Tooltip("i:Q", title="channel"),
                alt.Tooltip("v:Q", title="value", format=".4g"),
            ],
        )
        .properties(width="container", height=ROW * len(vectors) + 130)
    )
    return chart


def lengths(lines: Mapping[str, Sequence[float]], *, ytitle: str, marked: int, dark: bool) -> Chart:
    """One line a name, a point a layer, on a logarithmic axis: lengths of the stream and of what is added to it."""
    rows = [
        {"line": label, "layer": layer, "length": value}
        for label, values in lines.items()
        for layer, value in enumerate(values)
        if value > 0
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("layer:Q", title="layer", axis=alt.Axis(tickMinStep=1, format="d"), scale=alt.Scale(nice=False)),
        y=alt.Y("length:Q", title=ytitle, scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=6)),
        color=named("line", list(lines), dark),
        tooltip=[
            alt.Tooltip("line:N", title="of"),
            alt.Tooltip("layer:Q", title="layer"),
            alt.Tooltip("length:Q", title="length", format=".3g"),
        ],
    )
    rule = alt.Chart(alt.Data(values=[{"layer": marked}])).encode(x="layer:Q")
    return alt.layer(
        base.mark_line(point=True, strokeWidth=2), rule.mark_rule(color=palette(dark).accent, strokeWidth=2)
    ).properties(height=280 + LEGEND_ROW * len(lines), width="container")


def by_token(
    values: Sequence[Sequence[float]],
    labels: Sequence[str],
    *,
    rows: str,
    title: str,
    colour: str,
    dark: bool,
    domain: tuple[float, float] | None = None,
) -> Chart:
    """values[row][token] as a map; `rows` says what a row is ("layer", "head").

    Colours run linearly over `domain`; where none is given, on a logarithmic scale over what is there.
    """
    data = [
        {"l": row, "c": labels[i], "v": float(f"{value:.4g}")}
        for row, line in enumerate(values)
        for i, value in enumerate(line)
    ]
    tones = palette(dark)
    ends = [mix(tones.background, tones.text, 0.05), colour]
    scale = (
        alt.Scale(type="log", range=ends, interpolate="rgb")
        if domain is None
        else alt.Scale(domain=list(domain), range=ends, interpolate="rgb", clamp=True)
    )
    chart: Chart = (
        alt.Chart(alt.Data(values=data))
        .mark_rect()
        .encode(
            x=alt.X(
                "c:N",
                sort=None,
                title="position",
                scale=alt.Scale(domain=list(labels)),
                axis=alt.Axis(labels=len(labels) <= TOKENS_NAMED, ticks=False, domain=False, labelOverlap=False),
            ),
            y=alt.Y("l:O", title=rows, axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color("v:Q", title=title, scale=scale, legend=alt.Legend(orient="top", gradientLength=200)),
            tooltip=[
                alt.Tooltip("c:N", title="position, token"),
                alt.Tooltip("l:O", title=rows),
                alt.Tooltip("v:Q", title=title, format=".3g"),
            ],
        )
        .properties(width="container", height=max(MAP_ROW * len(values), MAP_LEAST) + 170)
    )
    return chart
