"""Scores the shipped specimens on what they have not seen, and writes their cards and tables.

    python -m tools.score_specimens            all that are there
    python -m tools.score_specimens granite    one of them

The figures go to assets/specimens/scores.json, and from there into each card and into assets/specimens/README.md.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from core.lens import lens
from core.model import Model
from core.weights import load_folder
from tools import scores
from tools.cards import card, tables
from tools.recipes import RECIPES
from tools.train_specimens import SPECIMENS, is_hybrid

GAPS = (0, 25, 50, 100, 200, 300, 400)
FAR = 100  # sentences at each gap but 0
AWAY = 50  # the same with one kind of mixer off
NEAR = 500  # at no gap
NAMES = 200  # of each kind of name


def lens_figures(model: Model, count: int = 100) -> dict[str, Any]:
    """The layer after which the name first leads, and the one from which it stays ahead: the sentence, then many."""
    made = scores.giving_texts(0, count)
    first, stays = [], []
    for text, name in [(scores.SENTENCE, " Alice"), *made]:
        run = model.run(text, record=["residual.after"])
        seen = lens(run, model.tokenizer.first(name), [len(run.ids) - 1])
        first.append(seen.first_on_top())
        stays.append(seen.leads_from())
    known = [layer for layer in first[1:] if layer is not None]
    return {
        "first_on_top": first[0],
        "leads_from": stays[0],
        "median_first_on_top": statistics.median(known) if known else None,
    }


def one_off(model: Model, count: int = 100) -> list[dict[str, Any]]:
    """Each mixer off alone, then each FFN: P(" Alice") on the sentence, and the share of unseen sentences right."""
    rows = []
    for part in ("mixer", "ffn"):
        for layer in range(model.layers):
            off = [f"{part}:{layer}"]
            right = scores.giving_score(model, 0, count, off)
            p = scores.given_sentence(model, off)
            rows.append({"off": off[0], "kind": model.mixers[layer], "p": round(p, 4), "right": right})
    return rows


def measure(model: Model) -> dict[str, Any]:
    """Every figure that the card shows."""
    by_gap = {gap: scores.giving_score(model, gap, FAR if gap else NEAR) for gap in GAPS}
    first, second = scores.copy_losses(model)
    found: dict[str, Any] = {
        "parameters": sum(parameter.numel() for parameter in model.weights.parameters),
        "vocabulary": model.vocabulary,
        "sentences": {"near": NEAR, "far": FAR, "off": AWAY},
        "giving": by_gap,
        "tokens_at_gap": {gap: scores.mean_length(model, gap) for gap in GAPS},
        "first_piece": scores.first_piece_score(model, 0, NEAR),
        "common_names": scores.giving_score(model, 0, NAMES, rare=0.0),
        "rare_names": scores.giving_score(model, 0, NAMES, rare=1.0),
        "unseen_names": scores.unseen_name_score(model, NAMES),
        "facts": scores.fact_score(model),
        "copy": {"first": round(first, 3), "second": round(second, 3), "ratio": round(second / first, 3)},
        "p_alice": round(scores.given_sentence(model), 4),
        "lens": lens_figures(model),
        "one_off": one_off(model),
    }
    if is_hybrid(model):
        recurrent = "mamba2:*" if "mamba2" in model.mixers else "deltanet:*"
        for name, off in (("attention_off", ["attention:*"]), ("recurrent_off", [recurrent])):
            found[name] = {
                "giving": {gap: scores.giving_score(model, gap, AWAY, off) for gap in GAPS},
                "common_names": scores.giving_score(model, 0, NAMES, off, rare=0.0),
                "facts": scores.fact_score(model, off),
                "copy_ratio": round(scores.copy_losses(model, off=off)[1] / first, 3),
                "p_alice": round(scores.given_sentence(model, off), 4),
            }
    return found


def main(arguments: list[str] | None = None) -> int:
    """Runs the command."""
    asked = argparse.ArgumentParser(prog="python -m tools.score_specimens")
    asked.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}")
    asked.add_argument("--work", type=Path, default=Path("artifacts/specimens"), help="where the training's log is")
    asked.add_argument("--cards-only", action="store_true", help="write the cards anew from scores.json")
    given = asked.parse_args(arguments)
    torch.set_num_threads(2)
    path = SPECIMENS / "scores.json"
    kept: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    there = [name for name in RECIPES if (SPECIMENS / name / "model.safetensors").is_file()]
    for name in [] if given.cards_only else given.names or there:
        began = time.perf_counter()
        found = measure(load_folder(SPECIMENS / name))
        spent = given.work / f"{name}.json"
        trained = json.loads(spent.read_text("utf-8")) if spent.is_file() else kept.get(name, {}).get("training", {})
        found["training"] = trained
        found["bytes"] = (SPECIMENS / name / "model.safetensors").stat().st_size
        kept[name] = found
        print(f"{name}: {time.perf_counter() - began:.0f} s", json.dumps(found), flush=True)
    kept = {name: kept[name] for name in RECIPES if name in kept}
    path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    kept = json.loads(path.read_text("utf-8"))
    for name in kept:
        (SPECIMENS / name / "README.md").write_text(card(name, kept[name]), "utf-8")
    (SPECIMENS / "README.md").write_text(tables(kept), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
