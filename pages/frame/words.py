"""A visitor's text on its way into Markdown: always data, never markup."""

import re

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:^&=\"'@/])")

# The kinds of mixer that can be switched off at once, by their word in `core.specs`.
ALL_OF = {"attention": "all attention", "mamba2": "all Mamba2", "deltanet": "all gated DeltaNet"}
HALF_NAMES = {"mixer": "mixer", "ffn": "FFN"}


def escape(text: str) -> str:
    """The text as Markdown that shows exactly it: no link, emphasis, math, HTML, emoji code or colour comes alive."""
    return _MARKUP.sub(r"\\\1", text)


def quoted(visible: str) -> str:
    """A token in a sentence: its visible text in quotation marks, bold."""
    return f"**“{escape(visible)}”**"


def percent(p: float) -> str:
    """A probability as a reader says it: "81 %", "99.7 %", "0.4 %", "less than 0.1 %"; never 100 % or 0 %."""
    if p >= 0.9995:
        return "more than 99.9 %"
    if 0.0995 <= p < 0.9945:
        return f"{100 * p:.0f} %"
    return f"{100 * p:.1f} %" if p >= 0.001 else "less than 0.1 %"


def listed(items: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def number(x: float) -> str:
    """A measured number: three digits, thousands set apart, a real minus."""
    return (f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}").replace("-", "−")


def size(nbytes: float) -> str:
    """An amount of memory: "829 kB", "377 MB", "1.2 GB"."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if nbytes >= unit:
            return f"{number(nbytes / unit)} {name}"
    return f"{number(nbytes / 1e3)} kB"


def signed(x: float) -> str:
    """A term of a sum, with its sign and two decimals."""
    return f"{x:+.2f}".replace("-", "−")


def count(n: int, what: str) -> str:
    """ "1 token", "18 tokens"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
