"""A row of greetings that says how a tokenizer treats languages: what is one token in English may be many elsewhere."""

from dataclasses import dataclass

from core.tokens import Tokenizer

GREETINGS = (
    ("English", "Hello"),
    ("한국어", "안녕하세요"),
    ("日本語", "こんにちは"),
    ("العربية", "مرحبا"),
    ("हिन्दी", "नमस्ते"),
    ("emoji", "👋🤗"),
)


@dataclass(frozen=True)
class Cost:
    """A greeting in one tokenizer. `tokens` leaves out what the tokenizer adds by itself, such as BOS."""

    language: str
    greeting: str
    characters: int  # code points
    bytes: int  # in UTF-8
    tokens: int


def costs(tokenizer: Tokenizer) -> list[Cost]:
    """How many tokens each of `GREETINGS` is."""
    return [
        Cost(
            language,
            greeting,
            len(greeting),
            len(greeting.encode()),
            sum(not token.added for token in tokenizer.encode(greeting)),
        )
        for language, greeting in GREETINGS
    ]
