"""Colours and the one theme that every chart has.

One accent means "in focus", one hatch means "switched off", each kind of mixer keeps its colour: on the strip, in the
charts and in the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
from altair.utils.schemapi import disable_debug_mode

disable_debug_mode()  # a chart is held to Vega-Lite's schema as a whole, once, and not each of its parts as it is made
Chart = alt.Chart | alt.LayerChart | alt.FacetChart

# core.specs names the kinds; a chart knows them as words only.
MIXER_COLOURS = {
    "attention": "#3b6fd4",
    "local attention": "#1c8f9e",
    "mamba2": "#c86f12",
    "gated deltanet": "#3d8b47",
}
KIND_NAMES = {
    "attention": "attention",
    "local attention": "local attention",
    "mamba2": "Mamba2",
    "gated deltanet": "gated DeltaNet",
}
FFN = "FFN"
FFN_COLOUR = "#7d6aa8"
LEGEND_ROW = 22  # pixels of height that each name in a legend above takes
MODEL_COLOURS = ["#4f6478", "#9a6b4b", "#8a8a2b", "#7b5b9e"]  # none of them a mixer's
PROBABILITY_COLOUR = "#35617f"


@dataclass(frozen=True)
class Palette:
    """The colours that depend on whether the page is light or dark."""

    text: str
    background: str
    grid: str
    accent: str
    negative: str
    off: str  # bars of a run with something switched off


LIGHT = Palette(
    text="#1f2328", background="#ffffff", grid="#dedbd5", accent="#c2255c", negative="#6b3fa0", off="#a9adb3"
)
DARK = Palette(
    text="#e8e6e1", background="#14171c", grid="#353b45", accent="#f06595", negative="#a98be0", off="#767d88"
)


def palette(dark: bool) -> Palette:
    """The page's palette."""
    return DARK if dark else LIGHT


@alt.theme.register("tokenwalk", enable=True)
def theme() -> alt.theme.ThemeConfig:
    """What all charts share. Text and axis colours follow the page, which Streamlit sets."""
    return {
        "config": {
            "background": "transparent",
            "view": {"stroke": None},
            "axis": {"labelLimit": 180, "titleFontWeight": "normal", "labelFontSize": 12, "titleFontSize": 12},
            "legend": {"titleFontWeight": "normal", "labelLimit": 220, "titleLimit": 300},
        }
    }


def model_colours(dark: bool) -> list[str]:
    """The colours of up to four models side by side."""
    return [mix(colour, "#ffffff", 0.4) for colour in MODEL_COLOURS] if dark else MODEL_COLOURS


def by_kind(field: str, kinds: Sequence[str]) -> alt.Color:
    """The colour channel of kinds of mixer, as `core.specs` has them, and of `FFN`; the data has their names."""
    return alt.Color(
        f"{field}:N",
        title=None,
        scale=alt.Scale(
            domain=[KIND_NAMES.get(kind, kind) for kind in kinds],
            range=[MIXER_COLOURS.get(kind, FFN_COLOUR) for kind in kinds],
        ),
        legend=alt.Legend(orient="top"),
    )


def named(field: str, names: Sequence[str], dark: bool) -> alt.Color:
    """The colour channel of lines that have names, with a legend above: up to four of them."""
    return alt.Color(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(names), range=model_colours(dark)[: len(names)]),
        legend=alt.Legend(orient="top", columns=1),  # side by side they would not fit a phone
    )


def probability_colour(dark: bool) -> str:
    """The colour of a probability."""
    return mix(PROBABILITY_COLOUR, "#ffffff", 0.25) if dark else PROBABILITY_COLOUR


def mix(first: str, second: str, share: float) -> str:
    """The colour that is `share` (0 to 1) of the way from one #rrggbb to another."""
    a, b = (tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in (first, second))
    share = min(1.0, max(0.0, share))
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b, strict=True))


def scale_colours(mixer: str, dark: bool) -> list[str]:
    """The colours of a mixer's map from its lowest to its highest value: two ends, or three around 0 where signed."""
    tones = palette(dark)
    high = mix(MIXER_COLOURS[mixer], "#ffffff", 0.25) if dark else MIXER_COLOURS[mixer]
    zero = mix(tones.background, tones.text, 0.05)
    return [zero, high] if "attention" in mixer else [tones.negative, zero, high]


def signed_colours(dark: bool) -> list[str]:
    """The colours of signed amounts that belong to no mixer, from below 0 to above."""
    tones = palette(dark)
    return [tones.negative, mix(tones.background, tones.text, 0.05), probability_colour(dark)]


def share_colours(dark: bool) -> list[str]:
    """The colours of shares and probabilities, from 0 to 1."""
    return signed_colours(dark)[1:]


def ramp(colours: list[str], steps: int = 256) -> bytes:
    """`steps` colours along the scale, three bytes each: what a picture of a map is painted with."""
    parts = len(colours) - 1
    found = bytearray()
    for step in range(steps):
        place = step / (steps - 1) * parts
        index = min(int(place), parts - 1)
        found += bytes.fromhex(mix(colours[index], colours[index + 1], place - index)[1:])
    return bytes(found)
