"""Tokens: what the tokenizers make of the sentence, side by side."""

import re

import streamlit as st

from core.greetings import costs
from core.run import Run
from core.tokens import Tokenizer
from pages.frame import parts
from pages.frame.scene import Scene, page, title
from pages.frame.words import count, escape, listed, quoted

FORM = re.compile(r"<\|[^|<>]{1,40}\|>|<bos>|<eos>|</?s>")  # what special tokens look like


def says(run: Run) -> str:
    """One tokenizer's work in a sentence."""
    size = len(run.text.encode("utf-8", "replace"))
    longest = max(run.tokens, key=lambda token: len(token.bytes))
    found = (
        f"**{escape(title(run.model))}** cuts {count(len(run.text), 'character')} ({count(size, 'byte')}) into "
        f"{count(len(run.tokens), 'token')}; the longest is {quoted(longest.visible)}."
    )
    return found + broken(run) + special(run)


def broken(run: Run) -> str:
    """Which tokens are parts of characters."""
    count = sum(not token.is_text for token in run.tokens)
    if not count:
        return ""
    verb = "is" if count == 1 else "are"
    return f" {count} of them {verb} no whole character and {verb} shown as bytes."


def special(run: Run) -> str:
    """What became of special tokens: those that the tokenizer adds, and what was typed in their form."""
    found = ""
    added = list(dict.fromkeys(token.text for token in run.tokens if token.added))
    if added:
        names = listed([f"`{parts.escape_code(text)}`" for text in added])
        begun = sum(token.added for token in run.tokens) - sum(run.text.count(text) for text in added)
        found = f" {names}: one special token each, as in the reference tokenizer"
        found += f"; {begun} of them added by the tokenizer, not typed." if begun > 0 else "."
    plain = [text for text in dict.fromkeys(FORM.findall(run.text)) if text not in added]
    if plain:
        names = listed([f"`{parts.escape_code(text)}`" for text in plain])
        found += f" {names}: no special token of this tokenizer, so cut like any other text."
    return found


def draw(scene: Scene) -> None:
    parts.top(scene, "tokens")
    for run in scene.runs:
        st.markdown(says(run))
    for column, run in zip(parts.columns(len(scene.runs)), scene.runs, strict=True):
        with column:
            table(run)
    greetings(scene)
    parts.explain(
        "Where a space belongs (␣ stands at the front of a word), which names fall into several pieces, and how many "
        "tokens another language or an emoji costs.",
        "What a token means. The model never sees the letters inside a token: it sees the id, and looks a vector up by "
        "it.",
    )
    parts.code(scene, Tokenizer.encode, Tokenizer.bytes)
    parts.numbers(
        "tokens",
        [{"model": title(run.model), **row} for run in scene.runs for row in rows(run)],
    )
    parts.onward(scene, "tokens")


def greetings(scene: Scene) -> None:
    """The same greeting in several languages: what it costs in each tokenizer."""
    st.markdown("**A greeting in other languages, and its tokens in each model**")
    found = {title(run.model): costs(run.model.tokenizer) for run in scene.runs}
    for name, row in found.items():
        most = max(row, key=lambda each: each.tokens / each.characters)
        first = row[0]
        st.markdown(
            f"**{escape(name)}** takes {count(first.tokens, 'token')} for {quoted(first.greeting)} "
            f"({count(first.characters, 'character')}) and {count(most.tokens, 'token')} for {quoted(most.greeting)} "
            f"({count(most.characters, 'character')}, {escape(most.language)})."
        )
    st.dataframe(
        [
            {
                "language": each.language,
                "greeting": each.greeting,
                "characters": each.characters,
                "bytes": each.bytes,
                **{name: row[i].tokens for name, row in found.items()},
            }
            for i, each in enumerate(next(iter(found.values())))
        ],
        hide_index=True,
    )


def rows(run: Run) -> list[dict[str, object]]:
    """Each token: position, piece, id, bytes."""
    return [
        {
            "position": i,
            "piece": token.visible,
            "id": token.id,
            "bytes": token.bytes.hex(" ").upper(),
            "kind": "special" if token.added else "text" if token.is_text else "part of a character",
        }
        for i, token in enumerate(run.tokens)
    ]


def table(run: Run) -> None:
    """One tokenizer's tokens."""
    st.markdown(f"**{escape(title(run.model))}**")
    st.dataframe(rows(run), hide_index=True, height=min(36 * (len(run.tokens) + 1) + 3, 480))
    last = run.tokens[-1]
    st.caption(f"The next token is predicted from the last one, {escape(last.visible)}, id {last.id}.")


page(draw)
