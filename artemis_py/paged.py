"""Messages that found no room in memory: the page that holds one, its place in it, and which places are dealt with.

An address has one stream of pages. Every message in it has a place: a number that grows by one with each. A page holds
consecutive places, so a place tells the page, and order in the stream is order by place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artemis_py.message import Account, Head, LargeBody, Message


class PlaceSet:
    """Some of the places of one page: a bit each, so that ten thousand cost about a kilobyte."""

    __slots__ = ("_bits", "first_place")

    def __init__(self, first_place: int, bits: bytes = b"") -> None:
        self.first_place = first_place
        self._bits = bytearray(bits)

    def __contains__(self, place: int) -> bool:
        index = place - self.first_place
        return index >> 3 < len(self._bits) and bool(self._bits[index >> 3] >> (index & 7) & 1)

    def add(self, place: int) -> bool:
        """Add a place; False when it was there."""
        index = place - self.first_place
        byte, bit = index >> 3, 1 << (index & 7)
        bits = self._bits
        if byte >= len(bits):
            bits.extend(bytes(max(byte + 1 - len(bits), len(bits))))
        if bits[byte] & bit:
            return False
        bits[byte] |= bit
        return True

    def fill(self, end_place: int, without: Sequence[int]) -> None:
        """Add every place before ``end_place`` but some."""
        size = end_place - self.first_place
        self._bits = bytearray(((1 << size) - 1).to_bytes((size + 7) // 8, "little"))
        for place in without:
            index = place - self.first_place
            self._bits[index >> 3] &= ~(1 << (index & 7))

    def encode(self) -> bytes:
        """The bits, the lowest place first."""
        return bytes(self._bits).rstrip(b"\0")


class Settled:
    """What one queue is done with of a page: the places, and how many durable messages of what encoded size that were
    (after a purge the places alone tell: what is counted in ``Page.durable`` begins anew).
    """

    __slots__ = ("count", "places", "size_bytes")

    def __init__(self, places: PlaceSet, count: int = 0, size_bytes: int = 0) -> None:
        self.places = places
        self.count = count
        self.size_bytes = size_bytes


class Share:
    """What one queue has of a page: messages, and their encoded size (header blocks and bodies)."""

    __slots__ = ("count", "size_bytes")

    def __init__(self, count: int = 0, size_bytes: int = 0) -> None:
        self.count = count
        self.size_bytes = size_bytes

    def add(self, count: int, size_bytes: int) -> None:
        """More, or less, of it."""
        self.count += count
        self.size_bytes += size_bytes


class PagedBody:
    """A large body that a page holds until all of these queues are done with its message."""

    __slots__ = ("body", "queue_ids")

    def __init__(self, body: LargeBody, queue_ids: Iterable[int]) -> None:
        self.body = body
        self.queue_ids = set(queue_ids)


class Page:
    """One page of a stream. ``count`` and ``size_bytes`` (of the file) grow while it is the last one; ``kept_count``
    and ``kept_bytes`` are how far a restart will find it.

    ``durable`` has what a restart will find, by queue number: everything that durable queues were sent in persistent
    messages, also what they have settled since. ``left`` has how many messages each queue is not done with, durable or
    not; a queue that is done with all is not in it. ``resident`` has the messages that were read and are in memory, by
    place, for the next queue that wants one of them.
    """

    __slots__ = (
        "count", "damaged", "durable", "expires_ms", "first_place", "gone", "has_large", "kept_bytes", "kept_count",
        "large", "left", "number", "resident", "restored", "size_bytes", "stream",
    )  # fmt: skip

    def __init__(self, stream: int, number: int, first_place: int) -> None:
        self.stream = stream
        self.number = number
        self.first_place = first_place
        self.count = 0
        self.size_bytes = 0
        self.kept_count = 0
        self.kept_bytes = 0
        self.expires_ms = 0
        """When the first of its messages expires; 0 when none ever does."""
        self.has_large = False
        """Does a message in it have its body in a file of its own?"""
        self.large: dict[int, PagedBody] = {}
        """The bodies of such messages, by place."""
        self.restored = False
        """Was it written before the last start? Then its transient messages are gone."""
        self.damaged = False
        """Was something in it found that is not as it was written?"""
        self.gone = False
        """Is everybody done with it? Then its file is no more, or will soon be."""
        self.durable: dict[int, Share] = {}
        self.left: dict[int, int] = {}
        self.resident: dict[int, PagedMessage] = {}

    @property
    def end_place(self) -> int:
        """The place behind its last message."""
        return self.first_place + self.count


class PagedMessage(Message):
    """A message that was read from a page. Settling it is noted by its place."""

    __slots__ = ("page", "place")

    def __init__(
        self,
        head: Head,
        body: bytes | LargeBody,
        id: int,
        timestamp_ms: int,
        expires_ms: int,
        account: Account,
        page: Page,
        place: int,
    ) -> None:
        super().__init__(head, body, id, timestamp_ms, expires_ms, account, 0)
        self.page = page
        self.place = place
