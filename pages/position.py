"""Position: where order comes from."""

import streamlit as st
import torch

from charts import positions as charts
from charts.theme import KIND_NAMES
from core import mixers
from core.model import Model, Rotary
from core.positions import Band, band_weights, bands, learned_positions, rope_similarity
from pages.frame import cache, components, parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import escape, percent

BASE = 10_000.0  # of the RoPE that a learned table is held against
CURVE = 256  # distances of the similarity curves
SEED = 0  # of the random query and key under the clocks


def says(model: Model, layer: int) -> str:
    """Where a model's order comes from, in a sentence."""
    name = f"**{escape(title(model))}**"
    rotary, learned = model.rotary(layer), cache.of_model(model, learned_positions)
    if rotary is not None:
        return f"{name} {turning(rotary, model.context, layer)}"
    if learned is not None:
        near = float(learned.similarity[min(10, model.context - 1)])
        return (
            f"{name} adds a learned row for each of {model.context:,} positions: distance alone explains "
            f"{percent(learned.r_squared)} of how alike two rows are (R² {learned.r_squared:.2f}); rows 10 apart "
            f"have a cosine of {near:.2f}."
        )
    other = next((at for at in range(model.layers) if model.rotary(at) is not None), None)
    if other is not None:
        return (
            f"{name} gives layer {layer} ({KIND_NAMES[model.mixers[layer]]}) no positions: there order comes "
            "from the short convolution and from the state, which fades from token to token. "
            f"Layer {other} turns its queries and keys."
        )
    return (
        f"{name} has no positions at all: order comes from its recurrent layers, whose convolution sees the last few "
        "tokens and whose state fades from token to token, and from the causal mask."
    )


def turning(rotary: Rotary, context: int, layer: int) -> str:
    """What RoPE does in a layer."""
    found = bands(rotary, context)
    speeds = {speed: sum(band.speed == speed for band in found) for speed in charts.SPEEDS}
    whole = rotary.dim == rotary.head_dim
    share = "" if whole else f" {rotary.dim} of each head’s {rotary.head_dim} channels turn:"
    return (
        f"turns queries and keys (RoPE, base {rotary.theta:,.0f}, layer {layer}):{share} {len(found)} bands, from "
        f"{found[0].wavelength:.1f} to {found[-1].wavelength:,.0f} positions a turn; within its context of "
        f"{context:,}: {speeds['fast']} fast, {speeds['middle']} middle, {speeds['slow']} slow."
    )


LOOK = {
    "rope": (
        "Move one slider: fast hands spin, slow ones hardly stir. Then move both by the same: every hand has turned, "
        "and the score has not changed, since it depends on the gap alone.",
        "Which bands matter. A head may use the slow ones as if there were no positions, and one fast band to find the "
        "token before: the map of heads and bands shows where its products sit in this sentence.",
    ),
    "learned": (
        "How far the curve stays above 0: within that distance two rows are alike. The components show what the rows "
        "are made of; past the last row there is no position, so the text has to end there.",
        "What heads make of it. The rows are added to the tokens’, and each layer reads both from one vector.",
    ),
    "none": (
        "Pick a layer of another kind in the strip, where there is one: its mixer may turn queries and keys.",
        "How far back the state reaches: the Mixing page shows what is left in it of each earlier token.",
    ),
}


def draw(scene: Scene) -> None:
    parts.top(scene, "position")
    for run in scene.runs:
        st.markdown(says(run.model, min(scene.layer, run.model.layers - 1)))
    model = scene.model
    rotary = model.rotary(scene.layer)
    rows: list[dict[str, object]] = []
    if rotary is not None:
        found = bands(rotary, model.context)
        rope(scene, rotary, found)
        rows = [
            {
                "band": band.index,
                "radians a position": band.radians,
                "positions a turn": band.wavelength,
                "turns in the context": band.turns,
                "speed": band.speed,
            }
            for band in found
        ]
        parts.explain(*LOOK["rope"])
        parts.code(scene, mixers.rope_frequencies, mixers.rope)
    elif (learned := cache.of_model(model, learned_positions)) is not None:
        curve = learned.similarity[:CURVE].tolist()
        rows = [{"distance": distance, "cosine": value} for distance, value in enumerate(curve)]
        head_dim = model.width // model.heads(0)
        other = rope_similarity(Rotary(head_dim, head_dim, BASE, 1.0), len(curve)).tolist()
        both = {"learned rows, mean cosine": curve, f"RoPE, base {BASE:,.0f}, heads of {head_dim}": other}
        parts.chart(cache.drawn(charts.similarity, both, dark=scene.dark))
        st.caption("The rows along their first three principal components")
        parts.chart(cache.drawn(charts.components, learned.components.tolist(), dark=scene.dark))
        parts.explain(*LOOK["learned"])
        parts.code(scene, learned_positions, type(model).embed)
    else:
        parts.explain(*LOOK["none"])
        parts.code(scene, mixers.causal_conv, type(model).block)
    if rows:
        parts.numbers("position", rows)
    parts.onward(scene, "position")


def rope(scene: Scene, rotary: Rotary, found: list[Band]) -> None:
    """The clocks, the wavelengths, and where this layer's heads have their products."""
    generator = torch.Generator().manual_seed(SEED)
    query, key = torch.randn(2, len(found), 2, generator=generator)
    where = f"layer {scene.layer} of {escape(title(scene.model))}"
    st.caption(
        f"One head of {where}: a dial a band, with its positions a turn below. The query and key of the score are "
        "random numbers; the hands are this model’s."
    )
    components.clocks(
        "clocks",
        [(band.radians, f"{band.wavelength:,.0f}", band.speed) for band in found],
        query.tolist(),
        key.tolist(),
        most=min(scene.model.context - 1, max(511, scene.focus)),
        query_at=scene.focus,
        key_at=0,
        colours=charts.SPEEDS,
    )
    tokens, context = len(scene.tokens), scene.model.context
    marks = {f"this text, {tokens} tokens": tokens, f"context, {context:,}": context}
    left, right = st.columns(2)
    with left:
        st.caption("Positions that each band needs for one turn")
        picture = cache.drawn(
            charts.wavelengths, [(band.wavelength, band.speed) for band in found], marks, dark=scene.dark
        )
        parts.chart(picture)
    with right:
        st.caption("How alike one vector is to itself, a distance apart")
        curve = rope_similarity(rotary, min(CURVE, scene.model.context)).tolist()
        parts.chart(cache.drawn(charts.similarity, {"all bands equally long": curve}, dark=scene.dark))
    st.caption(f"Where the query·key products of each head of layer {scene.layer} sit, in this sentence")
    weights = cache.of_run(scene.run, band_weights, scene.layer)
    parts.chart(cache.drawn(charts.head_bands, weights.tolist(), dark=scene.dark))


page(draw)
