"""Embedding: the vector that a token is looked up by."""

import streamlit as st

from charts.theme import probability_colour
from charts.vectors import vector_rows
from core import embedding
from core.run import Run
from pages.frame import cache, parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import escape, listed, quoted

NEIGHBOURS = 8


def says(run: Run, position: int) -> str:
    """One model's vector for the token in focus, in a sentence."""
    token = run.tokens[position]
    row = embedding.row(run.model, token.id)
    begin = (
        f"**{escape(title(run.model))}** looks {quoted(token.visible)} up in row {token.id:,} of its table: "
        f"{run.model.width:,} numbers, of length {float(row.norm()):.2f}."
    )
    return begin + scaled(run, position) + positioned(run, position)


def scaled(run: Run, position: int) -> str:
    """By how much the row is multiplied, where it is."""
    factor = embedding.scale(run, position)
    if abs(factor - 1) < 1e-4:
        return ""
    length = stream_length(run, position)
    return f" On its way into the stream it is multiplied by {factor:.4g}, to a length of {length:.2f}."


def positioned(run: Run, position: int) -> str:
    """What a learned position adds, where there is one."""
    if "embedding.position" not in run.outside:
        return ""
    length, both = float(run.outside["embedding.position"][position].norm()), stream_length(run, position)
    return f" The row of position {position}, of length {length:.2f}, is added: together {both:.2f}."


def stream_length(run: Run, position: int) -> float:
    """The length of the token's vector before layer 0."""
    return float(run.outside["embedding"][position].norm())


def draw(scene: Scene) -> None:
    run, focus = scene.run, scene.focus
    lengths = run.outside["embedding"].norm(dim=-1)
    shares = (lengths / lengths.max()).tolist()
    legend = "Tint: the length of each token’s vector before layer 0, as a share of the longest."
    parts.top(scene, "embedding", shares, legend)
    for each in scene.runs:
        st.markdown(says(each, scene.place(each)))
    found = cache.of_model(run.model, embedding.nearest, run.ids[focus], NEIGHBOURS)
    parts.chart(picture(scene))
    names = [f"{quoted(run.model.tokenizer.visible(each.id))} ({each.cosine:.2f})" for each in found]
    st.markdown(f"The rows that point most nearly the same way, with their cosine: {listed(names)}.")
    parts.explain(
        "A few channels that stand out in nearly every row, and neighbours that are spelled alike (with and without a "
        "space, with a capital) as often as they mean alike.",
        "The sentence. The row is the same wherever the token stands: what it means here is worked out by the layers "
        "that follow.",
    )
    parts.code(scene, type(run.model).embed, embedding.nearest)
    parts.numbers(
        "embedding",
        [{"id": each.id, "token": each.text, "cosine": each.cosine, "of": scene.labels[focus]} for each in found],
    )
    parts.onward(scene, "embedding")


def picture(scene: Scene) -> object:
    """The row, and what becomes of it before layer 0."""
    run, focus = scene.run, scene.focus
    vectors = {"row of the token": embedding.row(run.model, run.ids[focus]).tolist()}
    if "embedding.position" in run.outside:
        vectors["row of the position"] = run.outside["embedding.position"][focus].tolist()
        vectors["their sum"] = run.outside["embedding"][focus].tolist()
    return cache.drawn(vector_rows, vectors, colour=probability_colour(scene.dark), dark=scene.dark)


page(draw)
