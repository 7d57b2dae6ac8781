"""Messages without room in memory: the page of a message, its place, and which places are settled.

An address has one stream of pages. Every message in it has a place: a number that grows by one per message. A page
holds consecutive places, so a place determines the page, and the order of the stream is the order of places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artemis_py.message import Account, Head, LargeBody, Message


class PlaceSet:
    """A set of places in one page: a bit each, so that ten thousand cost about a kilobyte."""

    __slots__ = ("_bits", "first_place")

    def __init__(self, first_place: int, bits: bytes = b"") -> None:
        self.first_place = first_place
        self._bits = bytearray(bits)

    def __contains__(self, place: int) -> bool:
        index = place - self.first_place
        return index >> 3 < len(self._bits) and bool(self._bits[index >> 3] >> (index & 7) & 1)

    def add(self, place: int) -> bool:
        """Add a place; False if it was already there."""
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
        """Add every place before ``end_place`` except some."""
        size = end_place - self.first_place
        self._bits = bytearray(((1 << size) - 1).to_bytes((size + 7) // 8, "little"))
        for place in without:
            index = place - self.first_place
            self._bits[index >> 3] &= ~(1 << (index & 7))

    def encode(self) -> bytes:
        """The bits, the lowest place first."""
        return bytes(self._bits).rstrip(b"\0")


class SettledPlaces:
    """What one queue is done with in a page: the places, and the number and encoded size of the durable messages (after
    a purge only the places: the count in ``Page.durable`` starts over).
    """

    __slots__ = ("count", "places", "size_bytes")

    def __init__(self, places: PlaceSet, count: int = 0, size_bytes: int = 0) -> None:
        self.places = places
        self.count = count
        self.size_bytes = size_bytes


class PageShare:
    """What one queue has in a page: the number of messages, and their encoded size (header blocks and bodies)."""

    __slots__ = ("count", "size_bytes")

    def __init__(self, count: int = 0, size_bytes: int = 0) -> None:
        self.count = count
        self.size_bytes = size_bytes

    def add(self, count: int, size_bytes: int) -> None:
        """Add to it, or subtract from it."""
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
    and ``kept_bytes`` are what a restart will find.

    ``durable`` has what a restart will find, by queue number: all persistent messages routed to durable queues,
    including those settled since. ``left`` is how many messages each queue still needs, durable or not; a queue without
    any is not in it. ``resident`` has the messages that were read into memory, by place, for the next queue that needs
    one.
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
        """When the first of its messages expires; 0 if none does."""
        self.has_large = False
        """Does a message in it have a large body?"""
        self.large: dict[int, PagedBody] = {}
        """The bodies of such messages, by place."""
        self.restored = False
        """Was it written before the last start? Then its transient messages are gone."""
        self.damaged = False
        """Was damage found in it?"""
        self.gone = False
        """Is every queue done with it? Then its file is gone, or will be soon."""
        self.durable: dict[int, PageShare] = {}
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
