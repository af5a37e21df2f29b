"""SmolLM2 on the packaged weights: the right values, and parity with transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from core.lens import lens
from core.model import Model
from core.tokens import visible
from tests.reference import OWN_DISTANCE, RELATIVE, compare

P = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to"
CAROL, MIRABEL = P.replace("Alice", "Carol"), P.replace("Alice", "Mirabel")
PROSE = (
    "The lighthouse stood on a rock two miles from the shore, and in winter nobody went there for weeks. Its keeper, "
    "a man of 61 called Anders, wrote down the wind and the weather every three hours; the books went back to 1874. "
    "“You get used to it,” he said when I asked him. “The sea talks, if you've time to listen.” Then he made coffee, "
    "strong and bitter, and showed me the lamp:\n\n\tfirst the lens, then the clockwork, then the small brass plate "
    "with the name of its maker. On the way home I thought about my own work, about the e-mails (43 of them!) that "
    "would be waiting, and about how few of them mattered. "
)


@pytest.mark.parametrize(
    ("text", "tokens", "right"),
    [
        (P, 18, {" Alice": 0.8149, " the": 0.0426, " her": 0.0283}),
        (CAROL, 18, {" Carol": 0.6421}),
        (MIRABEL, 19, {" Mira": 0.5084}),
        ("The capital of France is", 5, {" Paris": 0.7725}),
    ],
    ids=["Alice", "Carol", "Mirabel", "France"],
)
def test_the_next_words_probabilities_are_right(
    smollm2: Model, text: str, tokens: int, right: dict[str, float]
) -> None:
    run = smollm2.run(text)
    assert len(run.ids) == tokens
    top = run.top(len(right))
    assert [each.text for each in top] == list(right)
    assert [each.p for each in top] == pytest.approx(list(right.values()), abs=1e-4)


@pytest.mark.parametrize(("text", "tokens"), [("2023 is here", 6), ("안녕하세요", 14)])
def test_token_counts_are_right(smollm2: Model, text: str, tokens: int) -> None:
    assert len(smollm2.run(text).ids) == tokens


def ids(model: Model, tokens: int) -> torch.Tensor:
    found = [token.id for token in model.tokenizer.encode(P if tokens == 18 else PROSE * 4)]
    assert len(found) >= tokens
    return torch.tensor([found[:tokens]])


@pytest.mark.parametrize("tokens", [18, 105, 420])
def test_logits_are_the_references_and_as_near_to_float64(
    smollm2: Model, smollm2_reference: Any, smollm2_exact: Model, tokens: int
) -> None:
    compare(smollm2_reference, smollm2, smollm2_exact, ids(smollm2, tokens))


def test_on_two_threads_too_the_logits_are_the_references(
    smollm2: Model, smollm2_reference: Any, smollm2_exact: Model
) -> None:
    torch.set_num_threads(2)
    try:
        compare(smollm2_reference, smollm2, smollm2_exact, ids(smollm2, 18))
    finally:
        torch.set_num_threads(1)


def test_one_token_texts_are_the_references_and_as_near_to_float64(
    smollm2: Model, smollm2_reference: Any, smollm2_exact: Model
) -> None:
    """Over 12 of them: how far a single position is from float64 differs ten-fold by chance."""
    words = list(dict.fromkeys(smollm2.run(PROSE).pieces))[::6][:12]
    runs = [smollm2.run(word) for word in words]
    assert [len(run.ids) for run in runs] == [1] * 12
    ids = torch.tensor([run.ids for run in runs])
    with torch.no_grad():
        theirs = torch.cat([smollm2_reference(row[None], use_cache=False).logits[0] for row in ids])
        true = smollm2_exact.unembed(smollm2_exact.forward(ids))[:, 0]
    mine = torch.cat([run.logits for run in runs])
    assert (mine - theirs).abs().max() <= RELATIVE * theirs.abs().max()
    assert (mine - true).pow(2).mean().sqrt() <= OWN_DISTANCE * (theirs - true).pow(2).mean().sqrt()


def test_the_float64_run_is_the_references_and_not_only_our_own(
    smollm2: Model, smollm2_reference: Any, smollm2_exact: Model
) -> None:
    compare(smollm2_reference, smollm2_exact, None, ids(smollm2, 105))


def test_grouped_queries_9_and_3_each_query_head_has_the_references_own_map(
    smollm2: Model, smollm2_reference: Any
) -> None:
    run = smollm2.run(P, record=["attention.pattern"])
    with torch.no_grad():
        theirs = smollm2_reference(torch.tensor([run.ids]), output_attentions=True, use_cache=False).attentions
    maps = run.values["attention.pattern"]
    assert len(maps) == len(theirs) == 30
    for layer, pattern in maps.items():
        assert pattern.shape == (9, 18, 18)
        torch.testing.assert_close(pattern, theirs[layer][0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("head", [0, 1, 8])
def test_grouped_queries_9_and_3_a_query_head_is_switched_off_alone(smollm2: Model, head: int) -> None:
    run = smollm2.run(P, record=["mixer.heads:4"], off=[f"head:4.{head}"])
    plain = smollm2.run(P, record=["mixer.heads:4"])
    z, before = run.values["mixer.heads"][4], plain.values["mixer.heads"][4]
    kept = [h for h in range(9) if h != head]
    assert not z[:, head].any()
    assert torch.equal(z[:, kept], before[:, kept])


def test_the_lens_of_the_last_layer_is_the_runs_own_answer(smollm2: Model) -> None:
    run = smollm2.run(P, record=["residual.after"])
    seen = lens(run, smollm2.tokenizer.first(" Alice"), [17])
    assert seen.p[-1, 0].item() == pytest.approx(0.8149, abs=1e-4)
    assert seen.first_on_top() is not None


# --- the tokenizer --------------------------------------------------------------------------------------------------

CHINESE = (
    "我们今天早上去公园散步看见很多人在那里跳舞唱歌还有小孩子们在"
    "放风筝天气非常好大家都很开心下午回家吃了晚饭然后看书睡觉晚安"
)
TEXTS = {
    "prose": PROSE,
    "code": "def f(x):\n    return [i**2 for i in range(10)]  # ok\r\n",
    "digits": "2023-11-30 17:45 3.14159 1,000,000 ١٢٣ ²",
    "white space": " a  b   c\n\n\n\td \u00a0e\u3000f ",
    "Korean": "안녕하세요 세계",
    "Chinese without spaces": CHINESE,
    "emoji": "🤗 👩‍👩‍👧 🇩🇪 a🤗b",
    "markup": "</script><b>x $a$ and $b$ *a* _b_ [c](d) a<b<c",
    "contractions": "don't I'LL we've it's 'tis",
    "accents": "Ärger naïve café cafe\u0301 Ω ß İ",
    "special": "<|endoftext|>a<|im_start|>user<|im_end|>",
    "control": "a\u0000b\u200bc\ufeffd",
}


@pytest.fixture(scope="module")
def reference_tokenizer(smollm2_path: Path) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(smollm2_path / "tokenizer.json"))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_tokens_are_the_references_and_read_back_exactly(smollm2: Model, reference_tokenizer: Any, text: str) -> None:
    tokens = smollm2.tokenizer.encode(text)
    assert [token.id for token in tokens] == reference_tokenizer(text)["input_ids"]
    assert b"".join(token.bytes for token in tokens) == text.encode()
    assert all(token.visible and "\n" not in token.visible and " " not in token.visible[:1] for token in tokens)


def test_digits_are_split_one_by_one(smollm2: Model) -> None:
    assert smollm2.run("2023 is here").pieces == ["2", "0", "2", "3", " is", " here"]
    assert [token.text for token in smollm2.tokenizer.encode("In 1874: 42")][-3:] == [" ", "4", "2"]


def test_the_typed_endoftext_is_one_special_token(smollm2: Model) -> None:
    tokens = smollm2.tokenizer.encode("a<|endoftext|>b")
    assert [(token.text, token.added) for token in tokens] == [("a", False), ("<|endoftext|>", True), ("b", False)]


def test_sixty_characters_without_a_space_are_counted_in_tokens(smollm2: Model) -> None:
    assert len(CHINESE) == 60
    assert len(smollm2.run(CHINESE).ids) > 60


def test_a_map_of_equal_tokens_keeps_a_row_and_a_column_for_each(smollm2: Model) -> None:
    run = smollm2.run("the the the the", record=["attention.pattern:0"])
    assert run.pieces == ["the", " the", " the", " the"]
    assert run.values["attention.pattern"][0].shape == (9, 4, 4)


def test_every_white_space_token_is_visible_and_distinct(smollm2: Model) -> None:
    shown = {visible(token.text) for token in smollm2.tokenizer.encode("a\nb\tc  d e")}
    assert {"⏎", "⇥"} <= shown
    assert any(label.startswith("␣") for label in shown)
