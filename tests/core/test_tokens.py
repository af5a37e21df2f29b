"""From text to tokens: every token's bytes, and how each is shown."""

from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from core.errors import TokenwalkError
from core.greetings import GREETINGS, costs
from core.model import Model
from core.tokens import Token, Tokenizer, visible


def byte_level(words: list[str], special: tuple[str, ...] = ("<|endoftext|>",), **settings: Any) -> Tokenizer:
    """As GPT-2's: 256 byte characters, then whole words built up by merges."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = []
    for word in words:
        ((chars, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(word)
        for end in range(2, len(chars) + 1):
            if chars[:end] not in vocabulary:
                vocabulary[chars[:end]] = len(vocabulary)
                merges.append((chars[: end - 1], chars[end - 1]))
    made = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in special])
    return Tokenizer(made)


def sentencepiece(words: list[str]) -> Tokenizer:
    """As Gemma's: ▁ for a space, bytes as <0x0A>, and a BOS that the tokenizer adds."""
    vocabulary = {piece: i for i, piece in enumerate(["<pad>", "<eos>", "<bos>", "<unk>"])}
    for piece in [f"<0x{byte:02X}>" for byte in range(256)] + list("▁abcdefghijklmnopqrstuvwxyz"):
        vocabulary[piece] = len(vocabulary)
    merges = []
    for word in words:
        for end in range(2, len(word) + 1):
            if word[:end] not in vocabulary:
                vocabulary[word[:end]] = len(vocabulary)
                merges.append((word[: end - 1], word[end - 1]))
    made = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True))
    made.normalizer = normalizers.Replace(" ", "▁")
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    made.add_special_tokens([AddedToken(each, special=True) for each in ("<pad>", "<eos>", "<bos>", "<unk>")])
    made.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    return Tokenizer(made)


GPT2_LIKE = byte_level([" the", "the", " Alice", "ab", "  "])
GEMMA_LIKE = sentencepiece(["▁the", "the", "▁▁"])
EVERY = {"byte level": GPT2_LIKE, "byte fallback": GEMMA_LIKE}


def texts(tokens: list[Token]) -> list[str]:
    return [token.text for token in tokens]


@pytest.mark.parametrize("tokenizer", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize(
    "text",
    [
        "the the",
        "안녕하세요 세계",
        "a🤗b",
        "line one\nline two",
        "a\tb",
        "a  b",
        " ",
        "é",
        "</script><b>x",
        "\u200b",
        "İ",
    ],
)
def test_the_tokens_bytes_are_the_texts_own(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    assert b"".join(token.bytes for token in tokens if not token.added) == text.encode()


def test_an_emoji_in_bytes_shows_its_bytes_and_not_three_question_marks() -> None:
    tokenizer = byte_level([])
    vocabulary = tokenizer.fast.get_vocab()
    first = vocabulary["ð"], vocabulary["Ł"], vocabulary["¤"], vocabulary["Ĺ"]  # F0 9F A4 97
    tokens = tokenizer.encode("🤗")
    assert [token.id for token in tokens] == list(first)
    assert texts(tokens) == ["⟨F0⟩", "⟨9F⟩", "⟨A4⟩", "⟨97⟩"]
    assert not any(token.is_text for token in tokens)


def test_an_emoji_in_three_pieces_as_in_gpt2_shows_f0_9f_a4_97() -> None:
    vocabulary = {"ðŁ": 8582, "¤": 97, "Ĺ": 245, "ð": 1, "Ł": 2}
    made = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[("ð", "Ł")]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokens = Tokenizer(made).encode("🤗")
    assert [token.id for token in tokens] == [8582, 97, 245]
    assert texts(tokens) == ["⟨F0 9F⟩", "⟨A4⟩", "⟨97⟩"]
    assert [token.visible for token in tokens] == ["⟨F0 9F⟩", "⟨A4⟩", "⟨97⟩"]


def test_a_piece_that_is_part_of_a_korean_character_shows_its_bytes() -> None:
    tokens = GEMMA_LIKE.encode("세")
    assert texts(tokens)[1:] == ["⟨EC⟩", "⟨84⟩", "⟨B8⟩"]
    whole = byte_level(["세"]).encode("세")
    assert texts(whole) == ["세"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\n", "⏎"), ("\t", "⇥"), (" ", "␣"), ("\r", "␍"), ("\u00a0", "⍽"), ("\u3000", "▭"), ("\u200b", "⟨U+200B⟩")],
    ids=["line break", "tab", "space", "return", "no-break space", "wide space", "zero width space"],
)
def test_each_white_space_is_visible_as_itself(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_white_space_signs_are_all_distinct() -> None:
    signs = [visible(char) for char in "\n\t \r\u00a0\u3000\u200b\u2003\u2028\u0000\ufeff"]
    assert len(set(signs)) == len(signs)
    assert all(sign.strip() and sign.isprintable() for sign in signs)


def test_visible_text_keeps_printable_characters_and_names_an_empty_one() -> None:
    assert visible("a<b>&$*_[]") == "a<b>&$*_[]"
    assert visible("  x") == "␣␣x"
    assert visible("") == "∅"
    assert visible("👩\u200d👧") == "👩\u200d👧"  # the joiner is part of one picture


def test_white_space_tokens_of_a_text_are_distinct_and_visible() -> None:
    shown = [token.visible for token in GPT2_LIKE.encode("a\nb\tc  d")]
    assert shown == ["a", "⏎", "b", "⇥", "c", "␣", "␣", "d"]


def test_equal_tokens_stay_apart() -> None:
    tokens = GPT2_LIKE.encode("the the the the")
    assert texts(tokens) == ["the", " the", " the", " the"]
    assert len(tokens) == 4


@pytest.mark.parametrize("tokenizer", EVERY.values(), ids=EVERY)
def test_no_text_is_no_token_not_even_a_special_one(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("") == []


@pytest.mark.parametrize("text", [" ", "a"], ids=["one space", "one letter"])
def test_one_character_is_one_token(text: str) -> None:
    assert len(GPT2_LIKE.encode(text)) == 1


def test_a_typed_endoftext_is_one_special_token_where_the_tokenizer_has_it() -> None:
    tokens = GPT2_LIKE.encode("ab<|endoftext|>ab")
    assert [(token.text, token.added) for token in tokens] == [("ab", False), ("<|endoftext|>", True), ("ab", False)]
    assert tokens[1].bytes == b"<|endoftext|>"


def test_a_typed_endoftext_is_several_plain_tokens_where_the_tokenizer_has_it_not() -> None:
    tokens = byte_level([], special=()).encode("<|endoftext|>")
    assert len(tokens) == 13
    assert not any(token.added for token in tokens)


def test_a_bos_that_the_tokenizer_adds_is_shown_and_counted() -> None:
    tokens = GEMMA_LIKE.encode("the")
    assert [(token.text, token.added) for token in tokens] == [("<bos>", True), ("the", False)]


def test_a_text_that_begins_with_the_bos_has_as_many_as_the_reference() -> None:
    from transformers import PreTrainedTokenizerFast

    reference = PreTrainedTokenizerFast(tokenizer_object=GEMMA_LIKE.fast)
    for text in ("<bos>the", "the", "<bos>"):
        assert [token.id for token in GEMMA_LIKE.encode(text)] == reference(text)["input_ids"]


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert texts(GPT2_LIKE.encode("a\ud83eb")) == ["a", "?", "b"]
    assert texts(GEMMA_LIKE.encode("\ud83e"))[1:] == ["?"]


def test_a_surrogate_in_a_word_to_follow_is_no_python_error() -> None:
    assert GPT2_LIKE.text(GPT2_LIKE.first("\ud83e")) == "?"


def test_a_control_character_or_a_null_is_a_token_like_any_other() -> None:
    tokens = GPT2_LIKE.encode("\u0000")
    assert [token.bytes for token in tokens] == [b"\x00"]
    assert tokens[0].visible == "⟨U+0000⟩"


def test_the_first_token_of_a_word_keeps_its_leading_space_and_takes_no_bos() -> None:
    assert GPT2_LIKE.text(GPT2_LIKE.first(" Alice")) == " Alice"
    assert GPT2_LIKE.text(GPT2_LIKE.first("Alice")) == "A"
    assert GEMMA_LIKE.text(GEMMA_LIKE.first(" the")) == " the"


def test_an_empty_word_is_refused() -> None:
    with pytest.raises(TokenwalkError, match="The word is empty"):
        GPT2_LIKE.first("")


def test_a_spare_row_of_the_table_has_no_bytes() -> None:
    assert GPT2_LIKE.bytes(100_000) == b""
    assert Token(100_000, b"").visible == "∅"


def test_byte_level_pieces_are_read_back_for_all_256_bytes() -> None:
    ids = range(256)
    assert sorted(GPT2_LIKE.bytes(id) for id in ids) == [bytes([byte]) for byte in range(256)]


def test_a_byte_fallback_piece_is_its_byte_and_a_typed_one_is_its_characters() -> None:
    assert GEMMA_LIKE.bytes(4 + 0x0A) == b"\n"
    assert GEMMA_LIKE.bytes(4 + 0xF0) == b"\xf0"


def test_truncation_and_padding_of_a_checkpoint_are_taken_off() -> None:
    fast = byte_level([]).fast
    fast.enable_truncation(4)
    fast.enable_padding(length=30)
    assert len(Tokenizer(fast).encode("abcdefghij")) == 10


def test_a_missing_or_broken_tokenizer_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TokenwalkError, match=r"There is no tokenizer\.json in "):
        Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenwalkError, match=r"tokenizer\.json cannot be read"):
        Tokenizer.from_folder(tmp_path)


def test_a_tokenizer_is_read_as_shipped(tmp_path: Path) -> None:
    GEMMA_LIKE.fast.save(str(tmp_path / "tokenizer.json"))
    read = Tokenizer.from_folder(tmp_path)
    assert read.encode("the 안 the") == GEMMA_LIKE.encode("the 안 the")
    assert read.size == GEMMA_LIKE.size == GEMMA_LIKE.fast.get_vocab_size()


def test_greetings_cost_what_the_tokenizer_makes_of_them(smollm2: Model) -> None:
    found = {each.greeting: each for each in costs(smollm2.tokenizer)}
    assert len(found) == len(GREETINGS)
    for _, greeting in GREETINGS:
        assert found[greeting].tokens == len(smollm2.tokenizer.fast.encode(greeting, add_special_tokens=False).ids)
        assert found[greeting].bytes == len(greeting.encode("utf-8"))
    assert (found["안녕하세요"].characters, found["안녕하세요"].bytes) == (5, 15)
