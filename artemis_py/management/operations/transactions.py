"""Open transactions: their fields, and the operations that list them, commit them and roll them back."""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.core.tasks import WAIT, until_done
from artemis_py.core.transactions import Transaction
from artemis_py.errors import NotFoundError
from artemis_py.management.listing import EPOCH_MS, LOOKS_PER_STEP, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Connected, Managed, Steps
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows
from artemis_py.management.operations.connections import client_of_session, clients_in_order


class OpenTransaction(NamedTuple):
    """An open transaction of a client."""

    client: Connected
    name: str
    transaction: Transaction

    @property
    def id(self) -> str:
        """Session and name: a client chooses names, so only both together name one transaction."""
        return f"{self.client.session}:{self.name}"


TRANSACTIONS: Final[Kind[OpenTransaction]] = Kind(
    "transaction",
    "transactions",
    [
        Field("id", TEXT, "Session and name of the transaction", lambda it: it.id, is_brief=True),
        Field("sessionID", TEXT, "Its session", lambda it: it.client.session),
        Field("connectionID", NUMBER, "The number of its connection", lambda it: it.client.number, is_brief=True),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.client.user, is_brief=True),
        Field("creationTime", NUMBER, "When it began", lambda it: it.transaction.begun_ms, EPOCH_MS, is_brief=True),
        Field(
            "messagesSent",
            NUMBER,
            "Messages that it publishes with its COMMIT",
            lambda it: len(it.transaction.sends),
            "messages",
            is_brief=True,
        ),
        Field(
            "messagesAcknowledged",
            NUMBER,
            "Messages that it acknowledges, refuses or has expire then",
            lambda it: it.transaction.settled_count,
            "messages",
            is_brief=True,
        ),
        Field("size", NUMBER, "What its messages hold in memory", lambda it: it.transaction.size_bytes, "bytes"),
    ],
)
TRANSACTION: Final = Argument("transaction", TEXT, "session and name of the transaction, such as s12:tx-1")


def _list_transactions(managed: Managed, arguments: Arguments) -> Steps:
    rows: list[OpenTransaction] = []
    for number, client in enumerate(clients_in_order(managed), 1):
        rows += [OpenTransaction(client, name, transaction) for name, transaction in client.transactions]
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from select_rows(TRANSACTIONS, rows, arguments))


def _roll_back(managed: Managed, arguments: Arguments) -> Steps:
    client, name = _with_transaction(managed, arguments["transaction"])
    yield from until_done(client.roll_back(name))
    return {"rolledBack": arguments["transaction"]}


def _commit(managed: Managed, arguments: Arguments) -> Steps:
    client, name = _with_transaction(managed, arguments["transaction"])
    while not client.prepare(name):
        yield WAIT
    yield from until_done(client.commit(name))
    return {"committed": arguments["transaction"]}


def _with_transaction(managed: Managed, id: str) -> tuple[Connected, str]:
    session, _, name = id.partition(":")
    client = client_of_session(managed, session)
    if client is None or not any(name == known for known, _ in client.transactions):
        raise NotFoundError(f"there is no open transaction {id[:80]!r}; transaction ls has their ids")
    return client, name


TRANSACTION_OPERATIONS: Final = (
    listing(
        "listTransactions",
        "/api/transactions",
        "transaction ls",
        TRANSACTIONS,
        "Transactions that clients have begun and not ended.",
        _list_transactions,
    ),
    Operation(
        name="rollbackTransaction",
        right=EDIT,
        method="POST",
        path="/api/transactions/{transaction}/rollback",
        command="transaction rollback",
        sentence="Roll back an open transaction: nothing of it is published, and messages that it acknowledges go back"
        " to their queues, as a failed delivery. The client gets an ERROR when it uses the transaction again.",
        result="rolledBack: the transaction",
        destroys="what transaction {transaction} would publish",
        arguments=(TRANSACTION,),
        work=_roll_back,
        no_mbean="those of STOMP are not Artemis' prepared ones",
    ),
    Operation(
        name="commitTransaction",
        right=EDIT,
        method="POST",
        path="/api/transactions/{transaction}/commit",
        command="transaction commit",
        sentence="Commit an open transaction as it is now. Its client may have wanted more, and gets an ERROR when it"
        " uses the transaction again. Refused if a destination has no room now.",
        result="committed: the transaction",
        arguments=(TRANSACTION,),
        work=_commit,
        no_mbean="those of STOMP are not Artemis' prepared ones",
    ),
)
