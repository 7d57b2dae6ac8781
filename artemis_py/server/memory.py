"""How much memory this process may use; half of it is the default of ``global-max-size`` (Artemis: of the heap)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_CGROUP_FILES: Final = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNKNOWN: Final = 1 << 30


def usable_bytes(root: Path = Path("/")) -> int:
    """What the machine has, or the container allows, whichever is less; where neither can be told, 1 GiB."""
    try:
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (ValueError, OSError):
        limits = []
    for name in _CGROUP_FILES:
        try:
            text = (root / name).read_text("ascii").strip()
        except OSError:
            continue
        if text.isdigit() and int(text) > 0:
            limits.append(int(text))
    return min(limits, default=_UNKNOWN)


def global_max_bytes(configured: int) -> int:
    """``global-max-size``; -1 means its default."""
    return configured if configured > 0 else usable_bytes() // 2
