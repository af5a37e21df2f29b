"""The clocks that split a page's time count each second once, by the part that it was spent in."""

import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from bench.timed import Clock

PAGE = """
import sys
from pathlib import Path
from bench.timed import watch
watch(Path(sys.argv[1]))
import torch
from charts.words import top_bars
from core import load
from core.memory import settle
from pages.frame.cache import drawn
from pages.frame.parts import chart
run = load("specimen-qwen3").run("Alice gave the book to Bob")
settle()
chart(drawn(top_bars, [(each.text, each.p) for each in run.top(3)], colour="#336699", dark=False))
settle()
settle()
"""


def test_what_is_called_inside_counts_with_what_called_it() -> None:
    clock = Clock()
    inner = clock.timed(lambda: time.sleep(0.05), "compute")
    outer = clock.timed(inner, "chart")
    outer()
    assert clock.spent["compute"] == 0
    assert clock.spent["chart"] >= 0.05
    inner()
    assert 0.05 <= clock.spent["compute"] < 1


def test_a_failure_passes_and_stops_the_clock() -> None:
    clock = Clock()
    failing = clock.timed(lambda: 1 // 0, "compute")
    for _ in range(2):
        before = clock.spent["compute"]
        with pytest.raises(ZeroDivisionError):
            failing()
        assert clock.spent["compute"] > before
        assert not clock.inside


def test_what_a_module_took_from_another_is_left_alone() -> None:
    module = ModuleType("made_here")
    exec("def mine(): return 1\ndef _hidden(): return 2\nclass Kind:\n    def method(self): return 3", vars(module))
    module.foreign = json.dumps  # type: ignore[attr-defined]
    hidden = module._hidden
    clock = Clock()
    clock.wrap(module, "compute")
    assert module.foreign is json.dumps
    assert module._hidden is hidden
    assert (module.mine(), module.Kind().method()) == (1, 3)
    assert clock.spent["compute"] > 0
    assert module.mine.__wrapped__() == 1


def test_each_run_of_the_script_gets_a_line(tmp_path: Path) -> None:
    log = tmp_path / "clocks"
    subprocess.run(
        [sys.executable, "-c", PAGE, str(log)], check=True, capture_output=True, cwd=Path(__file__).parents[2]
    )
    first, second, third = (json.loads(line) for line in log.read_text("utf-8").splitlines())
    assert first["compute"] > 0
    assert first["chart"] == 0
    assert second["compute"] > 0  # run.top
    assert second["chart"] > 0
    assert third == {"compute": 0, "chart": 0}
