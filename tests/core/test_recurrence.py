"""What is left of earlier tokens, against the recurrence itself and against the map."""

import pytest
import torch

from core.errors import TokenwalkError
from core.maps import maps
from core.recurrence import recurrence
from tests.tiny import tiny

TEXT = "what is left of it"
POSITION = 11


@pytest.mark.parametrize(("name", "keep", "write"), [("granite", "decay", "dt"), ("qwen3.5", "alpha", "beta")])
def test_what_is_left_is_the_product_of_what_each_later_token_keeps(name: str, keep: str, write: str) -> None:
    kind = {"granite": "mamba2", "qwen3.5": "deltanet"}[name]
    model = tiny(name).model
    run = model.run(TEXT, record=["residual.before", f"{kind}.{keep}:0", f"{kind}.{write}:0"])
    found = recurrence(run, 0, POSITION)
    kept = run.values[f"{kind}.{keep}"][0]
    torch.testing.assert_close(found.keep, kept)
    torch.testing.assert_close(found.write, run.values[f"{kind}.{write}"][0])
    for token in range(len(run.ids)):
        expected = kept[:, token + 1 : POSITION + 1].prod(-1) if token <= POSITION else torch.zeros(len(kept))
        torch.testing.assert_close(found.left[:, token], expected)


def test_mamba2s_map_is_what_is_left_times_what_the_two_tokens_say() -> None:
    model = tiny("granite").model
    run = model.run(TEXT, record=["residual.before", "mamba2.B:0", "mamba2.C:0"])
    found = recurrence(run, 0, POSITION)
    B, C = (run.values[f"mamba2.{letter}"][0][0] for letter in "BC")  # one group
    expected = found.left * found.write * (B @ C[POSITION])
    torch.testing.assert_close(maps(run, 0, range(6))[:, POSITION], expected, rtol=1e-4, atol=1e-6)


def test_a_layer_of_attention_keeps_no_state() -> None:
    run = tiny("granite").model.run(TEXT, record=["residual.before"])
    with pytest.raises(TokenwalkError, match="Layer 1 keeps no state: its mixer is attention"):
        recurrence(run, 1, 0)


def test_a_run_that_recorded_nothing_cannot_be_looked_into() -> None:
    with pytest.raises(TokenwalkError, match="needs a run that recorded “residual"):
        recurrence(tiny("granite").model.run(TEXT), 0, 0)
