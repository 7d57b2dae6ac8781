"""Operations of clients on a world: sending, settling, transactions, and what an operator does."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from artemis_py.errors import AddressFullError, BrokerError, QueueFullError
from tests.model.letters import Spec
from tests.model.lives import StrictRecords
from tests.model.plans import ADDRESS, NO_POLICY, REJECT
from tests.model.queue_model import QueueModel
from tests.model.reader_model import Item, Letter
from tests.model.side_by_side import Queued, SideBySide
from tests.model.world import OpenTransaction, Seat


class Trade(SideBySide):
    """A world with clients. Each connection has at most one open transaction."""

    # ---- sending ---------------------------------------------------------------------------------

    def publish(self, *specs: Spec, connection: int = 1, delay_ms: int = 0) -> None:
        """Send messages in one go; one by one when the address is limited, so that each meets the limit."""
        alone = self.plan.address.messages_max >= 0
        for group in [[spec] for spec in specs] if alone else [list(specs)] if specs else []:
            self._publish(group, connection, delay_ms)

    def _publish(self, specs: list[Spec], connection: int, delay_ms: int) -> None:
        batch, letters = self.batch_of(specs, connection, delay_ms)
        accepted = self.broker.publisher.publish(batch)
        expected = 0
        kept_out = False
        for group in self._that_come_together(letters):
            kept_out = len(group) == 1 and self._is_kept_out(group[0])
            is_full, drops = not kept_out and self.is_full, self.plan.address.full_policy == "DROP"
            taken = 0 if kept_out or (is_full and not drops) else len(group)
            if taken and not is_full:
                self._arrive(group, batch.due_ms, plain=batch.plain)
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

    def _asked(self, letter: Letter) -> list[Queued]:
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

    def settle_late(self, seat: Seat[QueueModel], index: int, *, refuses: bool, expires: bool) -> None:
        """ACK or NACK of a message that the seat has held for too long. Whoever holds it now may lose it; nobody's
        message is settled, but not refused.
        """
        item = seat.reader.lapsed.pop(index)
        pair, model = seat.pair, seat.pair.model
        holder = next((one for one in model.readers if not one.reads and item in one.sent), None)
        found = pair.queue.take_late(seat.consumer, item.letter.id, refuses=refuses)
        here = any(one is item for one in model.unheld())
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
        self.carry_out(by, [item], [found[1]], refuses=refuses, expires=expires)
        self.check()

    def sift_among(self, pair: Queued) -> list[Item]:
        delayed = pair.model.delayed()
        return [
            item
            for item in pair.model.unheld()
            if item.is_active or not pair.model.plan.activates_in_order or item in delayed
        ]

    # ---- transactions ----------------------------------------------------------------------------

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
            self.give_back_all(transaction.acknowledged + transaction.refused + transaction.expired)
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

    def _refusal(self, transaction: OpenTransaction[QueueModel]) -> type[BrokerError] | None:
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

    def _carry_out(self, transaction: OpenTransaction[QueueModel]) -> None:
        policy, limit = self.plan.address.full_policy, self.plan.address.messages_max
        for letter, _, message in transaction.sends:
            letter.id = message.id  # it is numbered anew when it comes in
        is_settled = not (transaction.acknowledged or transaction.refused or transaction.expired)
        for due_ms, sends in groupby(transaction.sends, key=itemgetter(1)):
            for letters in self._that_come_together([letter for letter, _, _ in sends]):
                if self.steps is not None and not is_settled and not self.orders.is_as_usual():
                    self.settle_all(transaction)  # before these were offered to anybody
                    is_settled = True
                if not (self.is_full and policy == "DROP"):
                    self._arrive(letters, due_ms, plain=False)
        if policy == "FAIL" and limit >= 0 and transaction.sends:
            assert len(self.letters()) <= limit, "COMMIT overfilled the address"
        if not is_settled:
            self.settle_all(transaction)

    # ---- the end ---------------------------------------------------------------------------------

    def restart(self, ms: int = 0) -> None:
        """The power goes at the end of a turn, and comes back after so long: the broker begins again on what the
        journal has.
        """
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
