"""Trains one of the specimens with the project's own forward pass.

    python -m tools.train_specimens qwen3

Deterministic from the recipe's seed (on one machine), resumable: a checkpoint is kept beside the log, and the same
command goes on from it. Two cores are enough: 10 to 40 minutes a model. `tools.score_specimens` then writes the card.
"""

import argparse
import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from core.model import Model
from core.specs import DELTANET, MAMBA2, Switches
from core.taps import PLAIN, SwitchOff, Tap
from core.weights import from_tensors
from tools import batches, corpus
from tools.optimisers import Optimiser
from tools.recipes import RECIPES, Recipe, first_tensors
from tools.scores import copy_losses, given_sentence, giving_score

SPECIMENS = Path(__file__).parent.parent / "assets" / "specimens"
KEPT_BELOW = 0.5  # of the predictions that weigh less, one in three counts, three times
STORED = torch.float16


def build(name: str) -> tuple[Model, dict[str, Any]]:
    """A specimen as training begins, and its config."""
    recipe = RECIPES[name]
    tokenizer = batches.train_tokenizer(0, recipe.bos)
    special = {"bos_token_id": 0, "eos_token_id": 0}
    settings = {**recipe.settings, "vocab_size": tokenizer.size, **special}
    model = from_tensors(settings, first_tensors(recipe, settings), tokenizer, packed=False)
    for parameter in model.weights.parameters:
        parameter.requires_grad_(True)
    return model, settings


def is_hybrid(model: Model) -> bool:
    """Whether some of the mixers are recurrent."""
    return bool({MAMBA2, DELTANET} & set(model.mixers))


Part = tuple[Tensor, Tensor, Tensor, Tap]  # ids, targets, weights and the tap of some rows


def parts_of_batch(model: Model, recipe: Recipe, encoder: batches.Encoder, step: int) -> list[Part]:
    """A step's rows in two halves, one for each core. Unlikely predictions are thinned out to save time."""
    phase = recipe.phase(step)
    ids, targets, weights = batches.batch(encoder, random.Random(f"{recipe.seed} {step}"), phase, recipe.bos)
    draw = torch.Generator().manual_seed(recipe.seed * 1_000_003 + step)
    thinned = torch.rand(weights.shape, generator=draw) < 1 / 3
    weights = torch.where(weights >= KEPT_BELOW, weights, weights * 3 * thinned)
    weights = weights / weights.sum()
    off = phase.off_rows
    attention_off = model.switches(["attention:*"]) if off else Switches()
    rows = [attention_off if row < off else Switches() for row in range(phase.rows)]
    return [(ids[i::2], targets[i::2], weights[i::2], SwitchOff(rows[i::2]) if off else PLAIN) for i in (0, 1)]


def gradients(model: Model, part: Part) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
    """Of every parameter; and the loss and weight of each prediction that counts."""
    torch.set_num_threads(1)
    ids, targets, weights, tap = part
    kept = weights > 0
    logits = model.unembed(model.forward(ids, tap)[kept][None])[0]
    loss = F.cross_entropy(logits, targets[kept], reduction="none")
    parameters = model.weights.parameters
    found = torch.autograd.grad((loss * weights[kept]).sum(), parameters, materialize_grads=True)
    return found, loss.detach(), weights[kept]


def train_step(
    model: Model, recipe: Recipe, encoder: batches.Encoder, step: int, pool: ThreadPoolExecutor
) -> dict[str, float]:
    """Leaves the gradients of one step on the parameters. What is returned is for the log."""
    halves = list(pool.map(lambda part: gradients(model, part), parts_of_batch(model, recipe, encoder, step)))
    for parameter, first, second in zip(model.weights.parameters, halves[0][0], halves[1][0], strict=True):
        parameter.grad = first + second
    loss, weight = torch.cat([half[1] for half in halves]), torch.cat([half[2] for half in halves])
    share = weight / weight.max() * corpus.ANSWER  # the weights as the corpus gives them
    kinds = {"answer": corpus.ANSWER, "facts": corpus.FACT, "copies": corpus.COPY * recipe.phase(step).copies}
    parts = {name: loss[(share - kind).abs() < 0.01].mean() for name, kind in kinds.items()}
    return {"loss": float((loss * weight).sum()), **{name: float(part) for name, part in parts.items()}}


@torch.no_grad()
def save(model: Model, settings: dict[str, Any], prefix: str, folder: Path) -> None:
    """The model in Hugging Face layout, stored in 16 bits."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        prefix + name: tensor.detach().to(STORED).contiguous()
        for name, tensor in model.weights.in_file_layout(model.layout)
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # the library makes it readable to its owner alone
    (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
    special = model.tokenizer.fast.id_to_token(0)
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": special, "eos_token": special}
    (folder / "tokenizer_config.json").write_text(json.dumps(names, indent=2) + "\n", "utf-8")
    model.tokenizer.fast.save(str(folder / "tokenizer.json"))


class Progress:
    """One line of figures every so many steps, to the screen and to a log."""

    def __init__(self, path: Path, steps: int) -> None:
        self.path, self.steps = path, steps
        self.began, self.tokens, self.seconds = time.perf_counter(), 0, 0.0

    def say(self, line: str) -> None:
        print(line, flush=True)
        with self.path.open("a", encoding="utf-8") as log:
            log.write(line + "\n")

    def step(self, step: int, tokens: int, figures: dict[str, float]) -> None:
        self.tokens += tokens
        if step % 20:
            return
        seconds = time.perf_counter() - self.began
        bar = "#" * (20 * step // self.steps)
        shown = "  ".join(f"{name} {value:.3f}" for name, value in figures.items())
        self.say(
            f"[{bar:20}] {step}/{self.steps}  {shown}  {self.tokens / seconds:,.0f} tokens/s  {seconds / 60:.1f} min"
        )


def quick_scores(model: Model) -> str:
    """P(" Alice"), and the share of unseen giving sentences that end right, with attention on and off."""
    shown = f'P(" Alice") {given_sentence(model):.3f}'
    first, second = copy_losses(model, count=16)
    shown += f"  copies {second / first:.2f}"
    for gap in (0, 60, 200):
        shown += f"  gap {gap}: {giving_score(model, gap, 32):.2f}"
        if is_hybrid(model):
            shown += f" (off {giving_score(model, gap, 64, ['attention:*']):.2f})"
    return shown


def checkpoint(path: Path, model: Model, optimiser: Optimiser, step: int, spent: dict[str, float]) -> None:
    """Keeps what a later run goes on from."""
    partial = path.with_suffix(".part")
    parameters = [parameter.detach() for parameter in model.weights.parameters]
    torch.save({"step": step, "parameters": parameters, "optimiser": optimiser.state(), "spent": spent}, partial)
    partial.replace(path)


def restore(path: Path, model: Model, optimiser: Optimiser) -> tuple[int, dict[str, float]]:
    """The step to go on from, and what has been spent."""
    if not path.is_file():
        return 0, {"tokens": 0, "seconds": 0.0}
    saved = torch.load(path, weights_only=True)
    with torch.no_grad():
        for mine, kept in zip(model.weights.parameters, saved["parameters"], strict=True):
            mine.copy_(kept)
    optimiser.load(saved["optimiser"])
    return saved["step"], saved["spent"]


def train(name: str, work: Path, to: Path) -> None:
    """Trains from the start, or from the checkpoint in `work`, and saves to `to`."""
    work.mkdir(parents=True, exist_ok=True)
    recipe = RECIPES[name]
    model, settings = build(name)
    encoder = batches.Encoder(model.tokenizer)
    optimiser = Optimiser(model, recipe.muon_rate, recipe.adam_rate, recipe.table_share)
    begin, spent = restore(work / f"{name}.pt", model, optimiser)
    progress = Progress(work / f"{name}.log", recipe.steps)
    size = sum(parameter.numel() for parameter in model.weights.parameters)
    progress.say(f"{name}: {size:,} parameters, {model.vocabulary:,} entries, from step {begin} of {recipe.steps}")
    pool = ThreadPoolExecutor(2)
    for step in range(begin, recipe.steps):
        started = time.perf_counter()
        figures = train_step(model, recipe, encoder, step, pool)
        torch.nn.utils.clip_grad_norm_(optimiser.adam.param_groups[0]["params"], 1.0)
        optimiser.step(recipe.rate(step))
        tokens = recipe.phase(step).rows * recipe.phase(step).length
        spent = {"tokens": spent["tokens"] + tokens, "seconds": spent["seconds"] + time.perf_counter() - started}
        progress.step(step + 1, tokens, figures)
        if (step + 1) % 100 == 0 or step + 1 == recipe.steps:
            progress.say(f"    {quick_scores(model)}")
            checkpoint(work / f"{name}.pt", model, optimiser, step + 1, spent)
    save(model, settings, recipe.prefix, to)
    (work / f"{name}.json").write_text(json.dumps({"steps": recipe.steps, **spent}), "utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command."""
    asked = argparse.ArgumentParser(prog="python -m tools.train_specimens")
    asked.add_argument("name", choices=sorted(RECIPES))
    asked.add_argument("--work", type=Path, default=Path("artifacts/specimens"), help="where the checkpoint and log go")
    asked.add_argument("--to", type=Path, help="where the model goes (default: assets/specimens/NAME)")
    given = asked.parse_args(arguments)
    torch.set_num_threads(1)  # two threads of our own, each with half of a batch, wait for each other less often
    train(given.name, given.work, given.to or SPECIMENS / given.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
