"""Freed memory is used again: a process that drops a large tensor does not ask the system for the next one."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

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
    environment = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    command = [sys.executable, "-c", FAULTS, how]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
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
    memory.settle()


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [(["max\n"], None), (["1073741824\n"], 1 << 30), (["max\n", "4096"], 4096), ([], None), ([str(1 << 60)], None)],
    ids=["no limit", "a container of 1 GB", "an older container", "no groups", "a limit beyond the machine"],
)
def test_a_containers_limit_counts(
    limits: list[str], allowed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / str(i) for i in range(2)]
    for file, text in zip(files, limits, strict=False):
        file.write_text(text, "ascii")
    monkeypatch.setattr(memory, "LIMITS", tuple(map(str, files)))
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert memory.available() == (allowed or machine)


HELD = """
import json, sys, torch
from core import memory
from pathlib import Path
memory.keep_freed()
memory.available = lambda: int(sys.argv[1])
def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024
memory.settle()
before = held()
many = [torch.ones(12 << 20) for _ in range(10)]  # 480 MB
del many
after = held()
memory.settle()
print(json.dumps([after - before, held() - before]))
"""


@pytest.mark.parametrize(("most", "kept"), [(1 << 30, 480 << 20), (400 << 20, 200 << 20)], ids=["enough", "too much"])
def test_idle_memory_beyond_the_share_goes_back_after_the_work(most: int, kept: int) -> None:
    command = [sys.executable, "-c", HELD, str(memory.MOST * most)]
    freed, settled = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert freed == pytest.approx(480 << 20, abs=20 << 20)
    assert settled == pytest.approx(kept, abs=20 << 20)


GAPS = """
import json, resource, torch
from core import memory
memory.keep_freed()
memory.available = lambda: memory.MOST * (200 << 20)
def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
pieces = [torch.ones(1 << 20) for _ in range(200)]  # 4 MB each
del pieces[::2]  # 400 MB lie free between pieces in use
given, found = memory._library().mallinfo2().free, []
for _ in range(4):
    memory.settle()
    before = page_faults()
    for _ in range(20):
        torch.ones(1 << 20)
    found.append(page_faults() - before)
print(json.dumps([given, found]))
"""


def test_what_went_back_between_pieces_in_use_is_not_given_back_again() -> None:
    """To the C library it stays free: settling by that alone would take from each run what it needs for the next."""
    answer = subprocess.run([sys.executable, "-c", GAPS], check=True, capture_output=True, text=True).stdout
    free, (first, *later) = json.loads(answer)
    assert free > 300 << 20
    assert first > 0
    assert max(later) <= 16


def test_without_the_systems_word_on_it_all_that_is_free_counts_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(memory, "open", refused, raising=False)
    assert memory._idle(memory._Counted(used=3, free=5)) == 5
