"""A replay of the log for one consumer, and its pace."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from math import ceil
from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.wildcards import WildcardIndex, is_wildcard
from artemis_py.core.addresses.address import names_temporary
from artemis_py.core.addresses.retroactive import is_internal
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.order.entry import Entry
from artemis_py.core.replay.bookmarks import Bounds
from artemis_py.errors import BrokerError, NotFoundError
from artemis_py.message import Account, Head, LargeBody, Message, encode_headers
from artemis_py.replay_log import AddressChoice, CachedSlice, Logged, ReplayLog, Slice, Spot
from artemis_py.units import parse_bytes, parse_ms

# ---- addresses -------------------------------------------------------------------------------------------------------
#
# Which addresses of the log a replay reads.


_KNOWN_MAX: Final = 4096


@final
class Addresses(AddressChoice):
    """An address, those that a wildcard address stands for, or those under a view. As with queues on a wildcard
    address, what is sent to temporary destinations, to wildcard addresses and to internal ones is not meant.
    """

    __slots__ = ("_index", "_known", "exact", "key", "name", "patterns")

    def __init__(self, patterns: tuple[str, ...], syntax: WildcardSyntax, name: str = "") -> None:
        self.patterns = patterns
        self.name = name or patterns[0]
        """The address that a reader needs the permission of."""
        self.key = "\0".join(sorted(patterns))
        self.exact = patterns[0] if len(patterns) == 1 and not is_wildcard(patterns[0], syntax) else ""
        self._index = WildcardIndex(syntax)
        for pattern in patterns:
            self._index.add(pattern)
        self._known: dict[str, bool] = {}

    def wants(self, address: str) -> bool:
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known = {}
            known = self._known[address] = self._wants(address)
        return known

    def _wants(self, address: str) -> bool:
        if address in self.patterns:
            return True
        syntax = self._index.syntax
        if is_wildcard(address, syntax) or is_internal(address) or names_temporary(address):
            return False
        return len(self._index.matching(address)) > 0


def addresses_read(bindings: Bindings, syntax: WildcardSyntax, name: str, queue_name: str | None) -> Addresses:
    """What a replay of a destination reads: the address of a queue, those under a view, or the address itself. None of
    them need exist any more, because the log is older than they are. Raises NotFoundError for a queue of another
    address.
    """
    if queue_name is None:
        known = bindings.addresses.get(name)
        queue = bindings.queues.get(name) if known is None else known.view
    else:
        queue = bindings.queues.get(queue_name)
        if queue is not None and name and queue.address.name != name:
            raise NotFoundError(f"Queue {queue_name} is on address {queue.address.name}, not on {name}")
    address = name or queue_name or ""
    if queue is not None:
        address = queue.address.name
        if queue.view is not None:
            return Addresses(queue.view.underlying, syntax, address)
    if not address:
        raise NotFoundError("The destination has no address")
    return Addresses((address,), syntax)


# ---- pace ------------------------------------------------------------------------------------------------------------
#
# How fast a replay goes: as fast as its client reads, so many messages or bytes in a second, or a multiple of the
# speed at which the messages were published. All of it in steady time.


GAP_MS_MAX: Final = 10_000
"""``rate-max-gap`` by default: a pause of the publishers that is longer is cut to this."""
_BURST_MS: Final = 100.0
"""After a wait for its client or the budget, a replay catches up on at most this much time."""
_TIMES: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)X", re.ASCII | re.IGNORECASE)
_COUNT: Final = re.compile(r"\d{1,12}", re.ASCII)
_RATE_MIN: Final = 0.001
_SHOWN_MAX: Final = 40


class Pace(ABC):
    """Says when the next message may go. ``due_ms`` is called once for each message, in order, then ``note_sent``."""

    __slots__ = ()

    @abstractmethod
    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        """When a message may go that was published at ``time_ms``. ``steady_ms`` is the time now."""

    @abstractmethod
    def note_sent(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        """The message was sent; it has this many bytes."""

    @abstractmethod
    def resume(self, paused_ms: int) -> None:
        """The replay has been paused for so long."""


@final
class Unpaced(Pace):
    """As fast as the client reads."""

    __slots__ = ()

    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        return 0.0

    def note_sent(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        return

    def resume(self, paused_ms: int) -> None:
        return


@final
class PerSecond(Pace):
    """So many messages, or so many bytes of header blocks and bodies, in a second."""

    __slots__ = ("_counts_bytes", "_ms_each", "_next_ms")

    def __init__(self, per_second: float, *, counts_bytes: bool) -> None:
        self._ms_each = 1000.0 / per_second
        self._counts_bytes = counts_bytes
        self._next_ms = 0.0

    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        return self._next_ms

    def note_sent(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        cost_ms = self._ms_each * size_bytes if self._counts_bytes else self._ms_each
        begun_ms = max(self._next_ms, steady_ms - _BURST_MS) if self._next_ms else float(steady_ms)
        self._next_ms = begun_ms + cost_ms

    def resume(self, paused_ms: int) -> None:
        return


@final
class Original(Pace):
    """``times`` as fast as the messages were published. No pause is longer than ``gap_ms_max`` of the original."""

    __slots__ = ("_gap_ms_max", "_last_ms", "_next_ms", "_times")

    def __init__(self, times: float, gap_ms_max: int) -> None:
        self._times = times
        self._gap_ms_max = gap_ms_max
        self._last_ms = -1
        """When the message before was published; -1: there is none."""
        self._next_ms = 0.0
        """When that message was due."""

    def due_ms(self, time_ms: int, steady_ms: int) -> float:
        if self._last_ms < 0:
            return 0.0
        gap_ms = min(max(time_ms - self._last_ms, 0), self._gap_ms_max)
        return self._next_ms + gap_ms / self._times

    def note_sent(self, size_bytes: int, time_ms: int, steady_ms: int) -> None:
        is_first = self._last_ms < 0
        self._next_ms = float(steady_ms) if is_first else max(self.due_ms(time_ms, steady_ms), steady_ms - _BURST_MS)
        self._last_ms = max(self._last_ms, time_ms)

    def resume(self, paused_ms: int) -> None:
        self._next_ms += paused_ms


def pace_of(rate: str | None, gap: str | None) -> Pace:
    """The pace that the headers ``rate`` and ``rate-max-gap`` ask for. Raises BrokerError."""
    gap_ms_max = GAP_MS_MAX if gap is None else _gap_ms(gap)
    if rate is None:
        if gap is not None:
            raise BrokerError("rate-max-gap needs rate, with a multiple of the original speed such as 2X")
        return Unpaced()
    text = rate.strip()
    times = _TIMES.fullmatch(text)
    if times is not None:
        return Original(_checked(float(times[1]), rate), gap_ms_max)
    if gap is not None:
        raise BrokerError("rate-max-gap belongs to a multiple of the original speed such as rate:2X")
    if _COUNT.fullmatch(text):
        return PerSecond(_checked(float(text), rate), counts_bytes=False)
    try:
        size_bytes = parse_bytes(text)
    except ValueError:
        size_bytes = 0
    return PerSecond(_checked(float(size_bytes), rate), counts_bytes=True)


def _checked(per_second: float, rate: str) -> float:
    if per_second < _RATE_MIN:
        raise BrokerError(
            f"rate must be a number of messages in a second (1000), of bytes (500KB, 2MB), or a multiple of the "
            f"original speed (2X, 0.5X), not {rate[:_SHOWN_MAX]!r}"
        )
    return per_second


def _gap_ms(text: str) -> int:
    try:
        gap_ms = parse_ms(text)
    except ValueError:
        gap_ms = -1
    if gap_ms < 0:
        raise BrokerError(f"rate-max-gap must be a period such as 10s or 500ms, not {text[:_SHOWN_MAX]!r}")
    return gap_ms


# ---- replay ----------------------------------------------------------------------------------------------------------
#
# One replay: where it is in the log, what it shows of it, and how fast.


IDLE: Final = 0
"""Paused, ended, closed, or its client does not read."""
READY: Final = 1
"""Has a slice that it may show messages of."""
HUNGRY: Final = 2
"""Needs a slice that nobody has asked for yet."""
AWAITING: Final = 3
"""Waits for a slice that is being read."""
TIMED: Final = 4
"""Waits until its pace lets it go on."""
FOLLOWING: Final = 5
"""Has everything, and waits for what is published."""

DONE: Final = 0
BUSY: Final = 1
WAITS: Final = 2
ENDED: Final = 3
"""What came of ``take``: the slice is used up; budget or room are; its pace says later; it has reached its end."""

LOOK_UNITS: Final = 3
"""What it costs to read a message's record and to look at it."""
SHOW_UNITS: Final = 2
"""What it costs to write its frame."""
BYTES_PER_UNIT: Final = 2048
FRAME_BYTES: Final = 150
"""What a frame has besides header block and body, about."""
BODY_REMOVED: Final = "body-removed"
_NOWHERE: Final = Account()


@final
class Replay:
    """The state of one replay. ``Replays`` moves it; the session that owns it turns its outbox into frames.

    ``choice`` is a consumer that is on no queue: it knows which messages the client wants. Messages up to
    ``passed_lsn`` are behind it: it has shown them, or did not want them.
    """

    __slots__ = (
        "addresses", "bounds", "bytes_asked", "choice", "completes", "due_ms", "failure", "has_begun",
        "found", "has_caught_up", "has_ended", "history_lsn", "id", "is_closed", "is_paused", "is_stalled", "no_local",
        "origin", "outbox", "owner", "pace", "passed_lsn", "paused_at_ms", "cached", "spot", "state",
    )  # fmt: skip

    def __init__(
        self,
        id: int,
        owner: object,
        origin: int,
        addresses: AddressChoice,
        bounds: Bounds,
        choice: Consumer,
        pace: Pace,
        *,
        no_local: bool = False,
    ) -> None:
        self.id = id
        self.owner = owner
        self.origin = origin
        """The number of its client's connection."""
        self.addresses = addresses
        self.bounds = bounds
        self.choice = choice
        self.pace = pace
        self.no_local = no_local
        """Does it leave out what its own client has sent?"""
        self.passed_lsn = bounds.after_lsn if bounds.from_ms < 0 else 0
        self.has_begun = bounds.from_ms < 0
        """Has it come to its beginning? Until then it looks at dates."""
        self.spot: Spot | None = None
        """Where it reads on."""
        self.cached: CachedSlice | None = None
        """What it shows messages of now."""
        self.bytes_asked = 0
        """The size of the next record, if that is larger than a slice; 0: not known to be."""
        self.state = IDLE
        self.outbox: list[Entry] = []
        """Messages for its client that are not written yet."""
        self.found: list[Logged] | None = None
        """Where messages go instead of the outbox, as the log has them; None: to the outbox."""
        self.completes = False
        """Does the client get a message when it has everything: what there was, or its range?"""
        self.history_lsn = 0
        """The last durable lsn when it began."""
        self.has_caught_up = False
        """Has it had everything that there was, at any time since it began?"""
        self.has_ended = False
        self.is_closed = False
        self.is_paused = False
        self.is_stalled = False
        """Does its client not read?"""
        self.paused_at_ms = 0
        self.due_ms = 0
        """The steady time at which its next message may go, where ``take`` has found that it must wait."""
        self.failure: str | None = None
        """Why it cannot go on."""

    @property
    def may_go_on(self) -> bool:
        """Is there nothing that keeps it from reading?"""
        return not (self.is_closed or self.is_paused or self.is_stalled or self.has_ended or self.failure)

    def pause(self, steady_ms: int) -> None:
        """Show nothing more, and keep the place."""
        if not self.is_paused:
            self.is_paused = True
            self.paused_at_ms = steady_ms

    def resume(self, steady_ms: int) -> None:
        """Go on where it was paused."""
        if self.is_paused:
            self.is_paused = False
            self.pace.resume(steady_ms - self.paused_at_ms)

    def take(self, log: ReplayLog, budget: Budget, room_bytes: int, steady_ms: int) -> int:
        """Put messages of the slice into the outbox, until budget or room are used up; at least one."""
        cached = self.cached
        assert cached is not None
        part = cached.slice
        selected = part.select(self.addresses)
        place = part.first_after(selected, self.passed_lsn)
        if self.no_local:
            self.choice.no_local = log.session_number(self.origin)
        budget.spend(1)
        while place < len(selected):
            logged = part.get(selected[place])
            budget.spend(LOOK_UNITS)
            if logged is not None:
                if self.bounds.has_ended(logged.message.lsn, logged.time_ms):
                    return self._end()
                if self._wants(logged, budget):
                    due_ms = self.pace.due_ms(logged.time_ms, steady_ms)
                    if due_ms > steady_ms:
                        self.due_ms = ceil(due_ms)
                        return WAITS
                    room_bytes -= self._show(logged, log, budget, steady_ms)
                self.passed_lsn = logged.message.lsn
            place += 1
            if (budget.is_spent or room_bytes <= 0) and place < len(selected):
                return BUSY
        return self._finish(part)

    def _finish(self, part: Slice) -> int:
        """The slice has nothing more for it."""
        self.spot = part.end
        self.passed_lsn = max(self.passed_lsn, part.last_lsn)
        if self.bounds.has_ended(self.passed_lsn + 1, part.end.time_ms):
            return self._end()
        if part.reaches_end:
            self.arrive(part.last_lsn)
        return DONE

    def _end(self) -> int:
        self.completes = not self.has_ended
        self.has_ended = True
        return ENDED

    def _wants(self, logged: Logged, budget: Budget) -> bool:
        message = logged.message
        if not self.has_begun:
            self.has_begun = self.bounds.has_begun(message.lsn, logged.time_ms)
            if not self.has_begun:
                return False
        wants = self.choice.wants(message)
        if self.choice.asked_units:
            budget.spend(self.choice.take_asked())
        return wants

    def _show(self, logged: Logged, log: ReplayLog, budget: Budget, steady_ms: int) -> int:
        """Put a message into the outbox; returns the size of its frame."""
        message = logged.message
        if self.found is not None:
            self.found.append(logged)
            budget.spend(SHOW_UNITS)
            return message.memory_bytes
        if message.body.__class__ is LargeBody:
            message = _with_body(message, log.body_of(message))
        size_bytes = message.size_bytes
        self.outbox.append(Entry(message))
        self.pace.note_sent(size_bytes, logged.time_ms, steady_ms)
        budget.spend(SHOW_UNITS + size_bytes // BYTES_PER_UNIT)
        return size_bytes + FRAME_BYTES

    def arrive(self, lsn: int) -> None:
        """It has everything up to this lsn, which was the last one of the log when that was read, perhaps long before
        this replay.
        """
        self.passed_lsn = max(self.passed_lsn, lsn)
        if self.bounds.has_ended(self.passed_lsn + 1, -1):
            self._end()
        elif not self.has_caught_up and lsn >= self.history_lsn:
            self.has_caught_up = True
            self.completes = not self.bounds.is_range

    def start_over(self, log: ReplayLog) -> bool:
        """The segment in which it wanted to begin was removed. Begin with what is left, unless that hides something, or
        somebody else than the broker has removed a file.
        """
        before, spot = self.spot, log.beginning()
        if self.passed_lsn or self.bounds.after_lsn > 0 or before is None or spot.place <= before.place:
            return False
        self.spot = spot
        return True

    def fail(self, text: str) -> None:
        """It cannot go on; the client gets this reason."""
        self.failure = text

    def completion(self, destination: str, now_ms: int) -> Entry:
        """The message that says that everything up to a bookmark was shown."""
        block = encode_headers([("destination", destination), ("completed", "true")])
        message = Message(Head(block, ""), b"", 0, now_ms, 0, _NOWHERE, 0)
        message.lsn = self.passed_lsn
        return Entry(message)


def begin(replay: Replay, log: ReplayLog) -> None:
    """Find where a replay begins. Raises BrokerError if that was removed."""
    bounds = replay.bounds
    replay.history_lsn = log.durable_lsn
    if 0 <= bounds.until_lsn <= bounds.after_lsn and bounds.from_ms < 0:
        replay.has_ended = replay.completes = True
        return
    spots: list[Spot] = []
    if bounds.from_ms >= 0:
        spots.append(log.since(bounds.from_ms))
    if bounds.after_lsn == 0:
        spots.append(log.beginning())
    elif bounds.after_lsn > 0:
        spot = log.after(bounds.after_lsn)
        if spot is None:
            raise BrokerError(removed(bounds.after_lsn, log.first_lsn()))
        spots.append(spot)
    replay.spot = min(spots, key=_place_of)


def removed(bookmark: int, first_lsn: int) -> str:
    """The error for a client that wants to read what retention has removed."""
    return (
        f"The log after bookmark {bookmark} was removed (journal-retention-directory): what is left of it begins with "
        f"lsn {first_lsn}. Go on with bookmark:{max(first_lsn - 1, 0)} for that, or with bookmark:NOW"
    )


def unreadable(bookmark: int, reason: str) -> str:
    """The error for a client when the disk cannot read what comes next."""
    return f"The log after bookmark {bookmark} cannot be read: {reason}"


def _place_of(spot: Spot) -> tuple[int, int]:
    return spot.place


def _with_body(message: Message, body: LargeBody | None) -> Message:
    """A message with a large body that can be read. If its file was removed, a header says so."""
    head = message.head
    if body is None:
        line = encode_headers([(BODY_REMOVED, str(len(message.body)))])[:-1]
        head = Head(line + head.block, head.address, head.priority, head.persistent, head.sized, head.routing_type)
    copy = Message(head, b"" if body is None else body, message.id, message.timestamp_ms, message.expires_ms,
                   message.account, message.origin)  # fmt: skip
    copy.lsn = message.lsn
    return copy
