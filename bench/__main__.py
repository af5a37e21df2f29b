"""Runs every part, one after the other, and writes the page.

make bench
python -m bench --models smollm2,gpt2 --tokens 18,105 --rounds 5     a part of it, printed and not written
python -m bench --figures RUN.json --beside RUN.json ...             the page of a whole run's figures, others beside it
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from bench import cold, forward, memory, sweep
from bench.models import ENTRIES
from bench.report import render
from bench.timing import Process
from core.catalogue import SPECIMENS, smollm2_folder
from core.threads import WAITING

PAGE = Path(__file__).parent / "RESULTS.md"
RAW = Path(__file__).parents[1] / "artifacts" / "bench.json"  # the figures of a whole run
PARTS = ("sweep", "cold", "memory")


def machine() -> str:
    """What it ran on, in a sentence."""
    model = "an unnamed processor"
    if (info := Path("/proc/cpuinfo")).is_file():
        named = [line for line in info.read_text("utf-8").splitlines() if line.startswith("model name")]
        model = named[0].partition(":")[2].strip() if named else model
    width = torch.backends.cpu.get_cpu_capability()
    return f"The machine: {model}, {os.cpu_count()} cores, {width}; torch {torch.__version__}."


def measure(models: list[str], tokens: list[int], parts: list[str], rounds: int, threads: int) -> Iterator[Any]:
    """(part, its results), the short parts first."""
    if "memory" in parts:
        with Process(memory.Loading, waiting=WAITING) as fresh:
            yield "memory", fresh.call("measure")
    if "cold" in parts:
        specimen = next(iter(SPECIMENS.values())).folder
        yield "cold", cold.measure(str(specimen), str(smollm2_folder()), rounds)
    if "sweep" in parts:
        yield "sweep", sweep.measure([18, 105], rounds, threads)
    for entry in ENTRIES:
        counts = [each for each in entry.bars if not tokens or each in tokens]
        if entry.name in models and counts:
            yield entry.name, forward.measure(entry.name, counts, rounds, threads)


def main() -> None:
    """Prints the page; a whole run writes it to RESULTS.md as it goes."""
    names = [entry.name for entry in ENTRIES]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--models", default=",".join(names), help=f"of {', '.join(names)}; “none” for none")
    parser.add_argument("--tokens", default="", help="of 18, 105, 420, 1024, 1410; all where left out")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}; “none” for none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--figures", type=Path, help="of a whole run, as artifacts/bench.json has them: no new run")
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="figures of other whole runs")
    given = parser.parse_args()
    if given.figures:
        run, *others = (json.loads(path.read_text("utf-8")) for path in (given.figures, *given.beside))
        page = render(
            run["results"], run["machine"], run["threads"], run["rounds"], [each["results"] for each in others]
        )
        PAGE.write_text(page, "utf-8")
        return
    tokens = [int(each) for each in given.tokens.split(",") if each]
    whole = not tokens and given.models == ",".join(names) and given.parts == ",".join(PARTS)
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    results: dict[str, Any] = {}
    page = ""
    for name, found in measure(given.models.split(","), tokens, given.parts.split(","), given.rounds, given.threads):
        print(f"{name}: measured", file=sys.stderr, flush=True)
        results[name] = found
        page = render(results, machine(), given.threads, given.rounds)
        if whole:  # what there is so far
            PAGE.write_text(page, "utf-8")
            RAW.parent.mkdir(exist_ok=True)
            ran = {"machine": machine(), "threads": given.threads, "rounds": given.rounds, "results": results}
            RAW.write_text(json.dumps(ran), "utf-8")
    print(page)


if __name__ == "__main__":
    main()
