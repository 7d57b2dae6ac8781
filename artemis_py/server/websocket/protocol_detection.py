"""Detects the protocol of a connection by its first bytes: STOMP, or an HTTP request that asks for a WebSocket."""

from __future__ import annotations

from importlib import import_module
from typing import Final, final

from artemis_py.server.turn_client import Client
from artemis_py.server.websocket.rules import WebSocketRules

_METHODS: Final = tuple(b"%b " % name for name in b"GET HEAD POST PUT DELETE OPTIONS PATCH TRACE PRI".split())
_FIRST_BYTES: Final = frozenset(method[0] for method in _METHODS)
_METHOD_BYTES_MAX: Final = max(map(len, _METHODS))


def is_http(start: bytes) -> bool | None:
    """Do these first bytes, at least one, begin an HTTP request? None if that is still open. No STOMP client begins
    with such a word and a blank.
    """
    if start[0] not in _FIRST_BYTES:
        return False
    head = start[:_METHOD_BYTES_MAX]
    for method in _METHODS:
        if head.startswith(method):
            return True
        if method.startswith(head):
            return None
    return False


def prepare() -> None:
    """Import what reads WebSocket, so that the first client that speaks it does not wait for that. For a thread, soon
    after the start: most brokers never need it.
    """
    import_module("artemis_py.server.websocket.websocket")


@final
class ProtocolDetection:
    """The intake of a connection until its first bytes say which protocol it is."""

    __slots__ = ("_client", "_rules", "_start")

    def __init__(self, client: Client, rules: WebSocketRules) -> None:
        self._client = client
        self._rules = rules
        self._start = b""

    @property
    def has_more(self) -> bool:
        """Is there input that can be carried out and was not yet?"""
        return False

    @property
    def held_bytes(self) -> tuple[int, int, int]:
        """What is held in memory: of the input, of frames to be written, and of open transactions."""
        return self._client.session.held_bytes

    def receive(self, data: bytes, now_ms: int, stop_at: int = 0) -> None:
        """Take bytes; as soon as they say which protocol it is, its intake gets them, now and from then on."""
        start = self._start + data
        kind = is_http(start)
        if kind is None:
            self._start = start
            return
        client = self._client
        if kind:
            from artemis_py.server.websocket.websocket import WebSocket

            client.intake = client.socket.framing = WebSocket(client, self._rules)
        else:
            client.intake = client.session
        client.intake.receive(start, now_ms, stop_at)

    def go_on(self, now_ms: int, stop_at: int = 0) -> None:
        """Nothing is ever left to do."""
