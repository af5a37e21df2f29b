import pytest

from core import load
from core.catalogue import KNOWN, SPECIMENS, TITLES
from pages.frame.state import PROMPT


def test_specimens_stand_first_and_no_two_models_share_a_title() -> None:
    assert list(TITLES) == [*SPECIMENS, *KNOWN]
    assert len(set(TITLES.values())) == len(TITLES)
    assert "specimen-qwen3" in SPECIMENS


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_specimen_says_what_it_is_and_needs_no_hub(name: str, no_hub: str) -> None:
    model = load(name)
    assert model.card.note == "specimen: small, trained by this project on made-up stories."
    assert model.run(PROMPT).top(1)[0].text == " Alice"
