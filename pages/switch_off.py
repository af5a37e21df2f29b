"""Switch off: which part does the answer depend on?"""

import streamlit as st
from torch import Tensor

from charts import parts as charts
from charts.theme import FFN_COLOUR, KIND_NAMES, MIXER_COLOURS, probability_colour, share_colours
from charts.words import before_after, top_bars
from core.ablation import sweep, switched
from core.model import Model
from core.run import Run
from core.specs import MIXER_WORDS
from core.taps import SwitchOff
from pages.frame import cache, components, parts, state
from pages.frame.scene import Scene, fitting, page, title
from pages.frame.words import ALL_OF, escape, percent, quoted

SHOWN = 6  # next tokens a model
SWEEP_UP_TO = 256  # tokens: a longer text is swept when asked for
HEADS_UP_TO = 20e9  # heads × tokens × bytes of weights: dearer sweeps of heads wait until they are asked for


def says(run: Run, target: int, plain: Tensor, off: Tensor | None) -> str:
    """What the switches do to the target, in a sentence. `plain` and `off`: next-token probabilities."""
    word = quoted(run.model.tokenizer.visible(target))
    name = f"**{escape(title(run.model))}**: "
    if off is None:
        return f"{name}nothing is switched off. {word} is at {percent(float(plain[target]))}."
    before, after, best = float(plain[target]), float(off[target]), int(off.argmax())
    found = f"{name}with this off, {word} goes from {percent(before)} to {percent(after)}"
    if best == target:
        still = "still " if int(plain.argmax()) == target else ""
        return f"{found} and is {still}on top."
    return found + f"; on top is {quoted(run.model.tokenizer.visible(best))} at {percent(float(off[best]))}."


def draw(scene: Scene) -> None:
    parts.top(scene, "switch_off")
    results = []
    for run in scene.runs:
        plain_run = cache.run(run.model, run.text)
        target = scene.target(run)
        specs = fitting(run.model, scene.view.off)
        plain = plain_run.probabilities()
        off = cache.with_switches(plain_run, specs) if specs else None
        st.markdown(says(run, target, plain, off))
        results.append((run, plain, plain if off is None else off))
    board(scene)
    for column, result in zip(parts.columns(len(results)), results, strict=True):
        with column, st.container(border=True):
            st.markdown(f"**{escape(title(result[0].model))}**")
            parts.chart(picture(scene, *result))
    swept(scene)
    every_head(scene)
    parts.explain(
        "Parts whose absence changes nothing, and the few without which the answer is gone: often the first layers, on "
        "which all the others build, and one or two in the upper half.",
        "That the part holds the answer. What is off is multiplied by 0, and the later layers, which never saw such an "
        "input in training, have to make do: an answer that is lost may be broken, not removed; one that stays may "
        "have a second way.",
    )
    parts.code(scene, SwitchOff, switched)
    parts.numbers("switch-off", [row for result in results for row in rows(*result)])
    parts.onward(scene, "switch_off")


def swept(scene: Scene) -> None:
    """Every mixer of the model in hand off in turn, each alone and with nothing else off."""
    run, model = cache.run(scene.model, scene.view.text), scene.model
    if len(run.ids) > SWEEP_UP_TO and not st.toggle(
        "Switch every mixer off in turn: on a long text this takes minutes"
    ):
        return
    target = scene.target(scene.run)
    found = cache.of_run(run, sweep, tuple(f"mixer:{layer}" for layer in range(model.layers)), target)
    own, best = found.p, found.top.tolist()
    words = [model.tokenizer.visible(i) for i in best]
    kept = sum(i == target for i in best)
    lowest = int(own.argmin())
    word = quoted(model.tokenizer.visible(target))
    st.markdown(
        f"**One mixer off at a time** in {escape(title(model))}, and nothing else: {word} is on top for {kept} of "
        f"{model.layers}; it is lowest without layer {lowest}, at {percent(float(own[lowest]))}."
    )
    plain = float(run.probabilities()[target])
    picture = cache.drawn(charts.sweep, model.mixers, own.tolist(), words, plain, dark=scene.dark)
    parts.chart(picture, key="sweep")


def every_head(scene: Scene) -> None:
    """Every head of every attention layer of the model in hand off in turn, as a map."""
    run, model = cache.run(scene.model, scene.view.text), scene.model
    heads = [
        (layer, head)
        for layer, kind in enumerate(model.mixers)
        if kind in MIXER_WORDS["attention"]
        for head in range(model.heads(layer))
    ]
    if not heads:
        return
    cost = len(heads) * len(run.ids) * model.weights.nbytes
    if cost > HEADS_UP_TO and not st.toggle(f"Switch each of the {len(heads)} heads of attention off in turn"):
        return
    target = scene.target(scene.run)
    found = cache.of_run(run, sweep, tuple(f"head:{layer}.{head}" for layer, head in heads), target)
    word, lowest = quoted(model.tokenizer.visible(target)), int(found.p.argmin())
    layer, head = heads[lowest]
    kept = sum(i == target for i in found.top.tolist())
    st.markdown(
        f"**One head of attention off at a time** in {escape(title(model))}: {word} is on top for {kept} of "
        f"{len(heads)}; it is lowest without head {head} of layer {layer}, at {percent(float(found.p[lowest]))}."
    )
    by_layer: dict[int, list[float]] = {}
    for (at, _), p in zip(heads, found.p.tolist(), strict=True):
        by_layer.setdefault(at, []).append(p)
    picture = cache.drawn(
        charts.by_head,
        by_layer,
        title="the target without this head",
        layer=scene.layer,
        colours=share_colours(scene.dark),
        dark=scene.dark,
    )
    parts.chart(picture, key="every head")


def board(scene: Scene) -> None:
    """The switches: kinds of mixer, each layer's mixer and FFN, the heads of the layer in hand."""
    model, layer = scene.model, scene.layer
    off = model.switches(fitting(model, scene.view.off))
    st.caption(f"{escape(title(model))}: a click switches a part off, another one on again")
    with st.container(horizontal=True):
        for spec, label in at_once(model):
            kind = "primary" if model.switches([spec]).mixers <= off.mixers else "secondary"
            args = (spec, model.shape)
            st.button(label, key=f"at once {spec}", type=kind, on_click=state.turn_over, args=args)
        everything = {"disabled": not scene.view.off, "on_click": state.put, "kwargs": {"off": []}}
        st.button("everything on", icon=":material/toggle_on:", **everything)
    colour = MIXER_COLOURS[scene.mixer]
    mixers = [
        cell(f"mixer:{at}", at, MIXER_COLOURS[kind], at in off.mixers, f"mixer of layer {at} ({KIND_NAMES[kind]})")
        for at, kind in enumerate(model.mixers)
    ]
    ffns = [cell(f"ffn:{at}", at, FFN_COLOUR, at in off.ffns, f"FFN of layer {at}") for at in range(model.layers)]
    heads = [
        cell(
            f"head:{layer}.{head}",
            head,
            colour,
            (layer, head) in off.heads or layer in off.mixers,
            f"head {head} of layer {layer}",
        )
        for head in range(model.heads(layer))
    ]
    rows = [("mixers", mixers), ("FFNs", ffns), (f"heads of {layer}", heads)]
    components.switchboard(
        "board",
        [{"label": label, "cells": cells} for label, cells in rows],
        lambda spec: state.turn_over(spec, model.shape),
    )


def at_once(model: Model) -> list[tuple[str, str]]:
    """What the article switched off, as it stands in this model: (spec, label)."""
    half, found = model.layers // 2, [("mixer:0", "the first mixer")]
    for word, label in ALL_OF.items():
        here = {at for at, kind in enumerate(model.mixers) if kind in MIXER_WORDS[word]}
        if here:
            found.append((f"{word}:*", label))
        if len(here) < model.layers and max(here, default=0) >= half:
            found.append((f"{word}:{half}-", f"{label.removeprefix('all ')} from layer {half} on"))
    return found


def cell(spec: str, number: int, colour: str, off: bool, what: str) -> dict[str, object]:
    """One switch of the board."""
    name = f"{what}: {'off; a click switches it on' if off else 'on; a click switches it off'}"
    return {"spec": spec, "label": str(number), "colour": colour, "off": off, "title": name}


def shown(plain: Tensor, off: Tensor) -> list[int]:
    """The tokens that are likeliest before or after, the likeliest before first."""
    before = plain.topk(SHOWN).indices.tolist()
    return before + [i for i in off.topk(SHOWN // 2).indices.tolist() if i not in before]


def picture(scene: Scene, run: Run, plain: Tensor, off: Tensor) -> object:
    """The next tokens before and after; as trained only, where nothing is off."""
    word = run.model.tokenizer.visible
    if off is plain:
        colour = probability_colour(scene.dark)
        return cache.drawn(
            top_bars, [(word(i), float(plain[i])) for i in shown(plain, off)], colour=colour, dark=scene.dark
        )
    return cache.drawn(
        before_after, [(word(i), float(plain[i]), float(off[i])) for i in shown(plain, off)], dark=scene.dark
    )


def rows(run: Run, plain: Tensor, off: Tensor) -> list[dict[str, object]]:
    """One row a token."""
    text = run.model.tokenizer.text
    return [
        {
            "model": title(run.model),
            "id": i,
            "token": text(i),
            "as trained": float(plain[i]),
            "switched off": float(off[i]),
        }
        for i in shown(plain, off)
    ]


page(draw)
