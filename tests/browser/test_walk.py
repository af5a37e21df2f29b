"""The walk in a real browser: what a visitor types, clicks and reads."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from pages.frame.state import PROMPT
from pages.frame.walk import STEPS
from tests.browser.conftest import MAIN, PATIENCE, Visitor

MAIN_TEST_ID = "[data-testid=stMain]"
PAGES = ["", *(step.path for step in STEPS[1:])]
EVERY_KIND = "gpt2,granite-4.0-h-350m-base,gemma-3-270m,qwen3.5-0.8b"


def test_a_visitor_types_a_sentence_and_reads_the_answer_from_the_picture(visitor: Visitor) -> None:
    visitor.open()
    visitor.says("SmolLM2 135M goes on with “␣Alice” at 81 %")
    visitor.type("The capital of France is")
    visitor.says("SmolLM2 135M goes on with “␣Paris” at 77 %")
    assert visitor.settled().chips() == ["The", "␣capital", "␣of", "␣France", "␣is"]
    picture = visitor.page.locator('[data-testid="stVegaLiteChart"]').first
    drawn = picture.locator("svg text, [role='graphics-symbol']")
    if drawn.count():
        expect(picture).to_contain_text("␣Paris")
    assert picture.bounding_box()["height"] > 200  # type: ignore[index]


def test_the_walk_goes_on_page_by_page(visitor: Visitor) -> None:
    visitor.open()
    for step in STEPS[1:]:
        visitor.page.get_by_role("link", name=f"Next step: {step.title}").click()
        visitor.page.wait_for_url(f"**/{step.path}?**")
        visitor.settled()
        assert "".join(visitor.chips()) == PROMPT.replace(" ", "␣")
    visitor.page.get_by_role("link", name="Back to the start").click()
    visitor.says("What does each model say comes next?")


def test_the_first_thing_that_a_server_is_asked_for_may_be_any_page(visitor: Visitor) -> None:
    visitor.open("mixing", layer="22", head="7")
    visitor.says("In layer 22 of SmolLM2 135M (attention), in head 7, “␣to” (position 17) takes 65 % from “␣Alice”")


def test_a_click_on_a_chip_moves_the_focus_and_the_url_follows(visitor: Visitor) -> None:
    visitor.open("mixing", layer="22", head="7")
    visitor.page.locator(".chip").nth(12).click()
    visitor.says("in head 7, “␣Bob” (position 12) takes")
    expect(visitor.page.locator('.chip[aria-pressed="true"]')).to_contain_text("Bob")
    visitor.page.wait_for_url("**focus=12**")


def test_a_click_on_the_strip_picks_the_layer_and_one_on_a_map_the_head(visitor: Visitor) -> None:
    visitor.open("mixing", layer="22", head="7")
    visitor.page.locator(".strip .cell").nth(5).click()
    visitor.says("In layer 5 of SmolLM2 135M")
    visitor.settled().page.locator(".grid .map").nth(3).click()
    visitor.says("in head 2, ")
    visitor.page.wait_for_url("**layer=5&head=2**")


def test_a_link_gives_the_same_view_to_somebody_else(visitor: Visitor, second_visitor: Visitor) -> None:
    visitor.open("logit_lens", text="The capital of France is", target=" Paris", off="mixer:3", layer="9", focus="3")
    visitor.says("mixer:3 is switched off in SmolLM2 135M.")
    second_visitor.page.goto(visitor.settled().page.url)
    shown = visitor.page.locator(MAIN).inner_text()
    assert "Next step: " in shown
    expect(second_visitor.settled().page.locator(MAIN)).to_have_text(shown, use_inner_text=True, timeout=PATIENCE)


def test_back_and_forward_restore_the_view(visitor: Visitor) -> None:
    visitor.open("mixing", layer="22", head="7")
    visitor.page.locator(".strip .cell").nth(5).click()
    visitor.says("In layer 5 of SmolLM2 135M")
    visitor.settled().page.get_by_role("link", name="Next step: Add back").click()
    visitor.page.wait_for_url("**/add_back?**")
    visitor.settled().page.go_back()
    visitor.says("In layer 5 of SmolLM2 135M")
    visitor.settled().page.go_back()
    visitor.says("In layer 22 of SmolLM2 135M")
    visitor.page.wait_for_url("**layer=22&head=7**")
    visitor.settled().page.go_forward()
    visitor.says("In layer 5 of SmolLM2 135M")


def test_a_switch_changes_the_answer_and_only_its_own_visitors(visitor: Visitor, second_visitor: Visitor) -> None:
    second_visitor.open("switch_off").says("nothing is switched off. “␣Alice” is at 81 %")
    visitor.open("switch_off").says("nothing is switched off")
    visitor.page.locator(".board .cell").first.click()
    visitor.says("with this off, “␣Alice” goes from 81 % to")
    second_visitor.page.reload()
    second_visitor.settled().says("nothing is switched off. “␣Alice” is at 81 %")
    visitor.page.get_by_role("button", name="everything on").click()
    visitor.says("nothing is switched off. “␣Alice” is at 81 %")


def test_clicks_that_are_faster_than_a_run_count_all(visitor: Visitor) -> None:
    visitor.open("switch_off").says("nothing is switched off")
    mixers = visitor.settled().page.locator(".board .cells").first.locator(".cell")
    mixers.evaluate_all("cells => cells.slice(0, 6).forEach(cell => cell.click())")
    for _ in range(2):  # a third one while the page runs: on again
        mixers.nth(9).click()
    pressed = visitor.page.locator(".board .cells").first.locator("[aria-pressed=true]")
    expect(pressed).to_have_count(6, timeout=PATIENCE)
    assert "off=mixer" in visitor.settled().page.url
    expect(pressed).to_have_text(list("012345"))


def test_five_architectures_stand_side_by_side_with_their_kinds_of_mixer(visitor: Visitor) -> None:
    visitor.open(models=EVERY_KIND, hand="gpt2", text="A cat sat.")
    for name in ("GPT-2 124M", "Granite 4.0-H 350M", "Gemma 3 270M", "Qwen3.5 0.8B"):
        visitor.says(f"{name} goes on with")
    kinds = visitor.page.locator(".strip .kinds")
    for kind in ("attention", "local attention", "Mamba2", "gated DeltaNet"):
        expect(kinds).to_contain_text(kind)


@pytest.mark.parametrize(
    ("model", "layer", "kind", "scale"),
    [
        ("granite-4.0-h-350m-base", 0, "Mamba2", "takes"),
        ("qwen3.5-0.8b", 0, "gated DeltaNet", "takes"),
        ("gemma-3-270m", 0, "local attention", "% from"),
        ("gpt2", 0, "attention", "% from"),
    ],
)
def test_every_kind_of_mixer_has_its_map(visitor: Visitor, model: str, layer: int, kind: str, scale: str) -> None:
    visitor.open("mixing", models=model, hand=model, layer=str(layer), text="A cat sat.")
    visitor.says(f"({kind})")
    visitor.says(scale)
    expect(visitor.page.locator(".grid canvas").first).to_be_visible()


def test_a_click_on_a_tile_of_a_long_texts_map_shows_its_cells(visitor: Visitor) -> None:
    text = "Alice gave the book to Bob, and then he went to the old house by the river. " * 5
    visitor.open("mixing", text=text, layer="22", head="7")
    visitor.says("a cell is 2 × 2 tokens")
    visitor.says(f"Cell by cell: what positions {len(visitor.chips()) - 36} to {len(visitor.chips()) - 1} read from")
    visitor.page.locator('path[aria-label*=" tokens, "][aria-label*="reads: 50 "][aria-label*="is read: 20 "]').click()
    visitor.says("Cell by cell: what positions 33 to 68 read from positions 3 to 38.")
    cells = visitor.settled().page.locator('path[aria-label^="is read: "][aria-label*="reads: 51 "]')
    expect(cells).to_have_count(36)
    visitor.page.locator(".strip .cell").nth(5).click()
    visitor.says("In layer 5 of SmolLM2 135M")
    visitor.says("Cell by cell: what positions 33 to 68 read from positions 3 to 38.")


def test_clocks_turn_in_the_browser_and_the_score_depends_on_the_gap_alone(visitor: Visitor) -> None:
    visitor.open("position", layer="3")
    line = visitor.page.locator(".score")
    expect(line).to_contain_text("Gap 17: ")
    before = line.inner_text()
    visitor.page.get_by_role("button", name="move both by 1").click()
    expect(visitor.page.locator(".controls output").first).to_have_text("18")
    assert line.inner_text() == before
    visitor.page.get_by_label("position of the key").fill("5")
    expect(line).to_contain_text("Gap 13: ")
    assert line.inner_text() != before
    visitor.page.get_by_label("position of the key").fill("20")
    expect(line).to_contain_text("Gap −2: ")
    assert "-" not in line.inner_text()


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("the the the the", ["the", "␣the", "␣the", "␣the"]),
        ("a\nb\tc", ["a", "⏎", "b", "⇥", "c"]),
        ("</script><b>x", None),
        ("$a$ and $b$ *c* _d_ [e](f)", None),
    ],
    ids=["equal tokens", "white space", "markup", "math"],
)
def test_what_is_typed_is_shown_as_typed(visitor: Visitor, text: str, chips: list[str] | None) -> None:
    visitor.open("tokens", text=text)
    visitor.says("SmolLM2 135M cuts")
    shown = visitor.chips()
    assert "".join(shown) == text.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
    if chips:
        assert shown == chips
    assert visitor.page.locator('[data-testid="stMain"] .katex').count() == 0


def test_five_thousand_words_get_one_sentence(visitor: Visitor) -> None:
    visitor.open()
    visitor.type("word " * 5000)
    visitor.says("The text is 5,001 tokens long; this app walks up to 2,048.")


def test_a_long_text_has_a_map_in_tiles(visitor: Visitor) -> None:
    visitor.open("mixing", text="The old clock in the hall struck nine. " * 30, layer="3", head="0")
    visitor.says("In layer 3 of SmolLM2 135M (attention), in head 0")
    expect(visitor.page.locator(".grid canvas").first).to_be_visible()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_every_width(
    chromium: Browser, app_url: str, artefacts: Path, path: str, scheme: Literal["light", "dark"]
) -> None:
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    guest = Visitor(context.new_page(), app_url)
    guest.open(path, **({"models": "gpt2,qwen3-0.6b-base", "text": "A cat sat."} if path == "compare" else {}))
    guest.says("What to look for.")
    drawn = '[data-testid="stVegaLiteChart"] :is(svg, canvas), [data-testid="stDataFrame"] canvas'
    guest.page.locator(drawn).first.wait_for(timeout=PATIENCE)
    for width in (1440, 1024, 390):
        guest.page.set_viewport_size({"width": width, "height": 900})
        height = int(guest.page.evaluate(f"document.querySelector('{MAIN_TEST_ID}').scrollHeight"))
        guest.page.set_viewport_size({"width": width, "height": min(height + 40, 4000)})
        if width < 768:  # there the sidebar slides away
            gone = "document.querySelector('[data-testid=stSidebar]').getBoundingClientRect().right <= 1"
            guest.page.wait_for_function(gone, timeout=PATIENCE)
        guest.settled().page.screenshot(path=artefacts / f"{path or 'start'}-{width}-{scheme}.png")
        overflow = guest.page.evaluate(
            f"(() => {{ const main = document.querySelector('{MAIN_TEST_ID}');"
            " return main.scrollWidth - main.clientWidth; })()"
        )
        assert overflow <= 1, f"{overflow} pixels wider than {width}"
    context.close()
    assert not guest.faults
