"""From text to tokens and back: tokenizer.json as shipped, and what each token is made of."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as FastTokenizer

from core.errors import TokenwalkError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_VISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍", "\u00a0": "⍽", "\u3000": "▭"}


@dataclass(frozen=True)
class Token:
    """One token of a text. `added` says that it is one of the tokenizer's special tokens."""

    id: int
    bytes: bytes
    added: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the bytes are whole characters."""
        return decoded(self.bytes) is not None

    @property
    def text(self) -> str:
        """The characters, or the bytes as ⟨F0 9F⟩ where they are part of a character."""
        text = decoded(self.bytes)
        return f"⟨{self.bytes.hex(' ').upper()}⟩" if text is None else text

    @property
    def visible(self) -> str:
        """The text with each white space or unprintable character as a sign of its own: never empty."""
        return visible(self.text) if self.is_text else self.text


def decoded(raw: bytes) -> str | None:
    """The characters that these bytes are, or None where they are not whole characters."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def visible(text: str) -> str:
    """Each white space as its own sign (␣ ⏎ ⇥), any other unprintable character as ⟨U+200B⟩, nothing as ∅."""
    if not text:
        return "∅"
    return "".join(
        _VISIBLE.get(char) or (char if char.isprintable() or char == "\u200d" else f"⟨U+{ord(char):04X}⟩")
        for char in text
    )


def _characters(text: str) -> str:
    """The text with “?” for a lone surrogate: it is no character, a browser can send one, and no encoder takes it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _byte_alphabet() -> dict[str, int]:
    """The 256 printable characters that byte-level BPE writes for the 256 bytes (Radford et al. 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _as_bytes(char: str, alphabet: dict[str, int]) -> bytes:
    return bytes([alphabet[char]]) if char in alphabet else char.encode("utf-8")


class Tokenizer:
    """A tokenizer.json: encodes as the reference does, special tokens included, and knows each token's bytes."""

    def __init__(self, fast: FastTokenizer) -> None:
        self.fast = fast
        # A checkpoint's truncation or padding is for training batches: a person's text is walked whole.
        fast.no_truncation()
        fast.no_padding()
        described = json.loads(fast.to_str())
        self.byte_level = "ByteLevel" in json.dumps([described.get("decoder"), described.get("pre_tokenizer")])
        self.added: dict[int, str] = {token["id"]: token["content"] for token in described["added_tokens"]}
        self.special = {token["id"] for token in described["added_tokens"] if token["special"]}
        self._alphabet = _byte_alphabet()

    @classmethod
    def from_folder(cls, folder: Path) -> "Tokenizer":
        """Raises TokenwalkError where there is no tokenizer.json, or none that can be read."""
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise TokenwalkError(f"There is no tokenizer.json in {folder}.")
        try:
            return cls(FastTokenizer.from_file(str(path)))
        except Exception as error:  # the library raises bare Exception
            raise TokenwalkError(f"{path} cannot be read: {error}.") from None

    @cached_property
    def size(self) -> int:
        """Entries of the vocabulary, special tokens included; a model's table may have spare rows past it."""
        return self.fast.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str) -> list[Token]:
        """The text's tokens, with the special tokens that the reference adds. No text gives no token."""
        if not text:
            return []
        return self.tokens(self.fast.encode(_characters(text)).ids)

    def tokens(self, ids: Iterable[int]) -> list[Token]:
        return [Token(i, self.bytes(i), i in self.special) for i in ids]

    def text(self, id: int) -> str:
        """A token's characters, or its bytes as ⟨F0 9F⟩."""
        return Token(id, self.bytes(id)).text

    def visible(self, id: int) -> str:
        """A token's text with its white space as signs, or its bytes as ⟨F0 9F⟩."""
        return Token(id, self.bytes(id)).visible

    def first(self, word: str) -> int:
        """The id of the first token that `word`, with its leading space as typed, adds to a text.

        Raises TokenwalkError for an empty word.
        """
        ids = self.fast.encode(_characters(word), add_special_tokens=False).ids
        if not ids:
            raise TokenwalkError("The word is empty: give one, with its leading space where it has one.")
        return ids[0]

    def bytes(self, id: int) -> bytes:
        """What the token stands for in a text, as UTF-8 bytes; empty for a row of the table that no token has."""
        if id in self.added:
            return self.added[id].encode("utf-8")
        piece: str | None = self.fast.id_to_token(id)
        if piece is None:
            return b""
        if self.byte_level:
            return b"".join(_as_bytes(char, self._alphabet) for char in piece)
        if match := _BYTE_TOKEN.fullmatch(piece):
            return bytes([int(match[1], 16)])
        return piece.replace("▁", " ").encode("utf-8")
