"""To which addresses a session has sent lately, as an operator is told. STOMP itself has no producers."""

from __future__ import annotations

from typing import Final, final

_KEPT_MAX: Final = 8
"""So many addresses are remembered of one session, the latest."""


@final
class Producer:
    """What a session has sent to one address. Dates are in epoch ms."""

    __slots__ = ("address", "begun_ms", "last_ms", "sent_bytes", "sent_count")

    def __init__(self, address: str, now_ms: int) -> None:
        self.address = address
        self.begun_ms = now_ms
        self.last_ms = now_ms
        self.sent_count = 0
        self.sent_bytes = 0


_NONE: Final[dict[str, Producer]] = {}
"""In the place of an empty table for each connection that sends nothing. Nobody adds to it."""


@final
class Producers:
    """The producers of one session, by address."""

    __slots__ = ("_last", "by_address")

    def __init__(self) -> None:
        self.by_address = _NONE
        self._last: Producer | None = None

    def note(self, address: str, count: int, size_bytes: int, now_ms: int) -> None:
        """Messages were sent to an address, together."""
        producer = self._last
        if producer is None or producer.address != address:
            producer = self._last = self._of(address, now_ms)
        producer.sent_count += count
        producer.sent_bytes += size_bytes
        producer.last_ms = now_ms

    def _of(self, address: str, now_ms: int) -> Producer:
        known = self.by_address.pop(address, None)
        if not self.by_address and known is None:
            self.by_address = {}
        elif len(self.by_address) >= _KEPT_MAX:
            del self.by_address[next(iter(self.by_address))]
        producer = self.by_address[address] = known or Producer(address, now_ms)
        return producer
