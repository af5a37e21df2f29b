"""What a process does with memory that it has freed, and with objects that it never will.

A long text's run makes and drops tensors of tens of megabytes, one after the other. The C library gives each of them
back to the system when it is dropped, and the system hands the next one out page by page, filled with zeros: at 0.14 to
0.29 s a GB that was a quarter to a third of a long run.

Python's garbage collector looks at every object there is. Importing torch, altair and streamlit makes half a million
that stay for good, and the app's framework calls the collector after each of its runs: 0.15 s with nothing to find.
"""

import ctypes
import gc
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

# Option numbers of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
SHARE = 8  # the process holds on to an eighth of the memory that it may use,
MOST = (1 << 31) - 1  # or as many bytes as mallopt can be told, where that is less
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # a container's: cgroup 2, 1
LARGEST = 1 << 30  # bytes: anything larger comes from the system and goes back to it
STEP = 128 << 20  # bytes that it asks the system for at a time; untouched, they cost nothing


def available() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's where that is less."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in map(Path, LIMITS):
        with suppress(OSError, ValueError):  # not there, or "max"
            sizes.append(int(limit.read_text("ascii")))
    return min(sizes)


@cache
def keep_freed() -> bool:
    """Makes the process reuse what it has freed, up to its share of memory: for programs, before their first tensor.

    What it does ask the system for, torch asks for in pages of 2 MB, where the system has such. Returns whether the C
    library heard: glibc does; others go on as they were.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    kept = min(available() // SHARE, MOST)
    settings = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, LARGEST), (_TRIM_THRESHOLD, kept), (_TOP_PAD, STEP))
    taken = [mallopt(option, value) for option, value in settings]
    return all(taken)


_settled = 0


def settle() -> None:
    """Takes all objects that are there out of the garbage collector's sight, where modules came in since the last time.

    For a program's main loop, after its work: the imports of a first run are behind it by then.
    """
    global _settled
    if len(sys.modules) != _settled:
        _settled = len(sys.modules)
        gc.collect()
        gc.freeze()
