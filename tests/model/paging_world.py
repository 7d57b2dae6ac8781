"""A broker with tiny pages on a simulated disk, beside its model. Writes and reads of pages are done when the world is
told, out of step with everything else.
"""

from __future__ import annotations

from collections import defaultdict
from sys import maxsize
from typing import Final

from artemis_py.core.addresses.batch import Batch
from artemis_py.core.consumer import Reader
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue.acknowledge import SelectedMessages
from artemis_py.core.queue.messages import ACCEPT, CANCEL, EXPIRE
from artemis_py.core.transactions import Transaction
from artemis_py.errors import AddressFullError, QueueFullError
from artemis_py.message import Message
from artemis_py.selector import compile_selector
from tests.model.compare import behind_on
from tests.model.letters import Spec
from tests.model.observe import WatchedConsumer
from tests.model.paging_model import DONE, HANDED, PENDING, READY, Book, PagedReader
from tests.model.paging_state import Open, PagingState, Seat
from tests.model.reader_model import SELECTORS, Letter
from tests.model.side_by_side import PLENTY

TURNS_MAX: Final = 2000
AGES_S: Final = 1_000_000
"""A replay period that leaves nothing out."""


class PagingWorld(PagingState):
    """One address whose queues all page. Writes and reads of pages are done when the world is told."""

    # ---- messages --------------------------------------------------------------------------------

    def _letter(self, spec: Spec, origin: int) -> tuple[Message, Letter]:
        return self._writer.write(self.broker, spec, origin, self.now_ms)

    def letters(self) -> set[int]:
        """Every message that a queue has, once."""
        return {letter_id for book in self.books for letter_id in book.slots}

    def publish(self, *specs: Spec, connection: int = 1, delay_ms: int = 0) -> None:
        """Messages come: at once, or, where something may be refused, one by one."""
        for group in [[spec] for spec in specs] if self.is_limited else [list(specs)]:
            pairs = [self._letter(spec, connection) for spec in group]
            due_ms = self.now_ms + delay_ms if delay_ms else 0
            self._expect([letter for _, letter in pairs], due_ms)
            dropped = self.address.dropped_message_count
            messages = [message for message, _ in pairs]
            plain = not any(spec.persistent or spec.ttl_ms for spec in group)
            size = sum(message.size_bytes for message in messages)
            batch = Batch(self.route, messages, size, self.now_ms, plain=plain, due_ms=due_ms)
            taken = self.broker.publisher.publish(batch)
            refused = taken < len(messages) or self.address.dropped_message_count > dropped
            assert not refused or self.is_limited, "refused without a limit"
            self._arrived([letter for _, letter in pairs], refused=refused)
            self.check_limits(batch)
        self.check()

    def _expect(self, letters: list[Letter], due_ms: int) -> None:
        for letter in letters:
            self.come_in += 1
            letter.place = self.come_in
        for book in self.books:
            for letter in letters:
                if book.accepts(letter):
                    book.add(letter, due_ms)

    def _arrived(self, letters: list[Letter], *, refused: bool) -> None:
        handed: dict[str, set[int]] = defaultdict(set)
        for seat in self.seats:
            handed[seat.book.queue.name] |= {entry.message.id for entry in seat.consumer.handed}
        for book in self.books:
            in_memory = {entry.message.id for entry in book.queue.contents.order} | set(book.queue.contents.scheduled)
            for letter in letters:
                slot = book.slots.get(letter.id)
                if slot is None:
                    continue
                keeps = letter.id in in_memory or not book.queue.flow.overflow.keeps_none
                if not refused:
                    book.look_for_groups(letter)
                if refused or (slot.state == READY and not keeps):
                    del book.slots[letter.id]
                elif slot.state == READY and letter.id in handed[book.queue.name]:
                    slot.state = HANDED

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
        backlog: int | None = None,
    ) -> Seat | None:
        """A consumer comes to a queue that is still there."""
        book = self.books[number % len(self.books)]
        if book.queue.deleted:
            return None
        reads = browses or book.queue.non_destructive
        defaults, plan = book.queue.consumer_defaults, book.plan
        since_ms, after_id = book.queue.consumer_defaults.replay(replay_s, self.now_ms, self.broker.host.message_id)
        consumer = WatchedConsumer(
            self.broker.next_consumer_id(), self, settles=settles or (plan.once and not reads), acks=not settles,
            destructive=not reads, browses=browses, reader=Reader(connection),
            backlog_max=maxsize if browses and backlog is None else defaults.backlog_for(backlog),
            selector=None if selector is None else compile_selector(selector), priority=priority,
            window_bytes=-1 if settles else window, no_local=connection if no_local else 0, since_ms=since_ms,
            after_id=after_id,
        )  # fmt: skip
        reader = PagedReader(
            number=consumer.id, connection=connection, settles=consumer.settles, browses=browses, reads=reads,
            acks=not settles, backlog=maxsize if reads else plan.backlog_for(backlog),
            selector=selector, no_local=no_local, came_ms=self.now_ms, came_after=self.come_in,
            replay_s=book.plan.replay_s if replay_s is None else replay_s,
        )  # fmt: skip
        consumer.tell = lambda entry: book.delivered(reader, entry.message.id, self.now_ms)
        consumer.tell_barrier = lambda entry: book.barrier_delivered(reader, entry.message.id, self.now_ms)
        book.come(reader)
        self.broker.attach(book.queue, consumer, self.now_ms)
        seat = Seat(consumer, reader, book)
        self.seats.append(seat)
        self.set_room(seat, room)
        return seat

    def set_room(self, seat: Seat, room: int) -> None:
        """The connection's socket takes so many bytes more."""
        seat.consumer.room_bytes = room
        if seat.consumer.parked:
            seat.book.queue.wake(seat.consumer)
        self.check()

    def settle(
        self, seat: Seat, index: int, *, cumulative: bool = False, refuses: bool = False, expires: bool = False
    ) -> None:
        """ACK or NACK outside a transaction."""
        sent = seat.sent
        ids = sent[: index + 1] if cumulative else [sent[index]]
        entries = [seat.consumer.let_go(letter_id) for letter_id in ids]
        book = seat.book
        if expires:
            self._done(book, seat.reader, ids, expires=True)
            book.queue.expire_held(seat.consumer, entries, self.now_ms)
        elif refuses:
            self._release(book, seat.reader, ids, failed=True, cancels=True)
            book.queue.release(seat.consumer, entries, failed=True, now_ms=self.now_ms)
        else:
            self._done(book, seat.reader, ids)
            book.queue.acknowledge(seat.consumer, entries)
        if seat.consumer.parked:
            book.queue.wake(seat.consumer)
        self.check()

    def _release(
        self, book: Book, reader: PagedReader, ids: list[int], *, failed: bool, sent: bool = True, cancels: bool = False
    ) -> None:
        if reader.settles and sent:
            reader.out.difference_update(ids)
        elif not reader.reads:
            if book.queue.deleted:
                book.kills = True
            delayed = self.plan.address.redelivery_delay > 0
            book.come_back(ids, failed=failed, delayed=delayed, sent=sent, cancels=cancels)

    def _done(self, book: Book, reader: PagedReader, ids: list[int], *, expires: bool = False) -> None:
        if reader.settles:
            reader.out.difference_update(ids)
        elif not reader.reads:
            for letter_id in ids:
                book.slots[letter_id].state = DONE
                book.slots[letter_id].forced = expires

    def sift(self, number: int, connection: int, selector: str, *, refuses: bool, expires: bool) -> None:
        """ACK or NACK by a filter, of all that is in memory."""
        book = self.books[number % len(self.books)]
        queue, matches = book.queue, SELECTORS[selector]
        outcome = EXPIRE if expires else CANCEL if refuses else ACCEPT
        if queue.deleted or not book.plan.is_like_amps:
            return
        here = {entry.message.id for entry in queue.contents.order} | set(queue.contents.scheduled)
        here -= {entry.message.id for entry in behind_on(queue)}
        for letter_id in [] if outcome == CANCEL else here:
            slot = book.slots[letter_id]
            if matches(slot.letter):
                slot.state, slot.forced = DONE, outcome == EXPIRE
        for seat in [
            seat for seat in self.seats if seat.book is book and not (seat.reader.reads or seat.reader.settles)
        ]:
            held = seat.sent if outcome == CANCEL else list(seat.consumer.held)
            ids = [letter_id for letter_id in held if matches(book.slots[letter_id].letter)]
            if book.plan.strict and seat.reader.connection != connection:
                continue
            if outcome == CANCEL:
                self._release(book, seat.reader, ids, failed=True, cancels=True)
            else:
                self._done(book, seat.reader, ids, expires=outcome == EXPIRE)
        queue.acknowledge_by_filter(
            SelectedMessages(compile_selector(selector)), outcome, self.now_ms, connection=connection
        )
        left = [letter_id for letter_id, slot in book.slots.items() if slot.state == DONE]
        assert not left, f"the filter left {left}"
        self.check()

    def replace(self, seat: Seat, selector: str | None, *, no_local: bool, backlog: int | None) -> None:
        """A subscription is changed in place."""
        reader, queue = seat.reader, seat.book.queue
        if not reader.settles and seat.consumer.barrier is None:
            unsent = [entry.message.id for entry in seat.consumer.outbox]
            self._release(seat.book, reader, unsent, failed=False, sent=False)
        reader.selector, reader.no_local = selector, no_local
        reader.backlog = seat.book.plan.backlog_for(backlog)
        compiled = None if selector is None else compile_selector(selector)
        no_local_of = reader.connection if no_local else 0
        queue.replace(seat.consumer, compiled, no_local_of, queue.consumer_defaults.backlog_for(backlog), self.now_ms)
        self.check()

    def _end_leases(self) -> None:
        """What is held for too long is about to go back; the lease of what is not sent again yet has not begun."""
        for seat in self.seats:
            unsent = {entry.message.id for entry in seat.consumer.outbox}
            leases = {one: end_ms for one, end_ms in seat.reader.leases.items() if one not in unsent}
            over = [one for one in seat.consumer.held if leases.get(one, self.now_ms + 1) <= self.now_ms]
            self._release(seat.book, seat.reader, over, failed=True)
            seat.reader.leases = {one: end_ms for one, end_ms in leases.items() if end_ms > self.now_ms}
            self._lapsed += [(seat.consumer, one) for one in over]

    def unsubscribe(self, seat: Seat, *, failed: bool = False) -> None:
        """A consumer goes."""
        book, consumer = seat.book, seat.consumer
        unsent = {entry.message.id for entry in consumer.outbox if entry is not consumer.barrier}
        self._release(book, seat.reader, [one for one in consumer.held if one not in unsent], failed=failed)
        self._release(book, seat.reader, list(unsent), failed=False, sent=False)
        for entry in consumer.handed:
            book.come_back([entry.message.id], failed=False, sent=False)
            book.slots[entry.message.id].floats = True
        self.seats.remove(seat)
        last = all(reader.browses for reader in book.readers if reader is not seat.reader) and not seat.reader.browses
        book.kills = book.plan.purge and last
        if last and not book.barrier_was_written:
            book.see_barrier(is_out=False)
        self.broker.detach(book.queue, consumer, failed=failed, now_ms=self.now_ms)
        book.left(seat.reader)
        if book.kills:
            book.clear()
            book.kills = False
        self.check()

    def end(self, connection: int, *, failed: bool) -> None:
        """A connection is lost or says goodbye."""
        if connection in self.transactions:
            self.abort(connection)
        for seat in [seat for seat in self.seats if seat.reader.connection == connection]:
            self.unsubscribe(seat, failed=failed)

    # ---- transactions ----------------------------------------------------------------------------

    def begin(self, connection: int) -> None:
        """BEGIN."""
        self.transactions[connection] = Open(Transaction(), [], [], [], set())

    def send_in_transaction(self, *specs: Spec, connection: int, delay_ms: int) -> None:
        """SEND in a transaction."""
        one = self.transactions[connection]
        due_ms = self.now_ms + delay_ms if delay_ms else 0
        for spec in specs:
            message, letter = self._letter(spec, connection)
            one.real.send(self.route, message, due_ms)
            one.sends.append((letter, due_ms))

    def settle_in_transaction(self, seat: Seat, index: int, *, refuses: bool, expires: bool) -> None:
        """ACK or NACK in a transaction."""
        one = self.transactions[seat.reader.connection]
        letter_id = seat.sent[index]
        entry = seat.consumer.let_go(letter_id)
        into = one.real.expired if expires else one.real.refused if refuses else one.real.acknowledged
        into.append((seat.book.queue, seat.consumer, entry))
        (one.refused if into is one.real.refused else one.taken).append((seat.book, seat.reader, letter_id))
        one.expiring.update([letter_id] if expires else [])
        if seat.reader.settles:
            seat.reader.out.discard(letter_id)
            seat.book.pending_out += 1
        elif not seat.reader.reads:
            seat.book.slots[letter_id].state = PENDING
        if seat.consumer.parked:
            seat.book.queue.wake(seat.consumer)
        self.check()

    def commit(self, connection: int) -> None:
        """COMMIT, unless it has to wait."""
        one = self.transactions[connection]
        if one.real.blocked_by() is not None or one.real.make_way(self.broker.publisher, self.now_ms) is not None:
            return
        del self.transactions[connection]
        for place, (letter, _) in enumerate(one.sends, self.broker.host.message_id + 1):
            letter.id = place  # it is numbered anew when it comes in
        slots = {letter.id: (letter, due_ms) for letter, due_ms in one.sends}
        for letter, due_ms in slots.values():
            self._expect([letter], due_ms)
        states = [
            (book, reader, letter_id) for book, reader, letter_id in one.taken if not (reader.reads or reader.settles)
        ]
        for book, reader, letter_id in one.taken:
            self._done(book, reader, [letter_id], expires=letter_id in one.expiring)
        for book, reader, letter_id in one.refused:
            self._release(book, reader, [letter_id], failed=True, cancels=True)
        self._confirm_pending(one)
        dropped = self.address.dropped_message_count
        try:
            one.real.commit(self.broker, self.now_ms)
        except (AddressFullError, QueueFullError):
            assert self.may_fail, "COMMIT failed without a limit"
            self._forget_letters(list(slots))
            for book, _, letter_id in states:
                book.slots[letter_id].state = PENDING
            for book, reader, letter_id in one.taken:
                self._release(book, reader, [letter_id], failed=True)
            for book, reader, letter_id in one.refused:
                if not (reader.reads or reader.settles):
                    book.slots[letter_id].cancels -= 1  # its NACK is undone
            one.real.abort(self.now_ms)
        else:
            lost = self.address.dropped_message_count - dropped
            ids = list(slots)
            self._forget_letters(ids[len(ids) - lost :])
            for letter, _ in one.sends[: len(ids) - lost]:
                self._arrived([letter], refused=False)
        for book in self.books:
            book.kills = False
        self.check()

    def _forget_letters(self, ids: list[int]) -> None:
        for book in self.books:
            for letter_id in ids:
                book.slots.pop(letter_id, None)

    def abort(self, connection: int) -> None:
        """ABORT."""
        one = self.transactions.pop(connection)
        for book, reader, letter_id in one.taken + one.refused:
            self._release(book, reader, [letter_id], failed=True)
        self._confirm_pending(one)
        one.real.abort(self.now_ms)
        for book in self.books:
            book.kills = False
        self.check()

    def _confirm_pending(self, one: Open) -> None:
        """What was sent at most once and acknowledged in the transaction is out no more."""
        for book, reader, _ in one.taken + one.refused:
            book.pending_out -= reader.settles

    # ---- operator --------------------------------------------------------------------------------

    def pause(self, number: int) -> None:
        """Stop dispatch."""
        self.books[number % len(self.books)].queue.pause()

    def resume(self, number: int) -> None:
        """Dispatch again."""
        self.books[number % len(self.books)].queue.resume()

    def resize(self, number: int, size: int) -> None:
        """Change the ring while it runs."""
        book = self.books[number % len(self.books)]
        if not book.queue.deleted and book.plan.may_be_ring:
            self.broker.queue_operations.set_ring_size(book.queue.name, size)
            book.ring_size = size

    def purge(self, number: int) -> None:
        """Remove everything that nobody has in hand."""
        book = self.books[number % len(self.books)]
        before = sum(slot.state == READY for slot in book.slots.values())
        book.kills = True
        assert book.queue.unheld_count == before, "another number would be removed"
        book.queue.purge(PURGED, self.now_ms)
        book.clear()
        book.kills = False
        self.check()

    def delete(self, number: int) -> None:
        """Delete a queue, if there is one of this number; its consumers leave before."""
        book = self.books[number] if number < len(self.books) else None
        if book is None or book.queue.deleted:
            return
        for seat in [seat for seat in self.seats if seat.book is book]:
            self.unsubscribe(seat)
        book.kills = self.log.deletes = True
        self.broker.registry.delete_queue(book.queue, self.now_ms)
        book.clear()
        book.kills = self.log.deletes = False
        self.check()

    # ---- turns -----------------------------------------------------------------------------------

    def turn(self, ms: int = 0) -> None:
        """A turn, as the server makes it; the disk does nothing in it."""
        self.now_ms += ms
        self.log.poll()
        self.broker.take_fetched_pages()
        self._end_leases()
        self.broker.tick(self.now_ms)
        assert not any(letter_id in consumer.held for consumer, letter_id in self._lapsed), "held beyond its lease"
        self._lapsed.clear()
        self.broker.dispatch(self.now_ms)
        self._write()
        self.log.seal()
        self.check()

    def work_disk(self, *, reads: bool) -> None:
        """The disk reads one part of a page, or writes what was sealed."""
        (self.reader if reads else self.writer).step()

    def _write(self) -> None:
        outgoing = self.broker.take_outgoing()
        for consumer in outgoing:
            consumer.listed = False
        for seat in self.seats:
            consumer = seat.consumer
            for entry in consumer.handed:
                del seat.book.slots[entry.message.id]
            entries, consumer.outbox, consumer.handed = consumer.outbox, [], []
            is_barrier = consumer.barrier is not None
            seat.book.barrier_was_written = seat.book.barrier_was_written or is_barrier
            if entries:  # so does a session
                seat.book.queue.sent(consumer, entries)
            if (
                entries
                and not is_barrier
                and seat.book.plan.lease_ms
                and not (seat.reader.reads or seat.reader.settles)
            ):
                ends_ms = self.now_ms + seat.book.plan.lease_ms
                seat.reader.leases |= {entry.message.id: ends_ms for entry in entries}

    def rest(self) -> None:
        """Turns and disk go on until nothing moves any more. Then nobody may lack anything."""
        for _ in range(TURNS_MAX):
            worked = self.writer.step() | self.reader.step()
            self.turn()
            if not worked and not self.broker.has_ready and self.reader.idle and self.writer.idle:
                break
        else:
            raise AssertionError("it never comes to rest")
        for book in [] if self.is_damaged else self.books:
            self._check_nobody_starves(book)

    def _check_nobody_starves(self, book: Book) -> None:
        queue = book.queue
        if queue.deleted:
            return
        has_space = queue.pages.reading.has_space()
        for seat in self.seats:
            if seat.book is book and seat.consumer.room_bytes > 0:
                barrier = book.barrier_for(seat.reader, self.now_ms)
                here = barrier is not None and (has_space or barrier.letter.id in self._in_memory(book))
                assert not here, f"{queue.name}: consumer {seat.reader.number} waits for a barrier"
            if seat.book is not book or not seat.consumer.has_room or not book.is_served(seat.reader):
                continue
            if (not queue.gate.is_open or book.must_settle or book.is_full) and not seat.reader.browses:
                continue
            wanted = book.wanted_by(seat.reader, self.now_ms)
            if seat.reader.is_plain and not queue.contents.order.count and not has_space:
                continue  # the limits on reading ahead count what others hold
            in_order = (book.plan.is_grouped and not seat.reader.reads) or book.plan.activates_in_order
            if in_order and not has_space:  # what waits for its group, or is not active, takes part of the memory
                wanted = [one for one in wanted if one in self._in_memory(book)]
            assert not wanted, f"{queue.name}: consumer {seat.reader.number} starves for {wanted}"

    def _in_memory(self, book: Book) -> set[int]:
        """Ids of what is ready, or not active yet, and not in a page."""
        return {entry.message.id for entry in [*book.queue.contents.order, *behind_on(book.queue)]}

    # ---- the end ---------------------------------------------------------------------------------

    def finish(self, *, drains: bool) -> None:
        """Everybody goes. What is left is read to its end by plain consumers, or removed; then nothing may remain."""
        for connection in {seat.reader.connection for seat in self.seats} | set(self.transactions):
            self.end(connection, failed=False)
        for number, book in enumerate(self.books):
            if book.queue.deleted:
                continue
            if drains and not book.queue.non_destructive and not book.plan.purge:
                self.resume(number)
                for _ in range(3):
                    self.subscribe(number, settles=True, replay_s=None if book.plan.replay_s is None else AGES_S)
            else:
                self.purge(number)
        self.now_ms += 1_000_000
        self.rest()
        for book in self.books:
            assert not book.slots, f"never delivered: {sorted(book.slots)}"
        self._check_empty()

    def empty(self) -> None:
        """The end of a world."""
        self.finish(drains=True)

    def _check_empty(self) -> None:
        account = self.address.account
        assert (account.message_count, account.size_bytes) == (0, 0), "an empty address holds memory"
        assert self.address.number_of_pages == 0, "pages without messages"
        assert self.files.backlog_bytes == 0, "something is not written and never will be"
        self.rest()
        assert self.disk.names() == [], "page files that nobody needs"
