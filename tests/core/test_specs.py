"""The grammar that names what is off, and each sentence that it refuses with."""

import pytest

from core.errors import TokenwalkError
from core.specs import (
    ATTENTION,
    DELTANET,
    LOCAL_ATTENTION,
    MAMBA2,
    Shape,
    Switches,
    parse_layers,
    parse_switches,
    turned_over,
)

# Layers 0 to 7.
SHAPE = Shape(
    mixers=(MAMBA2, MAMBA2, ATTENTION, DELTANET, LOCAL_ATTENTION, MAMBA2, ATTENTION, DELTANET),
    heads=(6, 6, 4, 2, 4, 6, 4, 2),
    neurons=(80,) * 8,
)
PLAIN_SHAPE = Shape(mixers=(ATTENTION,) * 30, heads=(9,) * 30, neurons=(1536,) * 30)


@pytest.mark.parametrize(
    ("spec", "mixers"),
    [
        ("mixer:3", {3}),
        ("mixer:0-3", {0, 1, 2, 3}),
        ("mixer:5-", {5, 6, 7}),
        ("mixer:4-4", {4}),
        ("mixer:*", set(range(8))),
        ("attention:*", {2, 4, 6}),
        ("attention:4-", {4, 6}),
        ("attention:6", {6}),
        ("mamba2:*", {0, 1, 5}),
        ("mamba2:1-", {1, 5}),
        ("deltanet:*", {3, 7}),
        (" mixer:7 ", {7}),
    ],
)
def test_mixers_are_named_by_layer_range_and_kind(spec: str, mixers: set[int]) -> None:
    assert parse_switches([spec], SHAPE) == Switches(mixers=frozenset(mixers))


def test_the_examples_of_the_grammar_are_read() -> None:
    found = parse_switches(["mixer:0-7", "attention:16-", "ffn:5", "head:5.2", "neuron:23.275"], PLAIN_SHAPE)
    assert found.mixers == {*range(8), *range(16, 30)}
    assert found.ffns == {5}
    assert found.heads == {(5, 2)}
    assert found.neurons == {(23, 275)}
    assert found.specs == ("mixer:0-7", "attention:16-", "ffn:5", "head:5.2", "neuron:23.275")


def test_ffns_take_ranges_and_every_kind_of_layer_has_one() -> None:
    assert parse_switches(["ffn:0-1", "ffn:6-"], SHAPE).ffns == {0, 1, 6, 7}
    assert parse_switches(["ffn:*"], SHAPE).ffns == set(range(8))


def test_heads_are_counted_by_the_layers_own_mixer() -> None:
    assert parse_switches(["head:0.5", "head:3.1"], SHAPE).heads == {(0, 5), (3, 1)}
    with pytest.raises(TokenwalkError):
        parse_switches(["head:3.5"], SHAPE)


def test_nothing_named_is_nothing_off() -> None:
    nothing = parse_switches([], SHAPE)
    assert not nothing
    assert nothing.first_layer() is None


@pytest.mark.parametrize(
    ("specs", "first"),
    [(["mixer:5", "ffn:3"], 3), (["head:2.0", "neuron:4.1"], 2), (["neuron:1.1", "mixer:1"], 1), (["mixer:*"], 0)],
)
def test_the_first_layer_that_differs(specs: list[str], first: int) -> None:
    assert parse_switches(specs, SHAPE).first_layer() == first


def test_two_ways_to_name_the_same_switches_are_equal() -> None:
    assert parse_switches(["attention:*"], SHAPE) == parse_switches(["mixer:2", "mixer:6", "attention:4"], SHAPE)
    assert hash(parse_switches(["mixer:2"], SHAPE)) == hash(parse_switches(["attention:2"], SHAPE))


GRAMMAR = "mixer:3, mixer:0-7, attention:*, mamba2:16-, deltanet:*, ffn:5, head:5.2 or neuron:23.275"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("mlp:3", f"“mlp:3” is not a part that can be switched off: write {GRAMMAR}."),
        ("", f"“” is not a part that can be switched off: write {GRAMMAR}."),
        ("Mixer:3", f"“Mixer:3” is not a part that can be switched off: write {GRAMMAR}."),
        ("mixer", "“mixer” names no layers: write a layer (3), a range (0-7 or 16-) or * for all."),
        ("mixer:", "“mixer:” names no layers: write a layer (3), a range (0-7 or 16-) or * for all."),
        ("mixer:three", "“mixer:three” names no layers: write a layer (3), a range (0-7 or 16-) or * for all."),
        ("mixer:-3", "“mixer:-3” names no layers: write a layer (3), a range (0-7 or 16-) or * for all."),
        ("mixer:1,2", "“mixer:1,2” names no layers: write a layer (3), a range (0-7 or 16-) or * for all."),
        ("mixer:**", "“mixer:**” names no layers: write a layer (3), a range (0-7 or 16-) or * for all."),
        ("ffn:1.2", "“ffn:1.2” names no layers: write a layer (3), a range (0-7 or 16-) or * for all."),
        ("mixer:8", "“mixer:8” leaves the model: its layers are 0 to 7."),
        ("mixer:0-8", "“mixer:0-8” leaves the model: its layers are 0 to 7."),
        ("ffn:9-", "“ffn:9-” leaves the model: its layers are 0 to 7."),
        ("mixer:3-1", "“mixer:3-1” counts backwards: write the lower layer first."),
        ("mamba2:2", "“mamba2:2” switches nothing off: the mixers there are attention."),
        ("deltanet:0-2", "“deltanet:0-2” switches nothing off: the mixers there are attention, mamba2."),
        ("head:3", "“head:3” is not complete: write head:LAYER.HEAD, as in head:5.2."),
        ("head:*", "“head:*” is not complete: write head:LAYER.HEAD, as in head:5.2."),
        ("neuron:23", "“neuron:23” is not complete: write neuron:LAYER.NEURON, as in neuron:5.2."),
        ("head:8.0", "“head:8.0” leaves the model: its layers are 0 to 7."),
        ("head:2.4", "“head:2.4” leaves the layer: its heads are 0 to 3."),
        ("neuron:7.80", "“neuron:7.80” leaves the layer: its neurons are 0 to 79."),
    ],
)
def test_a_spec_that_fits_no_part_is_refused_with_one_sentence(spec: str, said: str) -> None:
    with pytest.raises(TokenwalkError) as error:
        parse_switches([spec], SHAPE)
    assert str(error.value) == said


def test_one_bad_spec_among_good_ones_is_the_one_that_is_named() -> None:
    with pytest.raises(TokenwalkError, match="“mixer:99”"):
        parse_switches(["mixer:1", "mixer:99", "ffn:0"], SHAPE)


def test_digits_of_other_scripts_and_endless_ones_are_no_python_error() -> None:
    for spec in ("mixer:²", "mixer:" + "9" * 5000, "head:1." + "9" * 5000, "head:¹.0"):
        with pytest.raises(TokenwalkError):
            parse_switches([spec], SHAPE)


@pytest.mark.parametrize(("text", "layers"), [("*", [0, 1, 2]), ("1", [1]), ("1-", [1, 2]), ("0-1", [0, 1])])
def test_layers_are_read(text: str, layers: list[int]) -> None:
    assert parse_layers(text, 3, text) == layers


HYBRID = Shape(mixers=("mamba2", "attention", "mamba2"), heads=(4, 2, 4), neurons=(8, 8, 8))


@pytest.mark.parametrize(
    ("specs", "spec", "left"),
    [
        ([], "mixer:1", ["mixer:1"]),
        (["mixer:1"], "mixer:1", []),
        (["mamba2:*"], "mixer:0", ["mixer:2"]),
        (["mixer:0-2"], "mamba2:*", ["mixer:1"]),
        (["mixer:0", "mixer:2"], "mamba2:*", []),
        (["mixer:0"], "mamba2:*", ["mixer:0", "mamba2:*"]),
        (["ffn:*", "mixer:1"], "ffn:1", ["ffn:0", "ffn:2", "mixer:1"]),
        (["head:0.3", "deltanet:*"], "head:0.3", ["deltanet:*"]),
        (["deltanet:*"], "mixer:0", ["deltanet:*", "mixer:0"]),
    ],
)
def test_turning_a_part_over_leaves_the_others_as_they_are(specs: list[str], spec: str, left: list[str]) -> None:
    assert turned_over(specs, spec, HYBRID) == left
