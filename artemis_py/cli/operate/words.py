"""The words of the command line that operate a running broker. What each can do is in the table of operations."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, str]] = {
    "broker": "show a running broker, its configuration, and what a reload would change; reload",
    "queue": "list, show, pause, purge and delete the queues of a running broker",
    "address": "list and show the addresses of a running broker",
    "consumer": "list the consumers of a running broker",
    "why": "say why a running broker does not do what you expect, with the setting and a remedy",
    "connection": "list the clients of a running broker, and close their connections",
}
