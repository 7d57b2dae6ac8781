"""Operations on sessions, on what they send, and on their consumers and open transactions."""

from __future__ import annotations

from typing import Final

from artemis_py.core.tasks import WAIT, until_done
from artemis_py.errors import NotFoundError
from artemis_py.management.lists.connections import Connected
from artemis_py.management.lists.field import NUMBER, TEXT
from artemis_py.management.lists.selection import LOOKS_PER_STEP
from artemis_py.management.lists.sessions import PRODUCERS, SESSIONS, TRANSACTIONS, Opened, Producing
from artemis_py.management.managed import Given, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation
from artemis_py.management.operations.connections import WHY_CLOSED
from artemis_py.management.operations.listing import listing, selected

SESSION: Final = Argument("session", TEXT, "the name of the session, such as s12")
CONSUMER: Final = Argument("consumer", NUMBER, "the number of the consumer")
_DIGITS_MAX: Final = 18
TRANSACTION: Final = Argument("transaction", TEXT, "session and name of the transaction, such as s12:tx-1")


def _in_order(managed: Managed) -> list[Connected]:
    """The clients with a session, in the order in which they came."""
    return sorted((one for one in managed.clients() if one.is_open), key=lambda one: one.number)


def _list_sessions(managed: Managed, given: Given) -> Steps:
    return (yield from selected(SESSIONS, _in_order(managed), given))


def _list_producers(managed: Managed, given: Given) -> Steps:
    found: list[Producing] = []
    for number, client in enumerate(_in_order(managed), 1):
        found += [Producing(client, sender) for sender in client.producers]
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from selected(PRODUCERS, found, given))


def _list_transactions(managed: Managed, given: Given) -> Steps:
    found: list[Opened] = []
    for number, client in enumerate(_in_order(managed), 1):
        found += [Opened(client, name, transaction) for name, transaction in client.transactions]
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from selected(TRANSACTIONS, found, given))


def _client(managed: Managed, session: str) -> Connected | None:
    """The client with the session of this name: ``s`` and the number of its connection."""
    number = session[1:]
    is_name = session[:1] == "s" and number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX
    return managed.client(int(number)) if is_name else None


def _with_session(managed: Managed, name: str) -> Connected:
    client = _client(managed, name)
    if client is None or not client.is_open:
        raise NotFoundError(f"there is no session {name[:80]!r}")
    return client


def _close_session(managed: Managed, given: Given) -> Steps:
    name = given["session"]
    _with_session(managed, name).end(WHY_CLOSED)
    return at_once({"closed": name})


def _close_consumer(managed: Managed, given: Given) -> Steps:
    number = given["consumer"]
    why = f"An operator has closed the consumer {number}"
    for count, queue in enumerate(list(managed.broker.queues.values()), 1):
        consumer = next((one for one in queue.distribution.consumers if one.id == number), None)
        if consumer is not None:
            client = managed.client(consumer.reader.connection)
            if client is None or not client.end_consumer(number, why):
                break
            return {"closed": number}
        if count % LOOKS_PER_STEP == 0:
            yield None
    raise NotFoundError(f"there is no consumer {number}")


def _roll_back(managed: Managed, given: Given) -> Steps:
    client, name = _with_transaction(managed, given["transaction"])
    yield from until_done(client.roll_back(name))
    return {"rolledBack": given["transaction"]}


def _commit(managed: Managed, given: Given) -> Steps:
    client, name = _with_transaction(managed, given["transaction"])
    while not client.prepare(name):
        yield WAIT
    yield from until_done(client.commit(name))
    return {"committed": given["transaction"]}


def _with_transaction(managed: Managed, id: str) -> tuple[Connected, str]:
    session, _, name = id.partition(":")
    client = _client(managed, session)
    if client is None or not any(name == known for known, _ in client.transactions):
        raise NotFoundError(f"there is no open transaction {id[:80]!r}; transaction ls has their ids")
    return client, name


SESSION_OPERATIONS: Final = (
    listing("listSessions", "/api/sessions", "session ls", SESSIONS, "Sessions, one row each.", _list_sessions),
    Operation(
        name="closeSessionWithID",
        right=EDIT,
        method="DELETE",
        path="/api/sessions/{session}",
        command="session close",
        sentence="Close a session. A connection of STOMP has one, and is closed with it, by an ERROR.",
        result="closed: the session",
        destroys="session {session} with its connection, and transactions that are open on it",
        arguments=(SESSION,),
        work=_close_session,
        mbean=(
            "boolean closeSessionWithID(String connectionID=_, String ID=session)",
            "boolean closeSessionWithID(String connectionID=_, String ID=session, boolean force=_)",
        ),
    ),
    listing(
        "listProducers",
        "/api/producers",
        "producer ls",
        PRODUCERS,
        "To which addresses sessions have sent, one row for each of the latest 8 of a session.",
        _list_producers,
    ),
    Operation(
        name="closeConsumerWithID",
        right=EDIT,
        method="DELETE",
        path="/api/consumers/{consumer}",
        command="consumer close",
        sentence="End one subscription with an ERROR. What it holds goes back to its queue. STOMP 1.2 closes the"
        " connection after every ERROR; a client of an earlier version keeps it.",
        result="closed: the number of the consumer",
        destroys="consumer {consumer}, and with STOMP 1.2 its connection and transactions that are open on it",
        arguments=(CONSUMER,),
        mbean=("boolean closeConsumerWithID(String sessionID=_, String ID=consumer)",),
        work=_close_consumer,
    ),
    listing(
        "listTransactions",
        "/api/transactions",
        "transaction ls",
        TRANSACTIONS,
        "Transactions that clients have begun and not ended, one row each.",
        _list_transactions,
    ),
    Operation(
        name="rollbackTransaction",
        right=EDIT,
        method="POST",
        path="/api/transactions/{transaction}/rollback",
        command="transaction rollback",
        sentence="Forget what an open transaction would publish; what it would acknowledge goes back to its queues as a"
        " failed delivery. The client gets an ERROR when it uses the transaction again.",
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
        sentence="Carry out what an open transaction has so far, together. Nobody knows whether its client wanted to do"
        " more: it gets an ERROR when it goes on. Refused when a destination has no room now.",
        result="committed: the transaction",
        arguments=(TRANSACTION,),
        work=_commit,
        no_mbean="those of STOMP are not Artemis' prepared ones",
    ),
)
