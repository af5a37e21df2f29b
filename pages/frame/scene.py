"""What a page looks at: the view, with the models loaded and the sentence run through each of them."""

import importlib
import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property

import streamlit as st
from streamlit.navigation.page import Page as StreamlitPage

from core import TokenwalkError
from core.catalogue import TITLES
from core.heads import strongest_reader
from core.model import Model
from core.run import Run
from core.tokens import Token
from pages.frame import cache, state
from pages.frame.words import escape

BY_ID = re.compile(r"id:(\d{1,9})")  # a target that no text spells: part of a character
SEARCH_UP_TO = 128  # tokens: in a longer text looking through every head would take too long


@dataclass(frozen=True)
class Scene:
    """One visitor's view of one page.

    `runs` holds one run a model that could be had and could take the text, with those switches off that fit it. `run`
    is the one of the model in hand, and `layer`, `head` and `focus` are clipped to it.
    """

    view: state.View
    runs: tuple[Run, ...]
    run: Run
    layer: int
    head: int
    focus: int
    dark: bool

    @property
    def model(self) -> Model:
        return self.run.model

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.run.tokens

    @cached_property
    def labels(self) -> list[str]:
        """Each token with its position, as axes name it: "4 ␣Alice"."""
        return labels(self.run)

    @property
    def mixer(self) -> str:
        return self.model.mixers[self.layer]

    def target(self, run: Run) -> int:
        """The token that the walk follows in this run."""
        return target_of(run, self.view)

    def place(self, run: Run) -> int:
        """The focus in another model's tokens: the one that ends where the focused one ends, or holds that end."""
        end = sum(len(token.bytes) for token in self.tokens[: self.focus + 1] if not token.added)
        seen = 0
        for i, token in enumerate(run.tokens):
            seen += 0 if token.added else len(token.bytes)
            if seen >= end and not (token.added and end):
                return i
        return len(run.tokens) - 1


_HERE: ContextVar[Scene | None] = ContextVar("scene", default=None)  # from the frame to the page: one thread runs both


def show(page: StreamlitPage, scene: Scene) -> None:
    """Runs a page's file, which ends in `page(draw)`, with a scene."""
    token = _HERE.set(scene)
    try:
        page.run()
    finally:
        _HERE.reset(token)


def page(draw: Callable[[Scene], None]) -> None:
    """The end of each page's file: draws it in the frame.

    A server whose first visitor opens a link to a page runs that page's file alone, since there is a folder called
    pages: then the frame is fetched, and runs the page again.
    """
    scene = _HERE.get()
    if scene is not None:
        draw(scene)
    else:
        importlib.import_module("app").main()


def labels(run: Run) -> list[str]:
    """Each token with its position, as axes name it: "4 ␣Alice"."""
    return [f"{i} {token.visible}" for i, token in enumerate(run.tokens)]


def title(model: Model) -> str:
    """A model's name on screen."""
    return TITLES.get(model.card.name, model.card.name)


def load(name: str) -> Model | None:
    """A model of the view; where it can't be had, one sentence stands in its place and the others go on."""
    place = st.empty()
    bar = None

    def progress(done: int, total: int) -> None:
        nonlocal bar
        bar = bar or place.progress(0.0)
        bar.progress(done / max(total, 1), f"{TITLES[name]}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB from the hub")

    try:
        found = cache.model(name, progress)
    except TokenwalkError as error:
        place.error(f"{escape(TITLES[name])} is not here: {escape(str(error))}", icon=":material/cloud_off:")
        return None
    place.empty()
    return found


def run(model: Model, view: state.View) -> Run | None:
    """The view's sentence through a model, with those switches off that fit it."""
    try:
        return cache.run(model, view.text, fitting(model, view.off))
    except TokenwalkError as error:
        st.warning(escape(str(error)), icon=":material/straighten:")
        return None


def fitting(model: Model, off: tuple[str, ...]) -> tuple[str, ...]:
    """Those specs that name a part of this model."""
    return tuple(spec for spec in off if refusal(model, spec) is None)


def refusal(model: Model, spec: str) -> str | None:
    """Why a spec switches nothing off in this model, or None where it does."""
    try:
        model.switches([spec])
    except TokenwalkError as error:
        return str(error)
    return None


def is_dark() -> bool:
    """Whether the page is dark."""
    return st.context.theme.type == "dark"


def current() -> Scene:
    """The scene of this run. Where there is nothing to show, says why in one sentence and ends the page."""
    view = state.view()
    if not view.text:
        st.info("There is no text yet: type a sentence in the sidebar.", icon=":material/edit:")
        st.stop()
    if not view.models:
        st.info("No model is chosen: choose one in the sidebar.", icon=":material/neurology:")
        st.stop()
    models = [found for name in view.models if (found := load(name)) is not None]
    runs = [found for model in models if (found := run(model, view)) is not None]
    if not runs:
        st.stop()
    hand = next((each for each in runs if each.model.card.name == view.hand), runs[0])
    last = len(hand.ids) - 1
    focus = last if view.focus is None else min(last, view.focus)
    layer, head = place(hand, view, focus)
    return Scene(view, tuple(runs), hand, layer, head, focus, is_dark())


def place(run: Run, view: state.View, focus: int) -> tuple[int, int]:
    """The layer and head in hand: as chosen, else where the focus reads most from the target's earlier copies.

    Where the target is not in the text, from any token; where no attention is there to read, the last layer.
    """
    last = run.model.layers - 1
    if view.layer is not None:
        layer = min(last, view.layer)
        return layer, cache.MEAN if view.head is None or view.head >= run.model.heads(layer) else view.head
    if len(run.ids) > SEARCH_UP_TO:
        return last, cache.MEAN
    target = target_of(run, view)
    found = cache.of_run(run, strongest_reader, focus, run.places(target, focus))
    return (last, cache.MEAN) if found is None else (found.layer, found.head)


def spelled(run: Run, token: int) -> str:
    """How a target is written in a view: as its text, or as "id:123" where its text alone is another token."""
    text = run.model.tokenizer.text(token)
    return text if text and run.model.tokenizer.first(text) == token else f"id:{token}"


def target_of(run: Run, view: state.View) -> int:
    """The token that the walk follows in a run: as typed, else the model's own first choice with nothing off."""
    if (by_id := BY_ID.fullmatch(view.target)) and int(by_id[1]) < run.model.tokenizer.size:
        return int(by_id[1])
    if view.target:
        return run.model.tokenizer.first(view.target)
    return cache.run(run.model, run.text).top(1)[0].id
