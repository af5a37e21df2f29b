"""While pages are tested, every chart that one draws is held to Vega-Lite's schema: the app itself leaves that out."""

from collections.abc import Iterator
from typing import Any

import pytest

from pages.frame import cache


@pytest.fixture(scope="session", autouse=True)
def charts_fit_the_schema() -> Iterator[None]:
    drawn = cache.drawn

    def checked(build: Any, *given: Any, **named: Any) -> Any:
        build(*given, **named).to_dict(validate=True)
        return drawn(build, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "drawn", checked)
        yield
