"""The four small pieces of our own that a page can click on: chips, layer strip, thumbnails, switchboard.

Their scripts lie in assets/components. What a visitor typed reaches them as data only.
"""

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

_ASSETS = Path(__file__).parents[2] / "assets" / "components"


def _component(name: str, root: str) -> Callable[..., Any]:
    return st.components.v2.component(
        f"tokenwalk_{name}",
        html=f'<div class="{root}"></div>',
        css=(_ASSETS / f"{name}.css").read_text("utf-8"),
        js=(_ASSETS / f"{name}.js").read_text("utf-8"),
    )


_chips = _component("chips", "chips")
_strip = _component("strip", "strip")
_thumbnails = _component("thumbnails", "grid")
_clocks = _component("clocks", "clocks")
_switchboard = _component("switchboard", "board")


def _mount(
    component: Callable[..., Any], key: str, event: str, data: dict[str, Any], act: Callable[[Any], None]
) -> None:
    """Draws a component; `act` hears of what was clicked, before the page runs again."""

    def clicked() -> None:
        value = st.session_state[key][event]
        if value is not None:
            act(value)

    component(key=key, data=data, **{f"on_{event}_change": clicked})


def chips(
    key: str, tokens: Sequence[dict[str, Any]], focus: int | None, legend: str, act: Callable[[int], None]
) -> None:
    """The sentence. Each token: label, title, note ("41 %"), colour, special. What is empty is not sent."""
    sent = [{name: value for name, value in token.items() if value} for token in tokens]
    _mount(_chips, key, "focus", {"tokens": sent, "focus": focus, "legend": legend}, lambda i: act(int(i)))


def strip(
    key: str,
    models: Sequence[dict[str, Any]],
    layer: int,
    kinds: Sequence[dict[str, str]],
    act: Callable[[str, int], None],
) -> None:
    """The layer strip. Each model: name, title, here, cells of (colour, title, off: "", "off" or "part")."""
    data = {"models": list(models), "layer": layer, "kinds": list(kinds)}
    _mount(_strip, key, "picked", data, lambda picked: act(str(picked["model"]), int(picked["layer"])))


def thumbnails(
    key: str,
    maps: Sequence[tuple[int, str, str, bool, bytes]],
    *,
    size: int,
    head: int,
    colours: bytes,
    act: Callable[[int], None],
) -> None:
    """Maps in small: (head, label, title, off, size² bytes from 0 to 255 along the 256 `colours`)."""
    data = {
        "maps": [
            {"head": h, "label": label, "title": title, "off": off, "cells": base64.b64encode(cells).decode("ascii")}
            for h, label, title, off, cells in maps
        ],
        "size": size,
        "head": head,
        "colours": base64.b64encode(colours).decode("ascii"),
    }
    _mount(_thumbnails, key, "picked", data, lambda picked: act(int(picked)))


def clocks(
    key: str,
    bands: Sequence[tuple[float, str, str]],
    query: Sequence[Sequence[float]],
    key_vector: Sequence[Sequence[float]],
    *,
    most: int,
    query_at: int,
    key_at: int,
    colours: dict[str, str],
) -> None:
    """A dial a band: (radians a position, label, speed). Sliders turn them in the browser, without the server."""
    _clocks(
        key=key,
        data={
            "bands": [{"radians": radians, "label": label, "speed": speed} for radians, label, speed in bands],
            "query": list(query),
            "key": list(key_vector),
            "most": most,
            "query_at": query_at,
            "key_at": key_at,
            "colours": colours,
        },
    )


def switchboard(key: str, rows: Sequence[dict[str, Any]], act: Callable[[str], None]) -> None:
    """Rows of switches. Each row: label, cells of (label, title, colour, off, spec).

    A message has all clicks that the browser has had no answer to, each with its time: `act` hears of each once.
    """
    heard = f"{key} heard"

    def turned(clicks: Sequence[dict[str, Any]]) -> None:
        for click in clicks:
            if click["at"] > st.session_state.get(heard, 0):
                st.session_state[heard] = click["at"]
                act(str(click["spec"]))

    _mount(_switchboard, key, "turned", {"rows": list(rows), "heard": st.session_state.get(heard, 0)}, turned)
