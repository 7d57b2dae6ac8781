"""A message that a client of HTTP has taken, and how it wished for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.message import LargeBody

TIMEOUT_S_MAX: Final = 50.0
"""How long a request may wait for a message: idle connections are closed after 60 s."""
LEASE_S: Final = 30.0
LEASE_S_MAX: Final = 43_200.0


@final
@dataclass(frozen=True, slots=True)
class Wish:
    """``timeout_s``: how long to wait for a message. ``lease_s``: how long the client may hold it; then it goes back.
    ``acks_itself``: it counts as acknowledged when it is sent, so that nobody need acknowledge it.
    """

    timeout_s: float = 0.0
    lease_s: float = LEASE_S
    acks_itself: bool = False
    selector: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """The message. ``receipt`` settles it, None if it is acknowledged already. ``lease_s`` is 0 then."""

    queue: str
    receipt: str | None
    lease_s: float
    message_id: int
    timestamp_ms: int
    expires_ms: int
    delivery_count: int
    headers: tuple[tuple[str, str], ...]
    body: bytes | LargeBody
