"""Charts of heads, halves, states and memory: every value is in the picture, under its own name."""

import math

import pytest

from charts.distances import by_tokens, kept
from charts.parts import by_head, sweep, terms
from charts.theme import MIXER_COLOURS, share_colours, signed_colours
from charts.vectors import by_token
from charts.words import by_half
from tests.charts.test_charts import MARKUP, rows, spec


@pytest.mark.parametrize("dark", [False, True])
def test_a_map_of_heads_has_each_value_and_a_scale_that_fits(dark: bool) -> None:
    heads = {3: [0.25, 1.0], 6: [0.0, 0.5]}
    made = spec(by_head(heads, title="share", layer=6, colours=share_colours(dark), dark=dark))
    assert {(row["layer"], row["head"]): row["v"] for row in rows(made)} == {
        (3, 0): 0.25,
        (3, 1): 1.0,
        (6, 0): 0.0,
        (6, 1): 0.5,
    }
    assert made["layer"][0]["encoding"]["color"]["scale"]["domain"] == [0, 1]
    signed = spec(by_head({0: [-2.0, 1.0]}, title="logits", layer=0, colours=signed_colours(dark), dark=dark))
    assert signed["layer"][0]["encoding"]["color"]["scale"]["domain"] == [-2.0, 0, 2.0]


def test_a_layer_that_has_no_heads_on_the_map_is_not_outlined() -> None:
    colours = share_colours(False)
    assert len(spec(by_head({3: [0.5]}, title="share", layer=1, colours=colours, dark=False))["layer"]) == 1
    assert len(spec(by_head({3: [0.5]}, title="share", layer=3, colours=colours, dark=False))["layer"]) == 2


def test_halves_stand_where_their_layers_are_passed() -> None:
    lines = {"0 Alice": (0.1, [(0.2, 0.3), (0.4, 0.9)]), "1 $x$": (0.0, [(0.0, 0.0), (0.0, 0.1)])}
    made = spec(by_half(lines, marked=1, dark=False))
    data = [row for row in rows(made, 1) if row["word"] == "0 Alice"]
    assert [(row["x"], row["after"], row["p"]) for row in data] == [
        (0.0, "embedding", 0.1),
        (0.5, "mixer", 0.2),
        (1.0, "FFN", 0.3),
        (1.5, "mixer", 0.4),
        (2.0, "FFN", 0.9),
    ]
    assert {row["word"] for row in rows(made, 1)} == set(lines)
    assert rows(made, 0) == [{"a": 1, "b": 2}]


def test_a_model_keeps_its_colour_with_its_attention_off() -> None:
    lines = [("A", False, [(18, 0.9)]), ("A", True, [(18, 0.2)]), ("B", False, [(18, 0.5)])]
    made = spec(by_tokens(lines, dark=False))
    assert [(row["model"], row["run"], row["p"]) for row in rows(made)] == [
        ("A", "as trained", 0.9),
        ("A", "attention off", 0.2),
        ("B", "as trained", 0.5),
    ]
    encoding = made["layer"][0]["encoding"]
    assert encoding["color"]["scale"]["domain"] == ["A", "B"]
    assert encoding["strokeDash"]["scale"] == {"domain": ["as trained", "attention off"], "range": [[1, 0], [5, 4]]}


def test_kinds_of_mixer_have_the_names_of_the_screen_in_every_legend() -> None:
    kinds = ["mamba2", "gated deltanet", "attention"]
    bars = spec(terms(kinds, [1.0] * 3, [1.0] * 3, layer=0, dark=False))
    swept = spec(sweep(kinds, [0.5] * 3, ["a"] * 3, 0.9, dark=False))
    names = ["Mamba2", "gated DeltaNet", "attention"]
    for made, field, expected in ((bars, "half", [*names, "FFN"]), (swept, "kind", names)):
        colour = made["layer"][0]["encoding"]["color"]
        assert colour["scale"]["domain"] == expected
        assert colour["scale"]["range"][:3] == [MIXER_COLOURS[kind] for kind in kinds]
        assert {row[field] for row in rows(made)} == set(expected)


def test_memory_is_drawn_in_kilobytes_and_marked_at_this_text() -> None:
    made = spec(kept({"A": [(1, 1000.0), (1024, 1_024_000.0)]}, here=18, dark=True))
    assert [(row["tokens"], row["kB"]) for row in rows(made)] == [(1, 1.0), (1024, 1024.0)]
    assert rows(made, 1) == [{"tokens": 18}]


def test_a_map_by_token_keeps_equal_tokens_apart_and_markup_as_it_is() -> None:
    values = [[0.0, 0.25, 0.5, 0.75, 1.0]] * 2
    made = spec(by_token(values, MARKUP, rows="head", title="left", colour="#c86f12", dark=False, domain=(0.0, 1.0)))
    data = made["data"]["values"]
    assert [row["v"] for row in data if row["l"] == 1] == values[1]
    assert list(dict.fromkeys(row["c"] for row in data)) == MARKUP
    assert made["encoding"]["color"]["scale"]["domain"] == [0.0, 1.0]
    logarithmic = spec(by_token([[math.pi]], ["0 a"], rows="layer", title="length", colour="#c86f12", dark=False))
    assert logarithmic["encoding"]["color"]["scale"]["type"] == "log"
