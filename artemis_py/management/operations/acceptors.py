"""Acceptors, the ports that clients connect to: their fields, and the operation that lists them."""

from __future__ import annotations

from typing import Final

from artemis_py.config.secrets_in_text import MASK, names_a_secret
from artemis_py.config.settings import AcceptorConfig
from artemis_py.management.listing import FLAG, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import AcceptorState, Arguments, Managed, Steps
from artemis_py.management.operation import listing, select_rows


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


def _list(managed: Managed, arguments: Arguments) -> Steps:
    return (yield from select_rows(ACCEPTORS, managed.acceptors(), arguments))


ACCEPTOR_OPERATIONS: Final = (
    listing("listAcceptors", "/api/acceptors", "acceptor ls", ACCEPTORS, "Acceptors.", _list),
)
