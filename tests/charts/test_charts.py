"""Charts against the data that they were given: every value is in the picture, and nothing merges."""

import json
from typing import Any

import pytest

from charts.heatmap import CLOSE_UP, PICK, corner_at, heatmap
from charts.theme import DARK, LIGHT, MIXER_COLOURS, mix, ramp, scale_colours
from charts.words import before_after, by_layer, lens_grid, top_bars
from core.specs import MIXER_WORDS

MARKUP = ["0 </script><b>", "1 $x$", "2 *a*", "3 the", "4 the"]


def spec(chart: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(chart.to_json())
    return made


def rows(made: dict[str, Any], layer: int = 0) -> list[dict[str, Any]]:
    """The data of one of a chart's layers; data that all share stands at the top."""
    values: list[dict[str, Any]] = made["layer"][layer].get("data", made.get("data"))["values"]
    return values


def triangle(tokens: int) -> list[list[float]]:
    return [[(i + 1) / 10 + j / 100 if j <= i else 0.0 for j in range(tokens)] for i in range(tokens)]


def test_equal_tokens_keep_their_own_row_and_column() -> None:
    labels = [f"{i} the" for i in range(4)]
    cells = rows(spec(heatmap(triangle(4), labels, mixer="attention", dark=False)))
    assert {cell["r"] for cell in cells} == set(labels)
    assert {cell["c"] for cell in cells} == set(labels)
    assert len(cells) == 10  # the future is left out


def test_each_cell_of_a_map_has_its_value() -> None:
    labels = [f"{i} x" for i in range(3)]
    cells = rows(spec(heatmap(triangle(3), labels, mixer="attention", dark=False)))
    assert {(cell["r"], cell["c"]): cell["v"] for cell in cells} == {
        (labels[i], labels[j]): pytest.approx((i + 1) / 10 + j / 100) for i in range(3) for j in range(i + 1)
    }


def test_attention_is_coloured_from_0_to_1_and_signed_maps_around_0() -> None:
    values = [[0.5, 0.0], [-2.0, 1.0]]
    share = spec(heatmap(values, ["0 a", "1 b"], mixer="attention", dark=False))["layer"][0]["encoding"]["color"]
    signed = spec(heatmap(values, ["0 a", "1 b"], mixer="mamba2", dark=False))["layer"][0]["encoding"]["color"]
    assert share["scale"]["domain"] == [0, 1]
    assert share["legend"]["title"] == "share read, 0 to 1"
    assert signed["scale"]["domain"] == [-2.0, 0, 2.0]
    assert signed["legend"]["title"] == "signed weight"


def test_a_map_of_zeros_and_of_one_token_can_be_drawn() -> None:
    assert rows(spec(heatmap([[0.0]], ["0 a"], mixer="mamba2", dark=True, focus=0)))[0]["v"] == 0


def test_the_focus_is_outlined_in_the_accent() -> None:
    made = spec(heatmap(triangle(3), ["0 a", "1 b", "2 c"], mixer="attention", dark=True, focus=1))
    assert rows(made, 1) == [{"r": "1 b"}]
    assert made["layer"][1]["mark"]["stroke"] == DARK.accent


def test_tiles_are_said_to_be_tiles() -> None:
    chart = heatmap(triangle(3), ["0 a", "4 b", "8 c"], mixer="attention", dark=False, edge=4)
    assert spec(chart)["layer"][0]["encoding"]["x"]["title"] == "is read (a cell is 4 × 4 tokens, its largest entry)"


def test_a_tile_can_be_picked_and_a_whole_maps_cell_not() -> None:
    tiled = spec(heatmap(triangle(3), ["0 a", "4 b", "8 c"], mixer="attention", dark=False, edge=4))
    assert [(each["name"], each["select"]["fields"], each["views"]) for each in tiled["params"]] == [
        (PICK, ["r", "c"], ["cells"])
    ]
    assert "params" not in spec(heatmap(triangle(3), ["0 a", "1 b", "2 c"], mixer="attention", dark=False))


def test_a_close_up_has_the_exact_cells_and_the_whole_maps_colours() -> None:
    labels = [f"{i} x" for i in range(100)]
    whole = triangle(100)
    near = [row[20:40] for row in whole[30:36]]
    made = spec(heatmap(near, labels, corner=(30, 20), mixer="mamba2", dark=False, most=12.5, focus=31))
    cells = {(cell["r"], cell["c"]): cell["v"] for cell in rows(made)}
    assert cells == {
        (labels[i], labels[j]): pytest.approx(whole[i][j], rel=1e-3) for i in range(30, 36) for j in range(20, i + 1)
    }
    assert made["layer"][0]["encoding"]["color"]["scale"]["domain"] == [-12.5, 0, 12.5]
    assert made["layer"][0]["encoding"]["y"]["scale"]["domain"] == labels[30:36]
    assert made["layer"][0]["encoding"]["x"]["scale"]["domain"] == labels[20:40]
    assert rows(made, 1) == [{"r": "31 x"}]
    elsewhere = spec(heatmap(near, labels, corner=(30, 20), mixer="mamba2", dark=False, most=12.5, focus=50))
    assert len(elsewhere["layer"]) == 1


@pytest.mark.parametrize(
    ("reads", "read", "corner"), [(500, 300, (482, 282)), (5, 0, (0, 0)), (999, 990, (964, 964)), (18, 17, (0, 0))]
)
def test_a_close_up_has_its_cell_in_the_middle_and_stays_within_the_text(
    reads: int, read: int, corner: tuple[int, int]
) -> None:
    assert CLOSE_UP == 36
    assert corner_at(reads, read, 1000) == corner
    assert corner_at(3, 2, 20) == (0, 0)


def test_a_visitors_text_stays_data_in_every_chart() -> None:
    charts = [
        heatmap(triangle(5), MARKUP, mixer="attention", dark=False),
        top_bars([(text, 0.1) for text in MARKUP], colour="#000000", dark=False),
        lens_grid([MARKUP], [[0.1] * 5], MARKUP, layer=0, focus=0, dark=False),
        before_after([(text, 0.1, 0.2) for text in MARKUP], dark=False),
        by_layer({text: [0.1] for text in MARKUP[:4]}, ytitle="p", marked=0, dark=False),
    ]
    for chart in charts:
        made = spec(chart)
        assert "</script>" in json.dumps(made)  # it is there
        assert "</script>" not in json.dumps(made.get("title", "")) + json.dumps(made.get("transform", ""))


def test_bars_hold_the_probabilities_in_order_and_equal_words_apart() -> None:
    made = spec(top_bars([("the", 0.5), ("the", 0.25), ("a", 0.125)], colour="#123456", dark=False))
    values = rows(made)
    assert [row["p"] for row in values] == [0.5, 0.25, 0.125]
    assert len({row["word"] for row in values}) == 3


def test_no_bar_says_that_a_word_is_certain_or_impossible() -> None:
    shares = [0.99968, 0.9994, 0.815, 0.0006, 0.0001]
    values = rows(spec(top_bars([("x", p) for p in shares], colour="#123456", dark=False)))
    assert [row["said"] for row in values] == [">99.9%", "99.9%", "81.5%", "0.1%", "<0.1%"]


def test_the_lens_grid_has_a_word_for_each_layer_and_position() -> None:
    made = spec(
        lens_grid([["a", "b"], ["c", "d"]], [[0.1, 0.2], [0.3, 0.4]], ["0 x", "1 x"], layer=1, focus=0, dark=False)
    )
    cells = rows(made)
    assert {(c["l"], c["c"]): (c["w"], c["p"]) for c in cells} == {
        (0, "0 x"): ("a", 0.1),
        (0, "1 x"): ("b", 0.2),
        (1, "0 x"): ("c", 0.3),
        (1, "1 x"): ("d", 0.4),
    }


def test_by_layer_has_one_point_a_model_and_layer() -> None:
    made = spec(by_layer({"A: x": [0.1, 0.2], "B: y": [0.3]}, ytitle="p", marked=None, dark=False))
    points = rows(made)
    assert {(p["model"], p["layer"]): p["p"] for p in points} == {("A: x", 0): 0.1, ("A: x", 1): 0.2, ("B: y", 0): 0.3}


def test_every_kind_of_mixer_has_a_colour_of_its_own() -> None:
    assert set(MIXER_COLOURS) == set(MIXER_WORDS["mixer"])
    assert len(set(MIXER_COLOURS.values())) == len(MIXER_COLOURS)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("mixer", MIXER_COLOURS)
def test_a_scale_has_two_ends_or_three_around_zero(mixer: str, dark: bool) -> None:
    colours = scale_colours(mixer, dark)
    assert len(colours) == (2 if "attention" in mixer else 3)
    assert len(set(colours)) == len(colours)


def test_colours_mix_and_ramp_from_end_to_end() -> None:
    assert [mix("#000000", "#ffffff", share) for share in (0, 0.5, 1, 7)] == [
        "#000000",
        "#808080",
        "#ffffff",
        "#ffffff",
    ]
    painted = ramp(["#000000", "#ff0000", "#ffffff"])
    assert (len(painted), painted[:3], painted[-3:]) == (768, b"\x00\x00\x00", b"\xff\xff\xff")
    assert LIGHT.accent != DARK.accent
