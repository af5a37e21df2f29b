"""The one grammar that names parts of a model: in the shell, in the URL, on screen, and for what a run records.

    mixer:3        the mixer of layer 3            ffn:5        the FFN of layer 5
    mixer:0-7      layers 0 to 7, both included    head:5.2     head 2 of the mixer of layer 5
    attention:*    every attention layer           neuron:23.275  neuron 275 of the FFN of layer 23
    mamba2:16-     every Mamba2 layer from 16 on   deltanet:*   every gated-DeltaNet layer

Layers, heads and neurons count from 0.
"""

import re
from dataclasses import dataclass, field

from core.errors import TokenwalkError

ATTENTION = "attention"
LOCAL_ATTENTION = "local attention"
MAMBA2 = "mamba2"
DELTANET = "gated deltanet"

HALVES = ("mixer", "ffn")  # of a layer, as specs and sites name them

# What a spec's first word selects among the kinds of mixer. "mixer" selects all of them.
MIXER_WORDS: dict[str, tuple[str, ...]] = {
    "mixer": (ATTENTION, LOCAL_ATTENTION, MAMBA2, DELTANET),
    "attention": (ATTENTION, LOCAL_ATTENTION),
    "mamba2": (MAMBA2,),
    "deltanet": (DELTANET,),
}
GRAMMAR = "mixer:3, mixer:0-7, attention:*, mamba2:16-, deltanet:*, ffn:5, head:5.2 or neuron:23.275"

_RANGE = re.compile(r"(?P<all>\*)|(?P<first>\d{1,9})(?P<dash>-)?(?P<last>\d{1,9})?")
_PAIR = re.compile(r"(\d{1,9})\.(\d{1,9})")


@dataclass(frozen=True)
class Shape:
    """What a spec can point at: each layer's kind of mixer, each layer's number of heads, and of neurons."""

    mixers: tuple[str, ...]
    heads: tuple[int, ...]
    neurons: tuple[int, ...]

    @property
    def layers(self) -> int:
        return len(self.mixers)


@dataclass(frozen=True)
class Switches:
    """What is switched off in one run, resolved to layers. Empty: nothing is."""

    mixers: frozenset[int] = frozenset()
    ffns: frozenset[int] = frozenset()
    heads: frozenset[tuple[int, int]] = frozenset()
    neurons: frozenset[tuple[int, int]] = frozenset()
    specs: tuple[str, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return bool(self.mixers or self.ffns or self.heads or self.neurons)

    def first_layer(self) -> int | None:
        """The first layer whose output differs from the plain run's, or None where nothing is off."""
        pairs = self.heads | self.neurons
        return min((*self.mixers, *self.ffns, *(layer for layer, _ in pairs)), default=None)


def parse_layers(text: str, layers: int, spec: str) -> list[int]:
    """Layers named by `*`, `3`, `0-7` or `16-`, of a model with `layers` layers.

    Raises TokenwalkError, naming `spec`, where the text is not of that form or leaves the model.
    """
    match = _RANGE.fullmatch(text)
    if match is None or (match["last"] and not match["dash"]):
        raise TokenwalkError(f"“{spec}” names no layers: write a layer (3), a range (0-7 or 16-) or * for all.")
    if match["all"]:
        return list(range(layers))
    first = int(match["first"])
    last = (int(match["last"]) if match["last"] else layers - 1) if match["dash"] else first
    if first >= layers or last >= layers:
        raise TokenwalkError(f"“{spec}” leaves the model: its layers are 0 to {layers - 1}.")
    if last < first:
        raise TokenwalkError(f"“{spec}” counts backwards: write the lower layer first.")
    return list(range(first, last + 1))


def parse_switches(specs: tuple[str, ...] | list[str], shape: Shape) -> Switches:
    """What `specs` switch off in a model of this shape.

    Raises TokenwalkError for a word, layer, head or neuron that the model does not have.
    """
    mixers: set[int] = set()
    ffns: set[int] = set()
    pairs: dict[str, set[tuple[int, int]]] = {"head": set(), "neuron": set()}
    for spec in specs:
        word, _, rest = spec.strip().partition(":")
        if word in MIXER_WORDS:
            mixers.update(_mixer_layers(word, rest, shape, spec))
        elif word == "ffn":
            ffns.update(parse_layers(rest, shape.layers, spec))
        elif word in pairs:
            pairs[word].add(_pair(word, rest, shape, spec))
        else:
            raise TokenwalkError(f"“{spec}” is not a part that can be switched off: write {GRAMMAR}.")
    return Switches(
        frozenset(mixers), frozenset(ffns), frozenset(pairs["head"]), frozenset(pairs["neuron"]), tuple(specs)
    )


def turned_over(specs: list[str], spec: str, shape: Shape) -> list[str]:
    """The specs with one part switched off, or on again where it is off, whichever of them it was that named it.

    A spec that names more than the part gives way to one for each of its other parts; those for other models stay.
    """
    part = _parts(spec, shape)
    if not part <= set().union(*(_parts(each, shape) for each in specs)):
        return [*specs, spec]
    kept: list[str] = []
    for each in specs:
        named = _parts(each, shape)
        kept += [each] if not named & part else sorted(named - part, key=_order)
    return list(dict.fromkeys(kept))


def _parts(spec: str, shape: Shape) -> set[str]:
    """The single parts that a spec names, each as a spec; none where it does not fit the model."""
    try:
        named = parse_switches([spec], shape)
    except TokenwalkError:
        return set()
    return {
        *(f"mixer:{layer}" for layer in named.mixers),
        *(f"ffn:{layer}" for layer in named.ffns),
        *(f"head:{layer}.{head}" for layer, head in named.heads),
        *(f"neuron:{layer}.{neuron}" for layer, neuron in named.neurons),
    }


def _order(spec: str) -> tuple[str, list[int]]:
    word, _, rest = spec.partition(":")
    return word, [int(number) for number in rest.split(".")]


def _mixer_layers(word: str, rest: str, shape: Shape, spec: str) -> list[int]:
    named = parse_layers(rest, shape.layers, spec)
    chosen = [layer for layer in named if shape.mixers[layer] in MIXER_WORDS[word]]
    if not chosen:
        here = ", ".join(sorted({shape.mixers[layer] for layer in named}))
        raise TokenwalkError(f"“{spec}” switches nothing off: the mixers there are {here}.")
    return chosen


def _pair(word: str, rest: str, shape: Shape, spec: str) -> tuple[int, int]:
    match = _PAIR.fullmatch(rest)
    if match is None:
        raise TokenwalkError(f"“{spec}” is not complete: write {word}:LAYER.{word.upper()}, as in {word}:5.2.")
    layer, index = int(match[1]), int(match[2])
    if layer >= shape.layers:
        raise TokenwalkError(f"“{spec}” leaves the model: its layers are 0 to {shape.layers - 1}.")
    count = shape.heads[layer] if word == "head" else shape.neurons[layer]
    if index >= count:
        raise TokenwalkError(f"“{spec}” leaves the layer: its {word}s are 0 to {count - 1}.")
    return layer, index
