"""What clients and operators do to a broker and to the models of its queues: a model is told first, then the broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, partialmethod
from sys import maxsize
from typing import Final, Generic, TypeVar

from artemis_py.core.addresses.batch import Batch
from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.broker import Broker
from artemis_py.core.consumer import Consumer
from artemis_py.core.consumer import Reader as Origin
from artemis_py.core.events import GIVEN_UP, SET_ASIDE
from artemis_py.core.order.entry import PURGED, Entry
from artemis_py.core.queue.acknowledge import SelectedMessages
from artemis_py.core.queue.messages import ACCEPT, CANCEL, EXPIRE
from artemis_py.core.queue.queue import Queue
from artemis_py.core.transactions import Transaction
from artemis_py.errors import LimitError
from artemis_py.message import Message
from artemis_py.selector import compile_selector
from tests.model.letters import Spec, Writer
from tests.model.paging_model import Book
from tests.model.plans import NO_POLICY, Plan
from tests.model.queue_model import QueueModel
from tests.model.reader_model import SELECTORS, Item, Letter, Reader

START_MS: Final = 1_000_000
PLENTY: Final = 1 << 30
OVERHEAD_BYTES: Final = 20
CONNECTIONS: Final = 2

Model = TypeVar("Model", QueueModel, Book)


class WatchedConsumer(Consumer):
    """Tells of each message that it takes."""

    tell: Callable[..., None]

    def take(self, entry: Entry) -> None:
        self.tell(entry.message.id, is_barrier=False)
        super().take(entry)

    def take_barrier(self, entry: Entry) -> None:
        self.tell(entry.message.id, is_barrier=True)
        super().take_barrier(entry)


@dataclass(slots=True, eq=False)
class Pair(Generic[Model]):
    """A queue and its model."""

    queue: Queue
    model: Model


@dataclass(slots=True, eq=False)
class Seat(Generic[Model]):
    """A consumer and its model, and where they read."""

    consumer: WatchedConsumer
    reader: Reader
    pair: Pair[Model]


@dataclass(slots=True, eq=False)
class OpenTransaction(Generic[Model]):
    """A transaction, what it sends (each with its due time), and what it settles."""

    real: Transaction = field(default_factory=Transaction)
    sends: list[tuple[Letter, int, Message]] = field(default_factory=list)
    acknowledged: list[tuple[Pair[Model], Reader, Item]] = field(default_factory=list)
    refused: list[tuple[Pair[Model], Reader, Item]] = field(default_factory=list)
    expired: list[tuple[Pair[Model], Reader, Item]] = field(default_factory=list)


class World(Generic[Model]):
    """One address with its queues. Each connection has at most one open transaction."""

    broker: Broker
    route: Route
    pairs: list[Pair[Model]]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now_ms = START_MS
        self.seats: list[Seat[Model]] = []
        self.transactions: dict[int, OpenTransaction[Model]] = {}
        self.dead: list[tuple[int, str]] = []
        self.expired: list[tuple[int, str]] = []
        self.come_in = 0
        """How many letters came in."""
        self.happened: set[str] = set()
        """What the address was seen to do; see ``happened`` of a model for the queues."""
        self.letter_writer = Writer()

    def check(self) -> None:
        """Both sides must look the same; so do consumers, everywhere."""
        events = self.broker.events
        if events.counts.keys() & {GIVEN_UP, SET_ASIDE}:  # a step raised something, and the others do not hear of it
            raise AssertionError([(one.code, one.queue, one.fields) for one in events.take()])
        for pair in self.pairs:
            model, contents = pair.model, pair.queue.contents
            delivering = len(model.held_items())
            for reader in model.readers:
                delivering += len(reader.held) if reader.reads else 0
            for reader, _ in model.pending:
                delivering += reader.reads
            assert contents.delivering_count == delivering, "delivering count"
            assert pair.queue.consumer_count == len(model.readers), "consumer count"
        for seat in self.seats:
            consumer, reader = seat.consumer, seat.reader
            held = [item.letter.id for item in reader.held]
            if reader.out:
                held += [item.letter.id for item in reader.out]
            assert list(consumer.held) == held, "a consumer holds something else"
            if consumer.outbox or reader.unsent:
                assert [entry.message.id for entry in consumer.outbox] == reader.unsent, "another outbox"
            if consumer.handed or reader.handed:
                handed = [letter.id for letter in reader.handed]
                assert [entry.message.id for entry in consumer.handed] == handed, "something else was handed over"
            assert consumer.firsts == reader.firsts, "other messages brought a group"

    def note_taken(self, pair: Pair[Model], reader: Reader, message_id: int, *, is_barrier: bool) -> None:
        """A consumer takes a message, or gets a barrier: it must be right."""
        assert reader in pair.model.readers, "a consumer that is gone takes something"
        deliver = pair.model.deliver_barrier if is_barrier else pair.model.deliver
        deliver(reader, message_id, self.now_ms)

    def pair(self, number: int) -> Pair[Model]:
        """A queue and its model, whatever the number."""
        return self.pairs[number % len(self.pairs)]

    # ---- messages --------------------------------------------------------------------------------

    def letters(self) -> dict[int, Letter]:
        """Every letter that a queue refers to, once."""
        models = [pair.model for pair in self.pairs]
        items = [item for model in models for item in model.standing() + model.picked_items()]
        return {item.letter.id: item.letter for item in items}

    def batch_of(self, specs: list[Spec], connection: int, delay_ms: int) -> tuple[Batch, list[Letter]]:
        """Messages that come in one go, and their models."""
        written = [self.letter_writer.write(self.broker, spec, connection, self.now_ms) for spec in specs]
        letters = [letter for _, letter in written]
        size_bytes = sum(letter.size_bytes for letter in letters)
        plain = not any(spec.persistent or spec.ttl_ms for spec in specs)
        due_ms = self.now_ms + delay_ms if delay_ms else 0
        return Batch(self.route, [message for message, _ in written], size_bytes, self.now_ms, plain, due_ms), letters

    # ---- consumers -------------------------------------------------------------------------------

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
    ) -> Seat[Model]:
        """A consumer comes to a queue. It is among ``seats`` if the queue is there, and admits it."""
        pair = self.pair(number)
        plan, defaults = pair.model.plan, pair.queue.consumer_defaults
        since_ms, after_id = defaults.replay(replay_s, self.now_ms, self.broker.host.message_id)
        reads, has_all = browses or plan.non_destructive, browses and backlog is None
        overhead = 0 if settles else OVERHEAD_BYTES
        consumer = WatchedConsumer(
            self.broker.next_consumer_id(), self, settles=settles or (plan.once and not reads), acks=not settles,
            destructive=not reads, browses=browses, reader=Origin(connection, f"client-{connection}"), exclusive=alone,
            selector=defaults.selector if selector is None else compile_selector(selector), priority=priority,
            window_bytes=-1 if settles else window, no_local=connection if no_local else 0, since_ms=since_ms,
            after_id=after_id, backlog_max=maxsize if has_all else defaults.backlog_for(backlog),
            weigh=lambda message: message.size_bytes + overhead,
        )  # fmt: skip
        reader = Reader(
            number=consumer.id, connection=connection, settles=consumer.settles, acks=not settles, browses=browses,
            reads=reads, selector=selector or plan.default_selector, no_local=no_local,
            window=-1 if settles else window, priority=priority, overhead=overhead,
            replay_s=plan.replay_s if replay_s is None else replay_s, came_ms=self.now_ms, came_after=self.come_in,
            alone=alone, backlog=maxsize if has_all else plan.backlog_for(backlog),
        )  # fmt: skip
        consumer.tell = partial(self.note_taken, pair, reader)
        seat = Seat(consumer, reader, pair)
        if pair.queue.deleted:
            return seat
        if not pair.model.admits_reader(reader):
            try:
                self.broker.attach(pair.queue, consumer, self.now_ms)
            except LimitError:
                self.happened.add("consumer refused")
                self.check()
                return seat
            raise AssertionError("a consumer was admitted")
        pair.model.come(reader, self.now_ms)
        self.broker.attach(pair.queue, consumer, self.now_ms)
        self.seats.append(seat)
        self.set_room(seat, room)
        return seat

    def set_room(self, seat: Seat[Model], room: int) -> None:
        """The connection's socket takes so many bytes more (the session does the same each turn)."""
        seat.consumer.room_bytes = seat.reader.room = room
        if seat.consumer.parked:
            seat.pair.queue.wake(seat.consumer)
        self.check()

    def replace(self, seat: Seat[Model], selector: str | None, *, no_local: bool, backlog: int | None) -> None:
        """A subscription is changed in place."""
        pair, reader = seat.pair, seat.reader
        if not (reader.settles or reader.has_barrier):
            pair.model.put_back_unsent(reader)
        reader.selector = selector or pair.model.plan.default_selector
        reader.no_local = no_local
        reader.backlog = pair.model.plan.backlog_for(backlog)
        defaults = pair.queue.consumer_defaults
        compiled = defaults.selector if selector is None else compile_selector(selector)
        no_local_of = reader.connection if no_local else 0
        pair.queue.replace(seat.consumer, compiled, no_local_of, defaults.backlog_for(backlog), self.now_ms)
        self.happened.add("replaced in place")
        self.check()

    def unsubscribe(self, seat: Seat[Model], *, failed: bool = False) -> None:
        """A consumer goes: UNSUBSCRIBE and DISCONNECT count no attempt, a lost connection does."""
        pair, reader = seat.pair, seat.reader
        pair.model.put_back_unsent(reader)
        sent, reader.held, reader.out = reader.held, [], []
        self.give_back(pair, [(reader, sent)], failed=failed)
        pair.model.leave(reader)
        if pair.model.plan.purge and not (pair.model.takers or reader.browses):
            pair.model.purge()
        self.seats.remove(seat)
        self.broker.detach(pair.queue, seat.consumer, failed=failed, now_ms=self.now_ms)
        self.check()

    def end(self, connection: int, *, failed: bool) -> None:
        """DISCONNECT, or (``failed``) the socket is lost: its transaction is aborted, its consumers go."""
        if connection in self.transactions:
            self.abort(connection)
        for seat in [seat for seat in self.seats if seat.reader.connection == connection]:
            self.unsubscribe(seat, failed=failed)
        self.check()

    def write(self) -> None:
        """End of a turn: what consumers got is written to them."""
        outgoing = self.broker.take_outgoing()
        listed = {consumer.id for consumer in outgoing}
        for consumer in outgoing:
            consumer.listed = False
        for seat in self.seats:
            consumer = seat.consumer
            assert consumer.id in listed or not (consumer.outbox or consumer.handed), "nobody was told of the output"
            entries, consumer.outbox, consumer.handed = consumer.outbox, [], []
            picked = [] if seat.reader.has_barrier else seat.reader.picked
            seat.pair.model.written(seat.reader, self.now_ms)
            seat.pair.model.settle(picked, expires=False)
            if entries:  # so does a session
                seat.pair.queue.sent(consumer, entries)
            consumer.firsts.clear()
        self.check()

    # ---- settling --------------------------------------------------------------------------------

    def give_back(
        self, pair: Pair[Model], held: list[tuple[Reader, list[Item]]], *, failed: bool, cancels: bool = False
    ) -> None:
        """Readers let items go that are not done; what failed for the last time is dead."""
        dead = pair.model.release(held, failed=failed, now_ms=self.now_ms, cancels=cancels)
        if self.plan.address.dead_letter:
            self.dead.extend((letter.id, pair.queue.name) for letter in dead)

    def forward_expired(self, pair: Pair[Model], ids: list[int]) -> None:
        """An expired letter goes to the expiry address, or, if the queue says so, to the dead-letter address instead of
        nowhere, or in any case nowhere.
        """
        policy, address = pair.model.plan.expiry_policy, self.plan.address
        if policy != "DELETE" and address.expiry:
            self.expired.extend((letter_id, pair.queue.name) for letter_id in ids)
        elif policy == "ROUTE_TO_ALTERNATE" and address.dead_letter:
            self.dead.extend((letter_id, pair.queue.name) for letter_id in ids)
            self.happened.update(["expired to the dead-letter address"] if ids else [])

    def conclude(self, pair: Pair[Model], reader: Reader | None, items: list[Item], *, expires: bool) -> None:
        """A reader has let items go that are done, or that it has expire; without one they were nobody's. Reading
        settles nothing, and what is gone was settled before.
        """
        if reader is not None and (reader.reads or reader.settles):
            return
        pair.model.settle(items, expires=expires)
        if expires:
            self.happened.update(["expired by a consumer"] if reader is not None and items else [])
            self.forward_expired(pair, [item.letter.id for item in items])

    def take_back_lapsed(self, pair: Pair[Model]) -> None:
        """What readers held for too long goes back; they come behind the others now."""
        over = pair.model.lapsed(self.now_ms)
        for reader, _ in over:
            pair.model.put_last(reader)
        for reader, items in over:
            reader.held = [item for item in reader.held if item not in items]
            reader.lapsed += items
        self.give_back(pair, over, failed=True)

    def _let_go(self, seat: Seat[Model], index: int, *, cumulative: bool = False) -> tuple[list[Item], list[Entry]]:
        sent, reader = seat.reader.sent, seat.reader
        chosen = sent[: index + 1] if cumulative else [sent[index]]
        reader.held = [item for item in reader.held if item not in chosen]
        reader.out = [item for item in reader.out if item not in chosen]
        return chosen, [seat.consumer.let_go(item.letter.id) for item in chosen]

    def settle(
        self,
        seat: Seat[Model],
        index: int = 0,
        *,
        cumulative: bool = False,
        refuses: bool = False,
        expires: bool = False,
    ) -> None:
        """ACK or NACK of the message at ``index`` among those sent, outside a transaction."""
        items, entries = self._let_go(seat, index, cumulative=cumulative)
        self.carry_out(seat, items, entries, refuses=refuses, expires=expires)
        self.check()

    def carry_out(
        self, seat: Seat[Model], items: list[Item], entries: list[Entry], *, refuses: bool, expires: bool
    ) -> None:
        """Settle what a consumer has let go."""
        pair, queue, consumer = seat.pair, seat.pair.queue, seat.consumer
        if expires:
            self.conclude(pair, seat.reader, items, expires=True)
            queue.expire_held(consumer, entries, self.now_ms)
        elif refuses:
            self.give_back(pair, [(seat.reader, items)], failed=True, cancels=True)
            queue.release(consumer, entries, failed=True, now_ms=self.now_ms)
        else:
            self.conclude(pair, seat.reader, items, expires=False)
            queue.acknowledge(consumer, entries)
        if consumer.parked:
            queue.wake(consumer)

    def sift(self, number: int, connection: int, selector: str, *, refuses: bool, expires: bool) -> None:
        """ACK or NACK by a filter, of a connection that need not read the queue."""
        pair, matches = self.pair(number), SELECTORS[selector]
        queue, model = pair.queue, pair.model
        if queue.deleted or not model.plan.is_like_amps:
            return
        outcome = EXPIRE if expires else CANCEL if refuses else ACCEPT
        if outcome != CANCEL:
            here = [item for item in model.siftable() if matches(item.letter)]
            self.conclude(pair, None, here, expires=expires)
            self.happened.update(["sifted"] if here else [])
        held: list[tuple[Reader, list[Item]]] = []
        for reader in model.readers:
            if reader.reads or reader.settles or (model.plan.strict and reader.connection != connection):
                continue
            items = [item for item in (reader.sent if outcome == CANCEL else reader.held) if matches(item.letter)]
            reader.held = [item for item in reader.held if item not in items]
            reader.unsent = [one for one in reader.unsent if one not in {item.letter.id for item in items}]
            held.append((reader, items))
            self.happened.update(["sifted what others hold"] if items else [])
        if outcome == CANCEL:
            self.give_back(pair, held, failed=True, cancels=True)
        for reader, items in held if outcome != CANCEL else []:
            self.conclude(pair, reader, items, expires=expires)
        queue.acknowledge_by_filter(
            SelectedMessages(compile_selector(selector)), outcome, self.now_ms, connection=connection
        )
        self.check()

    # ---- transactions ----------------------------------------------------------------------------

    def begin(self, connection: int = 1) -> None:
        """BEGIN."""
        self.transactions[connection] = OpenTransaction()

    def send_in_transaction(self, *specs: Spec, connection: int = 1, delay_ms: int = 0) -> None:
        """SEND inside: nothing is seen of it before COMMIT."""
        one = self.transactions[connection]
        due_ms = self.now_ms + delay_ms if delay_ms else 0
        for spec in specs:
            message, letter = self.letter_writer.write(self.broker, spec, connection, self.now_ms)
            one.real.send(self.route, message, due_ms)
            one.sends.append((letter, due_ms, message))
        self.check()

    def settle_in_transaction(
        self, seat: Seat[Model], index: int = 0, *, refuses: bool = False, expires: bool = False
    ) -> None:
        """ACK or NACK inside: out of the consumer's hands and window, in delivery until COMMIT."""
        one, pair, reader = self.transactions[seat.reader.connection], seat.pair, seat.reader
        (item,), (entry,) = self._let_go(seat, index)
        into = "expired" if expires else "refused" if refuses else "acknowledged"
        getattr(one.real, into).append((pair.queue, seat.consumer, entry))
        getattr(one, into).append((pair, reader, item))
        pair.model.pending_of(reader).append((reader, item))
        if seat.consumer.parked:
            pair.queue.wake(seat.consumer)
        self.check()

    def abort(self, connection: int = 1) -> None:
        """ABORT: what was sent is forgotten, what was settled in it has failed and goes back."""
        one = self.transactions.pop(connection)
        self.give_back_all(one.acknowledged + one.refused + one.expired)
        one.real.abort(self.now_ms)
        self.check()

    def settle_all(self, one: OpenTransaction[Model]) -> None:
        """A transaction settles what was to be settled in it."""
        for taken, expires in (one.acknowledged, False), (one.expired, True):
            for pair, reader, item in taken:
                pair.model.pending_of(reader).remove((reader, item))
                self.conclude(pair, reader, [item], expires=expires)
        self.give_back_all(one.refused, cancels=True)

    def give_back_all(self, taken: list[tuple[Pair[Model], Reader, Item]], *, cancels: bool = False) -> None:
        """What a transaction took comes back, to each reader's queue at once."""
        by_reader: dict[int, tuple[Pair[Model], Reader, list[Item]]] = {}
        for pair, reader, item in taken:
            by_reader.setdefault(reader.number, (pair, reader, []))[2].append(item)
        for pair, reader, items in by_reader.values():
            for item in items:
                pair.model.pending_of(reader).remove((reader, item))
            self.give_back(pair, [(reader, items)], failed=True, cancels=cancels)

    # ---- operator --------------------------------------------------------------------------------

    def pause(self, number: int = 0, *, paused: bool = True) -> None:
        """Stop dispatch of a queue."""
        pair = self.pair(number)
        if not pair.queue.deleted:
            operations = self.broker.queue_operations
            (operations.pause if paused else operations.resume)(pair.queue.name)
            pair.model.paused = paused
        self.check()

    resume = partialmethod(pause, paused=False)
    """Dispatch again."""

    def resize(self, size: int, number: int = 0) -> None:
        """Change the ring while running; nothing goes at once."""
        pair = self.pair(number)
        plan = pair.model.plan
        if not (pair.queue.deleted or plan.activates_in_order) and plan.policy == NO_POLICY:
            self.broker.queue_operations.set_ring_size(pair.queue.name, size)
            pair.model.ring_size = size
        self.check()

    def purge(self, number: int = 0) -> None:
        """Remove everything that nobody has in hand."""
        pair = self.pair(number)
        assert pair.queue.unheld_count == len(pair.model.unheld()), "another number would be removed"
        pair.model.purge()
        pair.queue.purge(PURGED, self.now_ms)
        self.check()
