"""The logit lens, against a computation of its own."""

import itertools

import pytest
import torch

from core.errors import TokenwalkError
from core.lens import Lens, halves, lens
from core.run import Run
from tests.tiny import BASE, tiny

TEXT = "what would it say"


def run_of(name: str) -> Run:
    return tiny(name).model.run(TEXT, record=["residual.after"])


@pytest.mark.parametrize("name", BASE)
def test_every_number_of_the_lens_is_the_one_computed_directly(name: str) -> None:
    run = run_of(name)
    target = 42
    seen = lens(run, target)
    assert seen.target == target
    assert seen.positions == tuple(range(len(run.ids)))
    for layer, stream in run.values["residual.after"].items():
        logits = run.model.unembed(stream[None])[0].double()
        p = logits.softmax(-1)
        torch.testing.assert_close(seen.p[layer].double(), p[:, target], rtol=1e-4, atol=1e-12)
        torch.testing.assert_close(seen.top_p[layer].double(), p.max(-1).values, rtol=1e-4, atol=0)
        assert seen.top[layer].tolist() == p.argmax(-1).tolist()
        order = logits.argsort(-1, descending=True)
        assert seen.rank[layer].tolist() == [row.tolist().index(target) + 1 for row in order]


@pytest.mark.parametrize("name", BASE)
def test_the_last_layers_lens_is_the_runs_own_output(name: str) -> None:
    run = run_of(name)
    for position in (0, len(run.ids) - 1):
        best = run.top(1, position)[0]
        seen = lens(run, best.id)
        assert seen.top[-1, position] == best.id
        assert seen.rank[-1, position] == 1
        assert seen.p[-1, position].item() == pytest.approx(best.p, rel=1e-4)
        assert seen.top_p[-1, position].item() == pytest.approx(best.p, rel=1e-4)


def test_it_is_final_norm_and_unembedding_that_are_read_through() -> None:
    run = run_of("llama")
    x = run.values["residual.after"][0]
    w = run.model.weights.outside
    normed = x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * w["norm.weight"]
    p = (normed @ w["embed_tokens.weight"].t()).softmax(-1)
    torch.testing.assert_close(lens(run, 7).p[0], p[:, 7], rtol=1e-4, atol=1e-12)


def test_some_positions_are_those_columns_of_all() -> None:
    run = run_of("gpt2")
    every, some = lens(run, 3), lens(run, 3, [5, 2])
    assert some.positions == (5, 2)
    assert torch.equal(some.rank, every.rank[:, [5, 2]])
    assert torch.equal(some.top, every.top[:, [5, 2]])
    torch.testing.assert_close(some.p, every.p[:, [5, 2]])


def test_many_rows_go_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of("granite")
    whole = lens(run, 3)
    monkeypatch.setattr("core.lens.ROWS", 4)
    parts = lens(run, 3)
    assert torch.equal(parts.rank, whole.rank)
    torch.testing.assert_close(parts.p, whole.p)


def test_a_switched_off_run_has_a_lens_of_its_own() -> None:
    model = tiny("llama").model
    off = lens(model.run(TEXT, record=["residual.after"], off=["mixer:1"]), 3)
    plain = lens(run_of("llama"), 3)
    torch.testing.assert_close(off.p[0], plain.p[0])
    assert (off.p[1] - plain.p[1]).abs().max() > 1e-6


def test_equal_logits_share_the_better_rank() -> None:
    run = run_of("llama")
    for streams in (run.values["residual.after"],):
        for layer in streams:
            streams[layer] = torch.zeros_like(streams[layer])  # every logit is 0
    seen = lens(run, 3)
    assert (seen.rank == 1).all()
    torch.testing.assert_close(seen.p, torch.full_like(seen.p, 1 / run.model.vocabulary))


def by_rank(*ranks: int) -> Lens:
    column = torch.tensor(ranks)[:, None]
    return Lens(0, (0,), column, column.float(), column.float(), column)


@pytest.mark.parametrize(
    ("ranks", "first", "from_"),
    [((9, 1, 4, 1, 1), 1, 3), ((1, 1), 0, 0), ((3, 2), None, None), ((1, 2), 0, None), ((5, 5, 1), 2, 2)],
    ids=["comes, goes and stays", "always", "never", "lost at the end", "in the last layer"],
)
def test_where_the_target_comes_on_top_and_where_it_stays(
    ranks: tuple[int, ...], first: int | None, from_: int | None
) -> None:
    assert by_rank(*ranks).first_on_top() == first
    assert by_rank(*ranks).leads_from() == from_


@pytest.mark.parametrize("record", [[], ["residual.before"], ["residual.after:0-1"]])
def test_a_run_that_did_not_record_the_stream_is_refused(record: list[str]) -> None:
    with pytest.raises(TokenwalkError, match="needs a run that recorded “residual"):
        lens(tiny("llama").model.run(TEXT, record=record), 3)


def test_progress_rises_to_one() -> None:
    heard: list[float] = []
    lens(run_of("gpt2"), 3, progress=heard.append)
    assert heard == pytest.approx([1 / 3, 2 / 3, 1])


def test_a_text_of_one_token_has_a_lens() -> None:
    run = tiny("qwen3.5").model.run("a", record=["residual.after"])
    assert lens(run, 3).p.shape == (4, 1)
    assert lens(run, run.top(1)[0].id).rank[-1, 0] == 1


@pytest.mark.parametrize("name", BASE)
def test_the_lens_of_both_halves_is_the_one_computed_directly(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["residual.before", "residual.between", "residual.after"])
    words, position = [42, 7], 5
    seen = halves(run, words, position)
    assert seen.words == (42, 7)
    first = model.unembed(run.values["residual.before"][0][None, position])[0].softmax(-1)
    torch.testing.assert_close(seen.start, first[words], rtol=1e-4, atol=1e-12)
    for layer in range(model.layers):
        for half, site in enumerate(("residual.between", "residual.after")):
            p = model.unembed(run.values[site][layer][None, position])[0].softmax(-1)
            torch.testing.assert_close(seen.p[:, layer, half], p[words], rtol=1e-4, atol=1e-12)


def test_the_gains_of_the_halves_add_up_to_the_end() -> None:
    run = tiny("granite").model.run(TEXT, record=["residual.before"])
    best = run.top(1)[0]
    seen = halves(run, [best.id], len(run.ids) - 1)
    gains = seen.gains()
    assert gains.shape == (run.model.layers, 2)
    assert float(seen.start[0] + gains.sum()) == pytest.approx(best.p, rel=1e-3)
    assert float(gains[2, 1]) == pytest.approx(float(seen.p[0, 2, 1] - seen.p[0, 2, 0]), abs=1e-7)


@pytest.mark.parametrize("name", BASE)
def test_the_largest_gain_is_the_half_that_raises_the_word_most(name: str) -> None:
    run = tiny(name).model.run(TEXT, record=["residual.before"])
    seen = halves(run, [42, run.top(1)[0].id], len(run.ids) - 1)
    half, layer, before, after = seen.largest_gain(1)
    line = [float(seen.start[1]), *seen.p[1].flatten().tolist()]
    rises = [b - a for a, b in itertools.pairwise(line)]
    most = max(range(len(rises)), key=rises.__getitem__)
    assert (layer, half) == (most // 2, ("mixer", "ffn")[most % 2])
    assert (before, after) == (pytest.approx(line[most], abs=1e-7), line[most + 1])
