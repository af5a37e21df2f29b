"""Everything that makes a view, in one typed place, and its way into the URL and back.

Opening the URL gives the same view: sentence, models, layer, head, focus token, target, switches; the page is its path.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import streamlit as st

from core.catalogue import BESIDE, SMOLLM2, TITLES
from core.specs import Shape, turned_over

PROMPT = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to"
MOST_MODELS = 4
LINK_CHARACTERS = 6000  # of the sentence as it stands in a link: servers refuse longer ones
NUMBERS = ("layer", "head", "focus")
WRITTEN = "written"  # the session key of the address as the last run left it
KEYS = ("text", "models", "hand", "target", "off", "tour", *NUMBERS)


@dataclass(frozen=True)
class View:
    """What a visitor looks at. `hand` is the model that single-model pages show: one of `models`.

    `layer`, `head` and `focus` are as asked for and may lie outside a model: pages clip them. None: the page's default.
    """

    text: str
    models: tuple[str, ...]
    hand: str
    layer: int | None
    head: int | None
    focus: int | None
    target: str
    off: tuple[str, ...]
    tour: bool = False

    def as_query(self) -> dict[str, str]:
        """The view as URL parameters; what is at its default is left out."""
        query = {
            "text": self.text,
            "models": ",".join(self.models),
            "hand": self.hand,
            "target": self.target,
            "off": ",".join(self.off),
            "tour": "1" if self.tour else "",
            **{name: str(value) for name in NUMBERS if (value := getattr(self, name)) is not None},
        }
        if len(quote_plus(self.text)) > LINK_CHARACTERS:
            del query["text"]
        return {name: value for name, value in query.items() if value}


def defaults() -> dict[str, Any]:
    """What a visitor without a link sees."""
    return {
        "text": PROMPT,
        "models": [SMOLLM2, *BESIDE],
        "hand": SMOLLM2,
        "target": "",
        "off": [],
        "tour": False,
        "layer": None,
        "head": None,
        "focus": None,
    }


def from_query(query: Mapping[str, str]) -> dict[str, Any]:
    """Session values from URL parameters. What a link says wrongly falls back to the default."""
    found = defaults()
    if "text" in query:
        found["text"] = query["text"]
    models = [name for name in dict.fromkeys(query.get("models", "").split(",")) if name in TITLES][:MOST_MODELS]
    if models:
        found["models"] = models
    found["hand"] = query["hand"] if query.get("hand") in found["models"] else found["models"][0]
    found["target"] = query.get("target", "")
    found["off"] = [spec for spec in query.get("off", "").split(",") if spec]
    found["tour"] = query.get("tour") == "1"
    for name in NUMBERS:
        if query.get(name, "").isdecimal() and len(query[name]) < 7:
            found[name] = int(query[name])
    return found


def start() -> None:
    """Fills the session from the URL: at first, and again where the browser went back or forward to another view.

    That is so where the address is not what the last run wrote and no widget has changed the view since. A click on the
    navigation clears the address: then the view stays.
    """
    s, query = st.session_state, st.query_params.to_dict()
    if "text" not in s:
        s.update(from_query(query))
    elif query not in ({}, s.get(WRITTEN)) and view().as_query() == s.get(WRITTEN):
        s.update(from_query({"text": s["text"], **query}))


def publish() -> None:
    """Writes the view into the address."""
    query = view().as_query()
    st.session_state[WRITTEN] = query
    st.query_params.from_dict(query)


def start_over() -> None:
    """Everything back to what a visitor without a link sees."""
    st.session_state.update(defaults())


def begin_tour() -> None:
    """The sentence of the walk, nothing chosen and nothing off, with the models in view: the tour's first stop."""
    kept = {name: st.session_state[name] for name in ("models", "hand")}
    st.session_state.update({**defaults(), **kept, "tour": True})


def view() -> View:
    """The view of this run."""
    s = st.session_state
    models = tuple(s["models"])
    hand = s["hand"] if s["hand"] in models else (models[0] if models else SMOLLM2)
    return View(s["text"], models, hand, s["layer"], s["head"], s["focus"], s["target"], tuple(s["off"]), s["tour"])


def put(**values: Any) -> None:
    """Sets some of the view's values, together: a rerun never sees half of them."""
    unknown = set(values) - set(KEYS)
    if unknown:
        raise KeyError(f"No part of a view: {unknown}")
    st.session_state.update(values)


def turn_over(spec: str, shape: Shape) -> None:
    """Switches a part of a model of this shape off, or on again."""
    put(off=turned_over(list(st.session_state["off"]), spec, shape))
