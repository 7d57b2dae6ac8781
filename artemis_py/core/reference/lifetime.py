"""How long a message lives on one queue: its own expiry, or the queue's, within the queue's bounds."""

from __future__ import annotations

from typing import final

from artemis_py.message import Message
from artemis_py.units import DELAY_MAX_MS


@final
class Lifetime:
    """``min-message-ttl``, ``max-message-ttl`` and ``expiration`` in ms from arrival; 0: not set.

    ``expiration`` is for messages without an expiry of their own (AMPS, row A-55). Then Qpid's rules hold (rows Q-40,
    Q-41, tests/queues/rows.py): the minimum for messages that expire, the maximum for all messages, and the maximum is
    applied last. The result is a function of the message, so nothing is written down. A message may live longer on one
    queue than on another, also after a restart.
    """

    __slots__ = ("longest_ms", "shortest_ms", "usual_ms")

    def __init__(self, shortest_ms: int, longest_ms: int, usual_ms: int = 0) -> None:
        self.shortest_ms = min(shortest_ms, DELAY_MAX_MS)
        self.longest_ms = min(longest_ms, DELAY_MAX_MS)
        self.usual_ms = usual_ms

    @property
    def gives_expiry(self) -> bool:
        """Do messages expire here that would not elsewhere?"""
        return self.longest_ms > 0 or self.usual_ms > 0

    def expires_ms(self, message: Message) -> int:
        """When the message expires on the queue, in epoch ms; 0: never."""
        expires_ms = message.expires_ms
        arrived_ms = message.timestamp_ms
        if not expires_ms and self.usual_ms:
            expires_ms = arrived_ms + self.usual_ms
        if expires_ms and self.shortest_ms:
            expires_ms = max(expires_ms, arrived_ms + self.shortest_ms)
        if self.longest_ms:
            latest_ms = arrived_ms + self.longest_ms
            expires_ms = min(expires_ms, latest_ms) if expires_ms else latest_ms
        return expires_ms
