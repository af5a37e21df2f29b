"""A visitor's text on its way into Markdown: always data, never markup."""

import re

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:^&=\"'@/])")


def escape(text: str) -> str:
    """The text as Markdown that shows exactly it: no link, emphasis, math, HTML, emoji code or colour comes alive."""
    return _MARKUP.sub(r"\\\1", text)


def quoted(visible: str) -> str:
    """A token in a sentence: its visible text in quotation marks, bold."""
    return f"**“{escape(visible)}”**"


def percent(p: float) -> str:
    """A probability as a reader says it: "81 %", "0.4 %", "less than 0.1 %"."""
    if p >= 0.9995:
        return "more than 99.9 %" if p < 1 else "100 %"
    if p >= 0.0995:
        return f"{100 * p:.0f} %"
    return f"{100 * p:.1f} %" if p >= 0.001 else "less than 0.1 %"


def listed(items: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
