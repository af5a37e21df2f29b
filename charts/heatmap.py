"""A mixing map as a heat map: rows read, columns are read."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from charts.theme import Chart, palette, scale_colours

Rows = Sequence[Sequence[float]]
TILES = 80  # along a map's edge at most: a text of no more tokens is drawn cell by cell
CLOSE_UP = 36  # tokens along the edge of what is drawn of it cell by cell
PICK = "tile"  # the selection that a click on a cell makes: the labels of its row "r" and its column "c"
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
    tile of edge × edge tokens, which a click picks (`PICK`). `focus` outlines one row. Cells of the future are left
    out.
    """
    cells = [
        {"r": labels[i], "c": labels[j], "v": float(f"{value:.4g}")}
        for i, row in enumerate(values)
        for j, value in enumerate(row[: i + 1])
    ]
    title = "is read" if edge == 1 else f"is read (a cell is {edge} × {edge} tokens, its largest entry)"
    outlined = None if focus is None else labels[focus]
    return _map(cells, labels, labels, mixer=mixer, dark=dark, outlined=outlined, title=title, picks=edge > 1)


def close_up(
    values: Rows,
    labels: Sequence[str],
    corner: tuple[int, int],
    *,
    mixer: str,
    dark: bool,
    most: float,
    focus: int | None = None,
) -> Chart:
    """A part of a long text's map cell by cell, as `heatmap` draws a whole one.

    values[i][j] stands at row and column i and j past `corner`: the first position that reads, the first that is read.
    `labels` are the whole text's; `most` is the whole map's largest absolute value, for the same colours.
    """
    top, left = corner
    reads, read = labels[top : top + len(values)], labels[left : left + len(values[0])]
    cells = [
        {"r": reads[i], "c": read[j], "v": float(f"{value:.4g}")}
        for i, row in enumerate(values)
        for j, value in enumerate(row[: max(0, top + i + 1 - left)])
    ]
    outlined = labels[focus] if focus is not None and top <= focus < top + len(reads) else None
    return _map(cells, reads, read, mixer=mixer, dark=dark, outlined=outlined, title="is read", most=most)


def corner_at(reads: int, read: int, tokens: int) -> tuple[int, int]:
    """The corner of the close-up with one cell in its middle, moved so that it stays within the text."""
    last = max(0, tokens - CLOSE_UP)
    top, left = (min(last, max(0, place - CLOSE_UP // 2)) for place in (reads, read))
    return top, left


def _map(
    cells: list[dict[str, Any]],
    reads: Sequence[str],
    read: Sequence[str],
    *,
    mixer: str,
    dark: bool,
    outlined: str | None,
    title: str,
    most: float | None = None,
    picks: bool = False,
) -> Chart:
    """Cells with a row "r", a column "c" and a value "v"; the rows and columns that there are; `most`: of the scale."""
    signed = "attention" not in mixer
    if most is None:
        most = max((abs(cell["v"]) for cell in cells), default=0.0)
    most = most or 1.0
    domain = [-most, 0, most] if signed else [0, 1]
    tones = palette(dark)
    named = max(len(reads), len(read)) <= LABELS_UP_TO
    axis = alt.Axis(labels=named, ticks=False, domain=False, labelOverlap=False, labelPadding=4)
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X("c:N", sort=None, title=title, axis=axis.copy(deep=True), scale=alt.Scale(domain=list(read))),
        y=alt.Y("r:N", sort=None, title="reads", axis=axis, scale=alt.Scale(domain=list(reads))),
    )
    drawn = base.mark_rect().encode(
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
    if picks:  # the view has a name of its own: an automatic one would count on, and the chart change at every run
        picked = alt.selection_point(name=PICK, fields=["r", "c"], on="click")
        drawn = drawn.properties(name="cells").add_params(picked)
    layers = [drawn]
    if outlined is not None:
        row = alt.Chart(alt.Data(values=[{"r": outlined}])).encode(y="r:N")
        layers.append(row.mark_rect(fillOpacity=0, stroke=tones.accent, strokeWidth=2))
    height = max(160, min(560, 24 * len(reads))) + AROUND
    return alt.layer(*layers).properties(width="container", height=height)
