"""Keeps glibc from returning memory after every large block.

Reading and joining create blocks above 128 KiB, which glibc by default maps and unmaps one by one; the page faults cost
more than the parsing. Other C libraries have no ``mallopt`` and stay as they are.
"""

from __future__ import annotations

from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_TRIM_THRESHOLD_BYTES: Final = 64 << 20
_MMAP_THRESHOLD_BYTES: Final = 16 << 20


def keep_freed_memory() -> bool:
    """Raise the thresholds above which glibc returns memory; False if that is impossible."""
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES) and mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))
