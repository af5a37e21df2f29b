"""Probabilities by length of text, and by token."""

from collections.abc import Mapping, Sequence

import altair as alt

from charts.theme import LEGEND_ROW, Chart, named, palette, probability_colour


def by_tokens(lines: Sequence[tuple[str, bool, Sequence[tuple[int, float]]]], *, dark: bool) -> Chart:
    """The target's probability by the tokens of the text: lines of (model, with its attention off, points).

    Each point is (tokens, probability). A model keeps its colour; with the attention off its line is dashed.
    """
    models = list(dict.fromkeys(model for model, _, _ in lines))
    rows = [
        {"model": model, "run": "attention off" if off else "as trained", "tokens": tokens, "p": p}
        for model, off, points in lines
        for tokens, p in points
    ]
    runs = ["as trained", "attention off"]
    return alt.layer(
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=alt.OverlayMarkDef(size=60), strokeWidth=2)
        .encode(
            x=alt.X("tokens:Q", title="tokens of the whole text", axis=alt.Axis(tickMinStep=1, format=",d")),
            y=alt.Y(
                "p:Q", title="probability of the target", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")
            ),
            color=named("model", models, dark),
            strokeDash=alt.StrokeDash(
                "run:N",
                title=None,
                scale=alt.Scale(domain=runs, range=[[1, 0], [5, 4]]),
                legend=None,  # the page says it: beside the models it would not fit a phone
            ),
            tooltip=[
                alt.Tooltip("model:N", title="model"),
                alt.Tooltip("run:N", title="run"),
                alt.Tooltip("tokens:Q", title="tokens"),
                alt.Tooltip("p:Q", title="probability", format=".4f"),
            ],
        )
    ).properties(height=300 + LEGEND_ROW * len(models), width="container")


def kept(lines: Mapping[str, Sequence[tuple[int, float]]], *, here: int, dark: bool) -> Chart:
    """What models keep while they write on, by the length of the text: lines[model] of (tokens, bytes), both axes
    logarithmic. `here` marks this text's tokens."""
    rows = [{"model": name, "tokens": t, "kB": size / 1000} for name, points in lines.items() for t, size in points]
    line = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("tokens:Q", title="tokens of the text", scale=alt.Scale(type="log"), axis=alt.Axis(format=",d")),
            y=alt.Y("kB:Q", title="kilobytes kept", scale=alt.Scale(type="log"), axis=alt.Axis(format=",~r")),
            color=named("model", list(lines), dark),
            tooltip=[
                alt.Tooltip("model:N", title="model"),
                alt.Tooltip("tokens:Q", title="tokens", format=",d"),
                alt.Tooltip("kB:Q", title="kilobytes", format=",.1f"),
            ],
        )
    )
    mark = alt.Chart(alt.Data(values=[{"tokens": here}])).encode(x="tokens:Q")
    return alt.layer(line, mark.mark_rule(color=palette(dark).accent, strokeWidth=2)).properties(
        height=250 + LEGEND_ROW * len(lines), width="container"
    )


def by_position(values: Sequence[float], labels: Sequence[str], *, title: str, focus: int, dark: bool) -> Chart:
    """One bar a token."""
    rows = [{"c": label, "v": float(f"{value:.4g}")} for label, value in zip(labels, values, strict=True)]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "c:N",
            sort=None,
            title="after position",
            scale=alt.Scale(domain=list(labels)),
            axis=alt.Axis(labels=len(labels) <= 40, labelOverlap=False, ticks=False),
        ),
        y=alt.Y("v:Q", title=title),
        tooltip=[alt.Tooltip("c:N", title="after"), alt.Tooltip("v:Q", title=title, format=".4f")],
    )
    here = alt.Chart(alt.Data(values=[{"c": labels[focus]}])).encode(x="c:N")
    outline = here.mark_rect(fillOpacity=0, stroke=palette(dark).accent, strokeWidth=2)
    return alt.layer(base.mark_bar(color=probability_colour(dark)), outline).properties(height=300, width="container")
