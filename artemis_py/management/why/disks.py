"""Which disk is full, in words."""

from __future__ import annotations

from typing import Any

from artemis_py.errors import BrokerError
from artemis_py.management.why.asking import Asking


def full_disk(asking: Asking) -> tuple[str, dict[str, Any]]:
    """The fullest disk that the broker writes to, and its figures for a finding; without both if the system does not
    say.
    """
    stored = asking.managed.stored
    try:
        spaces = () if stored is None else stored.spaces()
    except BrokerError:
        spaces = ()
    if not spaces:
        return "a disk of the broker is full", {}
    fullest = min(spaces, key=lambda space: space.left_bytes)
    config = asking.broker.config
    text = f"the disk of {fullest.directory} is full: {fullest.used_percent} % of it is used"
    if config.min_disk_free >= 0:
        text += f", and {fullest.free_bytes:,} bytes are free"
        return text, {"used": fullest.free_bytes, "limit": config.min_disk_free, "unit": "bytes"}
    return text, {"used": fullest.used_percent, "limit": config.max_disk_usage, "unit": "percent"}
