"""Probabilities by length of text, and by token."""

from collections.abc import Mapping, Sequence

import altair as alt

from charts.theme import Chart, model_colours, palette, probability_colour


def by_tokens(lines: Mapping[str, Sequence[tuple[int, float]]], *, dark: bool) -> Chart:
    """A line a run: the target's probability by the tokens of the text. lines[name]: (tokens, probability)."""
    rows = [{"run": name, "tokens": tokens, "p": p} for name, points in lines.items() for tokens, p in points]
    return alt.layer(
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=alt.OverlayMarkDef(size=60), strokeWidth=2)
        .encode(
            x=alt.X("tokens:Q", title="tokens of the whole text", axis=alt.Axis(tickMinStep=1, format=",d")),
            y=alt.Y(
                "p:Q", title="probability of the target", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")
            ),
            color=alt.Color(
                "run:N",
                title=None,
                scale=alt.Scale(domain=list(lines), range=model_colours(dark)[: len(lines)]),
                legend=alt.Legend(orient="top", columns=2),
            ),
            strokeDash=alt.condition("indexof(datum.run, 'off') > 0", alt.value([5, 4]), alt.value([1, 0])),
            tooltip=[
                alt.Tooltip("run:N", title="run"),
                alt.Tooltip("tokens:Q", title="tokens"),
                alt.Tooltip("p:Q", title="probability", format=".4f"),
            ],
        )
    ).properties(height=340, width="container")


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
