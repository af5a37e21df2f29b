"""The steps of the walk, in order."""

from dataclasses import dataclass

import streamlit as st


@dataclass(frozen=True)
class Step:
    """One page. `question` is what it answers; the previous page's link asks it."""

    path: str
    title: str
    icon: str
    question: str


STEPS = (
    Step("start", "Start", ":material/flag:", "What does each model say comes next?"),
    Step("tokens", "Tokens", ":material/content_cut:", "What does the model see instead of letters?"),
    Step("embedding", "Embedding", ":material/view_column:", "What does a token become?"),
    Step("position", "Position", ":material/schedule:", "How does a model know what came first?"),
    Step("norm", "Norm", ":material/balance:", "What does a layer do before it reads?"),
    Step("mixing", "Mixing", ":material/grid_on:", "Which earlier tokens does each token read?"),
    Step("add_back", "Add back", ":material/add_circle:", "What does each half of a layer add?"),
    Step("ffn", "FFN", ":material/scatter_plot:", "Which neurons write the answer?"),
    Step("logit_lens", "Logit lens", ":material/layers:", "After which layer is the answer there?"),
    Step("attribution", "Attribution", ":material/edit_note:", "Who writes straight along the word?"),
    Step("switch_off", "Switch off", ":material/toggle_off:", "Which part does the answer depend on?"),
    Step("distance", "Distance", ":material/straighten:", "How far is a word carried?"),
    Step("compare", "Compare", ":material/compare:", "Where do two models part?"),
    Step("article", "Against the article", ":material/fact_check:", "Do the published figures hold?"),
)


def pages() -> list[st.Page]:
    """The steps as Streamlit pages; the first is the default."""
    return [
        st.Page(f"pages/{step.path}.py", title=step.title, icon=step.icon, default=step is STEPS[0]) for step in STEPS
    ]


def after(path: str) -> Step | None:
    """The step that follows, or None at the end."""
    places = [step.path for step in STEPS]
    at = places.index(path) + 1
    return STEPS[at] if at < len(STEPS) else None
