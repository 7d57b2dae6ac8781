"""The words of the command line that operate a running broker. What each can do is in the table of operations."""

from __future__ import annotations

from typing import Final, NamedTuple

WORDS: Final[dict[str, str]] = {
    "broker": "show a running broker, its disks, journal and configuration; reload, and compact the journal",
    "queue": "list, show, browse, create, change, purge and delete queues of a running broker, and move messages",
    "message": "show, move, copy, retry and remove single messages of a queue",
    "dead": "list dead and expired messages by where they came from, and send them back there",
    "job": "list background jobs, and stop them",
    "address": "list, show, create, change, pause, block, purge and delete the addresses of a running broker",
    "consumer": "list the consumers of a running broker, and close them",
    "why": "say why a running broker does not do what you expect, with the setting and a remedy",
    "connection": "list the clients of a running broker, and close their connections",
    "session": "list the sessions of a running broker, and close them",
    "producer": "list who has sent to which address of a running broker",
    "transaction": "list the open transactions of a running broker, roll them back, or commit them",
    "acceptor": "list the acceptors of a running broker",
    "divert": "list, create, change and destroy the diverts of a running broker",
    "log": "list the files of the log of a running broker",
    "settings": "show and change the settings in force in a running broker, and show who may do what",
}


class View(NamedTuple):
    """A list under another name, with other fields than usual."""

    action: str
    sentence: str
    fields: tuple[str, ...]


VIEWS: Final[dict[str, tuple[View, ...]]] = {
    "queue ls": (
        View(
            "stat",
            "The figures of queues, one row each, as `artemis queue stat` has them.",
            (
                "name", "address", "consumerCount", "messageCount", "messagesAdded", "deliveringCount", "messagesAcked",
                "scheduledCount", "routingType", "internalQueue",
            ),
        ),
    ),
}  # fmt: skip
"""By the command of the list."""
