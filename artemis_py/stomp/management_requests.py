"""Messages that nobody queues: what is sent to the address of management is a request, and somebody else answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, final

from artemis_py.security.rights import Rights

SUCCEEDED: Final = "_AMQ_OperationSucceeded"


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """Where the reply goes; ``shown`` is the destination as the client wrote it."""

    shown: str
    address: str
    queue: str | None = None
    routing_type: str | None = None


@dataclass(frozen=True, slots=True)
class ManagementRequest:
    """One request. ``rights`` are those of the sender, None where nothing is checked; ``peer`` is its address as
    host:port.
    """

    headers: Mapping[str, str]
    body: bytes
    reply_to: ReplyTo | None
    rights: Rights | None
    user: str | None
    peer: str


@final
class PendingRequest:
    """A request that is being carried out. The sender's next frames wait for it."""

    __slots__ = ("done", "failed", "failure", "reply", "why_failed")

    def __init__(self) -> None:
        self.done = False
        self.failed = False
        """Never: a request that fails is answered, too."""
        self.failure: BaseException | None = None
        """What it failed with, when it is done; None: it succeeded."""
        self.why_failed = ""
        """The same in words for the client."""
        self.reply = ""
        """The body of the reply: a JSON array, or empty."""

    def headers(self) -> list[tuple[str, str]]:
        """What the RECEIPT of a request that is done tells: whether it succeeded, as the reply does."""
        return [(SUCCEEDED, "true" if self.failure is None else "false")]


class RequestReceiver(Protocol):
    """Who answers requests."""

    def receive(self, request: ManagementRequest) -> PendingRequest:
        """Begin to carry out a request."""
