"""The page of the benchmarks says what was measured, and says it where a bar is missed."""

from typing import Any

import pytest

from bench.models import ENTRIES
from bench.report import mark, render


def row(transformers: float, project: float, maps: float, **peers: float) -> dict[str, Any]:
    return {
        "seconds": {"transformers": transformers, "project": project, "project, maps": maps, **peers},
        "limits": {"read": 0.02, "products": 0.03, "alone": 0.04, "maps": 0.01},
        "off": 2e-6,
    }


RESULTS: dict[str, Any] = {
    "smollm2": {
        "rows": {"18": row(0.1, 0.05, 0.06, kept=0.09, recorded=0.11, nnsight=0.105), "105": row(0.1, 0.08, 0.09)},
        "notes": "transformer_lens: it cannot",
    },
    "sweep": {
        "18": {"seconds": {"separate": 1.0, "sweep": 0.1}, "limits": {"products": 0.09}, "off": 1e-6},
        "105": {"seconds": {"separate": 1.0, "sweep": 0.274}, "limits": {"products": 0.2}, "off": 1e-6},
    },
    "cold": {"bare": 2.0, "specimen": 3.0, "smollm2": 4.0},
    "memory": {"weights": 538e6, "loading": 540e6, "run": 300e6, "tokens": 1410},
}


def lines(results: dict[str, Any]) -> list[str]:
    return render(results, "The machine: a test.", 2, 5).splitlines()


def test_a_row_has_its_ratio_beside_its_bar() -> None:
    said = next(line for line in lines(RESULTS) if line.startswith("| SmolLM2-135M | 18 |"))
    assert [cell.strip() for cell in said.strip("|").split("|")] == [
        *("SmolLM2-135M", "18", "100", "50", "0.50 ✓", "0.65", "0.60 ✓", "0.747", "0.20", "0.30", "0.40", "2e-06")
    ]


def test_a_row_over_its_bar_is_marked_and_its_limit_named() -> None:
    page = lines(RESULTS)
    assert any("| SmolLM2-135M | 105 | 100 | 80 | 0.80 ✗ | 0.72 |" in line for line in page)
    missed = page[page.index("## What misses its bar") + 2]
    assert missed == (
        "- SmolLM2-135M, 105 tokens: 0.80 against 0.72. At this machine's best speed the products take 0.300 (30 ms), "
        "the run's operations one by one 0.400 (40 ms); the bar leaves 32 ms for what they cost each other, which is "
        "40 ms."
    )


def test_where_reading_takes_longest_that_is_the_limit() -> None:
    slow = row(0.1, 0.08, 0.06)
    slow["limits"]["read"] = 0.07
    page = lines({"smollm2": {"rows": {"18": slow}}})
    assert page[page.index("## What misses its bar") + 2] == (
        "- SmolLM2-135M, 18 tokens: 0.80 against 0.65. At this machine's best speed one read of the weights takes "
        "0.700 (70 ms), the run's operations one by one 0.400 (40 ms); the bar leaves 0 ms for what they cost each "
        "other, which is 10 ms."
    )


def test_maps_and_sweeps_over_their_bars_have_their_limits_named_too() -> None:
    page = lines(RESULTS)
    begin = page.index("## What misses its bar") + 3
    assert page[begin] == (
        "- SmolLM2-135M, 105 tokens, with maps: 0.90 against 0.828; the run without them takes 0.80. Filling as much "
        "memory as the maps take, fresh from the system, takes 0.10."
    )
    assert page[begin + 1] == (
        "- The sweep at 105 tokens: 0.274 against 0.27. At this machine's best speed the products take 0.200 (200 ms); "
        "the bar leaves 70 ms for all else, which takes 74 ms."
    )
    assert page[begin + 2] == ""


def test_nothing_is_said_of_missed_bars_where_none_is() -> None:
    fine = {"smollm2": {"rows": {"18": row(0.1, 0.05, 0.06)}}}
    assert "## What misses its bar" not in lines(fine)


def test_a_peer_that_did_not_run_is_a_dash_and_a_note() -> None:
    page = lines(RESULTS)
    assert "| SmolLM2-135M | 18 | 0.50 | 0.90 | 1.10 | – | 1.05 |" in page
    assert "smollm2: transformer_lens: it cannot" in page


def test_sweeps_cold_starts_and_memory_stand_beside_their_bars() -> None:
    page = "\n".join(lines(RESULTS))
    assert "| 18 | 1,000 | 100 | 0.10 ✓ | 0.12 | 1e-06 |" in page
    assert "1.50 ✗ times as long (bar 1.3)" in page
    assert "1.00 ✓ s more (bar 1.5 s)" in page
    assert "grows by 1.00 times" in page
    assert "peaks 300 MB above that ✓" in page


@pytest.mark.parametrize(
    ("value", "bar", "said"),
    [(0.5, 0.5, "0.50 ✓"), (0.51, 0.5, "0.51 ✗"), (0.503, 0.5, "0.503 ✗"), (0.497, 0.5, "0.50 ✓"), (0.5, None, "0.50")],
)
def test_a_mark(value: float, bar: float | None, said: str) -> None:
    assert mark(value, bar) == said


def test_models_that_were_not_measured_are_named() -> None:
    said = next(line for line in lines(RESULTS) if line.startswith("Not measured in this run"))
    assert "GPT-2 124M" in said
    assert "SmolLM2" not in said


def test_other_runs_stand_beside_the_page() -> None:
    of_model = row(1.0, 0.64, 0.9)
    of_sweep = {"seconds": {"separate": 1.0, "sweep": 0.2}, "limits": {"products": 0.09}}
    run = {entry.name: {"rows": {str(tokens): of_model for tokens in entry.bars}} for entry in ENTRIES} | {
        "sweep": dict.fromkeys(("18", "105"), of_sweep)
    }
    page = render(RESULTS, "The machine: a test.", 2, 5, [run, run]).splitlines()
    table = page[page.index("## The same in other runs on this machine") :]
    assert "| SmolLM2-135M | 18 | 0.64 ✓, 0.64 ✓ | 0.65 | 0.90 ✗, 0.90 ✗ | 0.747 |" in table
    assert "| the sweep | 18 | 0.20 ✗, 0.20 ✗ | 0.12 | | |" in table
    said = table[table.index("What misses its bar in these:") :]
    assert sum(line.startswith("- SmolLM2-135M, 1,410 tokens: 0.64 against 0.37.") for line in said) == 2
    assert sum(line.startswith("- The sweep at 18 tokens: 0.20 against 0.12.") for line in said) == 2
    assert "## The same in other runs on this machine" not in lines(RESULTS)
