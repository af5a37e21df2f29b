"""Distance: how far is a word carried?"""

import streamlit as st

from charts.distances import by_tokens
from core import TokenwalkError
from core.distance import FILLER, Point, by_distance, split
from core.run import Run
from core.specs import MIXER_WORDS
from pages.frame import cache, parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import count, escape, percent, quoted

OFF = "attention:*"
ATTENDING = set(MIXER_WORDS["attention"])


def says(run: Run, target: int, points: list[Point], without: list[Point]) -> str:
    """How one model's answer holds with distance, in a sentence."""
    word = quoted(run.model.tokenizer.visible(target))
    near, far = points[0], points[-1]
    found = f"**{escape(title(run.model))}** gives {word} {percent(near.p)} at {count(near.tokens, 'token')}"
    if len(points) == 1:
        return found + "; with filler in between the text is longer than it takes."
    found += f" and {percent(far.p)} at {far.tokens:,}"
    if without:
        found += f"; with its attention off, {percent(without[0].p)} and {percent(without[-1].p)}"
    return found + "."


def draw(scene: Scene) -> None:
    parts.top(scene, "distance")
    head, tail = split(scene.view.text)
    st.caption("The sentence is cut in two, and weather and shops are put between: no people, nothing that is given.")
    left, right = st.columns(2)
    head = left.text_area("Before the filler", head, key=f"before, of {scene.view.text}")
    tail = right.text_area("After it", tail, key=f"after, of {scene.view.text}")
    lines: list[tuple[str, bool, list[tuple[int, float]]]] = []
    rows: list[dict[str, object]] = []
    for run in scene.runs:
        target = scene.target(run)
        try:
            points = cache.distances(run.model, head, tail, target, run.off.specs)
            hybrid = bool(ATTENDING & set(run.model.mixers)) and bool(set(run.model.mixers) - ATTENDING)
            without = cache.distances(run.model, head, tail, target, (*run.off.specs, OFF)) if hybrid else []
        except TokenwalkError as error:
            st.warning(escape(str(error)))
            continue
        st.markdown(says(run, target, points, without))
        name = title(run.model)
        for off, some in ((False, points), (True, without)):
            if some:
                lines.append((name, off, [(point.tokens, point.p) for point in some]))
            rows += [
                {
                    "model": name,
                    "attention": "off" if off else "on",
                    "filler": point.n,
                    "tokens": point.tokens,
                    "probability": point.p,
                    "on top": run.model.tokenizer.text(point.top),
                }
                for point in some
            ]
    if not rows:
        parts.onward(scene, "distance")
        return
    parts.chart(cache.drawn(by_tokens, lines, dark=scene.dark))
    if any(off for _, off, _ in lines):
        st.caption("Dashed: the same model with its attention off.")
    with st.expander("The filler"):
        st.write(FILLER)
    parts.explain(
        "Attention can look back at any token in its reach; whether it still finds the word among so much else is what "
        "the curve shows. A recurrent layer has to carry the word in a state of constant size: where one is "
        "drawn, the dashed line shows how long it can.",
        "Which layer carries the word, and whether other words would be carried as far: this is one text.",
    )
    parts.code(scene, by_distance)
    parts.numbers("distance", rows)
    parts.onward(scene, "distance")


page(draw)
