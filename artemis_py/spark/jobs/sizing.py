"""What an address needs, and how to write that down in a broker.xml. Plain numbers in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import quoteattr

MIB: Final = 1024**2
HEADROOM: Final = 1.25
"""On top of what was seen."""
PAGE_BYTES_MAX: Final = 64 * MIB
_PAGES_WANTED: Final = 100
"""Into so many pages a backlog is cut: few enough files, and space that comes back early."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one address was seen to need. Bytes are those that the broker counts: body, headers, and its own overhead."""

    address: str
    peak_messages: int
    peak_bytes: int
    largest_bytes: int
    outage_bytes: int
    """What would have come in during the outage."""
    ring: int | None = None
    """Messages of the longest of its rings that lost something, had nothing been lost; None: no ring lost anything."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Settings for one address."""

    need: Need
    max_size_bytes: int
    page_size_bytes: int
    ring_size: int | None
    disk_bytes: int
    """What its pages take at the end of the outage; 0: all of it fits into memory."""


def advise(need: Need, memory_bytes: int) -> Advice:
    """Settings that would have held the traffic, an outage included, with headroom. What does not fit into
    ``memory_bytes`` goes to pages.
    """
    wanted = max(need.peak_bytes, need.outage_bytes) * HEADROOM
    fits = wanted <= memory_bytes
    max_size = _rounded(max(wanted, 2 * need.largest_bytes, MIB) if fits else max(memory_bytes, 2 * need.largest_bytes))
    disk = 0 if fits else _rounded(wanted)
    page = max(MIB, 2 * need.largest_bytes, min(disk / _PAGES_WANTED, PAGE_BYTES_MAX))
    page_size = _rounded(page if fits else min(page, max(max_size / 2, 2 * need.largest_bytes, MIB)))
    ring = None if need.ring is None else math.ceil(need.ring * HEADROOM)
    return Advice(need, max(max_size, page_size), page_size, ring, disk)


def _rounded(size_bytes: float) -> int:
    """Up to whole MiB, from 16 MiB on to whole multiples of 4."""
    mebibytes = math.ceil(size_bytes / MIB)
    return MIB * (mebibytes if mebibytes <= 16 else math.ceil(mebibytes / 4) * 4)


def as_xml(advices: Sequence[Advice], broker_name: str = "capacity") -> str:
    """A broker.xml with address-settings alone: to be checked as it is, and to be copied from."""
    lines = [
        '<configuration xmlns="urn:activemq">',
        '  <core xmlns="urn:activemq:core">',
        f"    <name>{_text(broker_name)}</name>",
        "    <address-settings>",
    ]
    for advice in advices:
        need = advice.need
        lines += [
            f"      <address-setting match={quoteattr(need.address)}>",
            f"        <!-- seen: at most {need.peak_messages:,} messages, {_size(need.peak_bytes)};"
            f" an outage would bring {_size(need.outage_bytes)} -->",
            f"        <max-size-bytes>{_size_setting(advice.max_size_bytes)}</max-size-bytes>",
            f"        <page-size-bytes>{_size_setting(advice.page_size_bytes)}</page-size-bytes>",
            "        <address-full-policy>PAGE</address-full-policy>",
        ]
        if advice.ring_size is not None:
            lines += [
                f"        <!-- its rings would have had to hold {need.ring:,} messages -->",
                f"        <default-ring-size>{advice.ring_size}</default-ring-size>",
            ]
        lines.append("      </address-setting>")
    return "\n".join([*lines, "    </address-settings>", "  </core>", "</configuration>", ""])


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / MIB:,.1f} MiB"


def _size_setting(size_bytes: int) -> str:
    return f"{size_bytes // MIB}MiB"
