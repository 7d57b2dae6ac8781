"""Sessions and producers: their fields, and the operations that list them and close a session.

STOMP has one session on a connection, and no producers: a producer here is an address to which a session has sent.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from artemis_py.errors import NotFoundError
from artemis_py.management.fields import EPOCH_MS, NUMBER, TEXT, Field, Kind
from artemis_py.management.listing import LOOKS_PER_STEP
from artemis_py.management.managed import Arguments, Connected, Managed, Sender, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows
from artemis_py.management.operations.connections import WHY_CLOSED

SESSIONS: Final[Kind[Connected]] = Kind(
    "session",
    "sessions",
    [
        Field("id", TEXT, "The session's name, as CONNECTED tells it", lambda it: it.session, is_brief=True),
        Field("connectionID", NUMBER, "The number of its connection", lambda it: it.number, is_brief=True),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.user, is_brief=True),
        Field("protocol", TEXT, "STOMP and its version", lambda it: f"STOMP {it.version}"),
        Field("localAddress", TEXT, "The broker's own address that it uses", lambda it: it.local_address),
        Field("remoteAddress", TEXT, "The client's address", lambda it: it.address),
        Field("creationTime", NUMBER, "When its connection was made", lambda it: it.begun_ms, EPOCH_MS),
        Field("consumerCount", NUMBER, "Its subscriptions", lambda it: it.subscription_count, is_brief=True),
        Field(
            "producerCount",
            NUMBER,
            "Addresses to which it has sent, the latest 8",
            lambda it: len(it.producers),
            is_brief=True,
        ),
        Field("transactionCount", NUMBER, "Its open transactions", lambda it: len(it.transactions), is_brief=True),
    ],
)


class Producer(NamedTuple):
    """An address to which a client has sent."""

    client: Connected
    sender: Sender


PRODUCERS: Final[Kind[Producer]] = Kind(
    "producer",
    "producers",
    [
        Field("id", TEXT, "Session and address", lambda it: f"{it.client.session}:{it.sender.address}"),
        Field("address", TEXT, "The address", lambda it: it.sender.address, is_brief=True),
        Field("sessionID", TEXT, "The session that sends", lambda it: it.client.session, is_brief=True),
        Field("connectionID", NUMBER, "The number of its connection", lambda it: it.client.number),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.client.user, is_brief=True),
        Field("protocol", TEXT, "STOMP and its version", lambda it: f"STOMP {it.client.version}"),
        Field("localAddress", TEXT, "The broker's own address that it uses", lambda it: it.client.local_address),
        Field("remoteAddress", TEXT, "The client's address", lambda it: it.client.address),
        Field("creationTime", NUMBER, "When it sent there first", lambda it: it.sender.begun_ms, EPOCH_MS),
        Field(
            "msgSent", NUMBER, "Messages that it sent there", lambda it: it.sender.sent_count, "messages", is_brief=True
        ),
        Field("msgSizeSent", NUMBER, "Their headers and bodies", lambda it: it.sender.sent_bytes, "bytes"),
        Field("lastSentTime", NUMBER, "When it sent there last", lambda it: it.sender.last_ms, EPOCH_MS),
    ],
)


SESSION: Final = Argument("session", TEXT, "the name of the session, such as s12")
_DIGITS_MAX: Final = 18


def clients_in_order(managed: Managed) -> list[Connected]:
    """The clients with a session, in the order in which they came."""
    return sorted((one for one in managed.clients() if one.is_open), key=lambda one: one.number)


def _list_sessions(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from select_rows(SESSIONS, clients_in_order(managed), arguments))


def _list_producers(managed: Managed, arguments: Arguments) -> Steps:
    rows: list[Producer] = []
    for number, client in enumerate(clients_in_order(managed), 1):
        rows += [Producer(client, sender) for sender in client.producers]
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from select_rows(PRODUCERS, rows, arguments))


def client_of_session(managed: Managed, session: str) -> Connected | None:
    """The client with the session of this name: ``s`` and the number of its connection."""
    number = session[1:]
    is_name = session[:1] == "s" and number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX
    return managed.client(int(number)) if is_name else None


def _with_session(managed: Managed, name: str) -> Connected:
    client = client_of_session(managed, name)
    if client is None or not client.is_open:
        raise NotFoundError(f"there is no session {name[:80]!r}")
    return client


def _close_session(managed: Managed, arguments: Arguments) -> Steps:
    name = arguments["session"]
    _with_session(managed, name).end(WHY_CLOSED)
    return at_once({"closed": name})


SESSION_OPERATIONS: Final = (
    listing("listSessions", "/api/sessions", "session ls", SESSIONS, "Sessions.", _list_sessions),
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
)
