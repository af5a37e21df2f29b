"""A mixing map as a heat map: rows read, columns are read."""

from collections.abc import Sequence

import altair as alt

from charts.theme import Chart, palette, scale_colours

Rows = Sequence[Sequence[float]]
TILES = 80  # along a map's edge at most: a text of no more tokens is drawn cell by cell
CLOSE_UP = 36  # tokens along the edge of what is drawn of it cell by cell
PICK = "tile"  # the selection that a click on a cell makes: the labels of its row "r" and its column "c"
LABELS_UP_TO = 40  # tokens: past that the labels would lie on each other
EACH_UP_TO = 20  # columns: past that every other label may be left out, so that they can be read in a narrow window
AROUND = 150  # pixels of legend, title and labels, which the height includes


def heatmap(
    values: Rows,
    labels: Sequence[str],
    *,
    mixer: str,
    dark: bool,
    focus: int | None = None,
    edge: int = 1,
    corner: tuple[int, int] = (0, 0),
    most: float | None = None,
) -> Chart:
    """One head's map: values[reads][is read], 0 to 1 for attention, else signed and drawn around 0.

    `labels` name the text's positions ("4 Alice"), so that equal tokens never merge. `edge` > 1 says that a cell is a
    tile of edge × edge tokens, which a click picks (`PICK`). `focus` outlines one row. Cells of the future are left
    out. Of a part of a map, `corner` is where it begins, the first position that reads and the first that is read, and
    `most` the whole map's largest absolute value, for the same colours.
    """
    top, left = corner
    reads, read = labels[top : top + len(values)], labels[left : left + len(values[0])]
    cells = [
        {"r": reads[i], "c": read[j], "v": float(f"{value:.4g}")}
        for i, row in enumerate(values)
        for j, value in enumerate(row[: max(0, top + i + 1 - left)])
    ]
    if most is None:
        most = max((abs(value) for row in values for value in row), default=0.0)
    named = max(len(reads), len(read)) <= LABELS_UP_TO
    title = "is read" if edge == 1 else f"is read (a cell is {edge} × {edge} tokens, its largest entry)"
    axis = alt.Axis(labels=named, ticks=False, domain=False, labelOverlap=False, labelFlush=False, labelPadding=4)
    below = axis.copy(deep=True)
    below.labelOverlap = "parity" if len(read) > EACH_UP_TO else False
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X("c:N", sort=None, title=title, axis=below, scale=alt.Scale(domain=list(read))),
        y=alt.Y("r:N", sort=None, title="reads", axis=axis, scale=alt.Scale(domain=list(reads))),
    )
    drawn = base.mark_rect().encode(
        color=_colour(mixer, most, dark),
        tooltip=[
            alt.Tooltip("r:N", title="reads"),
            alt.Tooltip("c:N", title="is read"),
            alt.Tooltip("v:Q", title="weight", format=".4f"),
        ],
    )
    if edge > 1:  # the view has a name of its own: an automatic one would count on, and the chart change at every run
        picked = alt.selection_point(name=PICK, fields=["r", "c"], on="click")
        drawn = drawn.properties(name="cells").add_params(picked)
    layers = [drawn]
    if focus is not None and labels[focus] in reads:
        row = alt.Chart(alt.Data(values=[{"r": labels[focus]}])).encode(y="r:N")
        layers.append(row.mark_rect(fillOpacity=0, stroke=palette(dark).accent, strokeWidth=2))
    height = max(160, min(560, 24 * len(reads))) + AROUND
    return alt.layer(*layers).properties(width="container", height=height)


def _colour(mixer: str, most: float, dark: bool) -> alt.Color:
    """The scale of a map's cells, and its legend."""
    signed, most = "attention" not in mixer, most or 1.0
    domain = [-most, 0, most] if signed else [0, 1]
    return alt.Color(
        "v:Q",
        scale=alt.Scale(domain=domain, range=scale_colours(mixer, dark), clamp=True, interpolate="rgb"),
        legend=alt.Legend(
            title="signed weight" if signed else "share read, 0 to 1", orient="top", gradientLength=200, format=".2~r"
        ),
    )


def corner_at(reads: int, read: int, tokens: int) -> tuple[int, int]:
    """The corner of the close-up with one cell in its middle, moved so that it stays within the text."""
    last = max(0, tokens - CLOSE_UP)
    top, left = (min(last, max(0, place - CLOSE_UP // 2)) for place in (reads, read))
    return top, left
