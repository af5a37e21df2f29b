"""Tokenwalk: the frame. The sidebar is the same on every page; the pages are the steps of the walk."""

import pathlib

import streamlit as st

from core.catalogue import TITLES
from core.memory import keep_freed, settle
from core.specs import GRAMMAR
from core.threads import use_all_cores
from core.tokens import visible
from pages.frame import cache, scene, state, walk

ASSETS = pathlib.Path(__file__).parent / "assets"
OWN_CHOICE = "the model’s own first choice"


def keep(name: str, shown: object) -> str:
    """The key of a widget that shows one part of the view; set only where it differs, so that typing is not lost."""
    key = f"widget {name}"
    if st.session_state.get(key) != shown:
        st.session_state[key] = shown
    return key


def changed(name: str, **also: object) -> None:
    """Copies a widget's value into the view."""
    state.put(**{name: st.session_state[f"widget {name}"], **also})


def sentence() -> None:
    """The sentence and the models: what decides everything else."""
    view = state.view()
    st.text_area(
        "Sentence",
        key=keep("text", view.text),
        on_change=changed,
        args=("text",),
        kwargs={"focus": None},
        height=120,
        help="Ctrl + Enter, or a click beside the box, runs it.",
    )
    if view.text and "text" not in view.as_query():
        st.caption("This sentence is too long for a link: the address carries everything but it.")
    st.multiselect(
        "Models, one to four side by side",
        list(TITLES),
        format_func=lambda name: TITLES[name],
        max_selections=state.MOST_MODELS,
        key=keep("models", list(view.models)),
        on_change=changed,
        args=("models",),
    )


def follow(seen: scene.Scene) -> None:
    """What is looked at: the token in focus and the target."""
    labels = seen.labels
    st.selectbox(
        "Token in focus",
        range(len(labels)),
        format_func=lambda i: labels[i] if i < len(labels) else "",
        key=keep("focus", seen.focus),
        on_change=changed,
        args=("focus",),
    )
    first = cache.run(seen.model, seen.view.text)
    words = [scene.spelled(first, each.id) for each in first.top(10)]
    chosen = [seen.view.target] if seen.view.target not in ("", *words) else []
    st.selectbox(
        "Target token",
        ["", *chosen, *words],
        format_func=lambda word: named(seen, word),
        key=keep("target", seen.view.target),
        on_change=changed,
        args=("target",),
        accept_new_options=True,
        help="The token that the walk follows. Choose one of the ten likeliest, or type one: most words need their "
        "leading space. A longer word stands for its first token.",
    )


def named(seen: scene.Scene, target: str) -> str:
    """A target as the sidebar shows it."""
    if by_id := scene.BY_ID.fullmatch(target):
        return f"{seen.model.tokenizer.visible(int(by_id[1]))} ({target})"
    return visible(target) if target else OWN_CHOICE


def switches(off: tuple[str, ...]) -> None:
    """What is switched off."""
    st.multiselect(
        "Switched off",
        list(off),
        key=keep("off", list(off)),
        on_change=changed,
        args=("off",),
        accept_new_options=True,
        placeholder="nothing",
        help=f"Type a part and press Enter: {GRAMMAR}.",
    )
    st.button("Start over", icon=":material/restart_alt:", on_click=state.start_over, width="stretch")


def style() -> None:
    """The little that the theme has no setting for."""
    st.html(ASSETS / "frame.css")
    st.logo(str(ASSETS / "logo.svg"), size="large")


def main() -> None:
    """One run of the app: the frame, then the page."""
    st.set_page_config("Tokenwalk", page_icon=str(ASSETS / "icon.png"), layout="wide")
    style()
    use_all_cores()
    keep_freed()
    page = st.navigation(walk.pages(), expanded=True)
    state.start()
    with st.sidebar:
        sentence()
    state.publish()
    seen = scene.current()
    with st.sidebar:
        follow(seen)
        switches(seen.view.off)
    scene.show(page, seen)
    settle()


if __name__ == "__main__":
    main()
