"""Connections of clients, their sessions and producers, and the acceptors that they came to: their fields, and the
operations that list and close them.

STOMP has one session on a connection, and no producers: a producer here is an address to which a session has sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.secrets_in_text import MASK, names_a_secret
from artemis_py.config.settings import AcceptorConfig
from artemis_py.config.wildcards import WildcardIndex, is_wildcard
from artemis_py.errors import NotFoundError
from artemis_py.management.listing import EPOCH_MS, FLAG, LOOKS_PER_STEP, NUMBER, TEXT, Field, Kind, select
from artemis_py.management.managed import AcceptorState, Arguments, Connected, Managed, Sender, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation, list_query, listing, select_rows

CONNECTIONS: Final[Kind[Connected]] = Kind(
    "connection",
    "connections",
    [
        Field("connectionID", NUMBER, "The connection's number", lambda it: it.number, is_brief=True),
        Field("remoteAddress", TEXT, "The client's address", lambda it: it.address, is_brief=True),
        Field("clientID", TEXT, "The client-id of its CONNECT", lambda it: it.client_id, is_brief=True),
        Field("user", TEXT, "The login of its CONNECT", lambda it: it.user, is_brief=True),
        Field("localAddress", TEXT, "The broker's own address that it uses", lambda it: it.local_address),
        Field("acceptor", TEXT, "The name of the acceptor that it came to", lambda it: it.acceptor.name),
        Field(
            "proxyAddress",
            TEXT,
            "The load balancer that has handed it on (PROXY protocol)",
            lambda it: None if it.proxy is None else it.proxy[0],
        ),
        Field(
            "proxyProtocolVersion",
            TEXT,
            "The version of the PROXY protocol: V1, V2",
            lambda it: None if it.proxy is None else it.proxy[1],
        ),
        Field("creationTime", NUMBER, "When it connected", lambda it: it.begun_ms, EPOCH_MS),
        Field("sessionID", TEXT, "The name of its session", lambda it: it.session),
        Field("sessionCount", NUMBER, "Its sessions: 1, or 0 before its CONNECT", lambda it: int(it.is_open)),
        Field("protocol", TEXT, "STOMP and its version", lambda it: f"STOMP {it.version}"),
        Field(
            "state",
            TEXT,
            "new (no CONNECT yet), open, blocked (its SEND waits for room), stalled (it does not read), or closing",
            lambda it: it.state,
            is_brief=True,
        ),
        Field("subscriptionCount", NUMBER, "Its subscriptions", lambda it: it.subscription_count, is_brief=True),
        Field(
            "heldBytes",
            NUMBER,
            "Memory that the broker holds for it: input, output and transactions",
            lambda it: it.held_bytes,
            "bytes",
            is_brief=True,
        ),
    ],
)


CONNECTION: Final = Argument("connection", NUMBER, "the number of the connection")
WHY_CLOSED: Final = "An operator has closed this connection"
_CLOSES_PER_STEP: Final = 8
_PORT_SEPARATOR: Final = ":"


def _list(managed: Managed, arguments: Arguments) -> Steps:
    which = list_query(CONNECTIONS, arguments)
    if which.sort is None:
        which = replace(which, sort="connectionID")  # the order in which they came
    return (yield from select(CONNECTIONS, managed.clients(), which))


def _close(managed: Managed, arguments: Arguments) -> Steps:
    number = arguments["connection"]
    client = managed.client(number)
    if client is None:
        raise NotFoundError(f"there is no connection {number}")
    client.end(WHY_CLOSED)
    return at_once({"closed": number})


def _close_for_address(managed: Managed, arguments: Arguments) -> Steps:
    wanted_address: str = arguments["ip-address"].strip("[]")

    def comes_from(client: Connected) -> bool:
        return client.address.rpartition(_PORT_SEPARATOR)[0].strip("[]") == wanted_address

    return (yield from _close_those(managed, comes_from))


def _close_for_user(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from _close_those(managed, lambda client: client.user == arguments["user-name"]))


def _close_consumers(managed: Managed, arguments: Arguments) -> Steps:
    """Those that read queues of the address, or of addresses that match it."""
    broker, name = managed.broker, arguments["address"]
    matches = _matching(name, broker.config.wildcards)
    numbers: set[int] = set()
    for count, queue in enumerate(list(broker.queues.values()), 1):
        if matches(queue.address.name):
            consumers = list(queue.distribution.consumers)
            for start in range(0, len(consumers), LOOKS_PER_STEP):
                numbers |= {one.reader.connection for one in consumers[start : start + LOOKS_PER_STEP]}
                yield None
        if count % LOOKS_PER_STEP == 0:
            yield None
    return (yield from _close_those(managed, lambda client: client.number in numbers))


def _matching(name: str, syntax: WildcardSyntax) -> Callable[[str], bool]:
    if not is_wildcard(name, syntax):
        return lambda address: address == name
    index = WildcardIndex(syntax)
    index.add(name)
    return lambda address: len(index.matching(address)) > 0


def _close_those(managed: Managed, is_meant: Callable[[Connected], bool]) -> Steps:
    clients = managed.clients()
    closed = 0
    for start in range(0, len(clients), LOOKS_PER_STEP):
        for client in clients[start : start + LOOKS_PER_STEP]:
            if is_meant(client):
                client.end(WHY_CLOSED)
                closed += 1
                if closed % _CLOSES_PER_STEP == 0:
                    yield None
        yield None
    return {"closed": closed}


CONNECTION_OPERATIONS: Final = (
    listing("listConnections", "/api/connections", "connection ls", CONNECTIONS, "Clients of STOMP.", _list),
    Operation(
        name="closeConnectionWithID",
        right=EDIT,
        method="DELETE",
        path="/api/connections/{connection}",
        command="connection close",
        sentence="Close a client's connection with an ERROR. What it holds goes back to its queues.",
        result="closed: the number of the connection",
        destroys="connection {connection}, and transactions that are open on it",
        arguments=(CONNECTION,),
        work=_close,
        mbean=("boolean closeConnectionWithID(String ID=connection)",),
    ),
    Operation(
        name="closeConnectionsForAddress",
        right=EDIT,
        method="POST",
        path="/api/connections/close-address",
        command="connection close-address",
        sentence="Close the connections of all clients at one IP address.",
        result="closed: how many they were",
        destroys="all connections from {ip-address}, and transactions that are open on them",
        arguments=(Argument("ip-address", TEXT, "the IP address"),),
        work=_close_for_address,
        mbean=("boolean closeConnectionsForAddress(String ipAddress) -> closed",),
    ),
    Operation(
        name="closeConnectionsForUser",
        right=EDIT,
        method="POST",
        path="/api/connections/close-user",
        command="connection close-user",
        sentence="Close the connections of all clients that logged in with one name.",
        result="closed: how many they were",
        destroys="all connections of user {user-name}, and transactions that are open on them",
        arguments=(Argument("user-name", TEXT, "the login"),),
        work=_close_for_user,
        mbean=("boolean closeConnectionsForUser(String userName) -> closed",),
    ),
    Operation(
        name="closeConsumerConnectionsForAddress",
        right=EDIT,
        method="POST",
        path="/api/connections/close-consumers",
        command="connection close-consumers",
        sentence="Close the connections of all consumers of an address, or of all addresses that match a wildcard.",
        result="closed: how many they were",
        destroys="the connections of all consumers of {address}, and transactions that are open on them",
        arguments=(Argument("address", TEXT, "the address; it may have wildcards"),),
        work=_close_consumers,
        mbean=("boolean closeConsumerConnectionsForAddress(String address) -> closed",),
    ),
)


# ---- sessions and producers ------------------------------------------------------------------------------------------

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


# ---- acceptors -------------------------------------------------------------------------------------------------------


def _parameters(acceptor: AcceptorConfig) -> str:
    """The parameters of its URI, as they are written there; secrets are masked."""
    parameters = {name: MASK if names_a_secret(name) else value for name, value in acceptor.params.items()}
    return ";".join(f"{name}={value}" for name, value in parameters.items())


ACCEPTORS: Final[Kind[AcceptorState]] = Kind(
    "acceptor",
    "acceptors",
    [
        Field("name", TEXT, "The acceptor's name", lambda it: it.config.name, is_brief=True),
        Field("started", FLAG, "Is it open?", lambda it: it.place is not None, is_brief=True),
        Field(
            "localAddress", TEXT, "Host and port on which it listens; null: on none", lambda it: it.place, is_brief=True
        ),
        Field(
            "protocols",
            TEXT,
            "What it speaks, with commas between",
            lambda it: ",".join(it.config.protocols),
            is_brief=True,
        ),
        Field("tls", FLAG, "Does it speak TLS?", lambda it: it.config.is_tls, is_brief=True),
        Field("connectionCount", NUMBER, "Clients that it serves", lambda it: it.connection_count, is_brief=True),
        Field(
            "connectionsLeft",
            NUMBER,
            "How many more it takes, by connectionsAllowed and the files that the broker may open; -1: any number",
            lambda it: it.connections_left,
            is_brief=True,
        ),
        Field("parameters", TEXT, "The parameters of its URI; secrets are masked", lambda it: _parameters(it.config)),
        Field("refused", TEXT, "Why it may not be opened; null: it may", lambda it: it.config.refused),
        Field("declaredAt", TEXT, "File and line that declare it", lambda it: str(it.config.origin)),
    ],
)


def _list_acceptors(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from select_rows(ACCEPTORS, managed.acceptors(), arguments))


ACCEPTOR_OPERATIONS: Final = (
    listing("listAcceptors", "/api/acceptors", "acceptor ls", ACCEPTORS, "Acceptors.", _list_acceptors),
)
