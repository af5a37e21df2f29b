"""The shipped specimens: they load, here and in transformers, and can do what their cards say."""

import json
import random
from functools import lru_cache

import pytest
import torch
import transformers

from core.model import Model
from core.weights import load_folder
from tests.reference import RELATIVE
from tools import batches, corpus, scores, words
from tools.cards import COPY_BAR, FACT_BAR, GAP_BAR, NEAR_BAR, card, tables
from tools.recipes import RECIPES
from tools.train_specimens import SPECIMENS

THERE = [name for name in RECIPES if (SPECIMENS / name / "model.safetensors").is_file()]
FAR_GAPS = (50, 200, 400)


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.no_grad():
        yield


@lru_cache
def specimen(name: str) -> Model:
    return load_folder(SPECIMENS / name)


def test_those_in_the_table_are_there():
    assert set(THERE) == set(json.loads((SPECIMENS / "scores.json").read_text("utf-8")))
    assert set(THERE) == {"gpt2", "qwen3", "granite", "gemma3", "qwen3_5"}


@pytest.mark.parametrize("name", THERE)
def test_small(name: str):
    assert sum(parameter.numel() for parameter in specimen(name).weights.parameters) <= 2_500_000
    assert (SPECIMENS / name / "model.safetensors").stat().st_size <= 6_000_000
    assert specimen(name).tokenizer.size <= batches.VOCABULARY


@pytest.mark.parametrize("name", THERE)
def test_transformers_gives_the_same_logits(name: str):
    reference = transformers.AutoModelForCausalLM.from_pretrained(
        SPECIMENS / name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    model = specimen(name)
    text = corpus.text(corpus.giving(random.Random(3), 150)) + " The capital of France is Paris."
    ids = [token.id for token in model.tokenizer.encode(text)]
    assert transformers.AutoTokenizer.from_pretrained(SPECIMENS / name)(text)["input_ids"] == ids
    for length in (1, 65, len(ids)):
        row = torch.tensor([ids[:length]])
        theirs = reference(row, use_cache=False).logits
        mine = model.unembed(model.forward(row))
        assert (mine - theirs).abs().max() <= RELATIVE * theirs.abs().max()


@pytest.mark.parametrize("name", THERE)
def test_right_name_near(name: str):
    assert scores.giving_score(specimen(name), 0, 500) >= NEAR_BAR


@pytest.mark.parametrize("name", THERE)
@pytest.mark.parametrize("gap", FAR_GAPS)
def test_right_name_far(name: str, gap: int):
    assert scores.giving_score(specimen(name), gap, 60) >= GAP_BAR


@pytest.mark.parametrize("name", THERE)
def test_facts(name: str):
    assert scores.fact_score(specimen(name)) >= FACT_BAR


@pytest.mark.parametrize("name", THERE)
def test_second_copy_costs_little(name: str):
    first, second = scores.copy_losses(specimen(name))
    assert second <= COPY_BAR * first


@pytest.mark.parametrize("name", THERE)
def test_figures_on_the_card_are_the_files(name: str):
    kept = json.loads((SPECIMENS / "scores.json").read_text("utf-8"))
    assert scores.given_sentence(specimen(name)) == pytest.approx(kept[name]["p_alice"], abs=1e-3)
    assert (SPECIMENS / name / "README.md").read_text("utf-8") == card(name, kept[name])
    assert (SPECIMENS / "README.md").read_text("utf-8") == tables(kept)


def test_a_documents_chunks_are_its_tokens():
    """Encoding chunk by chunk gives the whole text's tokens."""
    tokenizer, rng = specimen("qwen3").tokenizer, random.Random(0)
    encoder = batches.Encoder(tokenizer)
    for kind in corpus.KINDS * 20:
        made = corpus.document(rng, kind, 40)
        assert encoder.document(made)[0] == tokenizer.fast.encode(corpus.text(made)).ids


def test_training_has_no_pair_that_the_scores_use():
    rng = random.Random(5)
    trained = [corpus.People(rng).some(2) for _ in range(300)]
    scored = [corpus.People(rng, scoring=True).some(2) for _ in range(300)]
    assert not any(corpus.held_out(*pair) for pair in trained)
    assert all(corpus.held_out(*pair) for pair in scored)
    assert not set(words.UNSEEN_NAMES) & {*words.GIRLS, *words.BOYS, *words.RARE_GIRLS, *words.RARE_BOYS}


def test_the_walks_sentence_is_in_the_corpus():
    rng = random.Random(1)
    made = {corpus.text(corpus.giving(rng, 0, names=["Alice", "Bob"])) for _ in range(100_000)}
    assert f"{scores.SENTENCE} Alice." in made


def test_the_same_seed_gives_the_same_rows():
    encoder = batches.Encoder(specimen("qwen3").tokenizer)
    phase = RECIPES["qwen3"].phases[1]
    one, two = (batches.row(encoder, random.Random(7), phase, False) for _ in range(2))
    assert one == two
    assert len(one[0]) == phase.length + 1
