"""Runs every part, each in a process of its own, so that one model's memory is gone before the next; writes the page.

make bench
python -m bench --models smollm2,gpt2 --tokens 18,105 --rounds 5     a part of it, printed and not written
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from bench import cold
from bench.models import ENTRIES
from bench.report import render
from core.catalogue import SPECIMENS, smollm2_folder

PAGE = Path(__file__).parent / "RESULTS.md"
PARTS = ("sweep", "cold", "memory")


def part(module: str, *arguments: str) -> Any:
    """What a part prints as its last line. What goes wrong in it ends the whole run."""
    print(f"{module} {' '.join(arguments)} …", file=sys.stderr, flush=True)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    command = [sys.executable, "-m", f"bench.{module}", *arguments]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return json.loads(printed.splitlines()[-1])


def machine() -> str:
    """What it ran on, in a sentence."""
    model = "an unnamed processor"
    if (info := Path("/proc/cpuinfo")).is_file():
        named = [line for line in info.read_text("utf-8").splitlines() if line.startswith("model name")]
        model = named[0].partition(":")[2].strip() if named else model
    width = torch.backends.cpu.get_cpu_capability()
    return f"The machine: {model}, {os.cpu_count()} cores, {width}; torch {torch.__version__}."


def measure(models: list[str], tokens: list[int], parts: list[str], rounds: int, threads: int) -> dict[str, Any]:
    """All results by part."""
    results: dict[str, Any] = {}
    shared = ("--rounds", str(rounds), "--threads", str(threads))
    for entry in ENTRIES:
        counts = [each for each in entry.bars if not tokens or each in tokens]
        if entry.name in models and counts:
            results[entry.name] = part("forward", entry.name, "--tokens", ",".join(map(str, counts)), *shared)
    if "sweep" in parts:
        results["sweep"] = part("sweep", *shared)
    if "cold" in parts:
        specimen = next(iter(SPECIMENS.values())).folder
        results["cold"] = cold.measure(str(specimen), str(smollm2_folder()), rounds)
    if "memory" in parts:
        results["memory"] = part("memory")
    return results


def main() -> None:
    """Prints the page; a whole run writes it to RESULTS.md."""
    names = [entry.name for entry in ENTRIES]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--models", default=",".join(names), help=f"of {', '.join(names)}; “none” for none")
    parser.add_argument("--tokens", default="", help="of 18, 105, 420, 1024, 1410; all where left out")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}; “none” for none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    tokens = [int(each) for each in given.tokens.split(",") if each]
    results = measure(given.models.split(","), tokens, given.parts.split(","), given.rounds, given.threads)
    page = render(results, machine(), given.threads, given.rounds)
    print(page)
    if not tokens and given.models == ",".join(names) and given.parts == ",".join(PARTS):
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
