"""Operations of clients on a world: sending, settling, transactions, and what an operator does."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from artemis_py.core.addresses.batch import Batch
from artemis_py.core.order.entry import PURGED, Entry
from artemis_py.core.queue.acknowledge import SelectedMessages
from artemis_py.core.queue.messages import ACCEPT, CANCEL, EXPIRE
from artemis_py.core.transactions import Transaction
from artemis_py.errors import AddressFullError, BrokerError, QueueFullError
from artemis_py.message import Message
from artemis_py.selector import compile_selector
from tests.model.letters import Spec
from tests.model.lives import StrictRecords
from tests.model.plans import ADDRESS, NO_POLICY, REJECT, Plan
from tests.model.reader_model import SELECTORS, Item, Letter, Reader
from tests.model.side_by_side import Pair, Seat, SideBySide


@dataclass(slots=True)
class OpenTransaction:
    """A transaction and its model."""

    real: Transaction = field(default_factory=Transaction)
    sends: list[tuple[Letter, int, Message]] = field(default_factory=list)
    acknowledged: list[tuple[Pair, Reader, Item]] = field(default_factory=list)
    refused: list[tuple[Pair, Reader, Item]] = field(default_factory=list)
    expired: list[tuple[Pair, Reader, Item]] = field(default_factory=list)


def _pending_of(pair: Pair, reader: Reader) -> list[tuple[Reader, Item]]:
    """Where a transaction keeps what the reader settles in it."""
    return pair.model.pending_out if reader.settles else pair.model.pending


class Trade(SideBySide):
    """A world with clients. Each connection has at most one open transaction."""

    def __init__(self, plan: Plan, *, restarts: bool = False) -> None:
        super().__init__(plan, restarts=restarts)
        self.transactions: dict[int, OpenTransaction] = {}

    # ---- sending ---------------------------------------------------------------------------------

    def publish(self, *specs: Spec, connection: int = 1, delay_ms: int = 0) -> None:
        """Send messages in one go; one by one when the address is limited, so that each meets the limit."""
        if self.plan.address.messages_max >= 0:
            for spec in specs:
                self._publish([spec], connection, delay_ms)
        elif specs:
            self._publish(list(specs), connection, delay_ms)

    def _publish(self, specs: list[Spec], connection: int, delay_ms: int) -> None:
        written = [self.write_letter(spec, connection) for spec in specs]
        messages = [message for message, _ in written]
        letters = [letter for _, letter in written]
        plain = not any(spec.persistent or spec.ttl_ms for spec in specs)
        due_ms = self.now_ms + delay_ms if delay_ms else 0
        size_bytes = sum(letter.size_bytes for letter in letters)
        batch = Batch(self.route, messages, size_bytes, self.now_ms, plain, due_ms)
        accepted = self.broker.publisher.publish(batch)
        expected = 0
        kept_out = False
        for group in self._that_come_together(letters):
            kept_out = len(group) == 1 and self._is_kept_out(group[0])
            is_full, drops = not kept_out and self.is_full, self.plan.address.full_policy == "DROP"
            taken = 0 if kept_out or (is_full and not drops) else len(group)
            if taken and not is_full:
                self._arrive(group, due_ms, plain=plain)
            expected += taken
            if taken < len(group):
                break
        assert accepted == expected, "taken although full, or refused although not"
        assert (batch.refused_by is not None) == kept_out, "refused for another reason"
        self.check()

    def _that_come_together(self, letters: list[Letter]) -> list[list[Letter]]:
        """Where all find room they come at once; else each meets the limit by itself."""
        limit = self.plan.address.messages_max
        all_fit = limit < 0 or len(self.letters()) + len(letters) <= limit
        if all_fit and all(pair.model.lets_in(letters) for pair in self.pairs):
            return [letters]
        return [[letter] for letter in letters]

    def _asked(self, letter: Letter) -> list[Pair]:
        """The queues that a letter comes to, in the order in which they are asked for room: views are asked last."""
        pairs = [pair for pair in self.pairs if pair.model.accepts(letter)]
        return sorted(pairs, key=lambda pair: bool(pair.model.plan.view))

    def _is_kept_out(self, letter: Letter) -> bool:
        """Does one of its queues not admit the letter, although consumers had their chance? Then none gets it."""
        for pair in self._asked(letter):
            model = pair.model
            if model.admits(letter):
                continue
            self.offer_first(pair)
            if not model.admits(letter):
                assert model.withheld(self.now_ms) is None, "kept out while a consumer could make room"
                self.happened.add("refused" if model.plan.policy == REJECT else "sender had to wait")
                if sum(other.model.accepts(letter) for other in self.pairs) > 1:
                    self.happened.add("kept out of several queues")
                return True
        return False

    def _arrive(self, letters: list[Letter], due_ms: int, *, plain: bool) -> None:
        for letter in letters:
            self.come_in += 1
            letter.place = self.come_in
            (self.persistent.add if letter.persistent else self.persistent.discard)(letter.id)
        for pair in self.pairs:
            taken = [letter for letter in letters if pair.model.accepts(letter)]
            if taken and due_ms:
                for letter in taken:
                    pair.model.counts.added += 1
                    pair.model.look_for_groups([letter])
                    pair.model.schedule(pair.model.new_item(letter), due_ms)
                    if pair.model.plan.policy != NO_POLICY:
                        self.settle_growth(pair, 1)
            elif taken:
                self.grow(pair, taken, plain=plain)

    # ---- settling --------------------------------------------------------------------------------

    def _let_go(self, seat: Seat, index: int, *, cumulative: bool) -> tuple[list[int], list[Item]]:
        sent = seat.reader.sent
        chosen = sent[: index + 1] if cumulative else [sent[index]]
        seat.reader.held = [item for item in seat.reader.held if item not in chosen]
        seat.reader.out = [item for item in seat.reader.out if item not in chosen]
        return [item.letter.id for item in chosen], chosen

    def settle(
        self, seat: Seat, index: int = 0, *, cumulative: bool = False, refuses: bool = False, expires: bool = False
    ) -> None:
        """ACK or NACK of the message at ``index`` among those sent, outside a transaction."""
        ids, items = self._let_go(seat, index, cumulative=cumulative)
        entries = [seat.consumer.let_go(message_id) for message_id in ids]
        self._carry_out_now(seat, entries, items, refuses=refuses, expires=expires)
        self.check()

    def _carry_out_now(
        self, seat: Seat, entries: list[Entry], items: list[Item], *, refuses: bool, expires: bool
    ) -> None:
        queue, consumer, model = seat.pair.queue, seat.consumer, seat.pair.model
        if expires:
            queue.expire_held(consumer, entries, self.now_ms)
            self._expire(seat.pair, seat.reader, items)
        elif refuses:
            queue.release(consumer, entries, failed=True, now_ms=self.now_ms)
            dead = model.release(seat.reader, items, failed=True, now_ms=self.now_ms, cancels=True)
            self.bury(seat.pair, dead)
        else:
            for entry in entries:
                queue.acknowledge(consumer, [entry])
                model.acknowledge(seat.reader)
        if consumer.parked:
            queue.wake(consumer)

    def _expire(self, pair: Pair, reader: Reader, items: list[Item]) -> None:
        for item in items:
            if pair.model.expire_held(reader):
                self._forward_expired(pair, item.letter.id)

    def settle_late(self, seat: Seat, index: int, *, refuses: bool, expires: bool) -> None:
        """ACK or NACK of a message that the seat has held for too long. Whoever holds it now may lose it; nobody's
        message is settled, but not refused.
        """
        item = seat.reader.lapsed.pop(index)
        pair, model = seat.pair, seat.pair.model
        holder = model.holder_of(item)
        found = pair.queue.take_late(seat.consumer, item.letter.id, refuses=refuses)
        here = model.find(item.letter.id) is not None or any(one is item for _, _, one in model.scheduled)
        assert (found is not None) == (not model.plan.strict if holder else here and not refuses), "settled or not"
        if found is None:
            self.check()
            return
        self.happened.add("late")
        by = next(seat for seat in self.seats if seat.consumer is found[0])
        assert by.reader is (holder or seat.reader), "somebody else's message"
        if holder is None:
            model.remove(item)
        else:
            holder.held.remove(item)
        self._carry_out_now(by, [found[1]], [item], refuses=refuses, expires=expires)
        self.check()

    def sift(self, number: int, connection: int, selector: str, *, refuses: bool, expires: bool) -> None:
        """ACK or NACK by a filter, of a connection that need not read the queue."""
        pair = self.pairs[number % len(self.pairs)]
        queue, model = pair.queue, pair.model
        if not model.plan.is_like_amps:
            return
        outcome = EXPIRE if expires else CANCEL if refuses else ACCEPT
        queue.acknowledge_by_filter(
            SelectedMessages(compile_selector(selector)), outcome, self.now_ms, connection=connection
        )
        matches = SELECTORS[selector]
        if outcome != CANCEL:
            here = [*model.items, *(item for _, _, item in model.scheduled)]
            here = [item for item in here if matches(item.letter)]
            if model.plan.activates_in_order:
                here = [item for item in here if item.is_active or item in model.delayed()]
            for item in here:
                model.remove(item)
                self._settle_nobodys(pair, item, expires=expires)
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
            self.bury(pair, model.release_of(held, failed=True, now_ms=self.now_ms, cancels=True))
        for reader, items in held if outcome != CANCEL else []:
            if expires:
                self._expire(pair, reader, items)
            else:
                for _ in items:
                    model.acknowledge(reader)
        self.check()

    def _settle_nobodys(self, pair: Pair, item: Item, *, expires: bool) -> None:
        """An item that nobody had is done, or expires."""
        model = pair.model
        if expires:
            model.counts.expired += 1
            self._forward_expired(pair, item.letter.id)
        else:
            model.counts.acknowledged += 1
        model.shrank()

    def replace(self, seat: Seat, selector: str | None, *, no_local: bool, backlog: int | None) -> None:
        """A subscription is changed in place."""
        queue, consumer, reader, plan = seat.pair.queue, seat.consumer, seat.reader, seat.pair.model.plan
        defaults = queue.consumer_defaults
        compiled = defaults.selector if selector is None else compile_selector(selector)
        no_local_of = reader.connection if no_local else 0
        queue.replace(consumer, compiled, no_local_of, defaults.backlog_for(backlog), self.now_ms)
        if not (reader.settles or reader.has_barrier):
            seat.pair.model.put_back_unsent(reader)
        reader.selector = selector or plan.default_selector
        reader.no_local = no_local
        reader.backlog = plan.backlog_for(backlog)
        self.happened.add("replaced in place")
        self.check()

    # ---- transactions ----------------------------------------------------------------------------

    def begin(self, connection: int = 1) -> None:
        """BEGIN."""
        self.transactions[connection] = OpenTransaction()

    def send_in_transaction(self, *specs: Spec, connection: int = 1, delay_ms: int = 0) -> None:
        """SEND inside: nothing is seen of it before COMMIT."""
        transaction = self.transactions[connection]
        due_ms = self.now_ms + delay_ms if delay_ms else 0
        for spec in specs:
            message, letter = self.write_letter(spec, connection)
            transaction.real.send(self.route, message, due_ms)
            transaction.sends.append((letter, due_ms, message))
        self.check()

    def settle_in_transaction(
        self, seat: Seat, index: int = 0, *, refuses: bool = False, expires: bool = False
    ) -> None:
        """ACK or NACK inside: out of the consumer's hands and window, in delivery until COMMIT."""
        transaction = self.transactions[seat.reader.connection]
        ids, items = self._let_go(seat, index, cumulative=False)
        entry = seat.consumer.let_go(ids[0])
        into = "expired" if expires else "refused" if refuses else "acknowledged"
        getattr(transaction.real, into).append((seat.pair.queue, seat.consumer, entry))
        taken: list[tuple[Pair, Reader, Item]] = getattr(transaction, into)
        taken.append((seat.pair, seat.reader, items[0]))
        _pending_of(seat.pair, seat.reader).append((seat.reader, items[0]))
        if seat.consumer.parked:
            seat.pair.queue.wake(seat.consumer)
        self.check()

    def commit(self, connection: int = 1) -> None:
        """COMMIT: all of it, or with a full FAIL address or REJECT queue nothing; a full BLOCK address, and a queue
        that makes senders wait, have to be waited for.
        """
        transaction = self.transactions[connection]
        blocked = transaction.real.blocked_by() is not None
        policy = self.plan.address.full_policy
        assert blocked == (bool(transaction.sends) and self.is_full and policy == "BLOCK"), "blocked or not"
        if blocked:
            return
        stopped = transaction.real.make_way(self.broker.publisher, self.now_ms)
        waits = any(self._has_to_wait(letter) for letter, _, _ in transaction.sends)
        assert waits == (stopped is not None), "waits for a queue or not"
        if waits:
            self.happened.add("COMMIT had to wait")
            self.check()
            return
        del self.transactions[connection]
        refused: BrokerError | None = None
        try:
            transaction.real.commit(self.broker, self.now_ms)
        except (AddressFullError, QueueFullError) as error:
            refused = error
        expected = self._refusal(transaction)
        assert expected == (None if refused is None else type(refused)), "COMMIT failed, or overfilled a queue"
        if refused is not None:
            for pair in self.pairs:
                self.absorb(pair)
            self.happened.add("COMMIT refused")
            transaction.real.abort(self.now_ms)
            self._undo(transaction)
        else:
            self._carry_out(transaction)
        self.check()

    def _has_to_wait(self, letter: Letter) -> bool:
        """Does one of the letter's queues make its senders wait, although consumers had their chance?"""
        for pair in self._asked(letter):
            if pair.model.senders_wait:
                self.offer_first(pair)
                if pair.model.senders_wait:
                    return True
        return False

    def _refusal(self, transaction: OpenTransaction) -> type[BrokerError] | None:
        """Who has no room for one of the letters, behind those before it: the address, or a queue whose consumers had
        their chance? None when all of them may come.
        """
        letters = [letter for letter, _, _ in transaction.sends]
        limit = self.plan.address.messages_max
        for end, letter in enumerate(letters, start=1):
            if self.plan.address.full_policy == "FAIL" and 0 <= limit < len(self.letters()) + end:
                return AddressFullError
            for pair in self._asked(letter):
                model = pair.model
                coming = [one for one in letters[:end] if model.accepts(one)]
                if model.plan.policy != REJECT or model.is_within(coming):
                    continue
                self.offer_first(pair)
                if not model.is_within(coming):
                    assert model.withheld(self.now_ms) is None, "refused while a consumer could make room"
                    return QueueFullError
        return None

    def _carry_out(self, transaction: OpenTransaction) -> None:
        policy, limit = self.plan.address.full_policy, self.plan.address.messages_max
        for letter, _, message in transaction.sends:
            letter.id = message.id  # it is numbered anew when it comes in
        for due_ms, sends in groupby(transaction.sends, key=itemgetter(1)):
            for letters in self._that_come_together([letter for letter, _, _ in sends]):
                if not (self.is_full and policy == "DROP"):
                    self._arrive(letters, due_ms, plain=False)
        if policy == "FAIL" and limit >= 0 and transaction.sends:
            assert len(self.letters()) <= limit, "COMMIT overfilled the address"
        for pair, reader, item in transaction.acknowledged:
            _pending_of(pair, reader).remove((reader, item))
            pair.model.acknowledge(reader)
        for pair, reader, item in transaction.expired:
            _pending_of(pair, reader).remove((reader, item))
            self._expire(pair, reader, [item])
        self._give_back(transaction.refused, cancels=True)

    def abort(self, connection: int = 1) -> None:
        """ABORT: what was sent is forgotten, what was settled in it has failed and goes back."""
        transaction = self.transactions.pop(connection)
        transaction.real.abort(self.now_ms)
        self._undo(transaction)
        self.check()

    def _undo(self, transaction: OpenTransaction) -> None:
        self._give_back(transaction.acknowledged + transaction.refused + transaction.expired, cancels=False)

    def _give_back(self, taken: list[tuple[Pair, Reader, Item]], *, cancels: bool) -> None:
        by_reader: dict[int, tuple[Pair, Reader, list[Item]]] = {}
        for pair, reader, item in taken:
            by_reader.setdefault(reader.number, (pair, reader, []))[2].append(item)
        for pair, reader, items in by_reader.values():
            for item in items:
                _pending_of(pair, reader).remove((reader, item))
            dead = pair.model.release(reader, items, failed=True, now_ms=self.now_ms, cancels=cancels)
            self.bury(pair, dead)

    # ---- the end of a connection -----------------------------------------------------------------

    def end(self, connection: int, *, failed: bool) -> None:
        """DISCONNECT, or (``failed``) the socket is lost: its transaction is aborted, its consumers go."""
        if connection in self.transactions:
            self.abort(connection)
        for seat in [seat for seat in self.seats if seat.reader.connection == connection]:
            self.remove_seat(seat, failed=failed)
        self.check()

    # ---- operator --------------------------------------------------------------------------------

    def pause(self, number: int = 0) -> None:
        """Stop dispatch of a queue."""
        pair = self.pairs[number % len(self.pairs)]
        self.broker.queue_operations.pause(pair.queue.name)
        pair.model.paused = True
        self.check()

    def resume(self, number: int = 0) -> None:
        """Dispatch again."""
        pair = self.pairs[number % len(self.pairs)]
        self.broker.queue_operations.resume(pair.queue.name)
        pair.model.paused = False
        self.check()

    def resize(self, size: int, number: int = 0) -> None:
        """Change the ring while running; nothing goes at once."""
        pair = self.pairs[number % len(self.pairs)]
        if pair.model.plan.may_be_ring:
            self.broker.queue_operations.set_ring_size(pair.queue.name, size)
            pair.model.ring_size = size
        self.check()

    def purge(self, number: int = 0) -> None:
        """Remove everything that is ready or scheduled."""
        pair = self.pairs[number % len(self.pairs)]
        count = pair.queue.unheld_count
        pair.queue.purge(PURGED, self.now_ms)
        assert count == pair.model.purge(), "another number removed"
        self.check()

    def restart(self, ms: int = 0) -> None:
        """The power goes at the end of a turn, and comes back after so long: the broker begins again on what the
        journal has. A world without a journal goes on.
        """
        if not isinstance(self.log, StrictRecords):
            return
        self.turn()
        self.seats, self.transactions = [], {}
        self.log.write_down()
        self.log.disk.crash()
        self.log = StrictRecords.on(self.log.disk)
        self.now_ms += ms
        self._begin_broker(self.log.index.recovered_state())
        self.dead = [copy for copy in self.dead if copy[0] in self.persistent]
        self.expired = [copy for copy in self.expired if copy[0] in self.persistent]
        self.forwarded = len(self.dead) + len(self.expired)
        self.sources.clear()
        for pair in self.pairs:
            pair.queue = self.broker.queues[pair.queue.name]
            pair.model.restart(self.now_ms)
        self.check()

    def empty(self) -> None:
        """Everybody goes, everything is removed: the address must answer for nothing."""
        for connection in {seat.reader.connection for seat in self.seats} | set(self.transactions):
            self.end(connection, failed=False)
        for number in range(len(self.pairs)):
            self.purge(number)
        account = self.broker.addresses[ADDRESS].account
        assert (account.message_count, account.size_bytes) == (0, 0), "an empty address holds memory"
