"""Part ``paged``: the memory that a broker needs for each message of a queue with ``file-backed-metadata``.

It fills the queue, then leases some of its messages to a consumer that acknowledges nothing, and tells the resident
memory of the broker's process for each message in pages and for each leased one.
"""

from __future__ import annotations

from typing import Final

from bench.leases import Reader
from bench.own import ArtemisPy, fill, started
from bench.part import Extent, Finding, Findings, Say

SIZES: Final = ((1_000_000, 100), (100_000, 10_240))
"""Messages, and bytes of each body."""
LEASED: Final = 50_000
_FIRST: Final = 2_000
"""These stay in memory, with whatever a first message needs: the others are counted."""
_BYTES_MAX: Final = 200
_QUEUE: Final = """\
    <addresses><address name="q"><anycast>
      <queue name="q" file-backed-metadata="true" lease-period="1h" max-per-subscription-backlog="-1"/>
    </anycast></address></addresses>
"""
_SETTING: Final = """\
      <address-setting match="q">
        <max-read-page-bytes>-1</max-read-page-bytes><max-read-page-messages>100000000</max-read-page-messages>
      </address-setting>
"""


def measure_paged(extent: Extent, say: Say) -> Findings:
    """Each size once, on a broker of its own. Raises PerfError."""
    paged = Findings("memory per message")
    for count, size_bytes in SIZES:
        some = extent.messages or (count // 10 if extent.quick else count)
        say(f"paged: {some:,} messages of {size_bytes:,} bytes")
        paged.found += measure(some, size_bytes, min(LEASED, some // 2))
    return paged


def measure(count: int, size_bytes: int, leased_count: int) -> list[Finding]:
    """Resident memory for each message in pages, and for each leased one, and the CPU time of both."""
    body = b"x" * size_bytes
    with started(ArtemisPy(_QUEUE, _SETTING)) as broker:
        first = min(_FIRST, count // 2)
        fill(broker.target, "q", first, body, persistent=True)
        empty_bytes, began_s = broker.memory_bytes, broker.cpu_s
        fill(broker.target, "q", count - first, body, persistent=True)
        filled_bytes, filled_s = broker.memory_bytes, broker.cpu_s
        reader = Reader(broker.target, "q", leased_count, ack="client")
        seen = 0
        acks: list[bytes] = []
        while seen < leased_count:
            if found := reader.receive():
                seen += len(found)
                acks = found
        leased_bytes, leased_s = broker.memory_bytes, broker.cpu_s
        reader.acknowledge(acks[-1:])
        reader.leave()
    paged_each = (filled_bytes - empty_bytes) / (count - first)
    what = f"of {count:,} messages of {size_bytes:,} B"
    return [
        Finding(f"in pages, each {what}", "B", 1, below=_BYTES_MAX, values=[paged_each]),
        Finding(f"CPU to store, each {what}", "µs", 1, values=[(filled_s - began_s) * 1e6 / (count - first)]),
        Finding(f"leased, each {what}", "B", values=[(leased_bytes - filled_bytes) / leased_count]),
        Finding(f"CPU to lease, each {what}", "µs", 1, values=[(leased_s - filled_s) * 1e6 / leased_count]),
    ]
