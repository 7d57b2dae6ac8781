"""A broker and the model side by side: each operation is done to both, then everything that can be seen is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from artemis_py.core.broker import Broker
from artemis_py.core.dead_letters import Copies
from artemis_py.core.queue_reference import QueueReference
from artemis_py.message import Message
from artemis_py.record_log import RecoveredState
from tests.kit.disk import SimDisk
from tests.kit.tiny_turns import Orders, TinySteps
from tests.model.compare import behind_on, compare
from tests.model.lives import StrictRecords
from tests.model.plans import RING, Plan
from tests.model.queue_model import QueueModel
from tests.model.reader_model import Letter, Reader
from tests.model.world import Pair, World

Queued = Pair[QueueModel]


@dataclass(slots=True)
class Event:
    """A delivery, or without a reader an expiry. ``added`` and ``replaced`` are the queue's counts at that time, two
    counters as a clock: they tell which arrival came before, and whether the ring had trimmed yet. ``senders_wait``:
    flow control had begun. ``outdated``: the values that must not come back.
    """

    pair: Queued
    message_id: int
    reader: Reader | None
    is_barrier: bool
    added: int
    replaced: int
    senders_wait: bool
    outdated: frozenset[int]


class ObservedCopies(Copies):
    """Tells the world of each message that expires."""

    world: SideBySide

    def note_expired(self, queue: QueueReference, message: Message) -> None:
        """Tell, and go on."""
        pair = next(pair for pair in self.world.pairs if pair.queue.id == queue.id)
        self.world.note_taken(pair, None, message.id)
        super().note_expired(queue, message)


class SideBySide(World[QueueModel]):
    """Queues that have all in memory. ``now_ms`` moves only by ``advance``; see ``Trade`` for sending."""

    steps: ClassVar[TinySteps | None] = None
    """With these nothing large is done at once."""
    orders: ClassVar[Orders] = Orders()
    """Tiny turns: as usual, what is over or lapsed is taken away before what falls due in the same tick, and a COMMIT's
    messages are offered before it settles others.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.events: list[Event] = []
        self.log = StrictRecords.on(SimDisk(Random(0)))
        self._begin_broker(RecoveredState())
        self.pairs = [
            Pair(self.broker.queues[f"q{number}"], QueueModel(queue_plan, plan.address))
            for number, queue_plan in enumerate(plan.queues)
        ]
        self.sources: dict[int, tuple[int, str]] = {}
        """Of copies, by the id of the copy: id and queue of what was copied."""
        self.forwarded = 0
        """How many dead and expired ones a dispatch has turned into copies."""
        self._in_turn = False
        self.persistent: set[int] = set()
        """Ids of all letters that a restart does not lose."""

    def _begin_broker(self, kept: RecoveredState) -> None:
        self.broker = Broker(self.plan.config(), self.log, self.now_ms, kept)
        copies = self.broker.host.copies = ObservedCopies(self.broker.log)
        copies.world = self
        self.route = self.plan.route(self.broker.resolver)
        scan = self.plan.address.scan_period
        self._next_scan_ms = self.now_ms + scan if scan > 0 else None

    # ---- messages --------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Does the address hold as many messages as it may?"""
        return 0 <= self.plan.address.messages_max <= len(self.letters())

    # ---- what happened inside the last call ------------------------------------------------------

    def absorb(self, pair: Queued, coming: Sequence[Letter] = ()) -> None:
        """Take note of the deliveries and expiries up to the queue's next arrival or trim, or up to the first of a
        letter that is still ``coming``; each must be legal.
        """
        self.work_off()
        if not self.events:
            return
        later = {letter.id for letter in coming}
        model = pair.model
        rest: list[Event] = []
        for position, event in enumerate(self.events):
            if event.pair is not pair:
                rest.append(event)
            elif (event.added, event.replaced) == (model.counts.added, model.counts.replaced) and (
                event.message_id not in later
            ):
                self._absorb_one(pair, event)
            else:
                rest.extend(self.events[position:])
                break
        self.events[:] = rest

    def _absorb_what_was_over_first(self, pair: Queued) -> None:
        """Tiny turns: in one tick a scan may come before what falls due, and take that away, too. But if the value that
        a consumer has was outdated when one expired, that one was due before it was over.
        """
        model = pair.model
        for event in [event for event in self.events if event.pair is pair]:
            there = {item.letter.id: item for item in model.overdue(self.now_ms, or_due=True)}
            item = there.get(event.message_id)
            if event.reader is not None or item is None:
                return
            away = model.held_items() + model.picked_items()
            outdated = [one for one in away if one.letter.id in event.outdated and not one.outdated]
            if any(one.letter.key == item.letter.key for one in outdated):
                return
            if (event.added, event.replaced) != (model.counts.added, model.counts.replaced):
                return
            self.events.remove(event)
            self._absorb_one(pair, event)

    def offer_first(self, pair: Queued) -> None:
        """Consumers had their chance before the queue kept anything out: take note of what they got, and of a barrier
        that nobody else is to get, which is done then.
        """
        self.absorb(pair)
        if pair.model.is_open:
            pair.model.note_end_of_barrier()

    def _absorb_one(self, pair: Queued, event: Event) -> None:
        if event.reader is None:
            if event.senders_wait:  # in one tick something was due and made it too deep before this one's time was over
                pair.model.grew()
            if all(one.letter.id != event.message_id for one in pair.model.overdue(self.now_ms, or_due=True)):
                self.take_back_lapsed(pair)  # tiny turns: the lease ended first, in the same tick
            pair.model.expire(event.message_id, self.now_ms)
            self.forward_expired(pair, [event.message_id])
            return
        super().note_taken(pair, event.reader, event.message_id, is_barrier=event.is_barrier)

    def note_taken(self, pair: Queued, reader: Reader | None, message_id: int, *, is_barrier: bool = False) -> None:
        """Write down a delivery, or without a reader an expiry: what happens inside one call is looked at later."""
        counters, values = pair.queue.contents.counters, pair.queue.contents.last_values
        outdated = frozenset() if values is None else frozenset(values._outdated)
        waits = pair.queue.flow.stopped
        self.events.append(
            Event(pair, message_id, reader, is_barrier, counters.added, counters.replaced, waits, outdated)
        )

    def grow(self, pair: Queued, letters: list[Letter], *, plain: bool) -> None:
        """Messages arrived at a queue: who had room took some, then the ring trimmed. A ring of 0 asks nobody."""
        model = pair.model
        if plain and self._handed_over(pair, letters):
            model.counts.added += len(letters)
            return
        if (
            len(letters) > 1
            and model.plan.policy == RING
            and model.plan.depth_bytes >= 0
            and not model.is_within(letters)
        ):
            for letter in letters:  # they do not all find room, so each meets the limit by itself
                self.grow(pair, [letter], plain=False)
            return
        model.counts.added += len(letters)
        model.look_for_groups(letters)
        for index, letter in enumerate(letters if model.plan.keeps_last else []):
            # one by one: who has room may have the value that stands there, before the new one replaces it
            older = model.value_of(letter.key)
            if older in model.items:
                self.absorb(pair, letters[index:])
                if older in model.items:
                    assert model.withheld(self.now_ms) is None, "replaced while a consumer could take one"
            model.append([letter], self.now_ms)
        if not model.plan.keeps_last:
            model.append(letters, self.now_ms)
        self.settle_growth(pair, len(letters))

    def settle_growth(self, pair: Queued, grown: int, *, replaced: bool = False) -> None:
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

    def _handed_over(self, pair: Queued, letters: list[Letter]) -> bool:
        """Did the letters go straight to the only consumer? What others of the same SEND did later says nothing."""
        model = pair.model
        reader, added = model.direct_reader(), model.counts.added
        if reader is None or any(event.pair is pair and event.added <= added for event in self.events):
            return False
        handed = next(seat for seat in self.seats if seat.reader is reader).consumer.handed[len(reader.handed) :]
        if [entry.message.id for entry in handed[: len(letters)]] != [letter.id for letter in letters]:
            return False
        assert not any(model.valid_ms(letter, self.now_ms) for letter in letters), "handed over before its time"
        reader.room -= sum(map(reader.weight, letters))
        reader.handed.extend(letters)
        model.counts.acknowledged += len(letters)
        return True

    def work_off(self) -> None:
        """What was decided is carried out."""
        if self.steps is not None:
            self.steps.finish(self.broker, self.now_ms)

    def check(self) -> None:
        """Nothing may be left unexplained, and both sides must look the same; of a turn, at its end."""
        if self._in_turn:
            return
        self.work_off()
        unexplained = [(one.pair.queue.name, one.message_id, one.reader and one.reader.number) for one in self.events]
        assert not unexplained, f"deliveries and expiries that nothing explains: {unexplained}"
        for pair in self.pairs:
            self._see_what_is_active(pair)
        super().check()
        compare(self)

    # ---- time ------------------------------------------------------------------------------------

    def advance(self, ms: int) -> None:
        """Let time pass and tick."""
        self.now_ms += ms
        if self.steps is None:
            self.broker.tick(self.now_ms)
        else:
            self.steps.tick(self.broker, self.now_ms)
        seen_before_due: list[Queued] = []
        for pair in self.pairs:
            if self.steps is not None and (not pair.model.due_items(self.now_ms) or self.orders.is_as_usual()):
                self._absorb_what_was_over_first(pair)
                if any(event.pair is pair and event.reader is not None for event in self.events):
                    pair.model.tick_gate(self.now_ms)  # it may have opened before something fell due
                if pair.model.plan.policy == RING and self.plan.address.attempts_max < 0:
                    # where attempts end, another reason may have taken it
                    contents = pair.queue.contents
                    there = {one.message.id for one in contents.order} | contents.held_back | contents.scheduled.keys()
                    lapsed = [item.letter.id for _, items in pair.model.lapsed(self.now_ms) for item in items]
                    if not there.issuperset(lapsed):
                        self.take_back_lapsed(pair)  # it ended first, and what fell due then took its place
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
            if any(event.pair is pair for event in self.events):
                self.take_back_lapsed(pair)  # one that ended first, in the same tick, gave up a value that was replaced
                self.absorb(pair)
            if (scans or pair.model.plan.bounds_time) and pair not in seen_before_due:
                assert not pair.model.overdue(self.now_ms), "one is over and still there"
        for pair in self.pairs:
            self.take_back_lapsed(pair)
            self.absorb(pair)
        self.check()

    def _see_what_is_active(self, pair: Queued) -> None:
        """Where messages become active in order: take over what the broker has found by now."""
        activation, model = pair.queue.activation, pair.model
        if activation is None:
            return
        broadcast = activation.broadcast
        if model.barrier_out is not None and (broadcast is None or not broadcast.is_out):
            model.end_barrier()
        contents = pair.queue.contents
        inactive = {entry.message.id for entry in behind_on(pair.queue)}
        model.activate({entry.message.id for entry in contents.order} | (contents.held_back - inactive))

    def _check_activity(self, pair: Queued) -> None:
        """A dispatch is over: what may be active is, and nobody waits for a barrier who could have it."""
        self._see_what_is_active(pair)
        if pair.queue.reference.noted_ready or pair.queue.activation is None:
            return
        model = pair.model
        late = [item.letter.id for item in model.may_be_active() if item in model.items]
        assert not late, f"messages {late} could be active"
        if model.is_open:
            barrier = model.barrier_in_turn(self.now_ms)
            if barrier is not None:
                lacking = [one.number for one in model.readers if one.room > 0 and model.lacks_barrier(one, barrier)]
                assert not lacking, f"a barrier is withheld from {lacking}"
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

    def write(self) -> None:
        super().write()
        while self.log.journal.has_pending or not self.log.committer.idle:  # until all is durable that was told so far
            self.log.journal.seal()
            while self.log.committer.step():
                self.log.journal.poll()
