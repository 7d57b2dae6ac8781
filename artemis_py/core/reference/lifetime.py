"""How long a message lives on one queue: its own expiry, within the queue's bounds."""

from __future__ import annotations

from typing import final

from artemis_py.message import Message


@final
class Lifetime:
    """``min-message-ttl`` and ``max-message-ttl`` in ms from arrival; 0: no such bound.

    Qpid's rules (rows Q-40, Q-41, tests/queues/rows.py): the minimum holds only for messages that expire, the maximum
    for all messages, and the maximum is applied last. The result is a function of the message, so nothing is written
    down. A message may live longer on one queue than on another, also after a restart.
    """

    __slots__ = ("longest_ms", "shortest_ms")

    def __init__(self, shortest_ms: int, longest_ms: int) -> None:
        self.shortest_ms = shortest_ms
        self.longest_ms = longest_ms

    def expires_ms(self, message: Message) -> int:
        """When the message expires on the queue, in epoch ms; 0: never."""
        expires_ms = message.expires_ms
        arrived_ms = message.timestamp_ms
        if expires_ms and self.shortest_ms:
            expires_ms = max(expires_ms, arrived_ms + self.shortest_ms)
        if self.longest_ms:
            latest_ms = arrived_ms + self.longest_ms
            expires_ms = min(expires_ms, latest_ms) if expires_ms else latest_ms
        return expires_ms
