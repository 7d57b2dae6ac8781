"""stomp.py as its users use it: a connection, a listener, and queues in which what arrives waits for the test."""

from __future__ import annotations

import itertools
import queue
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import stomp
from stomp.utils import Frame

from tests.kit.process import LOOPBACK, WAIT_S, eventually

CONNECTIONS = {"1.0": stomp.StompConnection10, "1.1": stomp.StompConnection11, "1.2": stomp.StompConnection12}
_NUMBERS = itertools.count(1)


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Notes everything that the library reports."""

    def __init__(self) -> None:
        self.greeting: dict[str, str] = {}
        self.messages: queue.Queue[Frame] = queue.Queue()
        self.receipts: set[str] = set()
        self.errors: queue.Queue[Frame] = queue.Queue()
        self.beats = 0
        self.beats_missed = 0
        self.gone = threading.Event()

    def on_connected(self, frame: Frame) -> None:
        self.greeting = frame.headers

    def on_message(self, frame: Frame) -> None:
        self.messages.put(frame)

    def on_receipt(self, frame: Frame) -> None:
        self.receipts.add(frame.headers["receipt-id"])

    def on_error(self, frame: Frame) -> None:
        self.errors.put(frame)

    def on_heartbeat(self) -> None:
        self.beats += 1

    def on_heartbeat_timeout(self) -> None:
        self.beats_missed += 1

    def on_disconnected(self) -> None:
        self.gone.set()


class StompPy(AbstractContextManager["StompPy"]):
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
        eventually("greeting", lambda: self.listener.greeting, bool)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.connection.is_connected():
            self.disconnect()

    def disconnect(self) -> None:
        """Says DISCONNECT and waits for its receipt and the end."""
        receipt = self.new_receipt()
        self.connection.disconnect(receipt=receipt)
        self.await_receipt(receipt)
        assert self.listener.gone.wait(WAIT_S)

    @staticmethod
    def new_receipt() -> str:
        """A receipt that no other frame asked for."""
        return f"receipt-{next(_NUMBERS)}"

    def await_receipt(self, receipt: str) -> None:
        """Waits for it; fails with the ERROR that came instead."""
        listener = self.listener
        eventually(f"receipt {receipt}", lambda: receipt in listener.receipts or not listener.errors.empty(), bool)
        assert receipt in listener.receipts, listener.errors.get().body

    def send(self, destination: str, body: str | bytes, **headers: str) -> None:
        """Sends and waits for the receipt."""
        receipt = self.new_receipt()
        self.connection.send(destination, body, headers={**headers, "receipt": receipt})
        self.await_receipt(receipt)

    def subscribe(self, destination: str, id: str = "1", ack: str = "client-individual", **headers: str) -> None:
        """Subscribes and waits for the receipt."""
        receipt = self.new_receipt()
        self.connection.subscribe(destination, id=id, ack=ack, headers={**headers, "receipt": receipt})
        self.await_receipt(receipt)

    def unsubscribe(self, id: str = "1", **headers: str) -> None:
        """Unsubscribes and waits for the receipt."""
        receipt = self.new_receipt()
        self.connection.unsubscribe(id=id, headers={**headers, "receipt": receipt})
        self.await_receipt(receipt)

    def ack(self, message: Frame, transaction: str | None = None, *, refuses: bool = False) -> None:
        """Acknowledges or refuses as the version wants it, and waits for the receipt."""
        verb = self.connection.nack if refuses else self.connection.ack
        receipt = self.new_receipt()
        headers = message.headers
        if self.version == "1.2":
            verb(headers["ack"], transaction=transaction, receipt=receipt)
        elif self.version == "1.1":
            verb(headers["message-id"], headers["subscription"], transaction=transaction, receipt=receipt)
        else:
            verb(headers["message-id"], transaction=transaction, receipt=receipt)
        self.await_receipt(receipt)

    def next(self) -> Frame:
        """The next message."""
        return self.listener.messages.get(timeout=WAIT_S)

    def bodies(self, count: int) -> list[Any]:
        """The bodies of the next messages."""
        return [self.next().body for _ in range(count)]

    def nothing_waits(self) -> None:
        """The broker carried out everything sent so far, and no message came."""
        receipt = self.new_receipt()
        self.connection.begin(transaction=receipt, headers={"receipt": receipt})
        self.await_receipt(receipt)
        assert self.listener.messages.empty(), self.listener.messages.get().body
