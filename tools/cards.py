"""The specimens' cards and tables, in words, from their scores."""

import re
import textwrap
from typing import Any

from core.config import Config
from core.weights import read_config
from tools.recipes import RECIPES
from tools.scores import SENTENCE

TITLES = {
    "gpt2": "GPT-2",
    "qwen3": "Qwen3",
    "granite": "Granite 4.0-H: Mamba2 with a few attention layers",
    "gemma3": "Gemma 3: local windows and a few global layers",
    "qwen3_5": "Qwen3.5: gated DeltaNet with a few gated attention layers",
}
GAP_BAR, NEAR_BAR, FACT_BAR, COPY_BAR = 0.95, 0.99, 0.95, 0.35
ABOUT = """
Small, trained by this project on made-up stories: it shows the architecture at work and knows nothing of the world but
some forty facts. Apache-2.0, as the project.
"""
CORPUS = """
The corpus is generated (`tools/corpus.py`): no text from elsewhere. Somebody gives somebody a thing, weather and town
pass by, and the other gives it back to the one who was named first; besides, other sentences with names, pronouns,
lists, nonsense that repeats itself, and facts. One pair of names in eight is kept out of the training; the scores use
only such pairs.
"""
WEIGHTING = """
The loss was weighted: 4 on the name that an answer has, 3 on a fact's answer, 1 to 2.5 on the second copy of a nonsense
block, 0.03 to 0.15 on what nobody could predict (which name a story begins with, which weather comes next). So the
model spent itself on the few things that it is here to show. Its probabilities for an answer's name, a fact or a copy
can be read as they are; where a text could go on in several ways (a block of nonsense that may or may not be a copy, a
sentence that may or may not be a fact), it leans towards what was weighted.
"""
IN_PARTS = ("gpt2", "qwen3", "qwen3_5")  # trained further when they fell short
PARTS = """
Its last phases were added when it fell short: before them the rates had fallen already, and they rose again. The
recipe from its beginning gives a model like this one, not this very file.
"""
SPECIMENS = """
Small models of the architectures, trained by this project on made-up stories (`tools/corpus.py`) with its own forward
pass (`python -m tools.train_specimens NAME`), so that every page has something real to show without a hub. They
load with `core.weights.load_folder` and with transformers as they are. The figures are measured on the shipped files by
`python -m tools.score_specimens`; each card says what they mean, and `tests/tools/test_specimens.py` holds them.
"""
COLUMNS = """
“Gap” is the tokens of filler between giving and giving back; “second copy” is the loss on the second copy of an unseen
block of nonsense as a share of the first copy's.
"""


def wrapped(text: str, begin: str = "") -> list[str]:
    """A paragraph in lines of at most 120 characters; `begin` stands before the first, and blanks before the others."""
    return textwrap.wrap(
        re.sub(r"[ \n]+", " ", text).strip(),
        120,
        initial_indent=begin,
        subsequent_indent=" " * len(begin),
        break_on_hyphens=False,
    )


def percent(share: float) -> str:
    """A share as a person would write it."""
    return f"{100 * share:.1f} %".replace(".0 %", " %").replace(" ", "\u00a0")


def _off_name(found: dict[str, Any], name: str) -> str:
    kinds = {row["kind"] for row in found["one_off"]} - {"attention"}
    return "attention off" if name == "attention_off" else f"{' and '.join(sorted(kinds))} off"


def short_of(found: dict[str, Any]) -> list[str]:
    """What a specimen does not reach, each as a sentence with its number."""
    said = []
    if found["giving"]["0"] < NEAR_BAR:
        said.append(f"At no gap {percent(found['giving']['0'])} are right; {percent(NEAR_BAR)} was the aim.")
    for gap, share in found["giving"].items():
        if gap != "0" and share < GAP_BAR:
            said.append(f"At a gap of {gap} tokens {percent(share)} are right; {percent(GAP_BAR)} was the aim.")
    if found["facts"] < FACT_BAR:
        said.append(f"{percent(found['facts'])} of the facts are right; {percent(FACT_BAR)} was the aim.")
    if found["copy"]["ratio"] > COPY_BAR:
        said.append(f"The second copy's loss is {found['copy']['ratio']:.2f} of the first's; {COPY_BAR} was the aim.")
    off = found.get("attention_off")
    if off and off["giving"]["0"] < 0.9:
        near = percent(off["giving"]["0"])
        said.append(f"With attention off {near} are right at no gap; 90 % was the aim.")
    return said


def _gap_table(found: dict[str, Any]) -> list[str]:
    gaps = list(found["giving"])
    rows = [("all on", found["giving"])]
    rows += [
        (_off_name(found, name), found[name]["giving"]) for name in ("attention_off", "recurrent_off") if name in found
    ]
    lines = ["| filler tokens between | " + " | ".join(gaps) + " |", "|---" * (len(gaps) + 1) + "|"]
    lines.append("| tokens in all, about | " + " | ".join(f"{found['tokens_at_gap'][gap]:.0f}" for gap in gaps) + " |")
    return lines + [f"| {title} | " + " | ".join(percent(row[gap]) for gap in gaps) + " |" for title, row in rows]


def _one_off_table(found: dict[str, Any]) -> list[str]:
    lines = ['| off | kind of the layer\'s mixer | P(" Alice") | right |', "|---|---|---|---|"]
    return lines + [
        f"| `{row['off']}` | {row['kind']} | {row['p']:.4f} | {percent(row['right'])} |" for row in found["one_off"]
    ]


def _training(name: str, found: dict[str, Any]) -> str:
    recipe, spent = RECIPES[name], found["training"]
    phases = "; ".join(
        f"{phase.steps} steps of {phase.rows} × {phase.length} tokens with "
        + (f"up to {phase.gap} tokens of filler" if phase.gap else "no filler")
        + (
            f", {percent(phase.short)} of the nonsense in short blocks that come three to six times"
            if phase.short
            else ""
        )
        + (f", attention off in {percent(phase.off)} of the rows" if phase.off else "")
        + (", which have no filler" if phase.off and phase.gap and phase.off_gap == 0 else "")
        for phase in recipe.phases
    )
    return (
        f"{spent['tokens'] / 1e6:.1f} M tokens in {spent['seconds'] / 60:.0f} minutes on 2 cores that had other work "
        f"as well. Muon ({recipe.muon_rate}) for the matrices, AdamW ({recipe.adam_rate}) for the rest, the rates "
        f"falling over the last {recipe.cooldown} steps. In order: {phases}." + (PARTS if name in IN_PARTS else "")
    )


def _off_lines(found: dict[str, Any]) -> list[str]:
    return [
        f'With {_off_name(found, name)}: P(" Alice") {off["p_alice"]:.4f}; facts {percent(off["facts"])}; second '
        f"copies {off['copy_ratio']:.2f} of the first's loss; common names only, no gap: "
        f"{percent(off['common_names'])} right."
        for name in ("attention_off", "recurrent_off")
        if (off := found.get(name))
    ]


def _abilities(found: dict[str, Any]) -> list[str]:
    seen, copy = found["lens"], found["copy"]
    return [
        f"At no gap the name's first piece is on top in {percent(found['first_piece'])}. By kind of name, every piece: "
        f"common ones {percent(found['common_names'])}; rare or invented ones, in two or more pieces, "
        f"{percent(found['rare_names'])}; names that no training text has {percent(found['unseen_names'])}.",
        f"Facts: {percent(found['facts'])}.",
        f"An unseen block of 24 syllables: {copy['first']:.2f} nats a token on the first copy, {copy['second']:.2f} on "
        f"the second, {copy['ratio']:.2f} of it.",
        f'“{SENTENCE}”: P(" Alice") {found["p_alice"]:.4f}. In the logit lens the name is first on top after layer '
        f"{seen['first_on_top']}, and from layer {seen['leads_from']} on to the end; over 100 unseen sentences the "
        f"median first layer is {seen['median_first_on_top']:g}.",
        *_off_lines(found),
    ]


def card(name: str, found: dict[str, Any]) -> str:
    """One specimen's README.md."""
    model = read_config(Config({**RECIPES[name].settings, "vocab_size": found["vocabulary"]}))
    mixers = ", ".join(f"{i} {kind}" for i, kind in enumerate(model.mixers))
    shape = (
        f"{model.layers} layers, width {model.width}, {model.neurons} neurons a layer, {found['parameters']:,} "
        f"parameters, {found['vocabulary']:,} entries in the tokenizer, {model.context:,} tokens of context. "
        f"Mixers: {mixers}."
    )
    short = [line for each in short_of(found) for line in wrapped(each, "- ")]
    lines = [f"# Specimen: {TITLES[name]}", "", *wrapped(ABOUT), "", *wrapped(shape), ""]
    lines += [
        "## How it was trained",
        "",
        *wrapped(f"`python -m tools.train_specimens {name}`: {_training(name, found)}"),
    ]
    lines += ["", *wrapped(CORPUS), "", *wrapped(WEIGHTING), "", "## What it can do, on what it has not seen", ""]
    count = found["sentences"]
    counted = f"{count['near']} giving sentences at no gap and {count['far']} at each other gap"
    counted += f" ({count['off']} where a kind of mixer is off)" if "attention_off" in found else ""
    lines += [*wrapped(f"The right name on top (every piece of it), of {counted}:"), ""]
    lines += [*_gap_table(found), ""]
    lines += [line for each in _abilities(found) for line in wrapped(each, "- ")]
    lines += ["", *(["## Short of the aim", "", *short, ""] if short else [])]
    lines += ["## One part off at a time", ""]
    lines += ['P(" Alice") on that sentence, and the share of 100 unseen sentences (no gap) that end right:', ""]
    return "\n".join([*lines, *_one_off_table(found)]) + "\n"


def tables(kept: dict[str, Any]) -> str:
    """The README.md beside the five."""
    gaps = list(next(iter(kept.values()))["giving"])
    head = [
        "specimen",
        "parameters",
        'P(" Alice")',
        "first leads after layer",
        "facts",
        "second copy",
        *[f"gap {g}" for g in gaps],
    ]
    rows = [
        [
            f"[{name}]({name}/README.md)",
            f"{found['parameters']:,}",
            f"{found['p_alice']:.4f}",
            f"{found['lens']['first_on_top']} of {len(found['one_off']) // 2}",
            percent(found["facts"]),
            f"{found['copy']['ratio']:.2f}",
            *[percent(found["giving"][gap]) for gap in gaps],
        ]
        for name, found in kept.items()
    ]
    off = [
        [
            name,
            _off_name(found, which),
            f"{found[which]['p_alice']:.4f}",
            percent(found[which]["facts"]),
            *[percent(found[which]["giving"][g]) for g in gaps],
        ]
        for name, found in kept.items()
        for which in ("attention_off", "recurrent_off")
        if which in found
    ]
    lines = ["# The specimens", "", *wrapped(SPECIMENS), "", *_table(head, rows), "", *wrapped(COLUMNS), ""]
    if off:
        lines += ["The two hybrids with one kind of mixer switched off:", ""]
        lines += [*_table(["specimen", "off", 'P(" Alice")', "facts", *[f"gap {g}" for g in gaps]], off), ""]
    return "\n".join(lines)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
