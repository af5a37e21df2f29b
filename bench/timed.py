"""The app with clocks on: how long each run of its script computes and makes charts.

    python -m bench.timed LOG --server.port=8501

LOG gets a line of JSON, seconds by part, for each run: "compute" is what pages spend in core, "chart" what they spend
in charts and in writing a chart out. Everything else is as `streamlit run app.py` has it.
"""

import importlib
import inspect
import json
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import charts.theme
import core
from core import memory


class Clock:
    """Adds up the seconds spent in wrapped functions; one that is called inside another counts with it."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {"compute": 0.0, "chart": 0.0}
        self.inside = False

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if self.inside:
                return function(*arguments, **named)
            self.inside, began = True, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.inside = False
                self.spent[part] += time.perf_counter() - began

        return call

    def wrap(self, module: ModuleType, part: str) -> None:
        """Times every public function of a module, and the methods of its classes."""
        for owner in [module, *(each for each in vars(module).values() if inspect.isclass(each))]:
            for name, found in list(vars(owner).items()):
                here = getattr(found, "__module__", None) == module.__name__
                callable_here = inspect.isfunction(found) or hasattr(found, "cache_info")
                if here and callable_here and not name.startswith("_"):
                    setattr(owner, name, self.timed(found, part))


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """All modules of a package, but for those that are programs."""
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def watch(log: Path) -> None:
    """Wraps core and charts, before any page has taken a function from them, and writes a line a run to `log`."""
    clock, settle = Clock(), memory.settle
    for package, part in ((core, "compute"), (charts, "chart")):
        for module in list(modules(package)):
            clock.wrap(module, part)
    for kind in get_args(charts.theme.Chart):
        kind.to_dict = clock.timed(kind.to_dict, "chart")

    def finish() -> None:  # the last thing that a run does
        with log.open("a", encoding="utf-8") as lines:
            print(json.dumps(clock.spent), file=lines)
        clock.spent = dict.fromkeys(clock.spent, 0.0)
        clock.inside = True  # no page spends this
        settle()
        clock.inside = False

    memory.settle = finish


def main() -> None:
    """Serves the app."""
    from streamlit.web import cli

    watch(Path(sys.argv[1]))
    sys.argv = ["streamlit", "run", "app.py", "--server.headless=true", *sys.argv[2:]]
    cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main()
