"""Works out the settings that an address needs, and writes them as a broker.xml. Plain numbers in, plain numbers
out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape, quoteattr

MIB: Final = 1024**2
HEADROOM: Final = 1.25
"""The factor on top of the measured values."""
PAGE_BYTES_MAX: Final = 64 * MIB
_PAGES_WANTED: Final = 100
"""The number of pages for a backlog: few files, but space is freed early."""


@dataclass(frozen=True, slots=True)
class Need:
    """The measured needs of one address. Bytes are those that the broker counts: body, headers and overhead."""

    address: str
    peak_messages: int
    peak_bytes: int
    largest_bytes: int
    outage_bytes: int
    """How many bytes would have arrived during the outage."""
    rings: Mapping[str, int] = field(default_factory=dict)
    """For each ring queue that lost messages, the size that would have lost none."""
    is_ring: bool = False
    """Are all of its queues such rings?"""


@dataclass(frozen=True, slots=True)
class Advice:
    """Settings for one address."""

    need: Need
    max_size_bytes: int
    page_size_bytes: int | None
    """None: it needs no pages, because rings limit it."""
    rings: Mapping[str, int]
    disk_bytes: int
    """The size of its pages at the end of the outage; 0: everything fits into memory."""

    @property
    def ring_size(self) -> int | None:
        """The ring size for the whole address; None if it would turn other queues into rings."""
        return max(self.rings.values()) if self.need.is_ring else None


def advise(need: Need, memory_bytes: int) -> Advice:
    """Settings that would have held the traffic, including an outage, with headroom. Messages beyond ``memory_bytes``
    go to pages. An address with only rings is limited by them, even in an outage.
    """
    rings = {queue: math.ceil(size * HEADROOM) for queue, size in sorted(need.rings.items())}
    if need.is_ring:
        held = max(rings.values()) * need.largest_bytes
        return Advice(need, _rounded(max(held, need.peak_bytes * HEADROOM, MIB)), None, rings, 0)
    wanted = max(need.peak_bytes, need.outage_bytes) * HEADROOM
    fits = wanted <= memory_bytes
    max_size = _rounded(max(wanted if fits else memory_bytes, 2 * need.largest_bytes, MIB))
    disk = 0 if fits else _rounded(wanted)
    page = max(MIB, 2 * need.largest_bytes, min(disk / _PAGES_WANTED, PAGE_BYTES_MAX, max_size / 2))
    page_size = _rounded(page)
    return Advice(need, max(max_size, page_size), page_size, rings, disk)


def _rounded(size_bytes: float) -> int:
    """Up to whole MiB, from 16 MiB on to whole multiples of 4."""
    mebibytes = math.ceil(size_bytes / MIB)
    return MIB * (mebibytes if mebibytes <= 16 else math.ceil(mebibytes / 4) * 4)


def as_xml(advices: Sequence[Advice], broker_name: str = "capacity") -> str:
    """A broker.xml with only address-settings: valid as it is, and meant to be copied from."""
    lines = [
        '<configuration xmlns="urn:activemq">',
        '  <core xmlns="urn:activemq:core">',
        f"    <name>{escape(broker_name)}</name>",
        "    <address-settings>",
    ]
    for advice in advices:
        lines += [f"      {line}" for line in _setting(advice)]
    return "\n".join([*lines, "    </address-settings>", "  </core>", "</configuration>", ""])


def _setting(advice: Advice) -> list[str]:
    need = advice.need
    seen = f"{need.peak_messages:,} messages, {_size(need.peak_bytes)}"
    lines = [
        f"<address-setting match={quoteattr(need.address)}>",
        f"  <!-- seen: at most {seen}; an outage would bring {_size(need.outage_bytes)} -->",
        f"  <max-size-bytes>{advice.max_size_bytes // MIB}MiB</max-size-bytes>",
    ]
    if advice.page_size_bytes is not None:
        lines.append(f"  <page-size-bytes>{advice.page_size_bytes // MIB}MiB</page-size-bytes>")
    lines.append(f"  <address-full-policy>{'BLOCK' if need.is_ring else 'PAGE'}</address-full-policy>")
    if advice.ring_size is not None:
        lines.append(f"  <default-ring-size>{advice.ring_size}</default-ring-size>")
    else:
        lines += [f"  <!-- queue {_in_comment(queue)}: ring-size {size} -->" for queue, size in advice.rings.items()]
    return [*lines, "</address-setting>"]


def _in_comment(text: str) -> str:
    """XML's comments may not hold two hyphens in a row."""
    return text.replace("--", "- -")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / MIB:,.1f} MiB" if size_bytes >= MIB else f"{size_bytes / 1024:,.1f} KiB"
