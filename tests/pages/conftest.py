"""While pages are tested, every chart that one draws is held to Vega-Lite's schema: the app itself leaves that out."""

from collections.abc import Iterator
from typing import Any

import pytest

from pages.frame import parts


@pytest.fixture(scope="session", autouse=True)
def charts_fit_the_schema() -> Iterator[None]:
    draw = parts.chart

    def checked(picture: Any, **how: Any) -> Any:
        picture.to_dict(validate=True)
        return draw(picture, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "chart", checked)
        yield
