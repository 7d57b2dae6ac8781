"""The fields of acceptors, diverts, and the broker's directories in lists."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from artemis_py.config.secrets_in_text import MASK, names_a_secret
from artemis_py.config.settings import AcceptorConfig
from artemis_py.core.addresses.address import Divert
from artemis_py.management.lists.field import FLAG, NUMBER, TEXT, Field, Kind


class Port(Protocol):
    """An acceptor as it is now."""

    @property
    def config(self) -> AcceptorConfig:
        """What the file says."""

    @property
    def place(self) -> str | None:
        """Host and port on which it listens; None: it is not open."""

    @property
    def connection_count(self) -> int:
        """How many clients it serves now."""

    @property
    def connections_left(self) -> int:
        """How many more it takes; -1: any number."""


def _parameters(acceptor: AcceptorConfig) -> str:
    """The parameters of its URI, as they are written there; secrets are masked."""
    shown = {name: MASK if names_a_secret(name) else value for name, value in acceptor.params.items()}
    return ";".join(f"{name}={value}" for name, value in shown.items())


ACCEPTORS: Final[Kind[Port]] = Kind(
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


class Diverting(NamedTuple):
    """A divert on its address."""

    divert: Divert
    address: str


DIVERTS: Final[Kind[Diverting]] = Kind(
    "divert",
    "diverts",
    [
        Field("name", TEXT, "The divert's name", lambda it: it.divert.name, is_brief=True),
        Field("address", TEXT, "The address whose messages it diverts", lambda it: it.address, is_brief=True),
        Field(
            "forwardingAddress",
            TEXT,
            "Where they go, with commas between",
            lambda it: ",".join(it.divert.forwarding_addresses),
            is_brief=True,
        ),
        Field("routingName", TEXT, "Its name in routing", lambda it: it.divert.routing_name),
        Field(
            "exclusive",
            FLAG,
            "Do the messages go nowhere else?",
            lambda it: it.divert.exclusive,
            is_brief=True,
        ),
        Field(
            "filter",
            TEXT,
            "Which messages it diverts; null: all",
            lambda it: None if it.divert.selector is None else it.divert.selector.text,
            is_brief=True,
        ),
        Field("routingType", TEXT, "STRIP, PASS, ANYCAST or MULTICAST", lambda it: it.divert.routing_type),
        Field(
            "declaredAt",
            TEXT,
            "File and line that declare it; null: an operator made it, or it is the broker's own",
            lambda it: None if it.divert.origin is None else str(it.divert.origin),
        ),
    ],
)


class Space(NamedTuple):
    """A directory of the broker, and the file system that it is on."""

    directory: str
    total_bytes: int
    free_bytes: int
    used_percent: int
    left_bytes: int
    """How much may be written until the disk counts as full."""


DISKS: Final[Kind[Space]] = Kind(
    "directory",
    "directories",
    [
        Field("directory", TEXT, "A directory that the broker writes to", lambda it: it.directory, is_brief=True),
        Field("total", NUMBER, "The size of its file system", lambda it: it.total_bytes, "bytes", is_brief=True),
        Field("free", NUMBER, "What is free there", lambda it: it.free_bytes, "bytes", is_brief=True),
        Field("usedPercent", NUMBER, "What is used there", lambda it: it.used_percent, "percent", is_brief=True),
        Field(
            "left",
            NUMBER,
            "What may be written until max-disk-usage or min-disk-free is reached",
            lambda it: it.left_bytes,
            "bytes",
            is_brief=True,
        ),
    ],
)
