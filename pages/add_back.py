"""Add back: what each half of each layer adds to the stream."""

import streamlit as st

from charts.theme import probability_colour
from charts.vectors import by_token, lengths
from core.run import Run
from core.stream import Growth, growth
from pages.frame import cache, parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import escape, number, quoted

MAP_UP_TO = 128  # tokens of the map of all positions


def says(run: Run, position: int, seen: Growth) -> str:
    """How one model's stream grows at the token in focus, in a sentence."""
    start, after = float(seen.before[0, position]), seen.after[:, position]
    largest = int(after.argmax())
    both = {"mixer": seen.mixer[:, position], "FFN": seen.ffn[:, position]}
    half = max(both, key=lambda name: float(both[name].max()))
    layer = int(both[half].argmax())
    word, name = quoted(run.tokens[position].visible), escape(title(run.model))
    most = float(both[half][layer])
    addition = f"The largest single addition, {number(most)} long, is by the {half} of layer {layer}."
    return (
        f"In **{name}**, the vector of {word} starts at a length of {number(start)}, is {number(float(after[0]))} long "
        f"after layer 0 and longest after layer {largest}: {number(float(after[largest]))}. "
        f"{addition if most else 'Nothing is added to it.'}"
    )


def draw(scene: Scene) -> None:
    seen = cache.of_run(scene.run, growth)
    focus, layer = scene.focus, scene.layer
    after = seen.after[layer]
    shares = (after / after.max()).tolist()
    parts.top(scene, "add_back", shares, f"Tint: length after layer {layer}, as a share of the longest.")
    for run in scene.runs:
        st.markdown(says(run, scene.place(run), cache.of_run(run, growth)))
    st.caption(f"{escape(title(scene.model))}, at the token in focus ({escape(scene.labels[focus])}); logarithmic")
    lines = {
        "stream after the layer": seen.after[:, focus].tolist(),
        "what the mixer adds": seen.mixer[:, focus].tolist(),
        "what the FFN adds": seen.ffn[:, focus].tolist(),
    }
    parts.chart(cache.drawn(lengths, lines, ytitle="length", marked=layer, dark=scene.dark))
    if len(scene.tokens) <= MAP_UP_TO:
        st.caption("The length of every token’s vector after each layer")
        picture = cache.drawn(
            by_token,
            seen.after.tolist(),
            scene.labels,
            rows="layer",
            title="length",
            colour=probability_colour(scene.dark),
            dark=scene.dark,
        )
        parts.chart(picture)
    parts.explain(
        "The stream grows where something is added along it. One token, mostly the first, often becomes far longer "
        "than the rest: heads with nothing to read park their weight there.",
        "What the additions say. A long one may be the same for every sentence; a short one may decide the answer.",
    )
    parts.code(scene, growth, type(scene.model).block)
    parts.numbers("add-back", rows(scene, seen))
    parts.onward(scene, "add_back")


def rows(scene: Scene, seen: Growth) -> list[dict[str, object]]:
    """One row a layer, at the token in focus."""
    focus = scene.focus
    return [
        {
            "layer": layer,
            "mixer": mixer,
            "length before": float(seen.before[layer, focus]),
            "mixer adds": float(seen.mixer[layer, focus]),
            "cosine with the stream": float(seen.mixer_cosine[layer, focus]),
            "FFN adds": float(seen.ffn[layer, focus]),
            "cosine with the stream (FFN)": float(seen.ffn_cosine[layer, focus]),
            "length after": float(seen.after[layer, focus]),
        }
        for layer, mixer in enumerate(scene.model.mixers)
    ]


page(draw)
