"""Freed memory is used again: a process that drops a large tensor does not ask the system for the next one."""

import json
import platform
import subprocess
import sys

import pytest

from core import memory

FAULTS = """
import json, resource, sys, torch
from core.memory import keep_freed
heard = sys.argv[1] == "keep" and keep_freed()
def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.ones(12 << 20)
torch.ones(12 << 20)
before = page_faults()
for _ in range(10):
    torch.ones(12 << 20)  # 48 MB
print(json.dumps([heard, page_faults() - before]))
"""

PAGES = (48 << 20) // 4096  # of one tensor


def faults(how: str) -> tuple[bool, int]:
    """Whether the C library heard, and the page faults of ten tensors of 48 MB one after the other."""
    command = [sys.executable, "-c", FAULTS, how]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    heard, count = json.loads(found.stdout)
    return heard, count


def test_a_large_tensors_memory_is_used_again() -> None:
    heard, kept = faults("keep")
    assert heard == (platform.libc_ver()[0] == "glibc")
    if heard:
        left = faults("leave")[1]
        assert left >= 8 * PAGES
        assert kept <= 2 * PAGES  # a first piece may come to lie between two others and not fit the next tensor


def test_what_is_there_leaves_the_garbage_collectors_sight_once_and_after_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(memory.gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(memory, "_settled", 0)
    memory.settle()
    memory.settle()
    assert len(frozen) == 1
    monkeypatch.setitem(sys.modules, "a module that came in", memory)
    memory.settle()
    assert len(frozen) == 2


def test_a_c_library_without_it_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert memory.keep_freed.__wrapped__() is False
