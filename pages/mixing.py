"""Mixing: which earlier tokens each token reads, head by head, in the layer in hand."""

import streamlit as st
from torch import Tensor

from charts.distances import kept
from charts.heatmap import CLOSE_UP, PICK, TILES, corner_at, heatmap
from charts.parts import by_head
from charts.theme import KIND_NAMES, MIXER_COLOURS, ramp, scale_colours, share_colours
from charts.vectors import by_token
from core import mixers
from core.costs import kept_bytes
from core.heads import sink_shares
from core.maps import is_signed, tiles
from core.recurrence import recurrence
from core.run import Run
from pages.frame import cache, components, parts, state
from pages.frame.scene import SEARCH_UP_TO, Scene, page, title
from pages.frame.words import count, escape, percent, quoted, size


def says(scene: Scene, row: Tensor) -> str:
    """What the focus reads most, in a sentence. `row`: what it reads from each token."""
    who = "on average over its heads" if scene.head == cache.MEAN else f"in head {scene.head}"
    kind = KIND_NAMES[scene.mixer]
    begin = f"In layer {scene.layer} of {escape(title(scene.model))} ({kind}), {who}, "
    reader = parts.token(scene, scene.focus)
    most = int(row.abs().argmax())
    itself = most == scene.focus
    if is_signed(scene.mixer):
        source = "itself" if itself else parts.token(scene, most)
        sign = "takes" if row[most] >= 0 else "takes away"
        return begin + f"{reader} {sign} most from {source}, with a weight of {float(row[most]):.3g}."
    found = (
        begin + f"{reader} takes {percent(float(row[most]))} from {'itself' if itself else parts.token(scene, most)}"
    )
    others = row[: scene.focus + 1].clone()
    others[most] = -1
    if len(others) < 2:
        return found + ": there is no other token that it could read."
    second = int(others.argmax())
    source = "itself" if second == scene.focus else parts.token(scene, second)
    return found + f" and {percent(float(row[second]))} from {source}."


def draw(scene: Scene) -> None:
    whole = cache.head_map(scene.run, scene.layer, scene.head)
    row = whole[scene.focus]
    most = float(row.abs().max()) or 1.0
    signed = is_signed(scene.mixer)
    what = "weight, as a share of its largest" if signed else "share read"
    legend = f"Tint: what position {scene.focus} reads from each token in this layer ({what})."
    parts.top(scene, "mixing", (row / most if signed else row).tolist(), legend)
    st.markdown(says(scene, row))
    left, right = st.columns([2, 3])
    with left:
        heads(scene)
    with right:
        large(scene, whole)
    look(scene)
    if signed:
        forgetting(scene)
    else:
        sinks(scene)
    memory(scene)
    parts.code(scene, type(scene.model).block, *KERNELS[scene.mixer])
    parts.numbers(
        "mixing",
        [
            {
                "reads": scene.labels[scene.focus],
                "is read": label,
                "weight": float(value),
                "layer": scene.layer,
                "head": "mean" if scene.head == cache.MEAN else scene.head,
            }
            for label, value in zip(scene.labels[: scene.focus + 1], row, strict=False)
        ],
    )
    parts.onward(scene, "mixing")


KERNELS = {
    "attention": (mixers.attention, mixers.pattern_blocks),
    "local attention": (mixers.attention, mixers.pattern_blocks),
    "mamba2": (mixers.mamba2_map, mixers.mamba2_loop),
    "gated deltanet": (mixers.gated_delta_map, mixers.delta_writes, mixers.gated_delta_loop),
}


def heads(scene: Scene) -> None:
    """All heads of the layer at a glance; a click picks one."""
    small = cache.thumbnails(scene.run, scene.layer)
    signed = is_signed(scene.mixer)
    off = parts.off_in(scene.model, scene.view.off, scene.layer)
    pictures = []
    for place in (len(small) - 1, *range(len(small) - 1)):
        cells = small[place]
        share = (cells / (cells.abs().max() or 1) + 1) / 2 if signed else cells
        head = cache.MEAN if place == len(small) - 1 else place
        label = "mean" if head == cache.MEAN else str(head)
        gone = "mixer" in off or f"head {head}" in off
        note = ", switched off" if gone else ""
        pixels = (share * 255).round().byte().numpy().tobytes()
        pictures.append(
            (head, label, f"{'the mean over heads' if head == cache.MEAN else f'head {head}'}{note}", gone, pixels)
        )
    st.caption(f"All {len(small) - 1} heads of layer {scene.layer}; a click picks one")
    components.thumbnails(
        "heads",
        pictures,
        size=small.shape[-1],
        head=scene.head,
        colours=ramp(scale_colours(scene.mixer, scene.dark)),
        act=lambda head: state.put(layer=scene.layer, head=None if head == cache.MEAN else head),
    )


def large(scene: Scene, whole: Tensor) -> None:
    """The map in hand, exact for a short text; for a long one in tiles, and a part of it exactly."""
    name = "the mean over heads" if scene.head == cache.MEAN else f"head {scene.head}"
    st.caption(f"Layer {scene.layer}, {name}: each row is a token that reads; point at a cell for its value")
    how = {"mixer": scene.mixer, "dark": scene.dark}
    if len(scene.tokens) <= TILES:
        parts.chart(cache.drawn(heatmap, whole.tolist(), scene.labels, focus=scene.focus, **how), key="map")
        return
    edge = -(-len(scene.tokens) // TILES)
    tiled, labels = tiles(whole, TILES).tolist(), scene.labels[::edge]
    picked = parts.chart(
        cache.drawn(heatmap, tiled, labels, focus=scene.focus // edge, edge=edge, **how), key="map", picks=PICK
    )
    if picked and {picked["r"], picked["c"]} <= set(labels):
        reads, read = (labels.index(picked[side]) * edge + edge // 2 for side in ("r", "c"))
    else:  # nothing was clicked in this text
        reads, read = scene.focus, int(whole[scene.focus].abs().argmax())
    top, left = corner_at(reads, read, len(scene.tokens))
    last = len(scene.tokens) - 1
    st.caption(
        f"Cell by cell: what positions {top} to {min(last, top + CLOSE_UP - 1)} read from positions {left} to "
        f"{min(last, left + CLOSE_UP - 1)}. A click on a tile of the map above goes there"
    )
    near, most = whole[top : top + CLOSE_UP, left : left + CLOSE_UP].tolist(), float(whole.abs().max())
    picture = cache.drawn(heatmap, near, scene.labels, corner=(top, left), most=most, focus=scene.focus, **how)
    parts.chart(picture, key="close-up")


def look(scene: Scene) -> None:
    """What to look for, by kind of mixer."""
    shown = {
        "attention": "A bright column at position 0 is a sink: weight parked where it does little. A bright diagonal "
        "is a head that reads itself or the token before. A bright cell far back is a look-up: compare the heads.",
        "local attention": "The band along the diagonal: a token sees only the last few hundred tokens, itself "
        "included. What lies further back must have been carried forward by other layers.",
        "mamba2": "How the colour fades from right to left along a row: each step multiplies what is left by the "
        "decay. Heads differ in how fast they forget. Negative cells take away.",
        "gated deltanet": "Cells that turn after a token with a similar key: the layer erases what was stored under "
        "that key before it writes anew. Negative cells are part of that.",
    }[scene.mixer]
    parts.explain(
        shown,
        "What is read. The map says from where and how much; the values that travel, and what the output projection "
        "makes of them, are not in it. A large weight is no proof that the answer depends on it: switch it off to see.",
    )


def sinks(scene: Scene) -> None:
    """How much each head of attention parks on position 0."""
    if not 1 < len(scene.tokens) <= SEARCH_UP_TO:
        return
    found = cache.of_run(scene.run, sink_shares)
    every = [(share, layer, head) for layer, heads in found.items() for head, share in enumerate(heads)]
    most, layer, head = max(every)
    st.markdown(
        f"**Position 0 as a sink.** All tokens after it put {percent(sum(each[0] for each in every) / len(every))} of "
        f"their reading on {quoted(scene.tokens[0].visible)}, a mean over all heads of attention of "
        f"{escape(title(scene.model))}; in head {head} of layer {layer} it is {percent(most)}."
    )
    colours = share_colours(scene.dark)
    picture = cache.drawn(
        by_head, found, title="put on position 0", layer=scene.layer, colours=colours, dark=scene.dark
    )
    parts.chart(picture, key="sinks")


def forgetting(scene: Scene) -> None:
    """A recurrent layer's state: how strongly each token is written, and what is left of it at the focus."""
    found = cache.of_run(scene.run, recurrence, scene.layer, scene.focus)
    target = scene.target(scene.run)
    earlier = (0, *scene.run.places(target, scene.focus))[-1]
    left = found.left[:, earlier]
    longest, shortest = int(left.argmax()), int(left.argmin())
    mamba = scene.mixer == "mamba2"
    more = "" if mamba else " What later tokens erased on purpose comes on top of that."
    st.markdown(
        f"**The state fades.** At {parts.token(scene, scene.focus)}, head {longest} of layer {scene.layer} still has "
        f"{percent(float(left[longest]))} of what {parts.token(scene, earlier)} wrote into its state, head {shortest} "
        f"{percent(float(left[shortest]))}.{more}"
    )
    labels = scene.labels[: scene.focus + 1][-TILES:]
    colour, shown = MIXER_COLOURS[scene.mixer], slice(max(0, scene.focus + 1 - TILES), scene.focus + 1)
    keep, write = ("decay", "dt") if mamba else ("α", "β")
    for values, caption, top in (
        (found.left, f"What is left of each token at position {scene.focus}, by head (the product of {keep})", 1.0),
        (found.keep, f"{keep}: the share of the state that each token keeps", 1.0),
        (found.write, f"{write}: how strongly each token is written", float(found.write.max()) or 1.0),
    ):
        st.caption(caption)
        name = caption.split(":")[0] if ":" in caption else "left"
        picture = cache.drawn(
            by_token,
            values[:, shown].tolist(),
            labels,
            rows="head",
            title=name,
            colour=colour,
            dark=scene.dark,
            domain=(0.0, top),
        )
        parts.chart(picture, key=f"state {name}")


def memory(scene: Scene) -> None:
    """What each model keeps while it writes on: a cache that grows, a state that does not."""
    st.markdown(f"**What has to be kept to write on.** {' '.join(keeps(run) for run in scene.runs)}")
    lines = {}
    for run in scene.runs:
        lengths = [2**i for i in range(20) if 2**i <= run.model.context]
        lines[title(run.model)] = [(tokens, float(sum(kept_bytes(run.model, tokens)))) for tokens in lengths]
    parts.chart(cache.drawn(kept, lines, here=len(scene.tokens), dark=scene.dark), key="kept")


def keeps(run: Run) -> str:
    """One model's memory after this text and at its context's end, in a sentence."""
    model, tokens = run.model, len(run.ids)
    now, end = sum(kept_bytes(model, tokens)), sum(kept_bytes(model, model.context))
    ends = zip(kept_bytes(model, 1), kept_bytes(model, model.context), strict=True)
    fixed = sum(first for first, later in ends if first == later)
    state = f", of which {size(fixed)} are states that never grow" if fixed else ""
    return (
        f"{escape(title(model))} keeps {size(now)} after {count(tokens, 'token')}{state}, and {size(end)} after "
        f"{model.context:,}."
    )


page(draw)
