"""The tour and the specimens in a real browser."""

import pytest
from playwright.sync_api import expect

from core.catalogue import BESIDE, SPECIMENS, TITLES
from pages.frame.tour import STOPS
from pages.frame.walk import STEPS
from tests.browser.conftest import Visitor

PAGES = ["", *(step.path for step in STEPS[1:])]
NAMES = {step.path: step.title for step in STEPS}


def test_a_newcomer_sees_smollm2_and_three_specimens_and_takes_the_tour(visitor: Visitor) -> None:
    visitor.open(models="")
    for name in ("smollm2-135m", *BESIDE):
        visitor.says(f"{TITLES[name]} goes on with “␣Alice” at ")
    visitor.page.get_by_role("button", name="Take the tour").click()
    for number, stop in enumerate(STOPS, 1):
        visitor.says(f"Stop {number} of {len(STOPS)}")
        visitor.settled()
        if stop.asks:
            visitor.says(stop.asks)
            following = STOPS[number].path
            visitor.page.get_by_role("link", name=f"Next stop: {NAMES[following]}").first.click()
            visitor.page.wait_for_url(f"**/{following}?**")
    visitor.says("So, where does it come from? “␣Alice” stood at position 4; head ")
    visitor.page.get_by_role("button", name="Leave the tour").click()
    expect(visitor.page.get_by_text("Stop 9 of 9")).to_have_count(0)
    assert "tour" not in visitor.settled().page.url


@pytest.mark.parametrize("name", SPECIMENS)
def test_every_page_works_on_every_specimen(visitor: Visitor, name: str) -> None:
    for path in PAGES:
        visitor.open(path, models=name, tour="1")
        visitor.says("Choose a second model" if path == "compare" else "What to look for.")
        expect(visitor.page.get_by_test_id("stException")).to_have_count(0)
    assert TITLES[name].split()[0] in visitor.page.locator(".strip").inner_text()
