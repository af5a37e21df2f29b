"""The one place where results are kept between reruns and shared between visitors: bounded, and safe under threads.

A run is never changed after it was made, so that thirty browsers with the same sentence share one. Arguments with a
leading underscore are not part of a key: a model is known by its card's name and source.
"""

import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

import streamlit as st
from torch import Tensor

from charts.theme import Chart
from core import TokenwalkError, hub, weights
from core.ablation import switched
from core.catalogue import SPECIMENS
from core.distance import REPEATS, Point, by_distance
from core.errors import Unreachable
from core.extension import AROUND, extended, shared
from core.maps import maps, mean_map, small_maps
from core.model import Model
from core.run import Run

MOST_TOKENS = 2048  # of a text that the app walks: more would take minutes a page
THUMBNAIL = 64  # tiles along a small map's edge
MEAN = -1  # the "head" that is the mean over a layer's heads
FAILURE_SECONDS = 60.0  # before a model that could not be had is tried again
SHORT = 256  # tokens: of runs no longer than this many more are kept
WORTH = 0.5  # of a long text shared with the last one: from there on its run goes on from that
LAST_RUNS = 4  # kept for that
_SLOTS = threading.BoundedSemaphore(2)  # computations at a time: more would only wait for the same cores


Given = TypeVarTuple("Given")
Found = TypeVar("Found")
Plain = ParamSpec("Plain")


def model(name: str, progress: hub.Progress) -> Model:
    """A model by its name, fetched and loaded when first asked for. Raises TokenwalkError where it can't be had.

    A hub that could not be reached is not asked again at every click: its sentence stands for a minute.
    """
    sentence, until = _failures().get(name, ("", 0.0))
    if time.monotonic() < until:
        raise Unreachable(sentence)
    try:
        folder, _ = weights.find(name, progress)
    except Unreachable as error:
        _failures()[name] = (str(error), time.monotonic() + FAILURE_SECONDS)
        raise
    return _load(name, str(folder))


@st.cache_resource(max_entries=1, show_spinner=False)
def _failures() -> dict[str, tuple[str, float]]:
    return {}


def _load(name: str, folder: str) -> Model:
    return (_specimen if name in SPECIMENS else _full_size)(name, folder)


@st.cache_resource(max_entries=8, show_spinner=False)
def _specimen(name: str, folder: str) -> Model:
    return weights.load_folder(Path(folder), weights.find(name)[1])


@st.cache_resource(max_entries=4, show_spinner="Reading the weights …")
def _full_size(name: str, folder: str) -> Model:
    return weights.load_folder(Path(folder), weights.find(name)[1])


def run(model: Model, text: str, off: tuple[str, ...] = ()) -> Run:
    """A run with the residual stream recorded before and after every layer: what all pages start from."""
    tokens = len(model.tokenizer.encode(text))
    if tokens > MOST_TOKENS:
        raise TokenwalkError(f"The text is {tokens:,} tokens long; this app walks up to {MOST_TOKENS:,}.")
    kept = _short_run if tokens <= SHORT else _long_run
    return kept(model.card.name, model.card.source, text, off, model)


@st.cache_resource(max_entries=128, show_spinner="Running the sentence through the model …")
def _short_run(name: str, source: str, text: str, off: tuple[str, ...], _model: Model) -> Run:
    with _SLOTS:
        return _model.run(text, record=recorded(_model), off=off)


@st.cache_resource(max_entries=8, show_spinner="Running the text through the model …")
def _long_run(name: str, source: str, text: str, off: tuple[str, ...], _model: Model) -> Run:
    """A long text is often one that somebody has just changed near its end: then the last one's run goes on."""
    last, tokens = _last_long_runs(), _model.tokenizer.encode(text)
    with _SLOTS:
        earlier = last.get((name, source, off))
        if earlier and shared(earlier, tokens) >= WORTH * len(tokens):
            found = extended(earlier, text)
        else:
            found = _model.run(text, record=recorded(_model), off=off)
    last.pop((name, source, off), None)
    last[name, source, off] = found
    for oldest in list(last)[:-LAST_RUNS]:
        last.pop(oldest, None)  # another visitor may have done so by now
    return found


@st.cache_resource(max_entries=1, show_spinner=False)
def _last_long_runs() -> dict[tuple[str, str, tuple[str, ...]], Run]:
    return {}


def recorded(model: Model) -> list[str]:
    """What every run of the app keeps: the stream around each layer, and what it starts from."""
    outside = [site.name for site in model.sites if site.name.startswith("embedding")]
    return [*AROUND, *outside]


def of_run(run: Run, measure: Callable[[Run, *Given], Found], *given: *Given) -> Found:
    """A measurement of `core` on a run, kept: `of_run(run, lens, target, positions)`. For results of a modest size."""
    return _measured(_key(run), f"{measure.__module__}.{measure.__name__}", given, measure, run)


def of_model(model: Model, measure: Callable[[Model, *Given], Found], *given: *Given) -> Found:
    """The same on a model's weights alone."""
    key = model.card.name, model.card.source
    return _measured(key, f"{measure.__module__}.{measure.__name__}", given, measure, model)


@st.cache_resource(max_entries=512, show_spinner="Measuring …")
def _measured(key: tuple[Any, ...], name: str, given: tuple[Any, ...], _measure: Any, _of: Any) -> Any:
    with _SLOTS:
        return _measure(_of, *given)


def drawn(build: Callable[Plain, Chart], *given: Plain.args, **named: Plain.kwargs) -> dict[str, Any]:
    """The chart that a function of `charts` makes of plain data, as Vega-Lite has it, kept: making it takes longest.

    The tests hold every chart to Vega-Lite's schema; for a visitor that would triple its time.
    """
    return _drawn(f"{build.__module__}.{build.__name__}", pickle.dumps((given, named)), build, given, named)


@st.cache_data(max_entries=256, show_spinner=False)
def _drawn(name: str, data: bytes, _build: Any, _given: Any, _named: Any) -> dict[str, Any]:
    spec: dict[str, Any] = _build(*_given, **_named).to_dict(validate=False)
    return spec


def distances(model: Model, head: str, tail: str, target: int, off: tuple[str, ...]) -> list[Point]:
    """The target's probability by the amount of filler between head and tail."""
    return of_model(model, by_distance, head, tail, target, off, REPEATS, MOST_TOKENS)


def _key(run: Run) -> tuple[str, str, str, tuple[str, ...]]:
    return run.model.card.name, run.model.card.source, run.text, run.off.specs


def thumbnails(run: Run, layer: int) -> Tensor:
    """Every head's map in small, the mean last: (head + 1, tile, tile)."""
    return _thumbnails(_key(run), layer, run)


@st.cache_resource(max_entries=64, show_spinner="Drawing every head’s map …")
def _thumbnails(key: tuple[str, str, str, tuple[str, ...]], layer: int, _run: Run) -> Tensor:
    with _SLOTS:
        return small_maps(_run, layer, THUMBNAIL)


def head_map(run: Run, layer: int, head: int) -> Tensor:
    """One head's map, or the mean's (`MEAN`): (token that reads, token read)."""
    if len(run.ids) <= THUMBNAIL:  # these are exact then, and stand already
        return thumbnails(run, layer)[head]
    return _head_map(_key(run), layer, head, run)


@st.cache_resource(max_entries=16, show_spinner="Building the map …")
def _head_map(key: tuple[str, str, str, tuple[str, ...]], layer: int, head: int, _run: Run) -> Tensor:
    with _SLOTS:
        return mean_map(_run, layer) if head == MEAN else maps(_run, layer, [head])[0]


def with_switches(plain: Run, off: tuple[str, ...]) -> Tensor:
    """Next-token probabilities with parts switched off, from the plain run's saved stream: (vocabulary,)."""
    return _with_switches(_key(plain), off, plain)


@st.cache_resource(max_entries=128, show_spinner="Running with parts switched off …")
def _with_switches(key: tuple[str, str, str, tuple[str, ...]], off: tuple[str, ...], _run: Run) -> Tensor:
    with _SLOTS:
        return switched(_run, [_run.model.switches(off)])[0].softmax(-1)
