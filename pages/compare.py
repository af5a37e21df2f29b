"""Compare: where do two models part?"""

from itertools import combinations

import streamlit as st

from charts.distances import by_position
from charts.theme import model_colours
from charts.words import top_bars
from core.compare import divergence, same_tokens
from core.run import Run
from pages.frame import cache, parts
from pages.frame.scene import Scene, labels, page, title
from pages.frame.words import escape, quoted

SHOWN = 10


def says(a: Run, b: Run, nats: list[float]) -> str:
    """How far two models are apart, in a sentence."""
    most = max(range(len(nats)), key=nats.__getitem__)
    middle = sorted(nats)[(len(nats) - 1) // 2]
    first, second, mean = escape(title(a.model)), escape(title(b.model)), sum(nats) / len(nats)
    return (
        f"From **{first}** to **{second}**, KL is {mean:.2f} nats a token (median {middle:.2f}); they part most after "
        f"{quoted(a.tokens[most].visible)} (position {most}): {nats[most]:.2f} nats."
    )


def draw(scene: Scene) -> None:
    if len(scene.runs) < 2:
        parts.top(scene, "compare")
        st.info("Choose a second model in the sidebar: this page sets two side by side.", icon=":material/compare:")
        parts.onward(scene, "compare")
        return
    a, top = scene.run, st.container()
    others = sorted((run for run in scene.runs if run is not a), key=lambda run: not same_tokens(a, run))
    # Streamlit copies the options deep: a run would take its model's weights along.
    b = others[st.selectbox("Against", range(len(others)), format_func=lambda i: title(others[i].model), key="against")]
    alike = same_tokens(a, b)
    nats = divergence(a, b).nats.tolist() if alike else []
    most = max(nats, default=0.0) or 1.0
    legend = f"Tint: KL after each token, as a share of the largest ({most:.2f} nats)." if alike else ""
    with top:
        parts.top(scene, "compare", [value / most for value in nats] if alike else None, legend)
    if alike:
        st.markdown(says(a, b, nats))
        picture = cache.drawn(by_position, nats, scene.labels, title="KL in nats", focus=scene.focus, dark=scene.dark)
        parts.chart(picture)
    else:
        st.markdown(
            f"**{escape(title(a.model))}** and **{escape(title(b.model))}** cut text into different tokens: their "
            "distributions are over different vocabularies, so no KL can be taken. Their likeliest words stand below."
            + alike_elsewhere(scene)
        )
    rows = words(scene, a, b)
    parts.explain(
        "Where one model knows something that the other does not: a name to copy, a fact, a second half of a word.",
        "Which of them is right. KL is not symmetric either: it counts by the words that the first model expects.",
    )
    parts.code(scene, divergence)
    parts.numbers("compare", rows)
    parts.onward(scene, "compare")


def alike_elsewhere(scene: Scene) -> str:
    """Two other models in view that can be compared, for a reader whose two can not."""
    for a, b in combinations(scene.runs, 2):
        if same_tokens(a, b):
            names = f"{escape(title(a.model))} and {escape(title(b.model))}"
            return f" {names} cut it alike: pick a layer of one of them to compare those."
    return ""


def words(scene: Scene, a: Run, b: Run) -> list[dict[str, object]]:
    """What each says after the token in focus, side by side."""
    rows: list[dict[str, object]] = []
    for column, run, colour in zip(st.columns(2), (a, b), model_colours(scene.dark), strict=False):
        place = scene.place(run)
        likeliest = run.top(SHOWN, place)
        with column, st.container(border=True):
            st.markdown(f"**{escape(title(run.model))}** after {quoted(labels(run)[place])}")
            bars = [(run.model.tokenizer.visible(each.id), each.p) for each in likeliest]
            parts.chart(cache.drawn(top_bars, bars, colour=colour, dark=scene.dark))
        rows += [
            {"model": title(run.model), "after": labels(run)[place], "token": each.text, "probability": each.p}
            for each in likeliest
        ]
    return rows


page(draw)
