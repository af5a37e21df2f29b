"""A mixing map as a heat map: rows read, columns are read."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from charts.theme import Chart, palette, scale_colours

Rows = Sequence[Sequence[float]]
EXACT_UP_TO = 71  # tokens whose whole map goes to the browser cell by cell
TILES = 80  # along the edge of a longer text's map
LABELS_UP_TO = 40  # tokens: past that the labels would lie on each other
AROUND = 150  # pixels of legend, title and labels, which the height includes


def heatmap(
    values: Rows,
    labels: Sequence[str],
    *,
    mixer: str,
    dark: bool,
    focus: int | None = None,
    edge: int = 1,
) -> Chart:
    """One head's map: values[reads][is read], 0 to 1 for attention, else signed and drawn around 0.

    `labels` name the rows and columns ("4 Alice"), so that equal tokens never merge. `edge` > 1 says that a cell is a
    tile of edge × edge tokens. `focus` outlines one row. Cells of the future are left out.
    """
    signed = "attention" not in mixer
    most = max((abs(value) for row in values for value in row), default=0.0) or 1.0
    domain = [-most, 0, most] if signed else [0, 1]
    rows: list[dict[str, Any]] = [
        {"r": labels[i], "c": labels[j], "v": float(f"{value:.4g}")}
        for i, row in enumerate(values)
        for j, value in enumerate(row[: i + 1])
    ]
    tones = palette(dark)
    named = len(labels) <= LABELS_UP_TO
    axis = alt.Axis(labels=named, ticks=False, domain=False, labelOverlap=False, labelPadding=4)
    title = "is read" if edge == 1 else f"is read (a cell is {edge} × {edge} tokens, its largest entry)"
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("c:N", sort=None, title=title, axis=axis.copy(deep=True), scale=alt.Scale(domain=list(labels))),
        y=alt.Y("r:N", sort=None, title="reads", axis=axis, scale=alt.Scale(domain=list(labels))),
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "v:Q",
            scale=alt.Scale(domain=domain, range=scale_colours(mixer, dark), clamp=True, interpolate="rgb"),
            legend=alt.Legend(
                title="signed weight" if signed else "share read, 0 to 1",
                orient="top",
                gradientLength=200,
                format=".2g",
            ),
        ),
        tooltip=[
            alt.Tooltip("r:N", title="reads"),
            alt.Tooltip("c:N", title="is read"),
            alt.Tooltip("v:Q", title="weight", format=".4f"),
        ],
    )
    layers = [cells]
    if focus is not None:
        row = alt.Chart(alt.Data(values=[{"r": labels[focus]}])).encode(y="r:N")
        layers.append(row.mark_rect(fillOpacity=0, stroke=tones.accent, strokeWidth=2))
    height = max(160, min(560, 24 * len(labels))) + AROUND
    return alt.layer(*layers).properties(width="container", height=height)
