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
NEVER = -1  # of its own accord
MOST, LEFT = 5, 10  # between two of its runs, the process holds a fifth of the memory that it may use, else a tenth
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


class _Counted(ctypes.Structure):
    """glibc's mallinfo2: what the C library has, in bytes."""

    _fields_ = (
        ("other", ctypes.c_size_t * 7),
        ("used", ctypes.c_size_t),
        ("free", ctypes.c_size_t),
        ("on_top", ctypes.c_size_t),
    )


def _library() -> ctypes.CDLL | None:
    """The C library, where it is one that can be asked for all of this: glibc from 2.33 on."""
    try:
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _Counted
        library.malloc_trim.argtypes = (ctypes.c_size_t,)
        _ = library.mallopt
    except (AttributeError, OSError, TypeError):
        return None
    return library


@cache
def keep_freed() -> bool:
    """Makes the process reuse what it has freed: for programs, before their first tensor. `settle` bounds it.

    What it does ask the system for, torch asks for in pages of 2 MB, where the system has such. Returns whether the C
    library heard: glibc does; others go on as they were.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    if (library := _library()) is None:
        return False
    settings = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, LARGEST), (_TRIM_THRESHOLD, NEVER), (_TOP_PAD, STEP))
    taken = [library.mallopt(option, value) for option, value in settings]
    return all(taken)


def _idle(counted: _Counted) -> int:
    """Bytes of memory that nothing uses and the process holds all the same.

    To the C library that is all that is free, also what went back to the system and lies between two pieces in use: as
    seen from the system it is what the heap has of real memory beyond what is in use.
    """
    in_use, held, in_heap = int(counted.used), 0, False
    with suppress(OSError), open("/proc/self/smaps", encoding="utf-8") as lines:
        for line in lines:
            if line[0] in "0123456789abcdef":  # a piece's first line: its addresses and, last, its name
                in_heap = line.endswith("[heap]\n")
            elif in_heap and line.startswith("Rss:"):
                held += int(line.split()[1]) * 1024
    free = int(counted.free)
    return min(free, held - in_use) if held else free


_settled = 0


def settle() -> None:
    """For a program's main loop, after its work: a run's memory is free by then, its imports are behind it.

    Gives memory back where more than the process's share is idle; and where modules came in since the last time, takes
    all objects that are there out of the garbage collector's sight.
    """
    global _settled
    if len(sys.modules) != _settled:
        _settled = len(sys.modules)
        gc.collect()
        gc.freeze()
    most, left = available() // MOST, available() // LEFT
    if (library := _library()) is None or (counted := library.mallinfo2()).free <= most:
        return
    if _idle(counted) > most:
        library.malloc_trim(left)
