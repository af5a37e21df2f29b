"""The measured figures as a page: `render` is a pure function of what the parts printed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.models import ENTRIES, Entry

WITH_MAPS = 1.15  # times the plain bar: with every attention map recorded as well
SWEEP_BARS = {"18": 0.12, "105": 0.27}
COLD_BAR = 1.3  # times the bare imports
LARGE_BAR = 1.5  # seconds beyond that
MEMORY_BAR = 400e6  # bytes above the weights
HEAD = """# How fast Tokenwalk is

Written by `make bench`; every figure comes from that one run. {machine}

Each ratio is to transformers' plain eager forward pass on the same weights and tokens, float32, {threads} threads:
medians of {rounds} rounds, of up to three times as many where they are short, in which all take turns, each in a
process of its own. The project's time is `Model.run` with every layer's residual vector recorded, and the logits of
the last position: what a page needs. “Maps” records every attention map as well. “Bar” is the goal; a row that misses
its bar is marked ✗.

"""


def mark(value: float, bar: float | None) -> str:
    """A figure beside its bar: "0.58 ✓"."""
    return figure(value, bar) + ("" if bar is None else " ✓" if value <= bar else " ✗")


def figure(value: float, bar: float | None) -> str:
    """To two digits, or to three where two would hide that it is over its bar."""
    hidden = bar is not None and value > bar >= round(value, 2)
    return f"{value:.{3 if hidden else 2}f}"


def forward_table(results: Mapping[str, Any]) -> list[str]:
    """The main table: a row for each model and number of tokens."""
    lines = [
        "| model | tokens | transformers, ms | project, ms | ratio | bar | with maps | bar "
        "| read | products | alone | off |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for entry in ENTRIES:
        for tokens, row in results.get(entry.name, {}).get("rows", {}).items():
            base, bar = row["seconds"]["transformers"], entry.bars.get(int(tokens))
            mine, maps = row["seconds"]["project"], row["seconds"]["project, maps"]
            limit = bar and bar * WITH_MAPS
            least = " | ".join(f"{row['limits'][which] / base:.2f}" for which in ("read", "products", "alone"))
            lines.append(
                f"| {entry.title} | {int(tokens):,} | {base * 1e3:,.0f} | {mine * 1e3:,.0f} | {mark(mine / base, bar)} "
                f"| {bar or '–'} | {mark(maps / base, limit)} | {f'{limit:.3f}' if limit else '–'} "
                f"| {least} | {row['off']:.0e} |"
            )
    absent = [entry.title for entry in ENTRIES if entry.name not in results]
    return [
        *lines,
        "",
        *([f"Not measured in this run: {', '.join(absent)}.", ""] if absent else []),
        "“Read”, “products” and “alone” are this machine's limits as ratios too: one read of all weights at the",
        "measured bandwidth; the run's products, each at the best speed seen at its shape (the better of torch's own",
        "product and oneDNN's packed one, with no long sum made of pieces, the matrix read from memory), with one read",
        "of the vocabulary for the logits; and the run's operations one by one, each at the best of several turns, its",
        "values in the cache (the matrices read from memory). A run takes longer than these: a layer's matrices pass",
        "through the cache in which its values lie. Sums over many channels are made of pieces, which “alone” counts",
        "and “products” does not: they keep the logits near to float64, within 1.5 times transformers' own distance on",
        "the tests' texts. “Off” is the largest difference of a logit from transformers', as a part of the largest",
        "|logit|; the tests hold it at 1e-5.",
        "",
    ]


def missed(results: Mapping[str, Any]) -> list[str]:
    """A line for each figure of a run over its bar: the machine's limits, and what the bar leaves beyond them."""
    lines = [line for entry in ENTRIES for line in _missed_by(entry, results.get(entry.name, {}).get("rows", {}))]
    for tokens, row in results.get("sweep", {}).items():
        theirs, mine, bar = row["seconds"]["separate"], row["seconds"]["sweep"], SWEEP_BARS[tokens]
        if mine / theirs > bar:
            lines.append(f"- The sweep at {tokens} tokens: {_against(mine, theirs, bar, row['limits'])}")
    return lines


def _against(mine: float, theirs: float, bar: float, limits: Mapping[str, float]) -> str:
    """ "0.26 against 0.23. The products take 270 ms …" of two times in seconds."""
    products, read = limits["products"], limits.get("read", 0)
    which = "the products take" if products >= read else "one read of the weights takes"
    floor = least = max(products, read)
    one_by_one, beyond = "", "all else, which takes"
    if "alone" in limits:  # of a sweep, whose layers differ in their rows, each kind of product comes too seldom
        least = max(floor, limits["alone"])
        one_by_one = f", the run's operations one by one {_both(limits['alone'], theirs)}"
        beyond = "what they cost each other, which is"
    return (
        f"{figure(mine / theirs, bar)} against {bar}. At this machine's best speed {which} "
        f"{_both(floor, theirs)}{one_by_one}; the bar leaves {max(0, bar * theirs - least) * 1e3:,.0f} ms for "
        f"{beyond} {(mine - least) * 1e3:,.0f} ms."
    )


def _both(seconds: float, theirs: float) -> str:
    """A time as a ratio and by itself: "0.202 (287 ms)"."""
    return f"{seconds / theirs:.3f} ({seconds * 1e3:,.0f} ms)"


def _missed_by(entry: Entry, rows: Mapping[str, Any]) -> Iterator[str]:
    for tokens, row in rows.items():
        base, bar, limits = row["seconds"]["transformers"], entry.bars.get(int(tokens)), row["limits"]
        if bar is None:
            continue
        name = f"- {entry.title}, {int(tokens):,} tokens"
        mine, maps = row["seconds"]["project"], row["seconds"]["project, maps"]
        if mine / base > bar:
            yield f"{name}: {_against(mine, base, bar, limits)}"
        if maps / base > bar * WITH_MAPS:
            yield (
                f"{name}, with maps: {figure(maps / base, bar * WITH_MAPS)} against {bar * WITH_MAPS:.3f}; the run "
                f"without them takes {mine / base:.2f}. Filling as much memory as the maps take, fresh from the "
                f"system, takes {limits['maps'] / base:.2f}."
            )


def peers_table(results: Mapping[str, Any]) -> list[str]:
    """What the peers take, where they run."""
    named = {
        "kept": "transformers, memory kept",
        "recorded": "transformers, recorded",
        "transformer_lens": "run_with_cache",
        "nnsight": "nnsight",
    }
    lines = [f"| model | tokens | project | {' | '.join(named.values())} |", "| --- " * (3 + len(named)) + "|"]
    for entry in ENTRIES:
        for tokens, row in results.get(entry.name, {}).get("rows", {}).items():
            found = row["seconds"]
            if any(peer in found for peer in named):
                ratios = [f"{found[p] / found['transformers']:.2f}" if p in found else "–" for p in ("project", *named)]
                lines.append(f"| {entry.title} | {int(tokens):,} | {' | '.join(ratios)} |")
    notes = [
        f"{name}: {each['notes']}" for name, each in results.items() if isinstance(each, dict) and each.get("notes")
    ]
    about = [
        "Ratios to transformers as it comes. “Memory kept”: its process reuses freed memory, as the project's does",
        "(`core/memory.py`); what a long text gains by that alone. “Recorded”: with all hidden states and attention",
        "maps. “run_with_cache”: TransformerLens's bridge, as it comes. “nnsight”: a trace that keeps every layer's",
        "output. The project's threads wait for each other as `core/threads.py` has it, the peers' as torch has it.",
    ]
    return ["## The peers", "", *lines, "", *about, *notes, ""]


def other_tables(results: Mapping[str, Any]) -> list[str]:
    """Sweeps, cold starts and memory."""
    lines = []
    if sweep := results.get("sweep"):
        lines += ["## One mixer off in turn, all 30 layers of SmolLM2", ""]
        lines += ["From the plain run that a page has by then, which is not in the sweep's time.", ""]
        lines += ["| tokens | 30 transformers runs, ms | sweep, ms | ratio | bar | probabilities off by |"]
        lines += ["| --- | --- | --- | --- | --- | --- |"]
        for tokens, row in sweep.items():
            theirs, mine = row["seconds"]["separate"], row["seconds"]["sweep"]
            bar = SWEEP_BARS.get(tokens)
            ratio = f"{mark(mine / theirs, bar)} | {bar or '–'}"
            lines.append(f"| {tokens} | {theirs * 1e3:,.0f} | {mine * 1e3:,.0f} | {ratio} | {row['off']:.0e} |")
        lines.append("")
    if cold := results.get("cold"):
        ratio, beyond = cold["specimen"] / cold["bare"], cold["smollm2"] - cold["specimen"]
        lines += [
            "## Cold start",
            "",
            f"- A process that imports torch, streamlit and altair: {cold['bare']:.2f} s.",
            f"- The same, a specimen's run and its first chart: {cold['specimen']:.2f} s, "
            f"{mark(ratio, COLD_BAR)} times as long (bar {COLD_BAR}).",
            f"- With SmolLM2 from disk instead: {cold['smollm2']:.2f} s, {mark(beyond, LARGE_BAR)} s more "
            f"(bar {LARGE_BAR} s).",
            "",
        ]
    if memory := results.get("memory"):
        held = memory["loading"] / memory["weights"]
        lines += [
            "## Memory",
            "",
            f"- SmolLM2's weights are {memory['weights'] / 1e6:,.0f} MB; the process grows by {held:.2f} times that in",
            "  loading them: they are held once.",
            f"- A run over {memory['tokens']:,} tokens, with one map and the stream around every layer recorded, peaks "
            f"{memory['run'] / 1e6:,.0f} MB above that {'✓' if memory['run'] <= MEMORY_BAR else '✗'} (bar 400 MB).",
            "",
        ]
    return lines


def other_runs(others: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same ratios of further whole runs: what holds every time, and what does not."""
    if not others:
        return []
    lines = ["| what | tokens | ratio | bar | with maps | bar |", "| --- | --- | --- | --- | --- | --- |"]
    for entry in ENTRIES:
        for tokens, bar in entry.bars.items():
            rows = [each[entry.name]["rows"][str(tokens)]["seconds"] for each in others]
            limit = bar and bar * WITH_MAPS
            plain, maps = (
                ", ".join(mark(row[which] / row["transformers"], goal) for row in rows)
                for which, goal in (("project", bar), ("project, maps", limit))
            )
            most = f"{limit:.3f}" if limit else "–"
            lines.append(f"| {entry.title} | {tokens:,} | {plain} | {bar or '–'} | {maps} | {most} |")
    for tokens, bar in SWEEP_BARS.items():
        rows = [each["sweep"][tokens]["seconds"] for each in others]
        ratios = ", ".join(mark(row["sweep"] / row["separate"], bar) for row in rows)
        lines.append(f"| the sweep | {tokens} | {ratios} | {bar} | | |")
    misses = [line for each in others for line in missed(each)]
    about = ["", "What misses its bar in these:", "", *misses] if misses else []
    return ["## The same in other runs on this machine", "", *lines, *about, ""]


def render(
    results: Mapping[str, Any], machine: str, threads: int, rounds: int, others: Sequence[Mapping[str, Any]] = ()
) -> str:
    """The whole page. `others`: the figures of further whole runs."""
    misses = missed(results)
    return (
        "\n".join(
            [
                HEAD.format(machine=machine, threads=threads, rounds=rounds).rstrip("\n"),
                "",
                *forward_table(results),
                *(["## What misses its bar", "", *misses, ""] if misses else []),
                *peers_table(results),
                *other_tables(results),
                *other_runs(others),
            ]
        ).rstrip("\n")
        + "\n"
    )
