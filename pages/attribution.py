"""Attribution: who writes straight along the word."""

import streamlit as st

from charts.parts import by_head, terms
from charts.theme import signed_colours
from core.attribution import Attribution, attribution
from core.run import Run
from pages.frame import cache, parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import HALF_NAMES, escape, quoted, signed


def says(run: Run, target: int, seen: Attribution) -> str:
    """Which half of which layer writes most along the target, in a sentence."""
    half, layer, most = seen.largest()
    word, name = quoted(run.model.tokenizer.visible(target)), escape(title(run.model))
    best = (
        f"The largest part of it, {signed(most)}, is by the {HALF_NAMES[half]} of layer {layer}."
        if most > 0
        else "No layer writes along it."
    )
    return (
        f"In **{name}**, the logit of {word} is {seen.logit:.2f}. {best} All mixers together write "
        f"{signed(float(seen.mixer.sum()))}, all FFNs {signed(float(seen.ffn.sum()))}, the embedding "
        f"{signed(seen.embedding)}."
    )


def draw(scene: Scene) -> None:
    run, target = scene.run, scene.target(scene.run)
    seen = cache.of_run(run, attribution, target, scene.focus)
    parts.top(scene, "attribution")
    for each in scene.runs:
        aim = scene.target(each)
        st.markdown(says(each, aim, cache.of_run(each, attribution, aim, scene.place(each))))
    shown = against(scene, seen)
    parts.chart(
        cache.drawn(
            terms, run.model.mixers, shown.mixer.tolist(), shown.ffn.tolist(), layer=scene.layer, dark=scene.dark
        ),
        width="stretch",
    )
    st.caption("The same for every head of every layer")
    heads = {layer: each.tolist() for layer, each in enumerate(shown.heads)}
    colours = signed_colours(scene.dark)
    picture = cache.drawn(by_head, heads, title="logits added", layer=scene.layer, colours=colours, dark=scene.dark)
    parts.chart(picture)
    parts.explain(
        "Where the large bars are. A head with a large term often reads from the very word that it writes: look at its "
        "map.",
        "Causes. The terms add up to the logit, but each counts only what a part writes directly. A part that feeds a "
        "later one has no term of its own, and later layers may take back what an early one wrote: this is a list of "
        "candidates, and the switches test them.",
    )
    parts.code(scene, attribution, type(scene.model).readout)
    parts.numbers("attribution", rows(scene, shown))
    parts.onward(scene, "attribution")


def against(scene: Scene, seen: Attribution) -> Attribution:
    """The terms of the target, or of the target less a rival that the visitor picks."""
    run, target = scene.run, scene.target(scene.run)
    rivals = [each.id for each in run.top(8, scene.focus) if each.id != target]
    word = run.model.tokenizer.visible
    rival = st.selectbox(
        "Against a rival",
        [None, *rivals],
        format_func=lambda i: "none: the logit itself" if i is None else word(i),
        key="a rival",
    )
    if rival is None:
        return seen
    other = cache.of_run(run, attribution, rival, scene.focus)
    lead = seen.logit - other.logit
    st.markdown(f"{quoted(word(target))} is {signed(lead)} logits above {quoted(word(rival))}.")
    return Attribution(
        logit=seen.logit - other.logit,
        embedding=seen.embedding - other.embedding,
        constant=seen.constant - other.constant,
        mixer=seen.mixer - other.mixer,
        ffn=seen.ffn - other.ffn,
        heads=tuple(a - b for a, b in zip(seen.heads, other.heads, strict=True)),
    )


def rows(scene: Scene, seen: Attribution) -> list[dict[str, object]]:
    """One row a layer, in logits."""
    return [
        {"layer": layer, "kind": kind, "mixer": float(seen.mixer[layer]), "FFN": float(seen.ffn[layer])}
        for layer, kind in enumerate(scene.model.mixers)
    ]


page(draw)
