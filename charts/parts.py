"""What parts of a model do, layer by layer: signed terms, maps of heads, neurons, and sweeps of switch-offs."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from charts.theme import FFN, FFN_COLOUR, KIND_NAMES, Chart, by_kind, mix, palette

STEP = 22  # pixels a row


def terms(mixers: Sequence[str], mixer: Sequence[float], ffn: Sequence[float], *, layer: int, dark: bool) -> Chart:
    """Two signed bars a layer: what its mixer and its FFN add to a logit. `mixers` names each layer's kind."""
    rows: list[dict[str, Any]] = []
    for at, kind in enumerate(mixers):
        rows += [
            {"layer": at, "half": KIND_NAMES[kind], "side": "mixer", "v": float(f"{mixer[at]:.4g}")},
            {"layer": at, "half": FFN, "side": "ffn", "v": float(f"{ffn[at]:.4g}")},
        ]
    kinds = list(dict.fromkeys(mixers))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        xOffset=alt.XOffset("side:N", sort=["mixer", "ffn"]),
        y=alt.Y("v:Q", title="logits added"),
        color=by_kind("half", [*kinds, FFN]),
        tooltip=[
            alt.Tooltip("layer:O", title="layer"),
            alt.Tooltip("half:N", title="part"),
            alt.Tooltip("v:Q", title="logits", format="+.3f"),
        ],
    )
    here = alt.Chart(alt.Data(values=[{"layer": layer}])).encode(x="layer:O")
    outline = here.mark_rect(fillOpacity=0, stroke=palette(dark).accent, strokeWidth=2)
    return alt.layer(base.mark_bar(), outline).properties(height=340, width="container")


def by_head(
    heads: Mapping[int, Sequence[float]], *, title: str, layer: int, colours: Sequence[str], dark: bool
) -> Chart:
    """heads[layer][head] as a map: signed around 0 with three colours, shares from 0 to 1 with two."""
    rows = [
        {"layer": at, "head": head, "v": float(f"{value:.4g}")}
        for at, line in heads.items()
        for head, value in enumerate(line)
    ]
    signed = len(colours) == 3
    most = max((abs(row["v"]) for row in rows), default=0.0) or 1.0
    format = "+.3f" if signed else ".4f"
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0, ticks=False, domain=False)),
        y=alt.Y("head:O", title="head", axis=alt.Axis(ticks=False, domain=False)),
        color=alt.Color(
            "v:Q",
            scale=alt.Scale(
                domain=[-most, 0, most] if signed else [0, 1], range=list(colours), interpolate="rgb", clamp=True
            ),
            legend=alt.Legend(title=title, orient="top", gradientLength=200, format="+.2g" if signed else "%"),
        ),
        tooltip=[
            alt.Tooltip("layer:O", title="layer"),
            alt.Tooltip("head:O", title="head"),
            alt.Tooltip("v:Q", title=title, format=format),
        ],
    )
    marks: list[alt.Chart] = [base.mark_rect(stroke=palette(dark).background, strokeWidth=1)]
    if layer in heads:
        here = alt.Chart(alt.Data(values=[{"layer": layer}])).encode(x="layer:O")
        marks.append(here.mark_rect(fillOpacity=0, stroke=palette(dark).accent, strokeWidth=2))
    tallest = max((len(line) for line in heads.values()), default=1)
    return alt.layer(*marks).properties(height=STEP * tallest + 130, width="container")


def neuron_bars(values: Sequence[tuple[str, float]], *, title: str, dark: bool) -> Chart:
    """A signed bar a neuron, in the order given: ("23.275", value)."""
    names = [name for name, _ in values]
    rows = [{"name": name, "v": float(f"{value:.4g}")} for name, value in values]
    chart: Chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=mix(FFN_COLOUR, "#ffffff", 0.25) if dark else FFN_COLOUR, cornerRadiusEnd=2)
        .encode(
            y=alt.Y(
                "name:N", sort=None, title="layer.neuron", scale=alt.Scale(domain=names), axis=alt.Axis(ticks=False)
            ),
            x=alt.X("v:Q", title=title),
            tooltip=[alt.Tooltip("name:N", title="layer.neuron"), alt.Tooltip("v:Q", title=title, format="+.3f")],
        )
        .properties(height=STEP * len(values) + 60, width="container")
    )
    return chart


def sweep(mixers: Sequence[str], p: Sequence[float], words: Sequence[str], plain: float, *, dark: bool) -> Chart:
    """The target's probability with each layer's mixer off in turn; the line is the plain run.

    `words[layer]` is what is on top without that layer's mixer.
    """
    rows = [
        {"layer": at, "kind": KIND_NAMES[kind], "p": float(f"{p[at]:.4g}"), "top": words[at]}
        for at, kind in enumerate(mixers)
    ]
    kinds = list(dict.fromkeys(mixers))
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=alt.X("layer:O", title="layer whose mixer is off", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("p:Q", title="probability", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
            color=by_kind("kind", kinds),
            tooltip=[
                alt.Tooltip("layer:O", title="layer off"),
                alt.Tooltip("kind:N", title="mixer"),
                alt.Tooltip("p:Q", title="the target's probability", format=".4f"),
                alt.Tooltip("top:N", title="on top"),
            ],
        )
    )
    line = (
        alt.Chart(alt.Data(values=[{"p": plain}]))
        .mark_rule(color=palette(dark).text, strokeDash=[4, 3])
        .encode(y="p:Q")
    )
    return alt.layer(bars, line).properties(height=300, width="container")
