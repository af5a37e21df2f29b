"""Logit lens: what the model would say if it stopped after a layer."""

import streamlit as st

from charts.theme import KIND_NAMES, probability_colour
from charts.words import by_half, by_layer, lens_grid
from core.lens import Halves, Lens, halves, lens
from core.run import Run
from pages.frame import cache, parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import escape, percent, quoted

POSITIONS = 20  # columns of the grid: up to the focus and some past it


def says(run: Run, seen: Lens) -> str:
    """Where the target first leads for good, in a sentence. `seen` has one position."""
    word = quoted(run.model.tokenizer.visible(seen.target))
    name = f"In **{escape(title(run.model))}**, "
    at, first = seen.leads_from(), seen.first_on_top()
    last = run.model.layers - 1
    if at is not None:
        ahead = "" if at == 0 else f" Just before, after layer {at - 1}, it would say {top(run, seen, at - 1)}."
        return (
            f"{name}{word} is on top from layer {at} of {run.model.layers} on, and ends at "
            f"{percent(float(seen.p[-1, 0]))}.{ahead}"
        )
    if first is not None:
        return (
            f"{name}{word} is first on top after layer {first}, but not at the end: there it is {top(run, seen, last)}."
        )
    return (
        f"{name}{word} is never on top: its best place is {int(seen.rank.min())}, after layer "
        f"{int(seen.rank[:, 0].argmin())}. At the end it is {top(run, seen, last)}."
    )


def top(run: Run, seen: Lens, layer: int) -> str:
    """The likeliest word after a layer, with its probability."""
    word = run.model.tokenizer.visible(int(seen.top[layer, 0]))
    return f"{quoted(word)} ({percent(float(seen.top_p[layer, 0]))})"


def draw(scene: Scene) -> None:
    positions = window(scene)
    grid = cache.of_run(scene.run, lens, scene.target(scene.run), positions)
    shares = [0.0] * len(scene.tokens)
    for column, position in enumerate(positions):
        shares[position] = float(grid.p[scene.layer, column])
    word = scene.model.tokenizer.visible(grid.target)
    legend = f"Tint: probability of “{word}” next, after layer {scene.layer}."
    parts.top(scene, "logit_lens", shares, legend, probability_colour(scene.dark))
    lines = {}
    for run in scene.runs:
        seen = cache.of_run(run, lens, scene.target(run), (scene.place(run),))
        st.markdown(says(run, seen))
        lines[f"{title(run.model)}: {run.model.tokenizer.visible(seen.target)}"] = seen.p[:, 0].tolist()
    st.caption(
        f"The target’s probability after each layer, at the token in focus ({escape(scene.labels[scene.focus])})"
    )
    parts.chart(cache.drawn(by_layer, lines, ytitle="probability of the target", marked=scene.layer, dark=scene.dark))
    words(scene)
    st.caption(f"{escape(title(scene.model))}: the likeliest next token after each layer, at each position")
    with st.container(key="wide"):
        parts.chart(picture(scene, grid), width="content", key="grid")
    if len(positions) < len(scene.tokens):
        st.caption(
            f"Positions {positions[0]} to {positions[-1]} of {len(scene.tokens):,}: move the focus to see others."
        )
    parts.explain(
        "The layer at which a column changes to the right word and stays. Early layers often say the token itself or a "
        "common word; the change can come late and at once.",
        "What the layer knows. It is read by the last layer’s norm and unembedding, which early layers were not "
        "trained to speak to: a word that is not on top may still be there in another form.",
    )
    parts.code(scene, lens, halves, type(scene.model).unembed)
    parts.numbers("logit-lens", rows(scene, grid))
    parts.onward(scene, "logit_lens")


def words(scene: Scene) -> None:
    """The target against other words, after each half of each layer: which half brought it."""
    run, target = scene.run, scene.target(scene.run)
    word = run.model.tokenizer.visible
    others = [each.id for each in run.top(10, scene.focus) if each.id != target]
    rivals = st.multiselect(
        "The target against", others, others[:1], format_func=word, max_selections=3, key="words beside the target"
    )
    seen = cache.of_run(run, halves, (target, *rivals), scene.focus)
    st.markdown(brought(run, seen))
    names = [word(id) for id in seen.words]
    names = [
        name if names.count(name) == 1 else f"{name} (id {id})" for name, id in zip(names, seen.words, strict=True)
    ]
    lines = {name: (float(seen.start[place]), seen.p[place].tolist()) for place, name in enumerate(names)}
    parts.chart(cache.drawn(by_half, lines, marked=scene.layer, dark=scene.dark), key="halves")


def brought(run: Run, seen: Halves) -> str:
    """Which half of which layer raises the target most, in a sentence."""
    half, layer, before, after = seen.largest_gain()
    word, name = quoted(run.model.tokenizer.visible(seen.words[0])), escape(title(run.model))
    if after <= before:
        return f"No half of a layer raises {word} in {name}."
    part = "FFN" if half == "ffn" else f"mixer ({KIND_NAMES[run.model.mixers[layer]]})"
    return (
        f"Read after each half of each layer of {name}, {word} rises most at the {part} of layer {layer}: from "
        f"{percent(before)} to {percent(after)}."
    )


def window(scene: Scene) -> tuple[int, ...]:
    """The positions that the grid shows: all of a short text, else those around the focus."""
    tokens = len(scene.tokens)
    end = min(tokens, max(scene.focus + POSITIONS // 4, POSITIONS))
    return tuple(range(max(0, end - POSITIONS), end))


def picture(scene: Scene, grid: Lens) -> object:
    """The grid of words."""
    word = scene.model.tokenizer.visible
    return cache.drawn(
        lens_grid,
        [[word(int(id)) for id in row] for row in grid.top],
        grid.top_p.tolist(),
        [scene.labels[i] for i in grid.positions],
        layer=scene.layer,
        focus=grid.positions.index(scene.focus) if scene.focus in grid.positions else None,
        dark=scene.dark,
    )


def rows(scene: Scene, grid: Lens) -> list[dict[str, object]]:
    """One row a layer and position."""
    text = scene.model.tokenizer.text
    return [
        {
            "layer": layer,
            "mixer": mixer,
            "position": scene.labels[position],
            "top": text(int(grid.top[layer, i])),
            "probability": float(grid.top_p[layer, i]),
            "target probability": float(grid.p[layer, i]),
            "target rank": int(grid.rank[layer, i]),
        }
        for layer, mixer in enumerate(scene.model.mixers)
        for i, position in enumerate(grid.positions)
    ]


page(draw)
