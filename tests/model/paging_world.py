"""A broker with tiny pages on a simulated disk, beside its model. Writes and reads of pages are done when the world is
told, out of step with everything else.
"""

from __future__ import annotations

from typing import Final

from artemis_py.core.order.entry import Entry
from artemis_py.errors import AddressFullError, QueueFullError
from tests.model.compare import behind_on
from tests.model.letters import Spec
from tests.model.paging_model import HANDED, READY, Book
from tests.model.paging_state import PagingState
from tests.model.reader_model import Item, Letter, Reader
from tests.model.world import Pair

TURNS_MAX: Final = 2000
AGES_S: Final = 1_000_000
"""A replay period that leaves nothing out."""


class PagingWorld(PagingState):
    """One address whose queues all page. Writes and reads of pages are done when the world is told."""

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
            self.check_limits(batch, letters)
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
                    reader, slot.state = handed[pair, letter.id], HANDED
                    reader.handed.append(letter)
                    reader.room -= reader.weight(letter)

    # ---- what is not the same as without pages ---------------------------------------------------

    def note_taken(self, pair: Pair[Book], reader: Reader, entry: Entry, *, is_barrier: bool) -> None:
        deliver = pair.model.deliver_barrier if is_barrier else pair.model.deliver
        deliver(reader, entry.message.id, self.now_ms)

    def sift_among(self, pair: Pair[Book]) -> list[Item]:
        """All that is in memory, and active."""
        contents = pair.queue.contents
        here = {entry.message.id for entry in contents.order} | set(contents.scheduled)
        here -= {entry.message.id for entry in behind_on(pair.queue)}
        return [pair.model.slots[letter_id] for letter_id in here]

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
            wanted = book.wanted_by(reader, self.now_ms)
            if reader.wants_all and not reader.reads and not queue.contents.order.count and not has_space:
                continue  # the limits on reading ahead count what others hold
            in_order = (book.plan.is_grouped and not reader.reads) or book.plan.activates_in_order
            if in_order and not has_space:  # what waits for its group, or is not active, takes part of the memory
                wanted = [one for one in wanted if one in in_memory]
            assert not wanted, f"{queue.name}: consumer {reader.number} starves for {wanted}"

    # ---- the end ---------------------------------------------------------------------------------

    def finish(self, *, drains: bool) -> None:
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

    def empty(self) -> None:
        """The end of a world."""
        self.finish(drains=True)
