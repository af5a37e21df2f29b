"""The same from a shell: `python -m core "The capital of France is"`."""

import argparse
import json
import re
import sys
from typing import Any

from core.catalogue import SMOLLM2
from core.errors import TokenwalkError
from core.lens import lens
from core.run import Run
from core.specs import GRAMMAR
from core.weights import load


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line on stderr and exit status 2."""

    def error(self, message: str) -> Any:
        self.exit(2, f"tokenwalk: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    made = _Parser(prog="python -m core", description="What comes after a text, and where it comes from.")
    made.add_argument("text", metavar="TEXT")
    made.add_argument("--model", default=SMOLLM2, metavar="NAME_OR_FOLDER", help="a known name, a folder or a hub id")
    made.add_argument("--off", action="append", default=[], metavar="SPEC", help=f"switch a part off: {GRAMMAR}")
    made.add_argument("--lens", metavar="WORD", help="follow this word, leading space included, through the layers")
    made.add_argument("--top", type=_count, default=10, metavar="K", help="how many next tokens (default 10)")
    made.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    return made


def _count(text: str) -> int:
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is not a number from 1 on")
    return int(text)


def answer(model_name: str, text: str, off: list[str], word: str | None, top: int) -> dict[str, Any]:
    """What the command prints with --json."""
    model = load(model_name)
    run = model.run(text, record=["residual.after"] if word is not None else [], off=off)
    found: dict[str, Any] = {
        "model": model_name,
        "tokens": [{"id": token.id, "text": token.text} for token in run.tokens],
        "top": [{"id": each.id, "text": each.text, "p": each.p} for each in run.top(top)],
    }
    if word is not None:
        found["lens"] = lens_rows(run, model.tokenizer.first(word))
    return found


def lens_rows(run: Run, target: int) -> list[dict[str, Any]]:
    """The lens at the last position: one entry a layer; `rank` 1 is the likeliest, `top` the likeliest's text."""
    seen = lens(run, target, [len(run.ids) - 1])
    return [
        {
            "layer": layer,
            "mixer": mixer,
            "p": float(seen.p[layer, 0]),
            "rank": int(seen.rank[layer, 0]),
            "top": run.model.tokenizer.text(int(seen.top[layer, 0])),
        }
        for layer, mixer in enumerate(run.model.mixers)
    ]


def as_lines(found: dict[str, Any]) -> str:
    """The same for a person."""
    pieces = " ".join(json.dumps(token["text"], ensure_ascii=False) for token in found["tokens"])
    lines = [f"{found['model']}: {len(found['tokens'])} token{'s'[: len(found['tokens']) > 1]}: {pieces}", ""]
    lines += [f"{each['p']:8.4f}  {json.dumps(each['text'], ensure_ascii=False)}" for each in found["top"]]
    if "lens" in found:
        lines += ["", "layer  mixer             p        rank    on top"]
        lines += [
            f"{row['layer']:5}  {row['mixer']:15}  {row['p']:.4f}  {row['rank']:6}    "
            + json.dumps(row["top"], ensure_ascii=False)
            for row in found["lens"]
        ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0, or 2 for bad input."""
    asked = parser().parse_args(arguments)
    try:
        found = answer(asked.model, asked.text, asked.off, asked.lens, asked.top)
    except TokenwalkError as error:
        print(f"tokenwalk: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print(json.dumps(found, ensure_ascii=False) if asked.json else as_lines(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
