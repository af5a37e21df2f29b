"""FFN: which neurons write the answer."""

import streamlit as st

from charts.parts import neuron_bars
from core.attribution import Neuron, activations, promoted, top_neurons
from core.run import Run
from core.tokens import visible
from pages.frame import cache, parts, state
from pages.frame.scene import Scene, page, title
from pages.frame.words import escape, listed, percent, quoted

SHOWN = 12


def says(run: Run, target: int, found: list[Neuron]) -> str:
    """The neuron that writes most along the target, in a sentence."""
    best = found[0]
    word, name = quoted(visible(run.model.tokenizer.text(target))), escape(title(run.model))
    return (
        f"In **{name}**, of {sum(run.model.shape.neurons):,} neurons, neuron {best.neuron} of layer {best.layer} "
        f"writes most straight along {word}: {best.contribution:+.2f} logits, from an activation of "
        f"{best.activation:.3g}."
    )


def draw(scene: Scene) -> None:
    run, target = scene.run, scene.target(scene.run)
    found = cache.neurons(run, target, scene.focus, SHOWN)
    parts.top(scene, "ffn")
    for each in scene.runs:
        aim = scene.target(each)
        st.markdown(says(each, aim, cache.neurons(each, aim, scene.place(each), SHOWN)))
    left, right = st.columns(2)
    with left:
        word = visible(run.model.tokenizer.text(target))
        st.caption(f"{escape(title(run.model))}: the neurons of all layers that write most along {escape(word)}")
        bars = [(f"{each.layer}.{each.neuron}", each.contribution) for each in found]
        st.altair_chart(neuron_bars(bars, title="logits added", dark=scene.dark), width="stretch")
    with right:
        a = activations(run, scene.layer, scene.focus)
        most = a.abs().topk(min(SHOWN, len(a))).indices.tolist()
        st.caption(f"Layer {scene.layer}: the strongest activations at {escape(scene.labels[scene.focus])}")
        strong = [(f"{scene.layer}.{i}", float(a[i])) for i in most]
        st.altair_chart(neuron_bars(strong, title="activation, gate included", dark=scene.dark), width="stretch")
    one(scene, target, [*bars, *(each for each in strong if each not in bars)])
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
                "target": visible(run.model.tokenizer.text(target)),
            }
            for each in found
        ],
    )
    parts.onward(scene, "ffn")


def one(scene: Scene, target: int, choices: list[tuple[str, float]]) -> None:
    """One neuron: the words that its write-back promotes and suppresses, and a switch."""
    names = list(dict.fromkeys(name for name, _ in choices))
    chosen = st.selectbox("A neuron, layer.neuron", names, key="a neuron")
    layer, neuron = (int(part) for part in chosen.split("."))
    activation = float(activations(scene.run, layer, scene.focus)[neuron])
    up, down = promoted(scene.run, layer, neuron, scene.focus)
    if activation < 0:  # what it writes is turned round
        up, down = down, up
    text = scene.model.tokenizer.text
    raised, lowered = (listed([quoted(visible(text(i))) for i, _ in each]) for each in (up, down))
    st.markdown(f"Here its activation is {activation:.3g}: so it promotes {raised}, and suppresses {lowered}.")
    spec = f"neuron:{layer}.{neuron}"
    plain = cache.run(scene.model, scene.view.text)
    specs = tuple(dict.fromkeys((*scene.run.off.specs, spec)))
    p = cache.with_switches(plain, specs)
    best = int(p.argmax())
    was = scene.run.probabilities()
    st.markdown(
        f"With it switched off, {quoted(visible(text(target)))} goes from {percent(float(was[target]))} to "
        f"{percent(float(p[target]))}, and {quoted(visible(text(best)))} is on top."
    )
    label = "Switch it on again" if spec in scene.view.off else "Switch it off everywhere"
    st.button(label, icon=":material/toggle_off:", on_click=state.turn_over, args=(spec, scene.model.shape))


page(draw)
