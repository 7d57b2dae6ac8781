"""stomp.py as its users use it: a connection, a listener, and queues in which what arrives waits for the test."""

from __future__ import annotations

import itertools
import queue
import threading
from typing import Any

import stomp
from stomp.utils import Frame

from tests.kit.process import LOOPBACK, WAIT_S, eventually

CONNECTIONS = {"1.0": stomp.StompConnection10, "1.1": stomp.StompConnection11, "1.2": stomp.StompConnection12}
ACKNOWLEDGED_BY = {"1.0": ["message-id"], "1.1": ["message-id", "subscription"], "1.2": ["ack"]}
"""The headers of a message that its ACK repeats."""
_NUMBERS = itertools.count(1)


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Notes everything that the library reports."""

    def __init__(self) -> None:
        self.greetings: list[Frame] = []
        self.receipts: list[Frame] = []
        self.messages: queue.Queue[Frame] = queue.Queue()
        self.errors: queue.Queue[Frame] = queue.Queue()
        self.beats = threading.Semaphore(0)
        self.silence, self.gone = threading.Event(), threading.Event()
        self.on_connected, self.on_receipt = self.greetings.append, self.receipts.append
        self.on_message, self.on_error = self.messages.put, self.errors.put
        self.on_heartbeat, self.on_heartbeat_timeout = self.beats.release, self.silence.set
        self.on_disconnected = self.gone.set


class StompPy:
    """A connected client."""

    def __init__(
        self, port: int, version: str, *, connect_headers: dict[str, str] | None = None, **options: Any
    ) -> None:
        self.version = version
        self.listener = Listener()
        self.connection = CONNECTIONS[version]([(LOOPBACK, port)], reconnect_attempts_max=1, **options)
        self.connection.set_listener("test", self.listener)
        self.connection.connect(wait=True, headers=connect_headers or {})
        # The library wakes whoever waits for the connection before it tells its listeners of it.
        eventually("greeting", lambda: self.listener.greetings, bool)

    def ask(self, method: str, *arguments: object, **headers: object) -> None:
        """Calls a method of the library and waits for the receipt; fails with the ERROR that came instead."""
        receipt, errors = f"receipt-{next(_NUMBERS)}", self.listener.errors
        getattr(self.connection, method)(*arguments, **headers, receipt=receipt)
        eventually(
            receipt,
            lambda: not errors.empty() or [frame.headers["receipt-id"] for frame in self.listener.receipts],
            lambda seen: seen is True or receipt in seen,
        )
        assert errors.empty(), errors.get().body

    def acknowledge(self, message: Frame, method: str = "ack", **headers: str) -> None:
        """Acknowledges (or with nack refuses) as the version wants it."""
        self.ask(method, *(message.headers[name] for name in ACKNOWLEDGED_BY[self.version]), **headers)

    def messages(self, count: int) -> list[Frame]:
        """The next messages."""
        return [self.listener.messages.get(timeout=WAIT_S) for _ in range(count)]

    def bodies(self, count: int) -> list[Any]:
        """The bodies of the next messages."""
        return [message.body for message in self.messages(count)]

    def nothing_waits(self) -> None:
        """The broker carried out everything sent so far, and no message came."""
        self.ask("begin", f"nothing-{next(_NUMBERS)}")
        assert self.listener.messages.empty(), self.listener.messages.get().body

    def close(self) -> None:
        """Says DISCONNECT and waits for its receipt and the end, unless it has ended."""
        if self.connection.is_connected():
            self.ask("disconnect")
            assert self.listener.gone.wait(WAIT_S)
