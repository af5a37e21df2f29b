"""The tour for newcomers: nine stops through the pages, each with what this very run shows and a question.

The next stop answers the question. Every sentence is computed from the run of the model in hand: a stop says only what
was found in it, whichever model and sentence that is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from charts.theme import KIND_NAMES
from core import TokenwalkError
from core.attribution import attribution
from core.distance import split
from core.heads import Reader, strongest_reader
from core.lens import halves, lens
from core.run import Run
from core.specs import MIXER_WORDS
from pages.frame import cache, state, walk
from pages.frame.scene import SEARCH_UP_TO, Scene, title
from pages.frame.words import ALL_OF, HALF_NAMES, count, escape, listed, number, percent, quoted, signed

NAME = "Where does the name come from?"


@dataclass(frozen=True)
class Stop:
    """One stop: its page, what it says of this run, and the question that the next stop answers."""

    path: str
    says: Callable[[Scene], str]
    asks: str


def word(scene: Scene, token: int | None = None) -> str:
    """A token of the model in hand in a sentence; the target where none is given."""
    return quoted(scene.model.tokenizer.visible(scene.target(scene.run) if token is None else token))


def name(run: Run) -> str:
    """A model's name in a sentence."""
    return escape(title(run.model))


def last(scene: Scene) -> int:
    """The position that the next token is predicted from."""
    return len(scene.run.ids) - 1


def copies(scene: Scene) -> tuple[int, ...]:
    """Where the target stands in the sentence already, before the last position."""
    return scene.run.places(scene.target(scene.run), last(scene))


def reader(scene: Scene) -> Reader | None:
    """The head that reads most from the target's copies, else from any token; None where none was looked for."""
    if len(scene.run.ids) > SEARCH_UP_TO:
        return None
    return cache.of_run(scene.run, strongest_reader, last(scene), copies(scene))


def start(scene: Scene) -> str:
    answers: dict[str, list[str]] = {}
    for run in scene.runs:
        best = run.model.tokenizer.visible(run.top(1)[0].id)
        answers.setdefault(best, []).append(name(run))
    if len(answers) == 1:
        who = "The model puts" if len(scene.runs) == 1 else f"All {len(scene.runs)} models put"
        found = f"{who} {quoted(next(iter(answers)))} on top."
    else:
        found = "; ".join(f"{listed(who)}: {quoted(best)}" for best, who in answers.items())
        found = f"The models do not agree. On top is, in {found}."
    at = copies(scene)
    if at:
        where = f"position{'' if len(at) == 1 else 's'} {listed([str(i) for i in at])}"
        return f"{found} {word(scene)} stands in the sentence already, at {where}: it may have been copied from there."
    return f"{found} {word(scene)} is no token of the sentence so far: it cannot have been copied from there."


def tokens(scene: Scene) -> str:
    end, at = last(scene), copies(scene)
    found = (
        f"For {name(scene.run)} the sentence is {count(end + 1, 'token')}. The next one is predicted from one vector, "
        f"that of the last position: {word(scene, scene.run.ids[end])}, position {end}."
    )
    if not at:
        return found
    return f"{found} {word(scene)} stands {count(end - at[-1], 'token')} further back, at position {at[-1]}."


def embedding(scene: Scene) -> str:
    run, end = scene.run, last(scene)
    p = run.model.unembed(run.values["residual.before"][0][None, end, None])[0, 0].float().softmax(-1)
    position = f", plus row {end} of a table of positions" if "embedding.position" in run.outside else ""
    return (
        f"{word(scene, run.ids[end])} becomes row {run.ids[end]:,} of a table{position}: {run.model.width:,} numbers "
        f"that depend on no other token. If {name(run)} stopped here, it would say {word(scene, int(p.argmax()))} "
        f"({percent(float(p.max()))}); {word(scene)} has {percent(float(p[scene.target(run)]))}."
    )


def mixing(scene: Scene) -> str:
    run, found = scene.run, reader(scene)
    recurrent = [kind for kind in run.model.mixers if kind not in MIXER_WORDS["attention"]]
    said = "Only in the mixer of a layer do positions meet. "
    if found is not None:
        wanted = word(scene, run.ids[found.read])
        said += (
            f"At the last position, no head of attention in {name(run)} reads more from {wanted} (position "
            f"{found.read}) than head {found.head} of layer {found.layer}: {percent(found.weight)}. "
        )
    if recurrent:
        kinds = listed([KIND_NAMES[kind] for kind in dict.fromkeys(recurrent)])
        said += (
            f"{len(recurrent)} of its {run.model.layers} layers are {kinds}: they carry what came before in a state of "
            "constant size."
        )
    return said.strip()


def add_back(scene: Scene) -> str:
    run, end = scene.run, last(scene)
    first, final = run.values["residual.before"][0][end], run.stream[end]
    cosine = float(first @ final / (first.norm() * final.norm()).clamp_min(1e-30))
    return (
        f"What a half of a layer computes is added to the position’s vector, and nothing is overwritten: "
        f"{2 * run.model.layers} additions in {name(run)}. The vector at the last position goes from a length of "
        f"{number(float(first.norm()))} to {number(float(final.norm()))}; the cosine between what it was and what it "
        f"becomes is {number(cosine)}."
    )


def logit_lens(scene: Scene) -> str:
    run, target, end = scene.run, scene.target(scene.run), last(scene)
    leads = cache.of_run(run, lens, target, (end,)).leads_from()
    when = f"is on top from layer {leads} of {run.model.layers} on" if leads is not None else "is not on top at the end"
    seen = cache.of_run(run, halves, (target,), end)
    found = f"Read through the last norm after each layer of {name(run)}, {word(scene)} {when}."
    half, layer, before, after = seen.largest_gain()
    if after <= before:
        return found
    return (
        f"{found} It rises most at the {HALF_NAMES[half]} of layer {layer}: from {percent(before)} to {percent(after)}."
    )


def attributed(scene: Scene) -> str:
    run, target = scene.run, scene.target(scene.run)
    seen = cache.of_run(run, attribution, target, last(scene))
    half, layer, most = seen.largest()
    tops = [float(each.max()) for each in seen.heads]
    at = max(range(len(tops)), key=lambda each: tops[each])
    head = int(seen.heads[at].argmax())
    found = reader(scene)
    same = ""
    if found is not None and copies(scene):
        other = "" if (found.layer, found.head) == (at, head) else "not "
        same = f" That is {other}the head that reads most from the word’s earlier place."
    return (
        f"The logit of {word(scene)} in {name(run)}, {seen.logit:.2f}, is a sum. The "
        f"{HALF_NAMES[half]} of layer {layer} writes most straight along the word: {signed(most)}. "
        f"Of the single heads it is head {head} of layer {at}: {signed(tops[at])}.{same}"
    )


def switch_off(scene: Scene) -> str:
    plain, target = cache.run(scene.model, scene.view.text), scene.target(scene.run)
    half, layer, _ = cache.of_run(plain, attribution, target, last(scene)).largest()
    biased = half == "mixer" and any(site.name == "mixer.bias" for site in plain.model.sites)
    stays = " (its bias stays)" if biased else ""
    before = float(plain.probabilities()[target])
    found = (
        f"Without the {HALF_NAMES[half]} of layer {layer}{stays}, which writes most along it, "
        f"{without(scene, plain, f'{half}:{layer}')}; as trained it has {percent(before)} in {name(plain)}."
    )
    if len(set(scene.model.mixers)) > 1:
        for kind, label in ALL_OF.items():
            if set(scene.model.mixers) & set(MIXER_WORDS[kind]):
                found += f" With {label} off, {without(scene, plain, f'{kind}:*')}."
    return found


def without(scene: Scene, plain: Run, spec: str) -> str:
    """What is left of the target with one thing off: "“ Alice” is at 3 %, not on top"."""
    p = cache.with_switches(plain, (spec,))
    target = scene.target(scene.run)
    on_top = "on top" if int(p.argmax()) == target else "not on top"
    return f"{word(scene)} is at {percent(float(p[target]))}, {on_top}"


def distance(scene: Scene) -> str:
    head, tail = split(scene.view.text)
    target = scene.target(scene.run)
    try:
        points = cache.distances(scene.model, head, tail, target, ())
    except TokenwalkError as error:
        return escape(str(error))
    near, far = points[0], points[-1]
    found = (
        f"With filler put between, {word(scene)} goes from {percent(near.p)} at {count(near.tokens, 'token')} to "
        f"{percent(far.p)} at {far.tokens:,} in {name(scene.run)}."
    )
    return f"{found} {summary(scene)}"


def summary(scene: Scene) -> str:
    """The tour's answer, from what its stops found."""
    seen = cache.of_run(scene.run, attribution, scene.target(scene.run), last(scene))
    half, layer, most = seen.largest()
    at, found = copies(scene), reader(scene)
    written = f"no part writes more along it than the {HALF_NAMES[half]} of layer {layer} ({signed(most)} logits)"
    if at and found is not None:
        return (
            f"**So, where does it come from?** {word(scene)} stood at position {found.read}; head {found.head} of "
            f"layer {found.layer} looks there with {percent(found.weight)} of its weight, and {written}."
        )
    where = f"stood at position {at[-1]}" if at else "did not stand in the sentence"
    return f"**So, where does it come from?** {word(scene)} {where}, and {written}."


STOPS = (
    Stop("start", start, "A model is not given letters. What is it given?"),
    Stop("tokens", tokens, "And what is a token, inside the model?"),
    Stop("embedding", embedding, "How do the other tokens come in?"),
    Stop("mixing", mixing, "What becomes of what was read?"),
    Stop("add_back", add_back, "After which of these additions is the answer there?"),
    Stop("logit_lens", logit_lens, "Which parts wrote it?"),
    Stop("attribution", attributed, "To write along a word is one thing. Is the answer gone without that part?"),
    Stop("switch_off", switch_off, "And if the word stood much further back?"),
    Stop("distance", distance, ""),
)


def after(path: str) -> Stop | None:
    """The next stop from a page on, in the walk's order; None past the last one."""
    order = [step.path for step in walk.STEPS]
    return next((stop for stop in STOPS if order.index(stop.path) > order.index(path)), None)


def banner(scene: Scene, path: str) -> None:
    """The stop that a page is, above all that it shows; on a page beside the tour, the way back to it."""
    place = next((i for i, stop in enumerate(STOPS) if stop.path == path), None)
    with st.container(border=True, key="tour"):
        if place is None:
            st.caption(f"Tour: {NAME} This page is not one of its stops.")
        else:
            stop = STOPS[place]
            st.caption(f"Tour: {NAME} Stop {place + 1} of {len(STOPS)}")
            st.markdown(stop.says(scene))
            if stop.asks:
                st.markdown(f"*{stop.asks}*")
        with st.container(horizontal=True, vertical_alignment="center"):
            ahead(scene, path)
            st.button("Leave the tour", key="leave", type="tertiary", on_click=state.put, kwargs={"tour": False})


def ahead(scene: Scene, path: str) -> bool:
    """The link to the next stop. Returns whether there is one."""
    stop = after(path)
    if stop is None:
        return False
    step = next(step for step in walk.STEPS if step.path == stop.path)
    st.page_link(
        f"pages/{step.path}.py",
        label=f"Next stop: {step.title}",
        icon=":material/arrow_forward:",
        query_params=scene.view.as_query(),
    )
    return True


def invitation() -> None:
    """The way into the tour, for a page that is not on it yet."""
    with st.container(border=True, horizontal=True, key="invitation", vertical_alignment="center"):
        st.markdown(f"**New here?** A tour of {len(STOPS)} stops: *{NAME}*")
        st.button("Take the tour", icon=":material/tour:", type="primary", on_click=state.begin_tour)
