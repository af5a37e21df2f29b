"""What may import what: the models and measurements stand without the app."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVERY_MODULE = """
import importlib, pkgutil, sys
import core
names = ["core"] + [each.name for each in pkgutil.walk_packages(core.__path__, "core.")]
for name in names:
    importlib.import_module(name)
print(len(names))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def loaded(program: str) -> tuple[int, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=300, check=True
    )
    count, names = done.stdout.splitlines()
    return int(count), set(names.split())


@pytest.fixture(scope="module")
def with_core() -> tuple[int, set[str]]:
    return loaded(EVERY_MODULE)


def test_every_module_of_core_is_looked_at(with_core: tuple[int, set[str]]) -> None:
    count, names = with_core
    assert count == len(list((ROOT / "core").rglob("*.py")))
    assert {"core", "torch", "safetensors", "tokenizers"} <= names


@pytest.mark.parametrize("library", ["streamlit", "altair", "transformers", "charts", "pages", "app", "tools", "tests"])
def test_core_imports_no(library: str, with_core: tuple[int, set[str]]) -> None:
    assert library not in with_core[1]
