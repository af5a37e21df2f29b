"""What a run hands back: text in, everything out."""

from pathlib import Path

import pytest
import torch

from core import Candidate, Run, TokenwalkError, load
from core.model import Model
from tests.reference import OWN_DISTANCE, RELATIVE, save, tiny_tokenizer
from tests.tiny import BASE, VARIANTS, Tiny, fresh, tiny

TEXT = "Alice gave Bob a book"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    each = tiny("qwen3")
    return save(each.reference, VARIANTS["qwen3"], tmp_path_factory.mktemp("models") / "tiny", tiny_tokenizer(256))


@pytest.mark.parametrize("name", BASE)
def test_the_logits_are_every_position_over_the_whole_vocabulary_in_float32(name: str) -> None:
    each = tiny(name)
    run = each.model.run(TEXT)
    assert run.logits.shape == (len(TEXT), each.model.vocabulary)
    assert run.logits.dtype == torch.float32
    with torch.no_grad():
        theirs = each.reference(torch.tensor([run.ids]), use_cache=False).logits[0]
    assert (run.logits - theirs).abs().max() <= RELATIVE * theirs.abs().max()


@pytest.mark.parametrize("tokens", range(1, 10))
def test_the_shortest_texts_run_as_the_reference_runs_them(tokens: int) -> None:
    for name in BASE:
        each = tiny(name)
        run = each.model.run("abcdefghi"[:tokens])
        assert len(run.ids) == len(run.stream) == len(run.logits) == tokens
        with torch.no_grad():
            theirs = each.reference(torch.tensor([run.ids]), use_cache=False).logits[0]
        assert (run.logits - theirs).abs().max() <= RELATIVE * theirs.abs().max()


@pytest.fixture(scope="module")
def wide() -> Tiny:
    """Rows of SmolLM2's width: how a product rounds depends on it."""
    return fresh("llama", hidden_size=576, num_attention_heads=9, num_key_value_heads=3, intermediate_size=1536)


@pytest.mark.parametrize("tokens", [1, 2, 3, 5, 7])
def test_the_shortest_texts_are_as_near_to_float64_as_the_reference(wide: Tiny, tokens: int) -> None:
    """Over 20 texts of each length: a single one's distance is chance."""
    runs = [wide.model.run("".join(chr(33 + (7 * n + 11 * i) % 94) for i in range(tokens))) for n in range(20)]
    ids = torch.tensor([run.ids for run in runs])
    with torch.no_grad():
        true = wide.exact.unembed(wide.exact.forward(ids))
        theirs = torch.cat([wide.reference(row[None], use_cache=False).logits for row in ids])
    ours = torch.stack([run.logits for run in runs])
    assert (ours - true).pow(2).mean().sqrt() <= OWN_DISTANCE * (theirs - true).pow(2).mean().sqrt()


def test_ids_and_pieces_are_the_texts_tokens() -> None:
    run = tiny("llama").model.run("a b")
    tokenizer = tiny("llama").model.tokenizer
    assert run.text == "a b"
    assert run.pieces == ["a", " ", "b"]
    assert run.ids == [tokenizer.fast.token_to_id(piece) for piece in ("a", "Ġ", "b")]
    assert [token.text for token in run.tokens] == run.pieces


@pytest.mark.parametrize("position", [-1, 0, 3])
def test_probabilities_are_a_softmax_over_the_whole_vocabulary_before_any_top_k(position: int) -> None:
    run = tiny("gpt2").model.run(TEXT)
    p = run.probabilities(position)
    assert p.shape == (300,)
    assert p.sum().item() == pytest.approx(1, abs=1e-5)
    torch.testing.assert_close(p, run.logits[position].double().softmax(-1).float(), rtol=1e-4, atol=1e-9)
    best = run.top(3, position)
    assert [each.p for each in best] == pytest.approx(p.sort(descending=True).values[:3].tolist())
    assert sum(each.p for each in best) < 0.999
    assert [each.p for each in run.top(50, position)][:3] == [each.p for each in best]


def test_the_top_is_likeliest_first_with_ids_and_texts() -> None:
    run = tiny("llama").model.run(TEXT)
    top = run.top(300)
    assert isinstance(top[0], Candidate)
    assert sorted(each.id for each in top) == list(range(300))
    assert [each.p for each in top] == sorted((each.p for each in top), reverse=True)
    assert all(each.text == run.model.tokenizer.text(each.id) for each in top)
    assert [each.id for each in run.top(5)] == run.logits[-1].topk(5).indices.tolist()
    assert len(run.top()) == 10


def test_more_than_the_vocabulary_is_the_whole_vocabulary() -> None:
    assert len(tiny("llama").model.run("a").top(10_000)) == 300


def test_values_stand_by_site_and_layer_without_a_batch_axis() -> None:
    run = tiny("llama").model.run(TEXT, record=["attention.pattern:1", "residual.after", "embedding", "final.norm"])
    tokens = len(run.ids)
    assert run.values["attention.pattern"][1].shape == (4, tokens, tokens)
    assert {layer: value.shape for layer, value in run.values["residual.after"].items()} == dict.fromkeys(
        range(3), (tokens, 48)
    )
    assert run.outside["embedding"].shape == run.outside["final.norm"].shape == (tokens, 48)
    assert torch.equal(run.values["residual.after"][2], run.stream)


def test_what_is_off_is_told() -> None:
    model = tiny("llama").model
    run = model.run(TEXT, off=["mixer:1", "head:0.2"])
    assert run.off.mixers == {1}
    assert run.off.heads == {(0, 2)}
    assert run.off.specs == ("mixer:1", "head:0.2")
    assert not model.run(TEXT).off


def test_no_gradient_is_kept() -> None:
    run = tiny("llama").model.run(TEXT, record=["residual.after"])
    assert not run.logits.requires_grad
    assert not run.values["residual.after"][0].requires_grad


def test_a_run_leaves_nothing_on_the_model() -> None:
    model = tiny("granite").model
    before = {key: id(value) for key, value in vars(model).items()}
    weights = [tensor.clone() for tensor in model.weights.parameters]
    model.run(TEXT, record=[site.name for site in model.sites], off=["mixer:0", "head:1.1"]).top(3)
    assert {key: id(value) for key, value in vars(model).items()} == before
    assert all(torch.equal(a, b) for a, b in zip(weights, model.weights.parameters, strict=True))


@pytest.mark.parametrize("text", [" ", "a"], ids=["one space", "one letter"])
@pytest.mark.parametrize("name", BASE)
def test_a_text_of_one_token_gives_everything(name: str, text: str) -> None:
    model = tiny(name).model
    run = model.run(text, record=[site.name for site in model.sites], off=["ffn:1"])
    assert len(run.ids) == 1
    assert run.top(1)[0].p > 0
    for found in run.values.values():
        assert all(value.isfinite().all() for value in found.values())


def test_no_text_asks_for_text() -> None:
    with pytest.raises(TokenwalkError) as error:
        tiny("llama").model.run("")
    assert str(error.value) == "There is no text yet: type a sentence."


def test_a_text_longer_than_the_context_is_counted_in_tokens() -> None:
    model = tiny("gpt2").model
    assert len(model.run("x" * 512).ids) == 512
    with pytest.raises(TokenwalkError) as error:
        model.run("木" * 171)  # 513 bytes, one a token, and no space
    assert str(error.value) == "The text is 513 tokens long; in memory takes 512 at most."


def test_a_bad_switch_or_site_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama").model
    monkeypatch.setattr(type(model), "embed", lambda *_: pytest.fail("it ran"))
    for record, off in ((["no.site"], []), ([], ["mixer:99"])):
        with pytest.raises(TokenwalkError):
            model.run(TEXT, record=record, off=off)


def test_load_takes_a_folder_and_says_where_it_is_from(folder: Path) -> None:
    model = load(str(folder))
    assert isinstance(model, Model)
    assert model.card.name == "tiny"
    assert model.card.source == f"folder: {folder}"
    run = model.run(TEXT)
    assert isinstance(run, Run)
    assert torch.equal(run.logits, tiny("qwen3").model.run(TEXT).logits)


def test_load_takes_a_known_name(smollm2: Model) -> None:
    assert smollm2.card.name == "smollm2-135m"
    assert smollm2.mixers == ("attention",) * 30


def test_load_refuses_a_name_that_is_nothing() -> None:
    with pytest.raises(TokenwalkError, match="There is no model “nothing at all”: give one of smollm2-135m, gpt2, "):
        load("nothing at all")


def test_the_places_of_a_token_are_those_before_a_position() -> None:
    run = tiny("llama").model.run("abcabca")
    token = run.ids[0]
    assert run.places(token, 7) == (0, 3, 6)
    assert run.places(token, 3) == (0,)
    assert run.places(token, 0) == ()
