"""What a run of SmolLM2 takes beside its weights, and that these are held once: prints JSON. Reads Linux's /proc."""

import json
from pathlib import Path

import torch

from bench.models import text_of
from core.catalogue import SMOLLM2
from core.weights import load

TOKENS = 1410
STATUS, PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _kilobytes(field: str) -> int:
    return next(int(line.split()[1]) for line in STATUS.read_text("utf-8").splitlines() if line.startswith(field))


def main() -> None:
    """Prints one line of JSON, in bytes."""
    torch.set_num_threads(2)
    before = _kilobytes("VmRSS:")
    model = load(SMOLLM2)
    loaded = _kilobytes("VmRSS:")
    text = text_of(model, TOKENS)
    model.run("A short text first.").logits_at()
    resting = _kilobytes("VmRSS:")
    PEAK.write_text("5", "utf-8")  # forgets the peak of loading
    run = model.run(text, record=["residual.before", "residual.after", "attention.pattern:15.4"])
    run.logits_at()
    peak = _kilobytes("VmHWM:")
    found = {"weights": model.weights.nbytes, "loading": loaded - before, "run": peak - resting, "tokens": TOKENS}
    print(json.dumps({key: value * 1024 if key in ("loading", "run") else value for key, value in found.items()}))


if __name__ == "__main__":
    main()
