"""What every test may use: SmolLM2 in Hugging Face layout, made once a session where it is not there yet."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tools.smollm2
from core import load
from core.catalogue import SMOLLM2, smollm2_folder
from core.model import Model
from tests.fixtures_hub import hub, no_hub, right, small_pieces, tiny_repo, toys, waits  # noqa: F401


@pytest.fixture(scope="session")
def smollm2_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that `core.load("smollm2-135m")` reads: the user's, else one made for this session."""
    if (smollm2_folder() / "config.json").is_file():
        yield smollm2_folder()
        return
    before = os.environ.get("TOKENWALK_CACHE")
    os.environ["TOKENWALK_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    try:
        tools.smollm2.convert(tools.smollm2.gguf_path(), smollm2_folder())
        yield smollm2_folder()
    finally:
        if before is None:
            del os.environ["TOKENWALK_CACHE"]
        else:
            os.environ["TOKENWALK_CACHE"] = before


@pytest.fixture(scope="session")
def smollm2(smollm2_path: Path) -> Model:
    """SmolLM2 as the app has it."""
    return load(SMOLLM2)


@pytest.fixture(scope="session")
def smollm2_exact(smollm2_path: Path) -> Model:
    """The same in float64."""
    return load(SMOLLM2, dtype=torch.float64)


@pytest.fixture(scope="session")
def smollm2_reference(smollm2_path: Path) -> Any:
    """The same folder in transformers, float32, eager."""
    import transformers  # slow to import, and needed by few tests

    model = transformers.AutoModelForCausalLM.from_pretrained(
        smollm2_path, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval().requires_grad_(False)
