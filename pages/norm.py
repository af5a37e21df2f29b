"""Norm: what a layer does to the vector before it reads it."""

import streamlit as st

from charts.theme import probability_colour
from charts.vectors import vector_rows
from core.norm import Normed, mean, normed, root_mean_square
from core.run import Run
from pages.frame import cache, parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import escape, number, quoted

FORMULA = {
    "LayerNorm": "(x − mean) / √(variance + ε) · weight + bias",
    "RMSNorm": "x / √(mean of x² + ε) · weight",
}


def says(run: Run, layer: int, position: int, seen: Normed) -> str:
    """One model's norm of the token in focus, in a sentence."""
    word, name = quoted(run.tokens[position].visible), escape(title(run.model))
    return (
        f"Before layer {layer} of **{name}**, {word} has a root mean square of {number(root_mean_square(seen.before))} "
        f"(mean {number(mean(seen.before))}); {seen.kind} takes it to {number(root_mean_square(seen.scaled))}, and its "
        f"learned weight to {number(root_mean_square(seen.after))}."
    )


def draw(scene: Scene) -> None:
    streams = scene.run.values["residual.before"][scene.layer]
    lengths = streams.pow(2).mean(-1).sqrt()
    shares = (lengths / lengths.max()).tolist()
    parts.top(scene, "norm", shares, f"Tint: root mean square before layer {scene.layer}, as a share of the largest.")
    for run in scene.runs:
        layer = min(scene.layer, run.model.layers - 1)
        position = scene.place(run)
        st.markdown(says(run, layer, position, normed(run, layer, position)))
    seen = normed(scene.run, scene.layer, scene.focus)
    vectors = {
        "before": seen.before.tolist(),
        "divided": seen.scaled.tolist(),
        "times the weight": seen.after.tolist(),
    }
    parts.chart(cache.drawn(vector_rows, vectors, colour=probability_colour(scene.dark), dark=scene.dark))
    st.caption(f"{escape(title(scene.model))}, {seen.kind}: {FORMULA[seen.kind]}")
    parts.explain(
        "The first two rows are one picture: dividing changes the length, not the direction (LayerNorm also takes the "
        "mean off). The third differs: the weight turns channels up and down, often silencing the few huge ones.",
        "That anything is lost. The stream itself goes on unnormed beside the layer; only what the layer reads is "
        "normed.",
    )
    parts.code(scene, normed, type(scene.model).block)
    parts.numbers(
        "norm",
        [{"channel": i, **{name: values[i] for name, values in vectors.items()}} for i in range(scene.model.width)],
    )
    parts.onward(scene, "norm")


page(draw)
