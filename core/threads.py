"""How many threads torch computes with, and how long they wait for each other.

Between two products torch's threads keep their cores busy, waiting for the next one: by default through some 300,000
turns of a loop, which is milliseconds. A run on an idle machine gains by that. Where a browser wants the same cores,
the thread that all the others wait for does not get one: on two cores, a change of layer took a small model up to ten
times as long (120 ms for 12). 10,000 turns bridge the gaps within a run at no loss; 1,000 make a short run half as long
again. Thirty visitors whose browsers run elsewhere wait as long either way. Torch reads this when it is first imported:
this module comes before it.
"""

import os
from pathlib import Path

WAITING = {"GOMP_SPINCOUNT": "10000"}  # GNU's OpenMP, which torch comes with on Linux; others have other names
QUOTA = Path("/sys/fs/cgroup/cpu.max")

for name, turns in WAITING.items():
    os.environ.setdefault(name, turns)


def use_all_cores() -> None:
    """Threads for torch by the container's quota: torch counts the host's cores, and is throttled for it."""
    import torch  # not above: see there

    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(here, _quota() or here)
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def _quota() -> int | None:
    """Whole cores of the cgroup's CPU quota, or None where there is none."""
    try:
        quota, period = QUOTA.read_text("ascii").split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else max(1, round(int(quota) / int(period)))
