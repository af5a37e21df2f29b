"""What a run of SmolLM2 takes beside its weights, and that these are held once. Reads Linux's /proc."""

from pathlib import Path

import torch

from bench.models import text_of
from core.catalogue import SMOLLM2
from core.memory import keep_freed
from core.weights import load

TOKENS = 1410
STATUS, PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _bytes(field: str) -> int:
    lines = STATUS.read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


class Loading:
    """For a fresh process: what it holds grows by what is measured alone."""

    def measure(self) -> dict[str, int]:
        """Bytes: of the weights, of what loading them adds, of what a run adds at its peak."""
        torch.set_num_threads(2)
        keep_freed()
        before = _bytes("VmRSS:")
        model = load(SMOLLM2)
        loaded = _bytes("VmRSS:")
        text = text_of(model.tokenizer, TOKENS)
        model.run("A short text first.").logits_at()
        resting = _bytes("VmRSS:")
        PEAK.write_text("5", "utf-8")  # forgets the peak of loading
        run = model.run(text, record=["residual.before", "residual.after", "attention.pattern:15.4"])
        run.logits_at()
        peak = _bytes("VmHWM:")
        return {"weights": model.weights.nbytes, "loading": loaded - before, "run": peak - resting, "tokens": TOKENS}
