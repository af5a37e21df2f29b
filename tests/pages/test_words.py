import pytest
from markdown_it import MarkdownIt

from pages.frame.words import escape, listed, percent, quoted, size

TYPED = [
    "a<b<c",
    "</script><b>x",
    "$a$ and $b$",
    "*a* _b_ [c](d)",
    "`code` ~~gone~~ # no heading",
    ":smile: :red[x] :material/home:",
    "![x](y) <!-- -->",
    "&amp; &#36; \\$",
    "https://example.org/?a=b&c=d",
    "1. one - two + three | four",
    "안녕하세요 🤗",
]


@pytest.mark.parametrize("text", TYPED)
def test_escaped_text_renders_as_exactly_the_text(text: str) -> None:
    tokens = MarkdownIt("commonmark", {"linkify": True}).enable(["table", "strikethrough"]).parse(escape(text))
    inline = [token for token in tokens if token.type == "inline"]
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert {child.type for child in inline[0].children or []} <= {"text", "text_special", "softbreak"}
    assert "".join(child.content for child in inline[0].children or []) == text


@pytest.mark.parametrize("sign", ["$", ":", "@"])
def test_signs_that_streamlit_gives_a_meaning_are_escaped(sign: str) -> None:
    assert escape(f"a{sign}b") == f"a\\{sign}b"


def test_a_token_in_a_sentence_is_bold_and_quoted() -> None:
    assert quoted("␣*x*") == "**“␣\\*x\\*”**"


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (1.0, "more than 99.9 %"),
        (0.9994, "99.9 %"),
        (0.995, "99.5 %"),
        (0.994, "99 %"),
        (0.9999, "more than 99.9 %"),
        (0.8149, "81 %"),
        (0.0426, "4.3 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (0.001, "0.1 %"),
        (0.0004, "less than 0.1 %"),
        (0.0, "less than 0.1 %"),
    ],
)
def test_a_probability_is_said_as_a_reader_says_it(p: float, said: str) -> None:
    assert percent(p) == said


def test_lists_are_said_with_and() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_memory_is_said_in_its_unit() -> None:
    assert [size(n) for n in (829_440, 377_487_360, 1_234_000_000)] == ["829 kB", "377 MB", "1.23 GB"]
