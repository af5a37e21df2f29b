"""Threads for the cores that there are, and how they wait: what torch's own OpenMP says that it has read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from core import threads


def waits(program: str, turns: int, **own: str) -> bool:
    """Whether OpenMP says, when a fresh process loads it, that its threads wait for so many turns."""
    environment = {name: value for name, value in os.environ.items() if name not in threads.WAITING}
    asked = environment | {"OMP_DISPLAY_ENV": "verbose"} | own
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env=asked).stderr
    return f"GOMP_SPINCOUNT = '{turns}'\n" in said


def test_threads_wait_for_so_long() -> None:
    gnu = sys.platform == "linux"  # elsewhere torch comes with another OpenMP, which has no such setting
    assert waits("import core", 10_000) == gnu
    assert not waits("import torch", 10_000)


def test_a_hosts_own_setting_holds() -> None:
    assert waits("import core", 777, GOMP_SPINCOUNT="777") == (sys.platform == "linux")


@pytest.mark.parametrize(
    ("said", "allowed"),
    [("max 100000", None), ("50000 100000", 1), ("100000 100000", 1), ("200000 100000", 2), (None, None), ("", None)],
)
def test_a_containers_quota_bounds_the_threads(
    said: str | None, allowed: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if said is not None:
        (tmp_path / "cpu.max").write_text(said, "ascii")
    chosen: list[int] = []
    monkeypatch.setattr(threads, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: range(8), raising=False)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    threads.use_all_cores()
    assert chosen == [allowed or 8]


def test_all_cores_are_used_where_the_system_does_not_say_which_are_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(threads, "QUOTA", tmp_path / "none")
    monkeypatch.delattr(threads.os, "sched_getaffinity", raising=False)  # as on macOS
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 6)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    threads.use_all_cores()
    assert chosen == [6]
