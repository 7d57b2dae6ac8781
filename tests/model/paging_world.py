"""A broker with tiny pages on a simulated disk, beside its model. Writes and reads of pages are done when the world is
told, out of step with everything else.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from artemis_py.core.broker import Broker
from artemis_py.core.dead_letters import Copies
from artemis_py.core.events import LEASES_ENDED, Events
from artemis_py.core.queue.messages import Contents
from artemis_py.core.queue.queue import Queue
from artemis_py.errors import AddressFullError, QueueFullError
from artemis_py.message import Message
from artemis_py.paged_messages import Page, PagedMessage
from artemis_py.record_log import Actor, RecoveredState
from artemis_py.storage.pages import PageFiles, SpillLog
from artemis_py.version import IS_COMPILED
from tests.kit.committer import SteppedCommitter
from tests.kit.disk import SimDisk
from tests.model.compare import behind_on, compare_sizes
from tests.model.letters import Spec
from tests.model.paging_model import HELD, READY, Book
from tests.model.plans import ADDRESS, FLOW_CONTROL, REJECT, Plan
from tests.model.reader_model import Letter
from tests.model.world import Pair, World

TURNS_MAX: Final = 2000
AGES_S: Final = 1_000_000
"""A replay period that leaves nothing out."""


class WatchedCopies(Copies):
    """Stands where all queues of a broker know it, and knows the world that wants to know what leaves them."""

    world: PagingWorld


_FORGET = Contents._forget


def _forget(contents: Contents, messages: list[Message], reason: str, by: Actor | None = None) -> None:
    """A queue no longer holds messages."""
    copies = contents._host.copies
    if isinstance(copies, WatchedCopies):
        world, name = copies.world, contents._reference.name
        pair = next(pair for pair in world.pairs if pair.queue.name == name)
        for message in messages:
            pair.model.ended(message.id, reason, world.now_ms)
    _FORGET(contents, messages, reason, by)


class StrictLog(SpillLog):
    """Nobody may settle a message in a page twice, and nothing of a page that was given up."""

    queues: list[Queue]
    settled_places: set[tuple[int, int, int]]

    def page_settled(
        self, queue_id: int, messages: list[PagedMessage], reason: str, consumer: Actor | None = None
    ) -> int:
        for message in messages:
            place = queue_id, message.page.stream, message.place
            assert place not in self.settled_places, f"place {message.place} was settled twice in queue {queue_id}"
            self.settled_places.add(place)
        return self.last_lsn

    def page_dropped(self, page: Page) -> int:
        assert not page.left, "a page goes that somebody needs"
        found = [queue.contents.paged.backlogs.get(page.stream) for queue in self.queues if queue.deleted]
        of_deleted = {place for backlog in found if backlog is not None for place in backlog.in_memory}
        assert page.resident.keys() <= of_deleted, "a page goes, and a queue has something of it in memory"
        return self.last_lsn


class PagingWorld(World[Book]):
    """One address whose queues all page. Writes and reads of pages are done when the world is told."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.is_damaged = False
        """Did a test change the files? Then the model does not know what has to be there."""
        assert plan.pages is not None
        self.page_plan = plan.pages
        self.disk = SimDisk(Random(0))
        self.writer = SteppedCommitter(lambda: None)
        self.reader = SteppedCommitter(lambda: None)
        self.said: list[str] = []
        self.files = PageFiles(self.disk, self.reader, self.said.append)
        self.log = StrictLog(self.writer, self.files)
        self.log.queues, self.log.settled_places = [], set()
        self.broker = Broker(plan.config(), self.log, self.now_ms, RecoveredState(), self.files)
        setattr(Contents, "_forget", _forget)  # noqa: B010 - a test looks on; interpreted only
        copies = self.broker.host.copies = WatchedCopies(self.broker.log)
        copies.world = self
        if not IS_COMPILED:
            setattr(self.broker.events, "note", self._note_event)  # noqa: B010 - a test looks on
        queues = self.log.queues = [self.broker.queues[f"q{number}"] for number in range(len(plan.queues))]
        self.pairs = [
            Pair(queue, Book(queue_plan, plan.address, queue))
            for queue, queue_plan in zip(queues, plan.queues, strict=True)
        ]
        self.route = plan.route(self.broker.resolver)
        self.address: Any = self.broker.addresses[ADDRESS]
        """The address under test."""
        policies, is_limited = {queue.policy for queue in plan.queues}, self.page_plan.limit_messages >= 0
        self.is_limited = is_limited or bool(policies & {REJECT, FLOW_CONTROL})
        """May a message be refused?"""
        self.may_fail = (is_limited and self.page_plan.limit_policy == "FAIL") or REJECT in policies
        """May a COMMIT be refused?"""

    def _note_event(self, code: str, queue: str, fields: dict[str, str | int], **more: Any) -> None:
        """Leases end in their turn among what else is due in a tick."""
        if code == LEASES_ENDED:
            self.take_back_lapsed(next(pair for pair in self.pairs if pair.queue.name == queue))
        Events.note(self.broker.events, code, queue, fields, **more)

    # ---- messages --------------------------------------------------------------------------------

    def publish(self, *specs: Spec, connection: int = 1, delay_ms: int = 0) -> None:
        """Messages come: at once, or, where something may be refused, one by one."""
        for group in [[spec] for spec in specs] if self.is_limited else [list(specs)]:
            batch, letters = self.batch_of(group, connection, delay_ms)
            self._expect(letters, batch.due_ms)
            dropped = self.address.dropped_message_count
            taken = self.broker.publisher.publish(batch)
            refused = taken < len(letters) or self.address.dropped_message_count > dropped
            assert not refused or self.is_limited, "refused without a limit"
            self._arrived(letters, refused=refused)
            for pair in self.pairs:  # what was let in fits; what was kept out, was for a reason that still holds
                model, name = pair.model, pair.queue.name
                if batch.refused_by is pair.queue:
                    is_full = model.plan.policy == REJECT and not model.is_within([letters[0]])
                    is_deep = bool(model.picked_items()) or not model.is_within([], model.plan.resume_percent)
                    waits = model.plan.policy == FLOW_CONTROL and is_deep
                    assert is_full or waits, f"{name} kept out what it has room for"
                elif batch.refused_by is None and any(letter.id in model.slots for letter in letters):
                    assert model.plan.policy != REJECT or model.is_within([]), f"{name} is too full"
        self.check()

    def _expect(self, letters: list[Letter], due_ms: int) -> None:
        for letter in letters:
            self.come_in += 1
            letter.place = self.come_in
            for pair in self.pairs if self.route.address is self.address else ():
                if not pair.queue.deleted and pair.model.accepts(letter):
                    pair.model.add(letter, due_ms)

    def _arrived(self, letters: list[Letter], *, refused: bool) -> None:
        handed = {(seat.pair, entry.message.id): seat.reader for seat in self.seats for entry in seat.consumer.handed}
        for pair in self.pairs:
            model, queue = pair.model, pair.queue
            in_memory = {entry.message.id for entry in queue.contents.order} | set(queue.contents.scheduled)
            for letter in [letter for letter in letters if letter.id in model.slots]:
                slot = model.slots[letter.id]
                keeps = letter.id in in_memory or not queue.flow.overflow.keeps_none
                if not refused:
                    model.look_for_groups([letter])
                if refused or (slot.state == READY and not keeps):
                    del model.slots[letter.id]
                elif slot.state == READY and (pair, letter.id) in handed:
                    del model.slots[letter.id]  # it never stands here, unless it comes back
                    reader = handed[pair, letter.id]
                    reader.handed.append(letter)
                    reader.room -= reader.weight(letter)

    def commit(self, connection: int) -> None:
        """COMMIT, unless it has to wait."""
        one = self.transactions[connection]
        if one.real.blocked_by() is not None or one.real.make_way(self.broker.publisher, self.now_ms) is not None:
            return
        del self.transactions[connection]
        for place, (letter, due_ms, _) in enumerate(one.sends, self.broker.host.message_id + 1):
            letter.id = place  # it is numbered anew when it comes in
            self._expect([letter], due_ms)
        taken = [
            (pair, reader, item)
            for pair, reader, item in one.acknowledged + one.expired
            if not (reader.reads or reader.settles)
        ]
        self.settle_all(one)
        dropped = self.address.dropped_message_count
        lost = 0
        try:
            one.real.commit(self.broker, self.now_ms)
        except (AddressFullError, QueueFullError):
            assert self.may_fail, "COMMIT failed without a limit"
            lost = len(one.sends)
            for pair, reader, item in taken:
                pair.model.release([(reader, [item])], failed=True, now_ms=self.now_ms)
            for _, reader, item in one.refused:
                item.cancels -= not (reader.reads or reader.settles)  # its NACK is undone
            one.real.abort(self.now_ms)
        else:
            lost = self.address.dropped_message_count - dropped
        come = [letter for letter, _, _ in one.sends[: len(one.sends) - lost]]
        for letter, _, _ in one.sends[len(come) :]:
            for pair in self.pairs:
                pair.model.slots.pop(letter.id, None)
        for letter in come:
            self._arrived([letter], refused=False)
        self.check()

    def delete(self, number: int) -> None:
        """Delete a queue, if there is one of this number; its consumers leave before. Where clients name a view, and it
        was the one, what they send and commit from now on reaches none of these queues.
        """
        if number >= len(self.pairs) or self.pairs[number].queue.deleted:
            return
        pair = self.pairs[number]
        for seat in [seat for seat in self.seats if seat.pair is pair]:
            self.unsubscribe(seat)
        pair.model.purge()
        self.broker.registry.delete_queue(pair.queue, self.now_ms)
        self.route = self.broker.resolver.renewed(self.route)
        self.check()

    # ---- turns -----------------------------------------------------------------------------------

    def turn(self, ms: int = 0) -> None:
        """A turn, as the server makes it; the disk does nothing in it."""
        self.now_ms += ms
        self.log.poll()
        self.broker.take_fetched_pages()
        for pair in self.pairs:
            pair.model.tick_gate(self.now_ms)
        self.broker.tick(self.now_ms)
        self.broker.dispatch(self.now_ms)
        self.write()
        self.log.seal()

    def work_disk(self, *, reads: bool) -> None:
        """The disk reads one part of a page, or writes what was sealed."""
        (self.reader if reads else self.writer).step()

    def rest(self) -> None:
        """Turns and disk go on until nothing moves any more. Then nobody may lack anything."""
        for _ in range(TURNS_MAX):
            worked = self.writer.step() | self.reader.step()
            self.turn()
            if not worked and not self.broker.has_ready and self.reader.idle and self.writer.idle:
                break
        else:
            raise AssertionError("it never comes to rest")
        for pair in [] if self.is_damaged else self.pairs:
            if not pair.queue.deleted:
                assert not pair.model.lapsed(self.now_ms), f"a lease on {pair.queue.name} does not end"
                self._check_nobody_starves(pair)

    def _check_nobody_starves(self, pair: Pair[Book]) -> None:
        queue, book = pair.queue, pair.model
        has_space = queue.pages.reading.has_space()
        in_memory = {entry.message.id for entry in [*queue.contents.order, *behind_on(queue)]}
        barrier = book.barrier_in_turn(self.now_ms)
        for reader in book.readers:
            if barrier is not None and book.is_open and reader.room > 0 and book.lacks_barrier(reader, barrier):
                here = has_space or barrier.letter.id in in_memory
                assert not here, f"{queue.name}: consumer {reader.number} waits for a barrier"
            may_go = book.is_open and not book.is_full
            if not (reader.has_room and book.is_served(reader) and (may_go or reader.browses)):
                continue
            known = reader.shown | reader.may_miss if reader.reads else ()
            wanted = [
                letter_id
                for letter_id, slot in book.slots.items()
                if letter_id not in known and book.available(slot, self.now_ms)
                if book.may_be_active(slot, surely=True) and reader.wants(slot.letter) and book.may_have(reader, slot)
            ]
            if reader.wants_all and not reader.reads and not queue.contents.order.count and not has_space:
                continue  # the limits on reading ahead count what others hold
            in_order = (book.plan.is_grouped and not reader.reads) or book.plan.activates_in_order
            if in_order and not has_space:  # what waits for its group, or is not active, takes part of the memory
                wanted = [one for one in wanted if one in in_memory]
            assert not wanted, f"{queue.name}: consumer {reader.number} starves for {wanted}"

    # ---- what must always hold -------------------------------------------------------------------

    def check(self) -> None:
        """Counts, sizes, accounts and pages tell the same."""
        if self.is_damaged:
            return
        in_memory: dict[int, Letter] = {}
        for pair in self.pairs:
            model = pair.model
            if model.kills:  # the step is over in which what nobody had in hand was killed
                model.slots = {letter_id: slot for letter_id, slot in model.slots.items() if slot.state != READY}
                model.kills = False
            ids = self._check_queue(pair.queue, pair.model)
            in_memory.update({letter_id: pair.model.slots[letter_id].letter for letter_id in ids})
        super().check()
        account = self.address.account
        assert account.message_count == len(in_memory), "messages that the address answers for"
        assert account.size_bytes == sum(one.memory_bytes for one in in_memory.values()), "bytes of the address"
        assert self.broker.memory.account.message_count >= account.message_count, "messages of the broker"
        assert not self.said, "damage without damage"

    def _check_queue(self, queue: Queue, book: Book) -> set[int]:
        activation = queue.activation
        is_out = activation is not None and activation.broadcast is not None and activation.broadcast.is_out
        if book.barrier_out is not None and not is_out:
            assert not book.barrier_was_written, "a barrier came back although it was sent"
            book.end_barrier()
        slots = list(book.slots.values())
        assert queue.message_count == len(book.standing()), f"message count of {queue.name}"
        held = [slot.letter for slot in slots if slot.state == HELD]
        compare_sizes(queue, [slot.letter for slot in slots], held, [item.letter for item in book.aside()])
        places = [entry.message.id for entry in queue.contents.order] + list(queue.contents.scheduled)
        places += [entry.message.id for entry in behind_on(queue) if not queue.contents.is_aside(entry)]
        places += [slot.letter.id for slot in slots if slot.state != READY]
        ids = set(places)
        assert len(ids) == len(places), f"a message stands in {queue.name} at two places"
        in_pages = [slot.letter.size_bytes for slot in slots if slot.letter.id not in ids]
        assert len(ids) + len(in_pages) == len(slots), "something stands there that is gone"
        if not queue.deleted:
            paged = queue.contents.paged
            assert (paged.count, paged.size_bytes) == (len(in_pages), sum(in_pages)), "messages and bytes in pages"
            stream = self.address.stream
            backlog = None if stream is None else paged.backlogs.get(stream.number)
            if backlog is not None:
                left = sum(page.left.get(queue.id, 0) for page in stream.pages)
                assert left == backlog.count + len(backlog.in_memory), "pages and backlog differ"
                assert stream.message_count.get(queue.id, 0) == left, "the stream counts otherwise"
                for place, message in backlog.in_memory.items():
                    assert message.page.resident.get(place) is message, "one message, two copies in memory"
        return ids

    # ---- the end ---------------------------------------------------------------------------------

    def finish(self, *, drains: bool = True) -> None:
        """Everybody goes. What is left is read to its end by plain consumers, or removed; then nothing may remain."""
        for connection in {seat.reader.connection for seat in self.seats} | set(self.transactions):
            self.end(connection, failed=False)
        for number, queue in enumerate(self.plan.queues):
            if self.pairs[number].queue.deleted:
                continue
            if drains and not queue.non_destructive and not queue.purge:
                self.resume(number)
                for _ in range(3):
                    self.subscribe(number, settles=True, replay_s=None if queue.replay_s is None else AGES_S)
            else:
                self.purge(number)
        self.now_ms += 1_000_000
        self.rest()
        for pair in self.pairs:
            assert not pair.model.slots, f"never delivered: {sorted(pair.model.slots)}"
        account = self.address.account
        assert (account.message_count, account.size_bytes) == (0, 0), "an empty address holds memory"
        assert self.address.number_of_pages == 0, "pages without messages"
        assert self.files.backlog_bytes == 0, "something is not written and never will be"
        self.rest()
        assert self.disk.names() == [], "page files that nobody needs"
