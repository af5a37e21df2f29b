"""What a process does with memory that it has freed, and with objects that it never will.

A long text's run makes and drops tensors of tens of megabytes, one after the other. The C library gives each of them
back to the system when it is dropped, and the system hands the next one out page by page, filled with zeros: at 0.14 s
a GB that was a quarter to a third of a long run.

Python's garbage collector looks at every object there is. Importing torch, altair and streamlit makes half a million
that stay for good, and the app's framework calls the collector after each of its runs: 0.15 s with nothing to find.
"""

import ctypes
import gc
import sys
from functools import cache

# Option numbers of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
KEPT = 512 << 20  # bytes of freed memory that the process holds on to
LARGEST = 1 << 30  # bytes: anything larger comes from the system and goes back to it
STEP = 128 << 20  # bytes that it asks the system for at a time; untouched, they cost nothing


@cache
def keep_freed() -> bool:
    """Makes the process reuse up to `KEPT` bytes of what it has freed: for programs, once, at their start.

    Returns whether the C library heard: glibc does; others go on as they were.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    settings = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, LARGEST), (_TRIM_THRESHOLD, KEPT), (_TOP_PAD, STEP))
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
