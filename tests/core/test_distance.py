import pytest
import torch

from core.compare import divergence, same_tokens
from core.distance import FILLER, HEAD, TAIL, by_distance, split
from core.errors import TokenwalkError
from core.model import Model
from core.published import FIGURES, MODELS, PROMPT, Figure, Row, as_lines, recompute, table
from tests.tiny import fresh, tiny


def test_the_articles_sentence_is_head_and_tail() -> None:
    assert HEAD + TAIL == PROMPT
    assert split(PROMPT) == (HEAD, TAIL)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The capital of France is", ("The capital of France", " is")),
        ("One.", ("", "One.")),
        ("A. B. C", ("A.", " B. C")),
        ("word", ("", "word")),
        ("", ("", "")),
        (" ", ("", " ")),
        ("two words ", ("two", " words ")),
        ("One. ", ("", "One. ")),
    ],
)
def test_any_text_has_a_head_and_a_tail(text: str, parts: tuple[str, str]) -> None:
    assert split(text) == parts
    assert "".join(parts) == text


@pytest.mark.parametrize("word", ["Alice", "Bob", "book", " he ", " she ", " gave"])
def test_the_filler_has_nothing_of_the_story(word: str) -> None:
    assert word.lower() not in FILLER.lower()


def test_each_point_is_a_run_over_the_whole_text(smollm2: Model) -> None:
    alice = smollm2.tokenizer.first(" Alice")
    points = by_distance(smollm2, HEAD, TAIL, alice, repeats=(0, 1, 2))
    for point in points:
        run = smollm2.run(HEAD + FILLER * point.n + TAIL)
        assert point.tokens == len(run.ids)
        assert point.p == pytest.approx(float(run.probabilities()[alice]), abs=1e-6)
        assert point.top == run.top(1)[0].id
    assert points[0].p == pytest.approx(0.8149, abs=1e-4)


def test_the_distance_stops_where_the_model_does() -> None:
    model = tiny("granite").model
    assert model.context == 512
    points = by_distance(model, "a", "b", 3, repeats=(0, 1, 2, 4))
    assert [point.n for point in points] == [0, 1]  # a token a byte
    assert all(point.tokens <= 512 for point in points)


def test_switches_stay_off_at_every_distance() -> None:
    model = tiny("granite").model
    plain, off = (by_distance(model, "a", "b", 3, off=specs, repeats=(0, 1)) for specs in ((), ("attention:*",)))
    assert [p.tokens for p in plain] == [p.tokens for p in off]
    assert off[1].p == pytest.approx(float(model.run("a" + FILLER + "b", off=["attention:*"]).probabilities()[3]))
    assert off[1].p != plain[1].p


def test_a_text_that_never_fits_is_refused() -> None:
    with pytest.raises(TokenwalkError, match="too long"):
        by_distance(tiny("granite").model, "a" * 600, "b", 3)


def test_the_divergence_is_kl_after_each_token_and_0_of_a_model_to_itself() -> None:
    a, b = tiny("llama").model, fresh("llama", rope_theta=500.0).model
    run_a, run_b = a.run("hello there"), b.run("hello there")
    assert same_tokens(run_a, run_b)
    size = a.tokenizer.size
    p, q = (run.logits[:, :size].double().log_softmax(-1) for run in (run_a, run_b))
    direct = torch.nn.functional.kl_div(q, p, log_target=True, reduction="none").sum(-1)
    found = divergence(run_a, run_b, chunk=4)
    torch.testing.assert_close(found.nats.double(), direct, rtol=1e-3, atol=1e-5)
    assert found.mean == pytest.approx(float(direct.mean()), rel=1e-3)
    assert float(divergence(run_a, run_a).nats.max()) == 0


def test_models_that_cut_a_text_differently_are_not_compared(smollm2: Model) -> None:
    assert not same_tokens(smollm2.run("hello"), tiny("llama").model.run("hello"))


def test_what_cannot_be_had_is_not_run_and_does_not_fail() -> None:
    def nobody(name: str) -> Model:
        raise TokenwalkError(f"no {name} here")

    rows, reasons = table(nobody)
    assert len(rows) == len(FIGURES)
    assert set(reasons) == set(MODELS)
    assert all(row.ours is None and row.holds for row in rows)
    assert as_lines(rows, reasons).count("not run") == len(FIGURES) + len(MODELS)


@pytest.mark.parametrize(
    ("kind", "published", "ours", "holds"),
    [
        ("probability", 0.776, 0.7782, True),
        ("probability", 0.776, 0.7790, False),
        ("layer", 9, 10, True),
        ("layer", 9, 11, False),
        ("count", 18, 18, True),
        ("count", 18, 19, False),
        ("length", 512, 517, True),
        ("length", 512, 519, False),
    ],
)
def test_a_figure_holds_within_its_tolerance(kind: str, published: float, ours: float, holds: bool) -> None:
    assert Row(Figure("gpt2", "x", kind, published, lambda t: 0.0), ours).holds is holds


@pytest.mark.parametrize("name", MODELS)
def test_each_models_figures_are_measured_on_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a tiny model of the same kind: every measurement runs, and each is the direct one."""
    kind = {"gpt2": "gpt2", "qwen3-0.6b-base": "qwen3", "granite-4.0-h-350m-base": "granite"}[name]
    made = fresh(kind).model
    card = type(made.card)(name, "here")
    monkeypatch.setattr(made, "card", card)
    off_from = {"granite-4.0-h-350m-base": ["mamba2:2-"]}.get(name)
    if off_from:  # the tiny model has four layers
        monkeypatch.setattr("core.published.FIGURES", tuple(f for f in FIGURES if "from layer 16" not in f.name))
    rows = {row.figure.name: row.ours for row in recompute(made)}
    run = made.run(PROMPT)
    first = made.tokenizer.first(" Alice")
    assert rows["P(“ Alice”)"] == pytest.approx(float(run.probabilities()[first]), abs=1e-6)
    assert rows["tokens of the sentence"] == len(run.ids)
    assert rows["P of the second word"] == pytest.approx(run.top(2)[1].p, abs=1e-6)
    if name == "gpt2":
        each = [float(made.run(PROMPT, off=[f"mixer:{i}"]).probabilities()[first]) for i in range(made.layers)]
        assert rows["lowest P, one mixer off"] == pytest.approx(min(each), abs=1e-5)
    if off_from:
        off = made.run(PROMPT, off=["attention:*"]).probabilities()[first]
        assert rows["P, all attention off"] == pytest.approx(float(off), abs=1e-5)
