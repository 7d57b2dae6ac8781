"""A small STOMP broker that can be told to misbehave. A thread per connection; for a few thousand messages."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from artemis_py.stomp.client import FrameReader, ServerFrame, frame


@dataclass
class Faults:
    """What goes wrong at the nth message (from 1), counted over the whole broker; 0: nothing."""

    error_at: int = 0
    drop_at: int = 0
    double_at: int = 0
    close_at: int = 0
    closes_over: bytes | None = None
    """The body of a message that it does not want."""
    extra_at_goodbye: bool = False
    ignores_acks: bool = False
    refuse_login: bool = False
    refuse_replays: bool = False
    receipts: bool = True
    chunk_bytes: int = 0


@dataclass
class Client:
    """One connection, its subscription id per destination, and what it must acknowledge, oldest first."""

    sock: socket.socket
    subscriptions: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    unacked: dict[str, tuple[str, bytes]] = field(default_factory=dict)


class FakeBroker(socketserver.ThreadingTCPServer):
    """Queues go to their first subscriber, topics to all. Use as a context manager; ``port`` is where it listens."""

    daemon_threads, block_on_close, request_queue_size = True, False, 200

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.sent = 0
        self.acks = 0
        self.connects: list[ServerFrame] = []
        self.subscribes: list[ServerFrame] = []
        self.sends: list[ServerFrame] = []
        self.lock = threading.Lock()
        self.clients: list[Client] = []
        self._waiting: dict[str, list[bytes]] = defaultdict(list)
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.005,), daemon=True).start()

    def server_close(self) -> None:
        """All connections end, too."""
        self.shutdown()
        super().server_close()
        with self.lock:
            for client in self.clients:
                client.sock.close()

    def confirm(self) -> None:
        """Its clients get the RECEIPTs of what they have sent so far."""
        with self.lock:
            for client in self.clients:
                for found in self.sends:
                    self._write(client, frame("RECEIPT", (("receipt-id", found.headers["receipt"]),)))

    def take(self, client: Client, found: ServerFrame) -> None:
        destination = found.headers.get("destination", "")
        if found.command == "CONNECT":
            self.connects.append(found)
            refused = frame("ERROR", (("message", "bad login"),), b"no such user")
            self._write(client, refused if self.faults.refuse_login else frame("CONNECTED", (("version", "1.2"),)))
        elif found.command == "SUBSCRIBE":
            self.subscribes.append(found)
            if self.faults.refuse_replays and "bookmark" in found.headers:
                client.sock.shutdown(socket.SHUT_RDWR)
                return
            client.subscriptions[destination] = found.headers["id"]
            client.modes[destination] = found.headers.get("ack", "auto")
            for body in self._waiting.pop(destination, []):
                self._deliver(client, destination, body)
        elif found.command == "SEND":
            if found.body == self.faults.closes_over:
                client.sock.shutdown(socket.SHUT_RDWR)
                return
            self.sends.append(found)
            readers = [reader for reader in self.clients if destination in reader.subscriptions]
            if not readers and destination.startswith("/queue/"):
                self._waiting[destination].append(found.body)
            for reader in readers if destination.startswith("/topic/") else readers[:1]:
                self._deliver(reader, destination, found.body)
        elif found.command == "ACK":
            self._acknowledge(client, found.headers.get("id") or found.headers["message-id"])
        elif found.command == "DISCONNECT":
            self._take_leave(client)
        if "receipt" in found.headers and self.faults.receipts:
            self._write(client, frame("RECEIPT", (("receipt-id", found.headers["receipt"]),)))

    def _acknowledge(self, client: Client, message_id: str) -> None:
        if message_id not in client.unacked:
            return
        destination, _ = client.unacked[message_id]
        settled = [message_id]
        if client.modes[destination] == "client":
            ids = list(client.unacked)
            settled = ids[: ids.index(message_id) + 1]
        self.acks += 1
        for one in settled:
            if self.faults.ignores_acks:
                return
            del client.unacked[one]

    def _take_leave(self, client: Client) -> None:
        if self.faults.extra_at_goodbye:
            for subscribed in client.subscriptions:
                self._deliver(client, subscribed, b"one more")
        for destination, body in client.unacked.values():
            self._waiting[destination].append(body)
        client.unacked.clear()
        client.subscriptions.clear()

    def _deliver(self, client: Client, destination: str, body: bytes) -> None:
        self.sent += 1
        headers: tuple[tuple[str, str], ...] = (
            ("subscription", client.subscriptions[destination]),
            ("message-id", str(self.sent)),
            ("destination", destination),
            ("content-length", str(len(body))),
        )
        if client.modes.get(destination, "auto") != "auto":
            headers = (*headers, ("ack", str(self.sent)))
            client.unacked[str(self.sent)] = (destination, body)
        message = frame("MESSAGE", headers, body)
        if self.sent == self.faults.error_at:
            message += frame("ERROR", (("message", "disk on fire"),), b"all is lost")
        if self.sent == self.faults.drop_at:
            message = b""
        if self.sent == self.faults.double_at:
            message += message
        self._write(client, message)
        if self.sent == self.faults.close_at:
            client.sock.shutdown(socket.SHUT_RDWR)

    def _write(self, client: Client, data: bytes) -> None:
        step = self.faults.chunk_bytes or len(data) or 1
        for start in range(0, len(data), step):
            client.sock.sendall(data[start : start + step])


class _Handler(socketserver.BaseRequestHandler):
    server: FakeBroker

    def handle(self) -> None:
        server, client, reader = self.server, Client(self.request), FrameReader()
        with server.lock:
            server.clients.append(client)
        with suppress(OSError):
            while data := client.sock.recv(65536):
                reader.feed(data)
                for found in reader.frames():
                    with server.lock:
                        server.take(client, found)
        with server.lock:
            server.clients.remove(client)
