"""Start: what each model says comes next, and the map of the walk."""

import streamlit as st

from charts.theme import model_colours
from charts.words import top_bars
from core.model import Model
from core.run import Run
from pages.frame import cache, parts, tour, walk
from pages.frame.scene import Scene, page, title
from pages.frame.words import count, escape, percent, quoted

TOP = 10


def says(run: Run) -> str:
    """One model's answer in a sentence."""
    first, second = run.top(2)
    word = run.model.tokenizer.visible
    return (
        f"**{escape(title(run.model))}** goes on with {quoted(word(first.id))} at {percent(first.p)}; "
        f"next comes {quoted(word(second.id))} at {percent(second.p)}."
    )


def draw(scene: Scene) -> None:
    parts.top(scene, "start")
    for run in scene.runs:
        st.markdown(says(run))
    if not scene.view.tour:
        tour.invitation()
    for column, run, colour in zip(parts.columns(len(scene.runs)), scene.runs, model_colours(scene.dark), strict=False):
        with column, st.container(border=True):
            answer(scene, run, colour)
    parts.explain(
        "One clear winner, or several words that share the probability? The bars are the ten likeliest of "
        f"{scene.model.vocabulary:,} tokens in the vocabulary of {escape(title(scene.model))}; the rest share what is "
        "left.",
        "Why. A probability says what the model expects after this text, not what is true; and a token may be only the "
        "first piece of a word.",
    )
    walk_map(scene)
    parts.code(scene, Model.resume, type(scene.model).embed, type(scene.model).block, type(scene.model).unembed)
    parts.numbers(
        "start",
        [
            {"model": title(run.model), "place": place, "id": each.id, "token": each.text, "probability": each.p}
            for run in scene.runs
            for place, each in enumerate(run.top(TOP))
        ],
    )
    parts.onward(scene, "start")


def answer(scene: Scene, run: Run, colour: str) -> None:
    """One model's ten likeliest next tokens, and where it comes from."""
    st.markdown(f"**{escape(title(run.model))}**")
    words = [(run.model.tokenizer.visible(each.id), each.p) for each in run.top(TOP)]
    parts.chart(cache.drawn(top_bars, words, colour=colour, dark=scene.dark))
    model = run.model
    size = f"{model.layers} layers, width {model.width:,}, {count(len(run.ids), 'token')}"
    source = ", ".join(filter(None, (model.card.source, model.card.licence)))
    st.caption(f"{size}. From {escape(source)}. {escape(model.card.note)}")


def walk_map(scene: Scene) -> None:
    """The steps, each with the question that it answers."""
    st.markdown("**The walk**")
    columns = st.columns(2)
    steps = list(enumerate(walk.STEPS))[1:]
    half = -(-len(steps) // 2)
    for place, (number, step) in enumerate(steps):
        columns[place // half].page_link(
            f"pages/{step.path}.py",
            label=f"{number} · {step.title}. {step.question}",
            icon=step.icon,
            query_params=scene.view.as_query(),
        )


page(draw)
