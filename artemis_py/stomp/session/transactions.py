"""BEGIN, COMMIT and ABORT."""

from __future__ import annotations

from typing import Final, final

from artemis_py.core.addresses.routing_table import Route
from artemis_py.core.memory import ACKNOWLEDGED_BYTES, TRANSACTION_BYTES
from artemis_py.core.publish_outcome import PublishOutcome
from artemis_py.core.tasks import Task
from artemis_py.core.transactions import Transaction
from artemis_py.errors import ArtemisError, BrokerError, LimitError
from artemis_py.message import Message
from artemis_py.stomp.session.state import SessionState
from artemis_py.stomp.wire.frames import FrameError

_NONE: Final[dict[str, Transaction]] = {}
_NOT_ENDED: Final[dict[str, str]] = {}
"""Instead of empty tables of its own for each connection that has not begun any. Nobody adds to them."""
_ENDED_MAX: Final = 16


@final
class Transactions:
    """The open transactions of one session, by name."""

    __slots__ = ("_ended", "_state", "by_name")

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self.by_name = _NONE
        self._ended = _NOT_ENDED
        """The latest transactions that an operator ended, by name, with what he did: for the client's error."""

    def named(self, name: str) -> Transaction:
        """An open transaction. Raises FrameError if no such transaction is open."""
        transaction = self.by_name.get(name)
        if transaction is None:
            what = self._ended.get(name, "has begun")
            raise FrameError(f"No transaction {name[:80]!r} {what}")
        return transaction

    # ---- limits ----------------------------------------------------------------------------------

    @property
    def operations_left(self) -> int:
        """How many more messages may be sent, acknowledged and refused in open transactions."""
        used = sum([transaction.operation_count for transaction in self.by_name.values()])
        return self._state.service.limits.transaction_operations_max - used

    @property
    def too_many_operations(self) -> str:
        """The error for one operation more than that."""
        return (
            f"Open transactions hold {self._state.service.limits.transaction_operations_max} operations, the most "
            "allowed (maxTransactionOperations of the acceptor): commit more often"
        )

    @property
    def bytes_left(self) -> int:
        """How many more bytes of messages open transactions may hold."""
        used = sum([transaction.size_bytes for transaction in self.by_name.values()])
        return self._state.service.limits.transaction_bytes_max - used

    @property
    def too_many_bytes(self) -> str:
        """The error for more bytes than that."""
        return (
            f"Open transactions hold more than {self._state.service.limits.transaction_bytes_max} bytes "
            "(maxTransactionBytes of the acceptor)"
        )

    @property
    def held_bytes(self) -> int:
        """What open transactions hold in memory."""
        held_bytes = 0
        for transaction in self.by_name.values():
            held_bytes += TRANSACTION_BYTES + transaction.size_bytes + ACKNOWLEDGED_BYTES * transaction.settled_count
        return held_bytes

    # ---- what happens to them --------------------------------------------------------------------

    def begin(self, headers: dict[str, str]) -> None:
        """BEGIN. Raises FrameError without an id or with one that is open, LimitError when too many are."""
        name = _name_in(headers, "BEGIN")
        if name in self.by_name:
            raise FrameError(f"Transaction {name[:80]!r} has already begun")
        limits = self._state.service.limits
        if len(self.by_name) >= limits.transactions_max:
            raise LimitError(
                f"Too many open transactions: a connection may have {limits.transactions_max} "
                "(maxTransactions of the acceptor)"
            )
        self._state.broker.holdings.admit("BEGIN")
        if not self.by_name:
            self.by_name = {}
        self.by_name[name] = Transaction(self._state.broker.host.turn_ms, self._state)
        self._ended.pop(name, None)

    def keep(self, transaction: Transaction, route: Route, message: Message, due_ms: int) -> None:
        """Keep a message until the transaction commits. Raises LimitError."""
        self._state.broker.holdings.admit("SEND in a transaction")
        if message.memory_bytes > self.bytes_left:
            raise LimitError(self.too_many_bytes)
        if self.operations_left <= 0:
            raise LimitError(self.too_many_operations)
        transaction.send(route, message, due_ms)

    def commit(self, headers: dict[str, str], now_ms: int) -> list[tuple[str, str]] | None:
        """COMMIT. Returns further headers for its RECEIPT, or None if the session has to wait and try again. Raises
        ArtemisError, and the transaction is then aborted.

        A transaction whose id (``_AMQ_DUPL_ID``) was committed before is aborted, too, and confirmed.
        """
        name = _name_in(headers, "COMMIT")
        transaction = self.named(name)
        state, broker = self._state, self._state.broker
        commit_id = headers.get("_AMQ_DUPL_ID")
        digest = headers.get("digest", "")
        is_repeated = False
        outcomes: list[PublishOutcome] | None = [] if state.tells_routing else None
        try:
            is_repeated = commit_id is not None and broker.commits.has_seen(commit_id, digest)
            if not is_repeated:
                if self._must_wait(transaction, now_ms):
                    return None
                state.unfinished += transaction.commit(broker, now_ms, commit_id, digest, outcomes)
        except ArtemisError:
            del self.by_name[name]
            transaction.abort(now_ms)
            raise
        finally:
            for outcome in outcomes or ():
                outcome.end()
        del self.by_name[name]
        if is_repeated:
            state.unfinished += transaction.abort(now_ms)
            state.lsn_written = broker.log.last_lsn  # where the first one was written, at the latest
        extra = [] if commit_id is None else self._about_ids(is_repeated=is_repeated)
        if outcomes is not None:
            nowhere = [one for one in outcomes if not (one.queue_count or one.is_awaited or one.is_duplicate)]
            full_count = len([one for one in nowhere if one.full_because])
            extra += [("unrouted", str(len(nowhere) - full_count)), ("dropped", str(full_count))]
        return extra

    def _must_wait(self, transaction: Transaction, now_ms: int) -> bool:
        """Must a commit wait for room on an address or a queue, or for the next turn, because its selectors are not all
        evaluated yet? Raises ArtemisError.
        """
        state, broker = self._state, self._state.broker
        self._check_places(transaction.places(broker.bindings))
        if not transaction.is_asked(broker.bindings, broker.budget, state.stop_at):
            return True
        address = transaction.blocked_by()
        if address is not None:
            state.wait_for_room(address)
            return True
        queue = transaction.make_way(broker.publisher, now_ms)
        if queue is not None:
            state.wait_for_queue(queue)
        return queue is not None

    def _check_places(self, places: int) -> None:
        places_max = self._state.service.limits.transaction_places_max
        if places > places_max:
            raise LimitError(
                f"The messages of this transaction go to {places} queues, counted per message; the limit is "
                f"{places_max} (maxTransactionPlaces of the acceptor). Send fewer messages in a transaction"
            )

    def _about_ids(self, *, is_repeated: bool) -> list[tuple[str, str]]:
        commits = self._state.broker.commits
        return [
            ("duplicate", str(is_repeated).lower()),
            ("id-cache-size", str(commits.size)),
            ("id-cache-persisted", str(commits.keeps).lower()),
        ]

    def abort(self, headers: dict[str, str], now_ms: int) -> None:
        """ABORT. Raises FrameError for an id that is not open."""
        name = _name_in(headers, "ABORT")
        transaction = self.named(name)
        del self.by_name[name]
        self._state.unfinished += transaction.abort(now_ms)

    # ---- what an operator does -------------------------------------------------------------------

    def roll_back(self, name: str, now_ms: int) -> list[Task]:
        """Abort an open transaction that is not the client's to end any more. Returns the tasks that are not done.
        Raises FrameError for a name that is not open.
        """
        transaction = self.named(name)
        del self.by_name[name]
        self._note_ended(name, "is open, because an operator has rolled it back")
        return transaction.abort(now_ms)

    def is_asked(self, name: str) -> bool:
        """Are all selectors evaluated that a commit of this open transaction needs? If not, some are now. Raises
        FrameError.
        """
        broker = self._state.broker
        transaction = self.named(name)
        self._check_places(transaction.places(broker.bindings))
        return transaction.is_asked(broker.bindings, broker.budget, 0)

    def commit_now(self, name: str, now_ms: int) -> list[Task]:
        """Commit what an open transaction has so far. Returns the tasks that are not done. Raises ArtemisError, and
        then the transaction is as before: when a destination is full, for nobody is there to wait.
        """
        transaction, broker = self.named(name), self._state.broker
        address = transaction.blocked_by()
        if address is not None:
            raise BrokerError(f"Address {address.name} takes nothing now; commit again when it has room")
        queue = transaction.make_way(broker.publisher, now_ms)
        if queue is not None:
            raise BrokerError(f"Queue {queue.name} takes nothing now; commit again when it has room")
        unfinished = transaction.commit(broker, now_ms)
        del self.by_name[name]
        self._note_ended(name, "is open, because an operator has committed it")
        return unfinished

    def _note_ended(self, name: str, what: str) -> None:
        if not self._ended:
            self._ended = {}
        elif len(self._ended) >= _ENDED_MAX:
            del self._ended[next(iter(self._ended))]
        self._ended[name] = what

    def abort_all(self, now_ms: int) -> Exception | None:
        """The session ends: abort all open transactions, even if one of them fails. Returns the last failure."""
        failure: Exception | None = None
        for transaction in self.by_name.values():
            try:
                transaction.abort(now_ms)
            except Exception as error:
                failure = error
        self.by_name.clear()
        return failure


def _name_in(headers: dict[str, str], command: str) -> str:
    name = headers.get("transaction")
    if not name:
        raise FrameError(f"{command} needs a transaction header", syntax=True)
    return name
