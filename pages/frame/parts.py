"""The parts that every page has: sentence, layer strip, what is off, explanations, code, numbers, the way onward."""

import csv
import inspect
import io
from collections.abc import Callable, Sequence
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.theme import KIND_NAMES, MIXER_COLOURS, mix, palette
from core.model import Model
from core.shapes import block_shapes
from pages.frame import components, state, tour, walk
from pages.frame.scene import Scene, refusal, title
from pages.frame.words import escape, listed, quoted


def top(scene: Scene, path: str, tint: Sequence[float] | None = None, legend: str = "", colour: str = "") -> None:
    """What stands first on every page: its question, the sentence, the layer strip and what is off.

    `tint` gives each token of the model in hand a share from −1 to 1; `legend` says what of.
    """
    step = next(step for step in walk.STEPS if step.path == path)
    st.subheader(f"{walk.STEPS.index(step)} · {step.question}", anchor=False)
    if scene.view.tour:
        tour.banner(scene, path)
    sentence(scene, tint, legend, colour or MIXER_COLOURS[scene.mixer])
    layers(scene)
    switched_off(scene)


def sentence(scene: Scene, tint: Sequence[float] | None, legend: str, colour: str) -> None:
    """The row of token chips; a click moves the focus."""
    tones = palette(scene.dark)
    chips = []
    for i, token in enumerate(scene.tokens):
        share = 0.0 if tint is None else tint[i]
        tinted = abs(share) >= 0.005
        high = colour if share >= 0 else tones.negative
        chips.append(
            {
                "label": token.visible,
                "title": f"position {i}, id {token.id}, bytes {token.bytes.hex(' ').upper() or 'none'}",
                "note": f"{share:.0%}".replace("-", "−") if tinted else "",
                "colour": "" if not tinted else mix(tones.background, high, 0.65 * min(1.0, abs(share)) ** 0.7),
                "special": token.added,
            }
        )
    where = f"{title(scene.model)}. " if legend and len(scene.runs) > 1 else ""
    components.chips("chips", chips, scene.focus, where + legend, lambda place: state.put(focus=place))


def chart(
    spec: dict[str, Any], *, key: str | None = None, width: Literal["stretch", "content"] = "stretch", picks: str = ""
) -> dict[str, Any] | None:
    """Shows a chart of `cache.drawn`.

    `picks` names a selection of it: what a visitor has clicked there comes back, by the selection's fields.
    """
    if not picks:
        st.vega_lite_chart(spec, width=width, key=key)
        return None
    clicked = st.vega_lite_chart(spec, width=width, key=key, on_select="rerun", selection_mode=picks)
    points = clicked["selection"].get(picks)
    return points[0] if points else None


def layers(scene: Scene) -> None:
    """The layer strip: a row a model, a cell a layer."""
    models, kinds = [], {}
    for run in scene.runs:
        cells = []
        for layer, mixer in enumerate(run.model.mixers):
            kinds[mixer] = MIXER_COLOURS[mixer]
            off = off_in(run.model, scene.view.off, layer)
            note = "" if not off else f", switched off: {', '.join(off)}"
            cells.append(
                {
                    "colour": MIXER_COLOURS[mixer],
                    "title": f"layer {layer}: {KIND_NAMES[mixer]}{note}",
                    "off": "" if not off else "off" if "mixer" in off else "part",
                }
            )
        here = run is scene.run
        models.append({"name": run.model.card.name, "title": title(run.model), "here": here, "cells": cells})
    legend = [{"label": KIND_NAMES[kind], "colour": colour, "off": ""} for kind, colour in kinds.items()]
    if any(cell["off"] for model in models for cell in model["cells"]):  # type: ignore[attr-defined]
        legend.append({"label": "switched off", "colour": "#888888", "off": "off"})
    components.strip("strip", models, scene.layer, legend, lambda name, layer: state.put(hand=name, layer=layer))


def off_in(model: Model, off: Sequence[str], layer: int) -> list[str]:
    """What of a layer is off: "mixer", "FFN", "head 3", "neuron 7"."""
    switches = model.switches([spec for spec in off if refusal(model, spec) is None])
    return [
        *(["mixer"] if layer in switches.mixers else []),
        *(["FFN"] if layer in switches.ffns else []),
        *(f"head {head}" for at, head in sorted(switches.heads) if at == layer),
        *(f"neuron {neuron}" for at, neuron in sorted(switches.neurons) if at == layer),
    ]


def switched_off(scene: Scene) -> None:
    """Names what is off, on every page, and in which of the models."""
    if not scene.view.off:
        return
    lines = []
    for spec in scene.view.off:
        reasons = {title(run.model): refusal(run.model, spec) for run in scene.runs}
        fits = [escape(name) for name, reason in reasons.items() if reason is None]
        if fits:
            rest = "; the others have no such part" if len(fits) < len(reasons) else ""
            lines.append(f"`{escape_code(spec)}` is switched off in {listed(fits)}{rest}.")
        else:
            lines += [escape(reason) for reason in dict.fromkeys(reasons.values()) if reason]
    if any(site.name == "mixer.bias" for run in scene.runs if run.off for site in run.model.sites):
        lines.append("In GPT-2 the bias of a switched-off output projection stays.")
    st.warning("\n\n".join(lines), icon=":material/toggle_off:")


def escape_code(text: str) -> str:
    """Text for a code span: a backtick would end it."""
    return text.replace("`", "'")


def token(scene: Scene, position: int) -> str:
    """A token of the model in hand in a sentence: its visible text and its position."""
    return f"{quoted(scene.tokens[position].visible)} (position {position})"


def columns(count: int) -> list[DeltaGenerator]:
    """As many columns side by side as models; where they would get too narrow, in several rows."""
    with st.container(key="models"):
        return st.columns(count)


def explain(look_for: str, not_shown: str) -> None:
    """What to look for in the picture, and what it does not show."""
    left, right = st.columns(2)
    left.markdown(f"**What to look for.** {look_for}")
    right.markdown(f"**What it does not show.** {not_shown}")


def code(scene: Scene, *functions: Callable[..., Any]) -> None:
    """The source that ran, read from its module, with the shapes of this run in the layer in hand."""
    with st.expander("The code that ran, with this run's shapes", icon=":material/code:"):
        for function in functions:
            st.caption(escape(f"{inspect.getmodule(function).__name__}: {function.__qualname__}"))  # type: ignore[union-attr]
            st.code(inspect.getsource(function), language="python")
        st.caption(f"Shapes in layer {scene.layer} of {escape(title(scene.model))}, batch first")
        sites = {site.name: site for site in scene.model.sites}
        st.dataframe(
            [
                {
                    "value": name,
                    "shape": " × ".join(map(str, shape)),
                    "meaning": sites[name].meaning,
                    "can be switched off": sites[name].switchable,
                }
                for name, shape in block_shapes(scene.run, scene.layer).items()
            ],
            hide_index=True,
        )


def numbers(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """The page's numbers as a table, and as a CSV file; nothing where there are none."""
    if not rows:
        return
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(rows, hide_index=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        st.download_button("Download as CSV", text.getvalue(), f"tokenwalk-{name}.csv", "text/csv", on_click="ignore")


def onward(scene: Scene, path: str) -> None:
    """The way to the next step, or on a tour to the next stop."""
    if scene.view.tour and tour.ahead(scene, path):
        return
    step = walk.after(path)
    if step is None:
        first = walk.STEPS[0]
        st.page_link(
            f"pages/{first.path}.py",
            label="Back to the start",
            icon=":material/replay:",
            query_params=scene.view.as_query(),
        )
        return
    st.page_link(
        f"pages/{step.path}.py",
        label=f"Next step: {step.title}. {step.question}",
        icon=":material/arrow_forward:",
        query_params=scene.view.as_query(),
    )
