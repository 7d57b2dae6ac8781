"""Why a message is not taken now."""

from __future__ import annotations

from artemis_py.errors import BrokerError


class BusyError(BrokerError):
    """There is no room now; later there may be. ``is_full``: the address or a queue is full, and not the broker."""

    def __init__(self, text: str, *, is_full: bool) -> None:
        super().__init__(text)
        self.is_full = is_full


class TooLargeError(BrokerError):
    """The message, or its headers, are larger than the acceptor allows."""


class NotKeptError(BrokerError):
    """The message was published, and no queue has it. ``is_full``: a full address or ring has dropped it, so that later
    it may be kept; otherwise no queue takes such a message.
    """

    def __init__(self, text: str, *, is_full: bool) -> None:
        super().__init__(text)
        self.is_full = is_full
