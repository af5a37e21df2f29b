"""Positions: wavelengths, bands of heads, and what a learned table knows of distance."""

from collections.abc import Mapping, Sequence

import altair as alt

from charts.theme import Chart, mix, named, palette, probability_colour

SPEEDS = {"fast": "#3b6fd4", "middle": "#c86f12", "slow": "#7d828b"}


def wavelengths(bands: Sequence[tuple[float, str]], marks: Mapping[str, float], *, dark: bool) -> Chart:
    """Each band's wavelength in positions, fastest first, on a logarithmic axis; `marks` are lengths to compare.

    The shortest of them is named at the right end of its line, the others at the left: there no point is near.
    """
    rows = [{"band": i, "positions": wavelength, "speed": speed} for i, (wavelength, speed) in enumerate(bands)]
    points = (
        alt.Chart(alt.Data(values=rows))
        .mark_circle(size=70)
        .encode(
            x=alt.X("band:Q", title="band", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("positions:Q", title="positions for one turn", scale=alt.Scale(type="log")),
            color=alt.Color(
                "speed:N",
                title=None,
                scale=alt.Scale(domain=list(SPEEDS), range=list(SPEEDS.values())),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("band:Q", title="band"),
                alt.Tooltip("positions:Q", title="positions a turn", format=",.1f"),
                alt.Tooltip("speed:N", title="speed"),
            ],
        )
    )
    shortest = min(marks, key=lambda name: marks[name])
    lengths = [{"name": name, "at": value, "right": name == shortest} for name, value in marks.items()]
    lines = alt.Chart(alt.Data(values=lengths)).encode(y="at:Q", color=alt.value(palette(dark).text))
    rule, words = lines.mark_rule(strokeDash=[4, 3]), lines.encode(text="name:N")
    left = words.transform_filter("!datum.right").mark_text(align="left", dx=4, dy=-6).encode(x=alt.value(2))
    right = words.transform_filter("datum.right").mark_text(align="right", dy=-6).encode(x=alt.value("width"))
    return alt.layer(points, rule, left, right).properties(height=320, width="container")


def head_bands(weights: Sequence[Sequence[float]], *, dark: bool) -> Chart:
    """weights[head][band], a row summing to 1: where each head's query·key products sit."""
    rows = [
        {"head": head, "band": band, "v": float(f"{value:.4g}")}
        for head, line in enumerate(weights)
        for band, value in enumerate(line)
    ]
    zero = mix(palette(dark).background, palette(dark).text, 0.05)
    chart: Chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(
            x=alt.X("band:O", title="band, fastest first", axis=alt.Axis(labelAngle=0, labelOverlap=True, ticks=False)),
            y=alt.Y("head:O", title="head", axis=alt.Axis(ticks=False, domain=False)),
            color=alt.Color(
                "v:Q",
                scale=alt.Scale(range=[zero, probability_colour(dark)], interpolate="rgb"),
                legend=alt.Legend(title="share of the head’s products", orient="top", gradientLength=200, format="%"),
            ),
            tooltip=[
                alt.Tooltip("head:O", title="head"),
                alt.Tooltip("band:O", title="band"),
                alt.Tooltip("v:Q", title="share", format=".2%"),
            ],
        )
        .properties(height=22 * len(weights) + 130, width="container")
    )
    return chart


def similarity(curves: Mapping[str, Sequence[float]], *, dark: bool) -> Chart:
    """The match of two positions by their distance, a line a curve."""
    rows = [
        {"curve": name, "distance": distance, "v": float(f"{value:.4g}")}
        for name, values in curves.items()
        for distance, value in enumerate(values)
    ]
    chart: Chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("distance:Q", title="distance in positions"),
            y=alt.Y("v:Q", title="similarity", scale=alt.Scale(domain=[-1, 1])),
            color=named("curve", list(curves), dark),
            tooltip=[alt.Tooltip("distance:Q"), alt.Tooltip("v:Q", title="similarity", format=".3f")],
        )
        .properties(height=280, width="container")
    )
    return chart


def components(rows: Sequence[Sequence[float]], *, dark: bool) -> Chart:
    """rows[position][component]: a learned table along its principal components."""
    values = [
        {"position": position, "component": f"component {i}", "v": float(f"{value:.4g}")}
        for position, row in enumerate(rows)
        for i, value in enumerate(row)
    ]
    names = [f"component {i}" for i in range(len(rows[0]))]
    chart: Chart = (
        alt.Chart(alt.Data(values=values))
        .mark_line()
        .encode(
            x=alt.X("position:Q", title="position"),
            y=alt.Y("v:Q", title="along the component"),
            color=named("component", names, dark),
        )
        .properties(height=240, width="container")
    )
    return chart
