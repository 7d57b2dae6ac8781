"""The words of the command line that operate a running broker. What each can do is in the table of operations."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, str]] = {
    "broker": "show a running broker",
    "queue": "list, show, browse, pause, purge and delete the queues of a running broker, and move what is on them",
    "message": "show, move, copy, retry and remove single messages of a queue",
    "dead": "list dead and expired messages by where they came from, and send them back there",
    "job": "list works that go on by themselves, and stop them",
    "address": "list and show the addresses of a running broker",
    "consumer": "list the consumers of a running broker",
    "why": "say why a running broker does not do what you expect, with the setting and a remedy",
    "connection": "list the clients of a running broker, and close their connections",
}
