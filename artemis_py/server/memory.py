"""How much memory this process may use; half of it is the default of ``global-max-size`` (Artemis: of the heap), three
quarters that of ``global-max-held-size``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_CGROUP_FILES: Final = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
_DESTINATION_BYTES: Final = 4096
"""Approximate size of an address or a queue without messages; docs/reliability.md has the figures."""
_UNKNOWN: Final = 1 << 30


def usable_bytes(root: Path = Path("/")) -> int:
    """The memory of the machine or the container's limit, whichever is less; 1 GiB if neither is known."""
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


def destinations_max(configured: int | None) -> int:
    """``max-addresses`` or ``max-queues``; None means the default: as many as fit into a quarter of the memory."""
    return usable_bytes() // 4 // _DESTINATION_BYTES if configured is None else configured


def global_max_bytes(configured: int) -> int:
    """``global-max-size``; -1 means its default."""
    return configured if configured > 0 else usable_bytes() // 2


def held_max_bytes(configured: int, messages_max_bytes: int) -> int:
    """``global-max-held-size``; -1 means its default. If ``messages_max_bytes`` (``global-max-size``) is above its own
    default, that leaves a quarter of the memory for everything but messages.
    """
    if configured > 0:
        return configured
    usable = usable_bytes()
    return max(usable - usable // 4, messages_max_bytes + usable // 4)
