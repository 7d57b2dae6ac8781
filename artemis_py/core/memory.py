"""The memory that clients make the broker hold: by kind, of all addresses, and how many queues need a message."""

from __future__ import annotations

import re
from typing import Final, final

from artemis_py.errors import LimitError
from artemis_py.message import Account, Message
from artemis_py.paged_messages import PagedMessage

# ---- holdings --------------------------------------------------------------------------------------------------------
#
# The one account of the memory that clients make the broker hold, by kind, and the limit on all of it. The owner of a
# thing moves the account when the thing comes and goes, or once a batch where it grows. Sizes are those of
# interpreted CPython, rounded up (docs/memory.md has the table). They need not be exact, but everything that clients
# can pile up must be counted.


CONNECTIONS: Final = 0
INPUT: Final = 1
OUTPUT: Final = 2
TRANSACTIONS: Final = 3
SUBSCRIPTIONS: Final = 4
SELECTORS: Final = 5
QUEUES: Final = 6
ADDRESSES: Final = 7
IDS: Final = 8
GROUPS: Final = 9
HTTP: Final = 10
TLS: Final = 11
REPLAYS: Final = 12
_NAMES: Final = (
    "connections", "input", "output", "transactions", "subscriptions", "selectors", "queues", "addresses", "ids",
    "groups", "http", "tls", "replays",
)  # fmt: skip

CONNECTION_BYTES: Final = 6144
SUBSCRIPTION_BYTES: Final = 3072
TERM_BYTES: Final = 400
"""A name or an operator in a compiled selector. Texts in it cost their characters."""
QUEUE_BYTES: Final = 6656
ADDRESS_BYTES: Final = 2048
ID_BYTES: Final = 200
"""A duplicate id or the id of a commit, besides its text."""
GROUP_BYTES: Final = 400
"""A message group, besides its name."""
HTTP_CONNECTION_BYTES: Final = 98304
"""An HTTP connection, with the largest request that it takes."""
TLS_CONNECTION_BYTES: Final = 65536
"""The state of TLS of a connection, with the largest records that it has seen."""
FRAME_BYTES: Final = 400
"""A waiting frame, besides its body."""
HEADER_BYTES: Final = 200
"""A decoded header of a waiting frame, besides its text."""
TRANSACTION_BYTES: Final = 480
"""An open transaction, besides what it holds."""
ACKNOWLEDGED_BYTES: Final = 100
"""An acknowledgement in a transaction."""
_TEXTS: Final = re.compile("'[^']*+'")
_TERMS: Final = re.compile(r"\w+|[^\w\s,]")
SETTING: Final = "global-max-held-size"


@final
class Holdings:
    """Bytes that clients make the broker hold, by kind. Messages have an account of their own (``messages``), which is
    part of the total.

    ``bytes_max`` is the limit on everything together; -1: none.
    """

    __slots__ = ("_by_kind", "_others_bytes", "bytes_max", "cut_off_count", "messages", "refused_count")

    def __init__(self, messages: Account, bytes_max: int = -1) -> None:
        self.messages = messages
        self.bytes_max = bytes_max
        self.refused_count = 0
        """Requests refused at the limit."""
        self.cut_off_count = 0
        """Connections closed at the limit."""
        self._by_kind = [0] * len(_NAMES)
        self._others_bytes = 0

    def move(self, kind: int, size_bytes: int) -> None:
        """Add ``size_bytes`` to a kind. A negative number takes away."""
        self._by_kind[kind] += size_bytes
        self._others_bytes += size_bytes

    def of(self, kind: int) -> int:
        """The bytes held of a kind."""
        return self._by_kind[kind]

    @property
    def total_bytes(self) -> int:
        """The bytes held of every kind, messages included."""
        return self._others_bytes + self.messages.size_bytes

    @property
    def is_full(self) -> bool:
        """Is the limit reached? Messages count for three quarters of it at most: however many wait, consumers that
        would take them must be able to connect.
        """
        message_bytes = min(self.messages.size_bytes, self.bytes_max - self.bytes_max // 4)
        return 0 < self.bytes_max <= self._others_bytes + message_bytes

    @property
    def leaves_no_room(self) -> bool:
        """Is the limit reached even without what transactions hold? Then every address is full. What a transaction
        holds must not keep its own COMMIT, or that of others, from an address.
        """
        held_bytes = self._others_bytes + self.messages.size_bytes - self._by_kind[TRANSACTIONS]
        return 0 < self.bytes_max <= held_bytes

    def by_kind(self) -> dict[str, int]:
        """Bytes by the name of the kind."""
        return {"messages": self.messages.size_bytes, **dict(zip(_NAMES, self._by_kind, strict=True))}

    def admit(self, what: str) -> None:
        """Let ``what`` be held. Raises LimitError when the limit is reached."""
        if self.is_full:
            self.refused_count += 1
            raise LimitError(self.why_full(what))

    def why_full(self, what: str) -> str:
        """The reason for refusing ``what``, with what to do about it."""
        return (
            f"{what} is refused: the broker holds {self.total_bytes} bytes for clients, and {SETTING} allows "
            f"{self.bytes_max}. Consume messages, close what you do not use, or raise {SETTING}"
        )


def selector_bytes(text: str | None) -> int:
    """The approximate memory of a compiled selector, in bytes. ``text`` must be a valid selector, or None."""
    if text is None:
        return 0
    return 2 * len(text) + TERM_BYTES * len(_TERMS.findall(_TEXTS.sub("", text)))


# ---- memory ----------------------------------------------------------------------------------------------------------
#
# The memory of all addresses together, and its limits.


@final
class Memory:
    """What all addresses hold in memory together, and its limits: ``global-max-size`` in bytes and
    ``global-max-messages``; -1: no limit. As in Artemis the number of messages counts only where bytes are limited.

    ``holdings`` counts what clients make the broker hold besides messages. When that leaves no room, every address is
    full, too.
    """

    __slots__ = ("account", "bytes_max", "disk_full", "holdings", "messages_max")

    def __init__(self, bytes_max: int = -1, messages_max: int = -1) -> None:
        self.account = Account()
        self.holdings = Holdings(self.account)
        self.disk_full = False
        """Is the disk too full for more messages? Then every address is full, and ``disk-full-policy`` says what that
        means.
        """
        self.bytes_max = bytes_max
        self.messages_max = messages_max if bytes_max > 0 else -1

    @property
    def is_full(self) -> bool:
        """Is a limit reached?"""
        account = self.account
        if 0 < self.bytes_max <= account.size_bytes or 0 < self.messages_max <= account.message_count:
            return True
        return self.holdings.leaves_no_room

    def has_room_for(self, count: int, size_bytes: int) -> bool:
        """Would ``count`` messages of ``size_bytes`` together stay within the limits?"""
        account = self.account
        if 0 < self.bytes_max < account.size_bytes + size_bytes:
            return False
        if self.holdings.bytes_max > 0 and self.holdings.leaves_no_room:
            return False
        return not 0 < self.messages_max < account.message_count + count


# ---- reference counts ------------------------------------------------------------------------------------------------
#
# Who still needs a message: every queue that has it, and a fan-out until it is finished. A message counts in its
# address' memory while somebody needs it.


def keep(message: Message) -> None:
    """Count one more that needs the message. The first charges it to the address."""
    message.refs += 1
    if message.refs == 1:
        message.account.charge(1, message.memory_bytes)


def release(messages: list[Message]) -> None:
    """Count one less that needs each message. What nobody needs any more leaves the address' memory."""
    account: Account | None = None
    count = size_bytes = 0
    for message in messages:
        message.refs -= 1
        if message.refs:
            continue
        if message.__class__ is PagedMessage:
            message.page.resident.pop(message.place, None)
        if message.account is not account:
            if account is not None:
                account.credit(count, size_bytes)
            account = message.account
            count = size_bytes = 0
        count += 1
        size_bytes += message.memory_bytes
    if account is not None:
        account.credit(count, size_bytes)
