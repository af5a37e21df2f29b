"""FFN: which neurons write the answer."""

import streamlit as st

from charts.parts import by_head, neuron_bars
from charts.theme import share_colours
from core.attribution import Neuron, activations, promoted, top_neurons
from core.heads import gates
from core.run import Run
from pages.frame import cache, parts, state
from pages.frame.scene import Scene, page, title
from pages.frame.words import escape, listed, number, percent, quoted, signed

SHOWN = 12


def says(run: Run, target: int, found: list[Neuron]) -> str:
    """The neuron that writes most along the target, in a sentence."""
    if not found:
        return f"In **{escape(title(run.model))}** every FFN is switched off, so no neuron writes."
    best = found[0]
    word, name = quoted(run.model.tokenizer.visible(target)), escape(title(run.model))
    return (
        f"In **{name}**, of {sum(run.model.shape.neurons):,} neurons, neuron {best.neuron} of layer {best.layer} "
        f"writes most straight along {word}: {signed(best.contribution)} logits, from an activation of "
        f"{number(best.activation)}."
    )


def draw(scene: Scene) -> None:
    run, target = scene.run, scene.target(scene.run)
    found = cache.of_run(run, top_neurons, target, scene.focus, SHOWN)
    parts.top(scene, "ffn")
    for each in scene.runs:
        aim = scene.target(each)
        st.markdown(says(each, aim, cache.of_run(each, top_neurons, aim, scene.place(each), SHOWN)))
    left, right = st.columns(2)
    with left:
        word = run.model.tokenizer.visible(target)
        st.caption(f"{escape(title(run.model))}: the neurons of all layers that write most along {escape(word)}")
        bars = [(f"{each.layer}.{each.neuron}", each.contribution) for each in found]
        parts.chart(cache.drawn(neuron_bars, bars, title="logits added", dark=scene.dark))
    with right:
        a = activations(run, scene.layer, scene.focus)
        most = a.abs().topk(min(SHOWN, len(a))).indices.tolist()
        st.caption(f"Layer {scene.layer}: the strongest activations at {escape(scene.labels[scene.focus])}")
        strong = [(f"{scene.layer}.{i}", float(a[i])) for i in most]
        parts.chart(cache.drawn(neuron_bars, strong, title="activation, gate included", dark=scene.dark))
    one(scene, target, [name for name, _ in (*bars, *strong)])
    gate(scene)
    parts.explain(
        "A few neurons that stand out: look at the words that they promote. A neuron that promotes the answer in one "
        "sentence mostly promotes its whole kind.",
        "What a neuron does through later layers: only what it writes straight along the word is counted. Switch one "
        "off to see whether the answer needs it.",
    )
    parts.code(scene, top_neurons, type(scene.model).block)
    parts.numbers(
        "ffn",
        [
            {
                "layer": each.layer,
                "neuron": each.neuron,
                "activation": each.activation,
                "logits": each.contribution,
                "target": run.model.tokenizer.visible(target),
            }
            for each in found
        ],
    )
    parts.onward(scene, "ffn")


def gate(scene: Scene) -> None:
    """How open the output gates of attention are, for models that have them."""
    found = cache.of_run(scene.run, gates, scene.focus)
    if not found:
        return
    means = {layer: sum(heads) / len(heads) for layer, heads in found.items()}
    widest = max(means, key=lambda layer: means[layer])
    st.markdown(
        f"**The attention has gates, too.** In {escape(title(scene.model))}, what a head of attention has read is "
        f"multiplied by a gate from 0 to 1, channel by channel. At {parts.token(scene, scene.focus)} the gates of "
        f"layer {widest} are open widest: {percent(means[widest])} on average, where all these layers have "
        f"{percent(sum(means.values()) / len(means))}."
    )
    picture = cache.drawn(
        by_head, found, title="how open", layer=scene.layer, colours=share_colours(scene.dark), dark=scene.dark
    )
    parts.chart(picture, key="gates")


def one(scene: Scene, target: int, choices: list[str]) -> None:
    """One neuron: the words that its write-back promotes and suppresses, and a switch."""
    off = [f"{layer}.{neuron}" for layer, neuron in sorted(scene.run.off.neurons)]
    chosen = st.selectbox("A neuron, layer.neuron", list(dict.fromkeys((*choices, *off))), key="a neuron")
    layer, neuron = (int(part) for part in chosen.split("."))
    word, spec = scene.model.tokenizer.visible, f"neuron:{chosen}"
    rest = tuple(each for each in scene.run.off.specs if each != spec)
    plain = cache.run(scene.model, scene.view.text)
    on = cache.run(scene.model, scene.view.text, rest)
    activation = float(activations(on, layer, scene.focus)[neuron])
    up, down = promoted(on, layer, neuron, scene.focus)
    if activation < 0:  # what it writes is turned round
        up, down = down, up
    raised, lowered = (listed([quoted(word(i)) for i, _ in each]) for each in (up, down))
    st.markdown(f"Here its activation is {number(activation)}: so it promotes {raised}, and suppresses {lowered}.")
    was, now = cache.with_switches(plain, rest), cache.with_switches(plain, (*rest, spec))
    st.markdown(
        f"With it switched off, {quoted(word(target))} goes from {percent(float(was[target]))} to "
        f"{percent(float(now[target]))}, and {quoted(word(int(now.argmax())))} is on top."
    )
    label = "Switch it on again" if spec in scene.view.off else "Switch it off everywhere"
    st.button(label, icon=":material/toggle_off:", on_click=state.turn_over, args=(spec, scene.model.shape))


page(draw)
