"""Operations of clients on a world: sending, settling, transactions, and what an operator does."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from artemis_py.errors import AddressFullError, BrokerError, QueueFullError
from tests.model.letters import Spec
from tests.model.lives import StrictRecords
from tests.model.plans import ADDRESS, FLOW_CONTROL, NO_POLICY, REJECT
from tests.model.queue_model import QueueModel
from tests.model.reader_model import Letter
from tests.model.side_by_side import SideBySide
from tests.model.world import OpenTransaction, Seat


class Trade(SideBySide):
    """A world with clients. Each connection has at most one open transaction."""

    # ---- sending ---------------------------------------------------------------------------------

    def publish(self, *specs: Spec, connection: int = 1, delay_ms: int = 0) -> None:
        """Send messages in one go; one by one when the address is limited, so that each meets the limit."""
        alone, drops = self.plan.address.messages_max >= 0, self.plan.address.full_policy == "DROP"
        for group in [[spec] for spec in specs] if alone else [list(specs)] if specs else []:
            batch, letters = self.batch_of(group, connection, delay_ms)
            accepted = self.broker.publisher.publish(batch)
            expected = 0
            keeper: QueueModel | None = None
            for together in self._that_come_together(letters):
                keeper = self._who_keeps_out(together, REJECT, FLOW_CONTROL) if len(together) == 1 else None
                is_full = keeper is None and self.is_full
                if keeper is not None or (is_full and not drops):
                    break
                expected += len(together)
                if not is_full:
                    self._arrive(together, batch.due_ms, plain=batch.plain)
            if keeper is not None:
                self.happened.add("refused" if keeper.plan.policy == REJECT else "sender had to wait")
                if sum(pair.model.accepts(together[0]) for pair in self.pairs) > 1:
                    self.happened.add("kept out of several queues")
            assert accepted == expected, "taken although full, or refused although not"
            assert (batch.refused_by is not None) == (keeper is not None), "refused for another reason"
            self.check()

    def _that_come_together(self, letters: list[Letter]) -> list[list[Letter]]:
        """Where all find room they come at once; else each meets the limit by itself."""
        limit = self.plan.address.messages_max
        all_fit = limit < 0 or len(self.letters()) + len(letters) <= limit
        if all_fit and all(
            model.plan.policy not in (REJECT, FLOW_CONTROL) or (model.is_within(letters) and not model.senders_wait)
            for model in (pair.model for pair in self.pairs)
        ):
            return [letters]
        return [[letter] for letter in letters]

    def _who_keeps_out(self, coming: list[Letter], *policies: str) -> QueueModel | None:
        """Who has one of these policies, and does not admit the last of the letters behind the others, although its
        consumers had their chance? Then no queue gets it. Views are asked last.
        """
        for pair in sorted(self.pairs, key=lambda pair: bool(pair.model.plan.view)):
            model = pair.model
            own = [letter for letter in coming if model.accepts(letter)]
            if model.plan.policy not in policies or not model.accepts(coming[-1]) or model.admits(own):
                continue
            self.offer_first(pair)
            if not model.admits(own):
                assert model.withheld(self.now_ms) is None, "kept out while a consumer could make room"
                return model
        return None

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
                    pair.model.append([letter], self.now_ms, due_ms)
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
        waits = any(self._who_keeps_out([letter], FLOW_CONTROL) for letter, _, _ in transaction.sends)
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

    def _refusal(self, transaction: OpenTransaction[QueueModel]) -> type[BrokerError] | None:
        """Who has no room for one of the letters, behind those before it: the address, or a queue whose consumers had
        their chance? None when all of them may come.
        """
        letters = [letter for letter, _, _ in transaction.sends]
        limit = self.plan.address.messages_max
        for end in range(1, len(letters) + 1):
            if self.plan.address.full_policy == "FAIL" and 0 <= limit < len(self.letters()) + end:
                return AddressFullError
            if self._who_keeps_out(letters[:end], REJECT) is not None:
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

    def finish(self) -> None:
        """Everybody goes, everything is removed: the address must answer for nothing."""
        for connection in {seat.reader.connection for seat in self.seats} | set(self.transactions):
            self.end(connection, failed=False)
        for number in range(len(self.pairs)):
            self.purge(number)
        account = self.broker.addresses[ADDRESS].account
        assert (account.message_count, account.size_bytes) == (0, 0), "an empty address holds memory"
