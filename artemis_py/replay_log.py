"""The log as replays read it: published messages in their order, a slice at a time.

The protocol and the core know no files. They ask a ``ReplayLog`` for slices; a thread reads them, and they arrive in a
later turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, TypeAlias, final

from mypy_extensions import mypyc_attr

from artemis_py.message import LargeBody, Message

Place: TypeAlias = tuple[int, int]
"""A place between two records: the number of a segment, and an offset in it. Places compare as they follow each
other.
"""
SLICE_BYTES: Final = 131072
"""How many bytes of the log are read at once, unless one record is larger."""


@final
class Spot:
    """A place in the log, and what who reads on from there must know of the records before it.

    ``time_ms`` is the time of the batch, ``session`` the log's number of the sender of the next message (0: unknown),
    ``group_end`` the offset at which a group ends (0: not in a group). ``damaged_after`` is not -1 if no valid record
    begins one byte before the offset: then it is the lsn of the record before.
    """

    __slots__ = ("damaged_after", "group_end", "offset", "segment", "session", "time_ms")

    def __init__(
        self,
        segment: int,
        offset: int,
        time_ms: int = 0,
        session: int = 0,
        group_end: int = 0,
        damaged_after: int = -1,
    ) -> None:
        self.segment = segment
        self.offset = offset
        self.time_ms = time_ms
        self.session = session
        self.group_end = group_end
        self.damaged_after = damaged_after

    @property
    def place(self) -> Place:
        """The place alone."""
        return self.segment, self.offset


@final
class Logged:
    """A published message as the log has it. ``message.lsn`` is its bookmark, ``message.origin`` the log's number of
    the session that sent it. ``time_ms`` is when it was published: the time of its batch.
    """

    __slots__ = ("message", "time_ms")

    def __init__(self, message: Message, time_ms: int) -> None:
        self.message = message
        self.time_ms = time_ms


@mypyc_attr(allow_interpreted_subclasses=True)
class AddressChoice(ABC):
    """The addresses that a reader wants."""

    key: str
    """The same for choices of the same addresses."""
    exact: str
    """The address, if it is one; empty if ``wants`` must be asked."""
    patterns: tuple[str, ...]
    """Addresses and wildcard addresses. An address that is wanted matches one of them."""

    @abstractmethod
    def wants(self, address: str) -> bool:
        """Is the address one of them? For any thread."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Slice(ABC):
    """Whole records of the log, from ``begin`` on. Before ``scan`` has returned 0, only ``begin``, ``key``,
    ``size_bytes``, ``is_gone``, ``failure`` and ``bytes_needed`` are known.
    """

    key: str
    """That of the addresses that were asked for; empty: of all."""
    size_bytes: int
    """How many bytes of the log it has."""
    begin: Spot
    end: Spot
    """Where the next slice begins."""
    last_lsn: int
    """Everything up to this lsn is before ``end``; 0: unknown."""
    reaches_end: bool
    """Was ``end`` the end of the log when the slice was asked for? Then ``last_lsn`` was the last one of the log."""
    is_gone: bool
    """Was its segment removed before it was read?"""
    failure: str
    """Why it could not be read; empty if it was."""
    bytes_needed: int
    """The size of a record that is larger than what was asked for; 0 if it is not. Then the slice is empty."""

    @abstractmethod
    def scan(self, units: int) -> int:
        """Find messages, for at most so many units, but at least one record. Returns the units spent; 0: everything was
        found before.
        """

    @abstractmethod
    def addresses(self) -> list[str]:
        """The addresses that messages were published to."""

    @abstractmethod
    def select(self, choice: AddressChoice) -> list[int]:
        """Which messages were published to chosen addresses, in order."""

    @abstractmethod
    def first_after(self, selected: list[int], lsn: int) -> int:
        """Where in a selection the first message with a higher lsn is."""

    @abstractmethod
    def get(self, index: int) -> Logged | None:
        """A message; None if its record cannot be read."""


@final
class CachedSlice:
    """A slice that is kept in memory. ``weight`` is what it takes there, in bytes."""

    __slots__ = ("slice", "users", "weight")

    def __init__(self, part: Slice, weight: int) -> None:
        self.slice = part
        self.weight = weight
        self.users = 0
        """How many replays show messages of it now."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ReplayLog(ABC):
    """The log of a broker that retains it. For the thread of the turns."""

    @property
    @abstractmethod
    def durable_lsn(self) -> int:
        """The last lsn before ``end``."""

    @property
    @abstractmethod
    def last_lsn(self) -> int:
        """The last lsn given to a record, durable or not."""

    @abstractmethod
    def first_lsn(self, segment: int = 0) -> int:
        """The lowest lsn that the log has, in this segment and those behind it."""

    @abstractmethod
    def end(self) -> Place:
        """Behind the last durable record."""

    @abstractmethod
    def beginning(self) -> Spot:
        """Before the first record."""

    @abstractmethod
    def after(self, lsn: int) -> Spot | None:
        """A spot that everything after an lsn follows; None if some of that was removed."""

    @abstractmethod
    def since(self, time_ms: int) -> Spot:
        """A spot that everything published at that time or later follows."""

    @abstractmethod
    def request(self, spot: Spot, choice: AddressChoice | None, size_bytes: int, *, follows: bool = False) -> None:
        """Read a slice of at most so many bytes. It may leave out what is published to addresses not in ``choice``.
        ``follows``: it is at the end of the log and is waited for.
        """

    @abstractmethod
    def arrivals(self) -> list[Slice]:
        """The slices read since the last call."""

    @abstractmethod
    def body_of(self, message: Message) -> LargeBody | None:
        """The large body of a message, whose file exists as long as the result does; None if it was removed."""

    @abstractmethod
    def session_number(self, origin: int) -> int:
        """The log's number of the session on a connection; 0 if it has none yet."""
