"""What the benchmarks time is the same computation on both sides."""

import os
from collections.abc import Callable

import numpy as np
import pytest
import torch

from bench import cold, limits, timing
from bench.alone import RUNS, TIMES, alone
from bench.contestants import Contestant, Ours, Side, Theirs
from bench.forward import disagreement
from bench.models import ENTRIES, SIZES, text_of
from bench.sweep import softmax
from bench.timing import Process, side_by_side
from core.threads import WAITING
from tests.full_sizes import CONFIGS
from tests.reference import RELATIVE
from tests.tiny import BASE, tiny


def sides(name: str) -> tuple[Side, Side]:
    each = tiny(name)
    return Theirs(name, each.reference, each.model.tokenizer), Ours(each.model)


@pytest.mark.parametrize("name", BASE)
def test_peers_and_project_agree(name: str) -> None:
    theirs, mine = sides(name)
    assert disagreement(theirs.result("transformers", 18), mine.result("project", 18)) <= RELATIVE


@pytest.mark.parametrize("tokens", [1, 18, 105])
def test_a_text_is_as_long_as_asked_for(tokens: int) -> None:
    tokenizer = tiny("qwen3").model.tokenizer
    assert len(tokenizer.encode(text_of(tokenizer, tokens))) == tokens


@pytest.mark.parametrize("side", [0, 1])
def test_with_maps_each_side_gives_the_same_logits(side: int) -> None:
    each = sides("qwen3")[side]
    plain, mapped = (each.result(name, 18) for name in (("transformers", "recorded"), ("project", "maps"))[side])
    np.testing.assert_allclose(plain, mapped, rtol=0, atol=1e-4)


def test_a_sweep_is_the_separate_runs() -> None:
    theirs, mine = sides("llama")
    apart, at_once = theirs.result("separate", 18), mine.result("sweep", 18)
    model = tiny("llama").model
    assert apart.shape == at_once.shape == (model.layers, model.vocabulary)
    np.testing.assert_allclose(softmax(apart), softmax(at_once), rtol=0, atol=1e-5)


def test_every_size_has_its_settings() -> None:
    assert {entry.name for entry in ENTRIES} - {"smollm2"} == set(SIZES)
    assert set(SIZES.values()) == set(CONFIGS)


@pytest.mark.parametrize(("rounds", "at_least"), [(3, 0.0), (1, 20.0), (2, 15.0)])  # the last: short, then long enough
def test_contestants_take_turns_and_the_median_counts(
    monkeypatch: pytest.MonkeyPatch, rounds: int, at_least: float
) -> None:
    monkeypatch.setattr(timing, "PAUSE", 0.0)
    monkeypatch.setattr(timing, "AT_LEAST", at_least)
    order: list[str] = []
    seconds = {"a": iter([9.0, 3.0, 1.0, 2.0]), "b": iter([0.0, 5.0, 5.0, 6.0])}

    def turn(name: str) -> Callable[[], float]:
        return lambda: order.append(name) or next(seconds[name])  # type: ignore[func-returns-value]

    assert side_by_side({"a": turn("a"), "b": turn("b")}, rounds) == {"a": 2.0, "b": 5.0}
    assert order == ["a", "b"] * 4  # one warm-up that does not count, three rounds


def test_an_object_in_another_process_answers_and_says_what_failed() -> None:
    with Process(dict, [("a", 1)]) as other:
        assert other.call("get", "a") == 1
        with pytest.raises(RuntimeError, match=r"AttributeError: .*no attribute 'nothing'"):
            other.call("nothing")
        assert other.call("__len__") == 1


def test_cold_starts_are_times_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "BARE", "pass")
    monkeypatch.setattr(cold, "FIRST", "import sys, time; time.sleep(float(sys.argv[1]))")
    found = cold.measure("0.2", "0.5", rounds=1)
    assert found["bare"] < found["specimen"] < found["smollm2"]
    assert found["smollm2"] >= 0.5


def test_the_operations_are_those_of_the_matrices_and_of_attention() -> None:
    model = tiny("llama").model
    matrices = sum(channels * out for channels, out in limits.shapes(model))
    stored = sum(t.numel() for w in model.weights.layers for m in w.matrices.values() for t in m.pieces)
    assert matrices == stored
    inside = model.weights.layers[0]["self_attn.o_proj.weight"].shape[0]
    expected = 2 * 10 * matrices + model.layers * 2 * 100 * inside
    assert limits.operations(model, 10) == expected


def test_a_processs_threads_wait_as_it_is_told() -> None:
    here = dict(os.environ)
    with Process(os.getenv, "GOMP_SPINCOUNT") as theirs, Process(os.getenv, "GOMP_SPINCOUNT", waiting=WAITING) as ours:
        assert theirs.call("__str__") == "300000"
        assert ours.call("__str__") == WAITING["GOMP_SPINCOUNT"]
    assert dict(os.environ) == here


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every operation takes a second; its length is how often one was timed."""
    readings: list[float] = []

    def now() -> float:
        readings.append(len(readings))
        return readings[-1]

    monkeypatch.setattr("bench.alone.time.perf_counter", now)
    return readings


def test_operations_alone_count_each_and_time_each_kind(clock: list[float]) -> None:
    matrix, h = torch.eye(3), torch.ones(2, 3)
    found: list[torch.Tensor] = []

    def run() -> None:
        y = h @ matrix  # where it stands, each time
        y = (y + 1) + 1  # one kind
        y.mul_(2)
        found.append(y.t())  # a view is no operation

    assert alone(run, [matrix]) == 4.0
    assert len(clock) == 2 * (RUNS + 2 * TIMES)
    assert all(torch.equal(y, torch.full((3, 2), 6.0)) for y in found)


def test_operations_alone_take_the_best_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter([9.0, 2.0] + [5.0] * (TIMES - 2))
    readings = iter([edge for took in turns for edge in (0.0, took)])
    monkeypatch.setattr("bench.alone.time.perf_counter", lambda: next(readings))
    x = torch.ones(3)
    assert alone(lambda: x + 1, []) == 2.0


def test_the_limits_have_every_matrix_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    side = Ours(tiny("llama").model)
    seen: list[tuple[str, set[int]]] = []

    def see(run: Contestant, matrices: list[torch.Tensor]) -> float:
        seen.append((run.__qualname__, {id(each) for each in matrices}))
        return 0.25

    monkeypatch.setattr("bench.contestants.alone", see)
    assert side.limits(18)["alone"] == 0.25
    weights = side.model.weights
    pieces = [piece for w in weights.layers for matrix in w.matrices.values() for piece in matrix.pieces]
    expected = {id(each) for each in (*pieces, weights.outside["embed_tokens.weight"])}
    assert seen == [("Ours.plain.<locals>.<lambda>", expected)]
