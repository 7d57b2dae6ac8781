"""Backfills queues that begin in the past (``recovery-point``) from the log."""

from __future__ import annotations

from collections import deque
from typing import Final, final

from artemis_py.config.matching import WildcardSyntax
from artemis_py.core.addresses.enqueue import PLACE_UNITS, put
from artemis_py.core.addresses.routing_table import Bindings
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.events import FILLED, PAST_LOST
from artemis_py.core.memory import keep, release
from artemis_py.core.queue.queue import Queue
from artemis_py.core.queue.recovery_point import Recovery
from artemis_py.core.queue_host import QueueHost
from artemis_py.core.replay.bookmarks import Bounds
from artemis_py.core.replay.manager import Replays
from artemis_py.core.replay.replay import FOLLOWING, Addresses, Replay, Unpaced
from artemis_py.errors import BrokerError
from artemis_py.message import HeaderName, LargeBody, Message
from artemis_py.replay_log import Logged
from artemis_py.units import parse_long

# ---- backfill --------------------------------------------------------------------------------------------------------
#
# One pass over the log for queues that begin in it: which of its messages each of them is to have. A pass is a
# replay. What it finds is put on the queues together with how far they have got, in one group of records. So a crash
# leaves both or nothing, and nothing comes twice.


_DESTINATION: Final = HeaderName("destination")
_SCHEDULED_TIME: Final = HeaderName("AMQ_SCHEDULED_TIME")
_SCHEDULED_DELAY: Final = HeaderName("AMQ_SCHEDULED_DELAY")


@final
class BackfilledQueue:
    """A queue on its way through the log."""

    __slots__ = ("addresses", "coming_bytes", "count", "queue", "recovery")

    def __init__(self, queue: Queue, recovery: Recovery, syntax: WildcardSyntax) -> None:
        self.queue = queue
        self.recovery = recovery
        self.addresses = Addresses(read_by(queue), syntax)
        self.coming_bytes = 0
        """The size of what is recorded for the queue, and is put on it in a moment."""
        self.count = 0
        """How many messages it got from the log since the broker started."""

    def wants(self, logged: Logged, now_ms: int) -> bool:
        """Is the queue to have this message, if it has not got it?"""
        message, queue, recovery = logged.message, self.queue, self.recovery
        if message.lsn <= recovery.after_lsn or logged.time_ms < recovery.from_ms:
            return False
        if not queue.enabled or 0 < message.expires_ms <= now_ms or not self.addresses.wants(message.head.address):
            return False
        return _is_for(message, queue) and (queue.selector is None or queue.selector.matches(message.lookup))


@final
class Backfill:
    """``waiting`` is what was found and is not on the queues yet."""

    __slots__ = ("lost_lsn", "mark_lsn", "filled_queues", "replay", "waiting")

    def __init__(self, filled_queues: list[BackfilledQueue], replay: Replay) -> None:
        self.filled_queues = filled_queues
        self.replay = replay
        replay.found = []
        self.waiting: deque[Logged] = deque()
        self.lost_lsn = -1
        """Where the log began when a pass before it could not go on; -1: there was none."""
        self.mark_lsn = -1
        """Its queues note what is published behind this lsn; -1: they do not."""

    def take_found(self) -> None:
        """What the replay has found waits for room now."""
        found = self.replay.found
        if found:
            self.waiting.extend(found)
            found.clear()

    def watch(self, last_lsn: int) -> None:
        """The end of the log is near: let the queues note what is published from now on."""
        self.mark_lsn = last_lsn
        for filled in self.filled_queues:
            filled.recovery.noted = {}

    @property
    def sees_all(self) -> bool:
        """Has none of its queues had too much to note?"""
        return all(filled.recovery.noted is not None for filled in self.filled_queues)

    def drop_deleted(self) -> None:
        """Forget queues that were deleted."""
        if any(filled.queue.deleted for filled in self.filled_queues):
            self.filled_queues = [filled for filled in self.filled_queues if not filled.queue.deleted]


def read_by(queue: Queue) -> tuple[str, ...]:
    """The addresses, and wildcards of addresses, whose messages a queue gets."""
    return (queue.address.name,) if queue.view is None else queue.view.underlying


def _is_for(message: Message, queue: Queue) -> bool:
    """Was a message sent to an address as a whole, or to this queue? Some are sent to one queue on it."""
    address, colons, name = (message.head.first(_DESTINATION) or "").partition("::")
    return not colons or name == queue.name or not address.endswith(message.head.address)


def due_ms_of(message: Message, now_ms: int) -> int:
    """When a message falls due that its sender has scheduled (epoch ms); 0 if it is due."""
    when, delay = message.head.first(_SCHEDULED_TIME), message.head.first(_SCHEDULED_DELAY)
    try:
        if when is not None:
            due_ms = parse_long(when.strip(" "))
        else:
            due_ms = 0 if delay is None else message.timestamp_ms + parse_long(delay.strip(" "))
    except ValueError:  # no client could have scheduled it so
        return 0
    return due_ms if due_ms > now_ms else 0


# ---- backfills -------------------------------------------------------------------------------------------------------
#
# Fills queues that begin in the log: those that a start finds new, those whose recovery point was changed, and those
# that were not done when the broker stopped (AMPS, "Startup and Recovery for Queues"). All of them begin with one
# pass over the log. A queue that has no room goes on alone, so that the others need
# not wait for it.


FOUND_BYTES: Final = 65536
"""How much is found at once."""
AHEAD_BYTES: Final = 1 << 20
"""A full address does not keep a queue from having so much in memory. As with pages, what follows is read when that is
less.
"""
_REMOVED: Final = "retention has removed them"
_LOOKS_MAX: Final = 16
"""How many passes that wait for room are looked at in a turn."""


@final
class Backfills:
    """All passes over the log. The server calls ``advance`` once a turn, ``on_news`` and ``serve`` for the replays for
    which ``is_backfill`` is true.
    """

    __slots__ = (
        "_bindings", "_by_replay", "_full", "_host", "_manager", "_number", "_registry", "_unplaced", "has_written"
    )  # fmt: skip

    def __init__(self, host: QueueHost, bindings: Bindings, registry: Registry, manager: Replays) -> None:
        self._host = host
        self._bindings = bindings
        self._registry = registry
        self._manager = manager
        self._number = 0
        self._by_replay: dict[int, Backfill] = {}
        self._full: deque[Backfill] = deque()
        """Passes that wait for room on their queue."""
        self._unplaced: deque[Backfill] = deque()
        """Passes that go on in another turn."""
        self.has_written = False
        """Was something recorded since somebody set this to false?"""

    @property
    def count(self) -> int:
        """How many passes there are."""
        return len(self._by_replay)

    @property
    def has_ready(self) -> bool:
        """Is there something to do in another turn that nothing has to happen for?"""
        return self.has_written or bool(self._unplaced)

    @property
    def has_unfilled(self) -> bool:
        """Was a queue created since ``begin`` that waits for what the log has for it?"""
        return bool(self._registry.unfilled)

    def begin(self) -> None:
        """Begin to fill the queues that wait for it, with one pass."""
        queues, self._registry.unfilled = self._registry.unfilled, []
        syntax = self._bindings.views.syntax
        filled_queues = [BackfilledQueue(queue, queue.filling, syntax) for queue in queues if queue.filling is not None]
        if filled_queues:
            self._start(filled_queues)

    # ---- passes ----------------------------------------------------------------------------------

    def _start(self, filled_queues: list[BackfilledQueue]) -> Backfill:
        """A pass from the place at which the first of these queues begins."""
        lsns = [filled.recovery.after_lsn for filled in filled_queues if not _waits_for_date(filled)]
        dates_ms = [filled.recovery.from_ms for filled in filled_queues if _waits_for_date(filled)]
        bounds = Bounds(min(lsns, default=-1), min(dates_ms, default=-1))
        return self._open(filled_queues, bounds)

    def _open(self, filled_queues: list[BackfilledQueue], bounds: Bounds) -> Backfill:
        """If something behind the bounds was removed, the pass begins with what is left."""
        patterns = tuple(dict.fromkeys(pattern for filled in filled_queues for pattern in filled.addresses.patterns))
        self._number -= 1  # replays of clients have numbers above 0
        choice = Consumer(self._number, None, settles=True, destructive=False)
        addresses = Addresses(patterns, self._bindings.views.syntax)
        replay = Replay(self._number, None, 0, addresses, bounds, choice, Unpaced())
        try:
            self._manager.open(replay, self._host.log.now_ms)
        except BrokerError:
            for filled in filled_queues:
                self._tell_lost(filled.queue, _REMOVED, self._manager.log.first_lsn())
            replay = Replay(self._number, None, 0, addresses, Bounds(0, -1), choice, Unpaced())
            self._manager.open(replay, self._host.log.now_ms)
        backfill = self._by_replay[replay.id] = Backfill(filled_queues, replay)
        return backfill

    def _passed_lsn(self, backfill: Backfill) -> int:
        """A pass has found everything up to this lsn that it wants. At the end of the log, that is where all are."""
        replay = backfill.replay
        return max(replay.passed_lsn, self._manager.tail.lsn) if replay.state == FOLLOWING else replay.passed_lsn

    def _end(self, backfill: Backfill) -> None:
        del self._by_replay[backfill.replay.id]
        self._manager.close(backfill.replay)

    # ---- the steps of a turn ---------------------------------------------------------------------

    def is_backfill(self, replay: Replay) -> bool:
        """Is this replay a pass over the log for queues?"""
        return replay.id < 0

    def on_news(self, replay: Replay, now_ms: int) -> None:
        """A pass has reached the end of the log, or has failed."""
        backfill = self._by_replay.get(replay.id)
        if backfill is None:
            return
        if replay.failure is None:
            replay.completes = False
            backfill.watch(self._host.log.last_lsn)
            return
        spot = replay.spot
        first_lsn = self._manager.log.first_lsn(0 if spot is None else spot.segment)
        is_removed = replay.passed_lsn < first_lsn - 1 and first_lsn != backfill.lost_lsn
        for filled in backfill.filled_queues:
            self._tell_lost(filled.queue, _REMOVED if is_removed else replay.failure, first_lsn)
        if is_removed:
            self._end(backfill)
            self._open(backfill.filled_queues, Bounds(first_lsn - 1, -1)).lost_lsn = first_lsn
        else:
            self._finish(backfill, now_ms)

    def advance(self, budget: Budget, now_ms: int) -> None:
        """Go on with passes that had to wait, and end those that have everything."""
        for waiting in (self._unplaced, self._full):
            for _ in range(min(len(waiting), _LOOKS_MAX)):
                backfill = waiting.popleft()
                if backfill.replay.id in self._by_replay:
                    budget.spend(1)
                    self._place(backfill, budget, now_ms)
        for backfill in [one for one in self._by_replay.values() if one.mark_lsn >= 0 and not one.waiting]:
            if not backfill.sees_all:
                backfill.watch(self._host.log.last_lsn)
            elif self._passed_lsn(backfill) >= backfill.mark_lsn:
                self._finish(backfill, now_ms)

    def serve(self, replay: Replay, budget: Budget, now_ms: int) -> None:
        """Let a pass find messages, and put them on their queues."""
        backfill = self._by_replay[replay.id]
        self._manager.serve(replay, budget, FOUND_BYTES, now_ms)
        backfill.take_found()
        self._place(backfill, budget, now_ms)

    # ---- onto queues -----------------------------------------------------------------------------

    def _place(self, backfill: Backfill, budget: Budget, now_ms: int) -> None:
        """Put what was found on the queues, as far as there are room and budget."""
        backfill.drop_deleted()
        if not backfill.filled_queues:
            self._end(backfill)
            return
        waiting = backfill.waiting
        shares: dict[int, tuple[Queue, list[Message]]] = {}
        placed: list[Message] = []
        is_first = True
        while waiting and (is_first or not budget.is_spent):
            is_first = False
            logged = waiting[0]
            budget.spend(len(backfill.filled_queues))
            takers = [filled for filled in backfill.filled_queues if self._takes(filled, logged, now_ms)]
            full = [filled for filled in takers if not self._has_room(filled, logged.message)]
            if full:
                if len(backfill.filled_queues) == 1:
                    break
                for filled in full:
                    self._part(backfill, filled)
                takers = [filled for filled in takers if filled not in full]
            waiting.popleft()
            if takers:
                self._place_one(logged, takers, shares, placed, now_ms)
                budget.spend(PLACE_UNITS * len(takers))
        self._put(shares, placed, now_ms)
        for filled in backfill.filled_queues:
            filled.coming_bytes = 0
        self._go_on(backfill, budget, now_ms)

    def _go_on(self, backfill: Backfill, budget: Budget, now_ms: int) -> None:
        """Find more when everything was put on its queues; otherwise wait."""
        if not backfill.waiting:
            self._manager.wake(backfill.replay, now_ms)
            return
        self._manager.stall(backfill.replay)
        (self._unplaced if budget.is_spent else self._full).append(backfill)

    def _part(self, backfill: Backfill, filled: BackfilledQueue) -> None:
        """A queue that has no room goes on alone."""
        backfill.filled_queues = [one for one in backfill.filled_queues if one is not filled]
        alone = self._open([filled], Bounds(self._passed_lsn(backfill), -1))
        alone.waiting = backfill.waiting.copy()
        filled.recovery.noted = None
        self._manager.stall(alone.replay)
        self._full.append(alone)

    def _takes(self, filled: BackfilledQueue, logged: Logged, now_ms: int) -> bool:
        """Is the message one that the queue is to have and has not got?"""
        return filled.wants(logged, now_ms) and not self._host.log.has(filled.queue.id, logged.message.id)

    def _has_room(self, filled: BackfilledQueue, message: Message) -> bool:
        queue, contents = filled.queue, filled.queue.contents
        address = self._bindings.source_of(message, queue.reference)
        if address.disk_full or not queue.flow.admits(message.size_bytes):
            return False
        paged = contents.paged
        if filled.recovery.is_again and any(one.durable_count or one.in_memory for one in paged.backlogs.values()):
            return False  # it may have the message in a page
        if not address.is_full and address.has_room_for(1, message.memory_bytes):
            return True
        return contents.size_bytes - paged.size_bytes + filled.coming_bytes < AHEAD_BYTES

    def _place_one(
        self,
        logged: Logged,
        takers: list[BackfilledQueue],
        shares: dict[int, tuple[Queue, list[Message]]],
        placed: list[Message],
        now_ms: int,
    ) -> None:
        """Record that a message is on these queues from now on, and put it into their shares."""
        message = self._message_of(logged.message, takers)
        if message is None:
            return
        due_ms = due_ms_of(message, now_ms)
        self._host.log.recalled(message, [filled.queue.id for filled in takers], due_ms)
        self.has_written = True
        keep(message)
        placed.append(message)
        for filled in takers:
            queue = filled.queue
            filled.recovery.after_lsn = message.lsn
            filled.count += 1
            if due_ms or queue.flow.limits_senders:  # whether the next one has room depends on this one
                self._put_share(queue, [message], due_ms, now_ms)
            else:
                shares.setdefault(queue.id, (queue, []))[1].append(message)
                filled.coming_bytes += message.size_bytes

    def _message_of(self, logged: Message, takers: list[BackfilledQueue]) -> Message | None:
        """The message as another queue has it in memory, so that its body is there once; else a new one. None if it has
        a large body that was removed.
        """
        living = self._host.log.living(logged.id)
        if living is not None and living.refs:
            return living
        body = logged.body
        if isinstance(body, LargeBody):
            held = self._manager.log.body_of(logged)
            if held is None:
                for filled in takers:
                    self._tell_lost(filled.queue, "the large body of a message was removed", logged.lsn)
                return None
            body = held
        account = self._bindings.source_of(logged, takers[0].queue.reference).account
        message = Message(logged.head, body, logged.id, logged.timestamp_ms, logged.expires_ms, account, 0)
        message.lsn = logged.lsn
        return message

    def _put(self, shares: dict[int, tuple[Queue, list[Message]]], placed: list[Message], now_ms: int) -> None:
        for queue, messages in shares.values():
            self._put_share(queue, messages, 0, now_ms)
        release(placed)

    def _put_share(self, queue: Queue, messages: list[Message], due_ms: int, now_ms: int) -> None:
        try:
            put(queue, messages, due_ms, now_ms, sum([message.size_bytes for message in messages]))
        except Exception as error:
            queue.set_aside("fill", error)

    # ---- the end ---------------------------------------------------------------------------------

    def _finish(self, backfill: Backfill, now_ms: int) -> None:
        """The queues have what the log has. What is not durable yet they have noted: they get it, and from now on what
        is published.
        """
        self._end(backfill)
        backfill.drop_deleted()
        log = self._host.log
        log.begin_group()
        self._take_noted(backfill, now_ms)
        for filled in backfill.filled_queues:
            filled.recovery.finish()
            filled.queue.filling = None
            self._registry.note_queue(filled.queue)
            self._host.note_event(FILLED, filled.queue.reference, {"messages": filled.count})
        log.end_group()
        self.has_written = True

    def _take_noted(self, backfill: Backfill, now_ms: int) -> None:
        """Put noted messages on the queues. Refused ones have no lsn, and those that came from the log have one that
        is passed: neither is taken.
        """
        shares: dict[int, tuple[Queue, list[Message]]] = {}
        placed: list[Message] = []
        noted: dict[int, Message] = {}
        for filled in backfill.filled_queues:
            noted.update(filled.recovery.noted or {})
        for message in sorted(noted.values(), key=_lsn_of):
            logged = Logged(message, now_ms)
            takers = [filled for filled in backfill.filled_queues if self._takes(filled, logged, now_ms)]
            if takers:
                self._place_one(logged, takers, shares, placed, now_ms)
        self._put(shares, placed, now_ms)

    def _tell_lost(self, queue: Queue, why: str, lsn: int) -> None:
        self._host.note_event(PAST_LOST, queue.reference, {"why": why[:200], "lsn": lsn}, kind=why[:20])


def _waits_for_date(filled: BackfilledQueue) -> bool:
    """Does the queue begin at a date, and has not begun?"""
    return filled.recovery.from_ms >= 0 and not filled.recovery.after_lsn


def _lsn_of(message: Message) -> int:
    return message.lsn
