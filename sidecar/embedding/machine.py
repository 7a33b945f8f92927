"""What the system is asked for: a lower priority for model threads, and memory given back. Never fails a caller."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NICE = 10
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_SMALL, _LARGE = 128 << 10, 32 << 20
_DONT_NEED = 4
_LIBRARIES = re.compile(r"onnxruntime|tokenizers|numpy|openblas|gfortran")
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-\S+ \S+ \S+ \S+\s+(/.*)")
_CHANGED = re.compile(r"(?:Anonymous|Swap): +[1-9]")


def lower_thread_priority() -> None:
    """Let this thread, and threads that it starts, run behind the game's (Linux; elsewhere no effect)."""
    if sys.platform != "linux":
        return
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    except OSError:
        return


@contextmanager
def large_blocks_apart() -> Iterator[None]:
    """Weights that are loaded inside get pages of their own, which go back to the system whole (glibc).

    Left to itself glibc puts them between small blocks that outlive the model. Afterwards large blocks come from the
    heap again, because a run that maps each of its tensors anew is slower.
    """
    tune = _glibc("mallopt")
    tune(_MMAP_THRESHOLD, _SMALL)
    try:
        yield
    finally:
        tune(_MMAP_THRESHOLD, _LARGE)
        tune(_TRIM_THRESHOLD, 2 * _LARGE)


def return_free_memory() -> None:
    """Return freed pages to the system: glibc keeps them otherwise. A few milliseconds."""
    _glibc("malloc_trim")(0)


def forget_model_memory() -> None:
    """After a model: collect garbage, return freed pages, and let go of the libraries' code until it is used again."""
    gc.collect()
    return_free_memory()
    if sys.platform == "linux":
        advise = _glibc("madvise")
        for start, end in _library_pages():
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONT_NEED)


def resident_bytes() -> int:
    """Memory that this process holds now."""
    if sys.platform == "linux":
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return int(psutil.Process().memory_info().rss)


def _glibc(name: str) -> Callable[..., object]:
    """A function of the C library; one that does nothing where it is missing."""
    if sys.platform != "linux":
        return lambda *_arguments: None
    return getattr(ctypes.CDLL(None), name, lambda *_arguments: None)


def _library_pages() -> Iterator[tuple[int, int]]:
    """Start and end of what is mapped, unchanged and read-only, from the libraries that only models need.

    Only such pages can be read from their file again.
    """
    smaps = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
    for mapping in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", smaps):
        found = _MAPPING.match(mapping)
        if found and _LIBRARIES.search(found[3]) and not _CHANGED.search(mapping):
            yield int(found[1], 16), int(found[2], 16)
