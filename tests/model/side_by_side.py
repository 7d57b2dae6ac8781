"""A broker and the model side by side: each operation is done to both, then everything that can be seen is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from sys import maxsize
from typing import ClassVar, Final

from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Reader as Origin
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import LimitError
from artemis_py.message import Message
from artemis_py.record_log import RecoveredState
from artemis_py.selector import compile_selector
from tests.kit.disk import SimDisk
from tests.kit.tiny_turns import TinySteps
from tests.model.compare import active_ids, compare
from tests.model.letters import Spec, Writer
from tests.model.lives import StrictRecords
from tests.model.observe import Event, LiveLog, WatchedConsumer, note, observe
from tests.model.plans import Plan
from tests.model.queue_model import QueueModel
from tests.model.reader_model import Item, Letter, Reader

START_MS: Final = 1_000_000
PLENTY: Final = 1 << 30
OVERHEAD_BYTES: Final = 20
CONNECTIONS: Final = 2


@dataclass(slots=True)
class Pair:
    """A queue and its model."""

    queue: Queue
    model: QueueModel


@dataclass(slots=True)
class Seat:
    """A consumer and its model, and where they read."""

    consumer: WatchedConsumer
    reader: Reader
    pair: Pair

    @property
    def sent(self) -> list[Item]:
        """What the client has seen and not settled."""
        return self.reader.sent


class SideBySide:
    """One address with its queues. ``now_ms`` moves only by ``advance``; see ``Trade`` for sending and settling."""

    steps: ClassVar[TinySteps | None] = None
    """With these nothing large is done at once."""

    def __init__(self, plan: Plan, *, restarts: bool = False) -> None:
        self.plan = plan
        self.now_ms = START_MS
        self.events: list[Event] = []
        self.log: LiveLog | StrictRecords = StrictRecords.on(SimDisk(Random(0))) if restarts else LiveLog()
        self._begin_broker(RecoveredState())
        self.pairs = [
            Pair(self.broker.queues[f"q{number}"], QueueModel(queue_plan, plan.address))
            for number, queue_plan in enumerate(plan.queues)
        ]
        self.seats: list[Seat] = []
        self.dead: list[tuple[int, str]] = []
        self.expired: list[tuple[int, str]] = []
        self.sources: dict[int, tuple[int, str]] = {}
        """Of copies, by the id of the copy: id and queue of what was copied."""
        self.forwarded = 0
        """How many of the two lists above a dispatch has turned into copies."""
        self.come_in = 0
        """How many letters came in."""
        self.happened: set[str] = set()
        """What the address was seen to do; see ``QueueModel.happened`` for the queues."""
        self._writer = Writer()
        self._in_turn = False
        self.persistent: set[int] = set()
        """Ids of all letters that a restart does not lose."""

    def _begin_broker(self, kept: RecoveredState) -> None:
        self.broker = Broker(self.plan.config(), self.log, self.now_ms, kept)
        observe(self.broker, self.events)
        self.route = self.plan.route(self.broker.resolver)
        scan = self.plan.address.scan_period
        self._next_scan_ms = self.now_ms + scan if scan > 0 else None

    # ---- messages --------------------------------------------------------------------------------

    def write_letter(self, spec: Spec, origin: int) -> tuple[Message, Letter]:
        """A message and its model."""
        return self._writer.write(self.broker, spec, origin, self.now_ms)

    def letters(self) -> dict[int, Letter]:
        """Every letter that a queue refers to, once."""
        return {letter.id: letter for pair in self.pairs for letter in pair.model.letters()}

    @property
    def is_full(self) -> bool:
        """Does the address hold as many messages as it may?"""
        return 0 <= self.plan.address.messages_max <= len(self.letters())

    # ---- what happened inside the last call ------------------------------------------------------

    def absorb(self, pair: Pair, coming: Sequence[Letter] = ()) -> None:
        """Take note of the deliveries and expiries up to the queue's next arrival or trim, or up to the first of a
        letter that is still ``coming``; each must be legal.
        """
        self.finish()
        later = {letter.id for letter in coming}
        model = pair.model
        rest: list[Event] = []
        for position, event in enumerate(self.events):
            if event.queue_name != pair.queue.name:
                rest.append(event)
            elif (event.added, event.replaced) == (model.counts.added, model.counts.replaced) and (
                event.message_id not in later
            ):
                self._absorb_one(pair, event)
            else:
                rest.extend(self.events[position:])
                break
        self.events[:] = rest

    def _absorb_what_was_over_first(self, pair: Pair) -> None:
        """Tiny turns: in one tick a scan may come before what falls due, and take that away, too."""
        counts = pair.model.counts
        for event in [event for event in self.events if event.queue_name == pair.queue.name]:
            there = {item.letter.id: item for item in pair.model.overdue_or_due(self.now_ms)}
            item = there.get(event.message_id)
            if event.consumer_id is not None or item is None or self._was_a_value(pair, item, event):
                return
            if (event.added, event.replaced) != (counts.added, counts.replaced):
                return
            self.events.remove(event)
            self._absorb_one(pair, event)

    @staticmethod
    def _was_a_value(pair: Pair, item: Item, event: Event) -> bool:
        """Was it due before it was over? Then the value that a consumer has was outdated when it expired."""
        away = pair.model.held_items() + pair.model.picked_items()
        return any(
            one.letter.id in event.outdated and one.letter.key == item.letter.key and not one.outdated for one in away
        )

    def offer_first(self, pair: Pair) -> None:
        """Consumers had their chance before the queue kept anything out: take note of what they got, and of a barrier
        that nobody else is to get, which is done then.
        """
        self.absorb(pair)
        if pair.model.is_open:
            pair.model.note_end_of_barrier()

    def _absorb_one(self, pair: Pair, event: Event) -> None:
        if event.consumer_id is None:
            if event.senders_wait:  # in one tick something was due and made it too deep before this one's time was over
                pair.model.grew()
            if all(one.letter.id != event.message_id for one in pair.model.overdue_or_due(self.now_ms)):
                self._take_back_lapsed(pair)  # tiny turns: the lease ended first, in the same tick
            pair.model.expire(event.message_id, self.now_ms)
            self._forward_expired(pair, event.message_id)
            return
        seat = next(seat for seat in self.seats if seat.consumer.id == event.consumer_id)
        assert seat.pair is pair, "a consumer took from a queue that it does not read"
        if event.is_barrier:
            pair.model.deliver_barrier(seat.reader, event.message_id, self.now_ms)
        else:
            pair.model.deliver(seat.reader, event.message_id, self.now_ms)

    def _forward_expired(self, pair: Pair, letter_id: int) -> None:
        """An expired letter goes to the expiry address, or, if the queue says so, to the dead-letter address instead of
        nowhere, or in any case nowhere.
        """
        policy, address = pair.model.plan.expiry_policy, self.plan.address
        if policy != "DELETE" and address.expiry:
            self.expired.append((letter_id, pair.queue.name))
        elif policy == "ROUTE_TO_ALTERNATE" and address.dead_letter:
            self.dead.append((letter_id, pair.queue.name))
            self.happened.add("expired to the dead-letter address")

    def grow(self, pair: Pair, letters: list[Letter], *, plain: bool) -> None:
        """Messages arrived at a queue: who had room took some, then the ring trimmed. A ring of 0 asks nobody."""
        model = pair.model
        if plain and self._handed_over(pair, letters):
            model.counts.added += len(letters)
            return
        if len(letters) > 1 and not model.goes_in_together(letters):
            for letter in letters:
                self.grow(pair, [letter], plain=False)
            return
        model.counts.added += len(letters)
        model.look_for_groups(letters)
        if model.plan.keeps_last:
            self._enter_values(pair, letters)
        else:
            model.append(letters, self.now_ms)
        self.settle_growth(pair, len(letters))

    def _enter_values(self, pair: Pair, letters: list[Letter]) -> None:
        """One by one: who has room may have the value that stands there, before the new one replaces it."""
        model = pair.model
        for index, letter in enumerate(letters):
            older = model.value_of(letter.key)
            if older in model.items:
                self.absorb(pair, letters[index:])
                if older in model.items:
                    assert model.withheld(self.now_ms) is None, "replaced while a consumer could take one"
            model.append([letter], self.now_ms)

    def settle_growth(self, pair: Pair, grown: int, *, replaced: bool = False) -> None:
        """So many came or returned: who has room takes some, then a ring fits itself, or senders have to wait. Were
        values ``replaced`` before, senders may go on once consumers had their chance.
        """
        offered = not pair.model.keeps_none
        if offered and pair.model.is_within([]):
            self.absorb(pair)
        elif offered:
            self.offer_first(pair)
        if replaced:
            pair.model.shrank()
        pair.model.fit(grown, self.now_ms, offered=offered)
        self.absorb(pair)

    def _handed_over(self, pair: Pair, letters: list[Letter]) -> bool:
        """Did the letters go straight to the only consumer? What others of the same SEND did later says nothing."""
        reader, name, added = pair.model.direct_reader(), pair.queue.name, pair.model.counts.added
        if reader is None or any(event.queue_name == name and event.added <= added for event in self.events):
            return False
        handed = next(seat for seat in self.seats if seat.reader is reader).consumer.handed[len(reader.handed) :]
        fresh = [entry.message.id for entry in handed[: len(letters)]]
        if fresh != [letter.id for letter in letters]:
            return False
        pair.model.hand_over(reader, letters, self.now_ms)
        return True

    def finish(self) -> None:
        """What was decided is carried out."""
        if self.steps is not None:
            self.steps.finish(self.broker, self.now_ms)

    def check(self) -> None:
        """Nothing may be left unexplained, and both sides must look the same; of a turn, at its end."""
        if self._in_turn:
            return
        self.finish()
        assert not self.events, f"unexplained: {self.events}"
        for pair in self.pairs:
            self._see_what_is_active(pair)
        compare(self)

    # ---- time ------------------------------------------------------------------------------------

    def advance(self, ms: int) -> None:
        """Let time pass and tick."""
        self.now_ms += ms
        if self.steps is None:
            self.broker.tick(self.now_ms)
        else:
            self.steps.tick(self.broker, self.now_ms)
        seen_before_due: list[Pair] = []
        for pair in self.pairs:
            if self.steps is not None:
                self._absorb_what_was_over_first(pair)
                if any(event.queue_name == pair.queue.name and event.consumer_id is not None for event in self.events):
                    pair.model.tick_gate(self.now_ms)  # it may have opened before something fell due
            replaced = pair.model.counts.replaced
            restored = pair.model.fall_due(self.now_ms)
            if restored:
                self.settle_growth(pair, restored, replaced=pair.model.counts.replaced > replaced)
                if self.steps is not None:
                    seen_before_due.append(pair)  # a scan goes on beside what falls due: the next one finds it
            pair.model.tick_gate(self.now_ms)
        scans = self._next_scan_ms is not None and self.now_ms >= self._next_scan_ms
        if scans:
            self._next_scan_ms = self.now_ms + self.plan.address.scan_period
        for pair in self.pairs:
            self.absorb(pair)
            if any(event.queue_name == pair.queue.name for event in self.events):
                self._end_leases(pair)  # one that ended first, in the same tick, gave up a value that was replaced
            if (scans or pair.model.plan.bounds_time) and pair not in seen_before_due:
                assert not pair.model.overdue(self.now_ms), "one is over and still there"
        for pair in self.pairs:
            self._end_leases(pair)
        self.check()

    def _end_leases(self, pair: Pair) -> None:
        self._take_back_lapsed(pair)
        self.absorb(pair)

    def _take_back_lapsed(self, pair: Pair) -> None:
        """What readers held for too long goes back; they come behind the others now."""
        over = pair.model.lapsed(self.now_ms)
        for reader, _ in over:
            pair.model.put_last(reader)
        for reader, items in over:
            reader.held = [item for item in reader.held if item not in items]
            reader.lapsed += items
        self.bury(pair, pair.model.release_of(over, failed=True, now_ms=self.now_ms))

    def _see_what_is_active(self, pair: Pair) -> None:
        """Where messages become active in order: take over what the broker has found by now."""
        activation, model = pair.queue.activation, pair.model
        if activation is None:
            return
        broadcast = activation.broadcast
        if model.barrier_out is not None and (broadcast is None or not broadcast.is_out):
            model.end_barrier()
        model.activate(active_ids(pair.queue))

    def _check_activity(self, pair: Pair) -> None:
        """A dispatch is over: what may be active is, and nobody waits for a barrier who could have it."""
        self._see_what_is_active(pair)
        if pair.queue.reference.noted_ready or pair.queue.activation is None:
            return
        model = pair.model
        late = [item.letter.id for item in model.may_be_active() if item in model.items]
        assert not late, f"messages {late} could be active"
        if model.is_open:
            assert model.waits_for_barrier(self.now_ms) is None, "a barrier is withheld"
            assert not model.barrier_is_over(), "a barrier is over and still there"

    def dispatch(self) -> None:
        """Offer what is ready. Afterwards nobody with room lacks anything."""
        if self.steps is None:
            self.broker.dispatch(self.now_ms)
        else:
            self.steps.dispatch(self.broker, self.now_ms)
        for pair in self.pairs:
            self.absorb(pair)
            self._check_activity(pair)
            withheld = pair.model.withheld(self.now_ms)
            assert withheld is None, f"{pair.queue.name} withholds {withheld}"
        self.forwarded = len(self.dead) + len(self.expired)
        self.check()

    def turn(self, ms: int = 0) -> None:
        """A whole turn, as the server makes it."""
        self._in_turn = True
        self.advance(ms)
        self.dispatch()
        self._in_turn = False
        self.write()

    # ---- readers ---------------------------------------------------------------------------------

    def subscribe(
        self,
        number: int = 0,
        connection: int = 1,
        *,
        settles: bool = False,
        browses: bool = False,
        selector: str | None = None,
        no_local: bool = False,
        window: int = -1,
        priority: int = 0,
        room: int = PLENTY,
        replay_s: int | None = None,
        alone: bool = False,
        backlog: int | None = None,
    ) -> Seat | None:
        """A consumer comes to a queue; None when it is not admitted."""
        pair = self.pairs[number % len(self.pairs)]
        plan = pair.model.plan
        defaults = pair.queue.consumer_defaults
        since_ms, after_id = defaults.replay(replay_s, self.now_ms, self.broker.host.message_id)
        reads = browses or plan.non_destructive
        backlog_max = maxsize if browses and backlog is None else plan.backlog_for(backlog)
        overhead = 0 if settles else OVERHEAD_BYTES
        consumer = WatchedConsumer(
            self.broker.next_consumer_id(),
            self,
            settles=settles or (plan.once and not reads),
            acks=not settles,
            destructive=not reads,
            selector=defaults.selector if selector is None else compile_selector(selector),
            window_bytes=-1 if settles else window,
            priority=priority,
            no_local=connection if no_local else 0,
            weigh=lambda message: message.size_bytes + overhead,
            browses=browses,
            since_ms=since_ms,
            after_id=after_id,
            exclusive=alone,
            reader=Origin(connection, f"client-{connection}"),
            backlog_max=maxsize if browses and backlog is None else defaults.backlog_for(backlog),
        )
        consumer.tell = lambda entry: note(self.events, pair.queue, entry.message, consumer.id)
        consumer.tell_barrier = lambda entry: note(self.events, pair.queue, entry.message, consumer.id, is_barrier=True)
        reader = Reader(
            number=consumer.id,
            connection=connection,
            settles=consumer.settles,
            acks=not settles,
            browses=browses,
            reads=reads,
            selector=selector or plan.default_selector,
            no_local=no_local,
            window=-1 if settles else window,
            priority=priority,
            overhead=overhead,
            replay_s=plan.replay_s if replay_s is None else replay_s,
            came_ms=self.now_ms,
            came_after=self.come_in,
            alone=alone,
            backlog=backlog_max,
        )
        if not self._attach(pair, consumer, reader):
            return None
        seat = Seat(consumer, reader, pair)
        self.seats.append(seat)
        self.set_room(seat, room)
        return seat

    def _attach(self, pair: Pair, consumer: WatchedConsumer, reader: Reader) -> bool:
        admitted = pair.model.admits_reader(reader)
        try:
            self.broker.attach(pair.queue, consumer, self.now_ms)
        except LimitError:
            assert not admitted, "a consumer was refused"
            self.happened.add("consumer refused")
            self.check()
            return False
        assert admitted, "a consumer was admitted"
        pair.model.come(reader, self.now_ms)
        return True

    def set_room(self, seat: Seat, room: int) -> None:
        """The connection's socket takes so many bytes more (the session does the same each turn)."""
        seat.consumer.room_bytes = room
        seat.reader.room = room
        if seat.consumer.parked:
            seat.pair.queue.wake(seat.consumer)
        self.check()

    def write(self) -> None:
        """End of a turn: what consumers got is written to them."""
        outgoing = self.broker.take_outgoing()
        listed = {consumer.id for consumer in outgoing}
        for seat in self.seats:
            waits = seat.consumer.outbox or seat.consumer.handed
            assert seat.consumer.id in listed or not waits, "nobody was told of the output"
        for consumer in outgoing:
            consumer.listed = False
        for seat in self.seats:
            entries, seat.consumer.outbox, seat.consumer.handed = seat.consumer.outbox, [], []
            if entries:  # so does a session
                seat.pair.queue.sent(seat.consumer, entries)
            seat.consumer.firsts.clear()
            seat.pair.model.written(seat.reader, self.now_ms)
            self._see_what_is_active(seat.pair)
        if isinstance(self.log, StrictRecords):
            self.log.write_down()
        self.check()

    def remove_seat(self, seat: Seat, *, failed: bool) -> None:
        """A consumer goes: UNSUBSCRIBE and DISCONNECT count no attempt, a lost connection does."""
        model, reader = seat.pair.model, seat.reader
        self.broker.detach(seat.pair.queue, seat.consumer, failed=failed, now_ms=self.now_ms)
        model.put_back_unsent(reader)
        sent, reader.held = reader.held, []
        dead = model.release(reader, sent, failed=failed, now_ms=self.now_ms)
        self.bury(seat.pair, dead)
        model.leave(reader)
        self.seats.remove(seat)

    def bury(self, pair: Pair, dead: list[Letter]) -> None:
        """Letters that failed for the last time."""
        if self.plan.address.dead_letter:
            self.dead.extend((letter.id, pair.queue.name) for letter in dead)

    def unsubscribe(self, seat: Seat) -> None:
        """A consumer leaves in good order."""
        self.remove_seat(seat, failed=False)
        self.check()
