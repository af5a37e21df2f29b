"""The one place where results are kept between reruns and shared between visitors: bounded, and safe under threads.

A run is never changed after it was made, so that thirty browsers with the same sentence share one. Arguments with a
leading underscore are not part of a key: a model is known by its card's name and source.
"""

import os
import threading
import time
from pathlib import Path

import streamlit as st
import torch
from torch import Tensor

from core import TokenwalkError, hub, weights
from core.ablation import switched
from core.attribution import Attribution, Neuron, attribution, top_neurons
from core.distance import Point, by_distance
from core.embedding import Neighbour, nearest
from core.errors import Unreachable
from core.heads import Reader, strongest_reader
from core.lens import Lens, lens
from core.maps import maps, mean_map, small_maps
from core.model import Model
from core.positions import band_weights
from core.published import Row, recompute
from core.run import Run
from core.stream import Growth, growth

MOST_TOKENS = 2048  # of a text that the app walks: more would take minutes a page
THUMBNAIL = 64  # tiles along a small map's edge
MEAN = -1  # the "head" that is the mean over a layer's heads
FAILURE_SECONDS = 60.0  # before a model that could not be had is tried again
_SLOTS = threading.BoundedSemaphore(2)  # computations at a time: more would only wait for the same cores


def use_all_cores() -> None:
    """Threads for torch by the container's quota: torch counts the host's cores, and is throttled for it."""
    threads = min(len(os.sched_getaffinity(0)), _quota() or 1 << 16)
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def _quota() -> int | None:
    """Whole cores of the cgroup's CPU quota, or None where there is none."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, round(int(quota) / int(period)))


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


@st.cache_resource(max_entries=4, show_spinner="Reading the weights …")
def _load(name: str, folder: str) -> Model:
    _, card = weights.find(name)
    return weights.load_folder(Path(folder), card)


def run(model: Model, text: str, off: tuple[str, ...] = ()) -> Run:
    """A run with the residual stream recorded before and after every layer: what all pages start from."""
    return _run(model.card.name, model.card.source, text, off, model)


@st.cache_resource(max_entries=16, show_spinner="Running the sentence through the model …")
def _run(name: str, source: str, text: str, off: tuple[str, ...], _model: Model) -> Run:
    with _SLOTS:
        tokens = len(_model.tokenizer.encode(text))
        if tokens > MOST_TOKENS:
            raise TokenwalkError(f"The text is {tokens:,} tokens long; this app walks up to {MOST_TOKENS:,}.")
        return _model.run(text, record=recorded(_model), off=off)


def recorded(model: Model) -> list[str]:
    """What every run of the app keeps: the stream around each layer, and what it starts from."""
    outside = [site.name for site in model.sites if site.name.startswith("embedding")]
    return ["residual.before", "residual.after", *outside]


def neighbours(model: Model, id: int, k: int) -> list[Neighbour]:
    """The tokens whose embedding rows point most nearly the same way."""
    return _neighbours(model.card.name, model.card.source, id, k, model)


@st.cache_resource(max_entries=256, show_spinner="Comparing with every row of the table …")
def _neighbours(name: str, source: str, id: int, k: int, _model: Model) -> list[Neighbour]:
    with _SLOTS:
        return nearest(_model, id, k)


def stream_growth(run: Run) -> Growth:
    """How the stream grows, layer by layer."""
    return _growth(_key(run), run)


@st.cache_resource(max_entries=32, show_spinner="Measuring every layer …")
def _growth(key: tuple[str, str, str, tuple[str, ...]], _run: Run) -> Growth:
    with _SLOTS:
        return growth(_run)


def attributed(run: Run, target: int, position: int) -> Attribution:
    """The direct terms of a token's logit."""
    return _attributed(_key(run), target, position, run)


@st.cache_resource(max_entries=64, show_spinner="Adding up what every part writes …")
def _attributed(key: tuple[str, str, str, tuple[str, ...]], target: int, position: int, _run: Run) -> Attribution:
    with _SLOTS:
        return attribution(_run, target, position)


def neurons(run: Run, target: int, position: int, k: int) -> list[Neuron]:
    """The neurons with the largest direct contribution to a token."""
    return _neurons(_key(run), target, position, k, run)


@st.cache_resource(max_entries=64, show_spinner="Looking through every neuron …")
def _neurons(key: tuple[str, str, str, tuple[str, ...]], target: int, position: int, k: int, _run: Run) -> list[Neuron]:
    with _SLOTS:
        return top_neurons(_run, target, position, k)


def bands_of(run: Run, layer: int) -> Tensor:
    """Where each head's query·key products sit: (head, band)."""
    return _bands_of(_key(run), layer, run)


@st.cache_resource(max_entries=64, show_spinner="Taking the products of every pair apart …")
def _bands_of(key: tuple[str, str, str, tuple[str, ...]], layer: int, _run: Run) -> Tensor:
    with _SLOTS:
        return band_weights(_run, layer)


def distances(model: Model, head: str, tail: str, target: int, off: tuple[str, ...]) -> list[Point]:
    """The target's probability by the amount of filler between head and tail."""
    return _distances(model.card.name, model.card.source, head, tail, target, off, model)


@st.cache_resource(max_entries=32, show_spinner="Running longer and longer texts …")
def _distances(
    name: str, source: str, head: str, tail: str, target: int, off: tuple[str, ...], _model: Model
) -> list[Point]:
    with _SLOTS:
        return by_distance(_model, head, tail, target, off, most=MOST_TOKENS)


def published(model: Model) -> list[Row]:
    """The article's figures of a model, recomputed."""
    return _published(model.card.name, model.card.source, model)


@st.cache_resource(max_entries=4, show_spinner="Recomputing the article’s figures …")
def _published(name: str, source: str, _model: Model) -> list[Row]:
    with _SLOTS:
        return recompute(_model)


def sweep(plain: Run) -> Tensor:
    """Next-token probabilities with each layer's mixer off in turn: (layer, vocabulary)."""
    return _sweep(_key(plain), plain)


@st.cache_resource(max_entries=16, show_spinner="Switching every mixer off in turn …")
def _sweep(key: tuple[str, str, str, tuple[str, ...]], _run: Run) -> Tensor:
    with _SLOTS:
        variants = [_run.model.switches([f"mixer:{layer}"]) for layer in range(_run.model.layers)]
        return switched(_run, variants).softmax(-1)


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
    return _head_map(_key(run), layer, head, run)


@st.cache_resource(max_entries=16, show_spinner="Building the map …")
def _head_map(key: tuple[str, str, str, tuple[str, ...]], layer: int, head: int, _run: Run) -> Tensor:
    with _SLOTS:
        return mean_map(_run, layer) if head == MEAN else maps(_run, layer, [head])[0]


def reader(run: Run, position: int, wanted: tuple[int, ...]) -> Reader | None:
    """The head of all layers that reads most at `position` from one of the `wanted` ones."""
    return _reader(_key(run), position, wanted, run)


@st.cache_resource(max_entries=64, show_spinner="Looking through every head …")
def _reader(
    key: tuple[str, str, str, tuple[str, ...]], position: int, wanted: tuple[int, ...], _run: Run
) -> Reader | None:
    with _SLOTS:
        return strongest_reader(_run, position, wanted)


def logit_lens(run: Run, target: int, positions: tuple[int, ...]) -> Lens:
    """The lens over every layer at some positions."""
    return _lens(_key(run), target, positions, run)


@st.cache_resource(max_entries=64, show_spinner="Reading the stream after every layer …")
def _lens(key: tuple[str, str, str, tuple[str, ...]], target: int, positions: tuple[int, ...], _run: Run) -> Lens:
    with _SLOTS:
        return lens(_run, target, positions)


def with_switches(plain: Run, off: tuple[str, ...]) -> Tensor:
    """Next-token probabilities with parts switched off, from the plain run's saved stream: (vocabulary,)."""
    return _with_switches(_key(plain), off, plain)


@st.cache_resource(max_entries=128, show_spinner="Running with parts switched off …")
def _with_switches(key: tuple[str, str, str, tuple[str, ...]], off: tuple[str, ...], _run: Run) -> Tensor:
    with _SLOTS:
        return switched(_run, [_run.model.switches(off)])[0].softmax(-1)
