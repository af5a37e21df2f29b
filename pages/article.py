"""Against the article: its figures beside ours."""

import streamlit as st

from core import TokenwalkError
from core.catalogue import KNOWN
from core.model import Model
from core.published import FIGURES, MODELS, Row, recompute
from pages.frame import cache, parts
from pages.frame.scene import Scene, page
from pages.frame.words import escape, listed


def says(rows: list[Row]) -> str:
    """How many figures were run and held, in a sentence."""
    run = [row for row in rows if row.ours is not None]
    held = sum(row.holds for row in run)
    if not run:
        names = listed([escape(KNOWN[name].title) for name in MODELS])
        return (
            f"None of the article’s {len(rows)} figures was run here: they are of {names}. Choose one in the sidebar."
        )
    return f"Of the article’s {len(rows)} figures, {len(run)} were run here; {held} of those agree."


def draw(scene: Scene) -> None:
    parts.top(scene, "article")
    rows: list[Row] = []
    at_hand = {run.model.card.name: run.model for run in scene.runs}
    for name in MODELS:
        rows += figures(at_hand.get(name), name)
    st.markdown(says(rows))
    shown = [as_cells(row) for row in rows]
    st.dataframe(shown, hide_index=True, height=35 * (len(shown) + 1) + 3)
    parts.explain(
        "Figures that differ: another revision of the weights, another dtype, or a mistake, here or there.",
        "Models that are not chosen in the sidebar, or that can’t be had: their rows say “not run”.",
    )
    parts.code(scene, recompute)
    parts.numbers("article", shown)
    parts.onward(scene, "article")


def figures(model: Model | None, name: str) -> list[Row]:
    """One model's figures; not run where it is not at hand, or can't take the sentence."""
    if model is not None:
        try:
            return cache.of_model(model, recompute)
        except TokenwalkError as error:
            st.warning(escape(str(error)))
    return [Row(figure, None) for figure in FIGURES if figure.model == name]


def as_cells(row: Row) -> dict[str, str]:
    """One figure as text, so that “not run” and a number stand in one column."""
    ran = row.ours is not None and row.difference is not None
    return {
        "model": KNOWN[row.figure.model].title,
        "figure": row.figure.name,
        "published": f"{row.figure.published:g}",
        "ours": f"{row.ours:.4f}" if ran else "not run",
        "difference": f"{row.difference:+.4f}" if ran else "",
        "agrees": ("yes" if row.holds else "no") if ran else "",
    }


page(draw)
