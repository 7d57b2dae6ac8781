"""A way to the broker on which acknowledgements get stuck."""

from __future__ import annotations

import contextlib
import re
import socket

from tests.kit.frames import ServerFrame, ServerStream
from tests.spark.cutting_proxy import Proxy

_ACK = re.compile(rb"\n*ACK\n(?:.+\n)*?bookmarks:(?P<named>[1-9][\d,]*)\n")
"""One that names messages; others only ask how the queue is."""


def numbers(message: ServerFrame) -> tuple[int, int]:
    """The bookmark of a message, and which delivery of it this is."""
    return int(message.header("bookmark") or 0), int(message.header("delivery-count") or 0)


class HoldingProxy(Proxy):
    """Passes what clients and a broker say, but each connection is stuck from the first ACK on that names messages: the
    broker hears nothing more over it, not even that the client is gone. So it is when the client's machine is gone.
    """

    def __init__(self, broker_port: int) -> None:
        self.acks: list[list[int]] = []
        """The bookmarks in each ACK that did not pass."""
        self.deliveries: dict[int, list[int]] = {}
        """For each bookmark the ``delivery-count`` of each MESSAGE."""
        self._stuck: set[socket.socket] = set()
        self._lets_pass = False
        super().__init__(broker_port)

    def hold(self) -> None:
        """Let all connections be stuck from now on, even without an ACK."""
        self._stuck.update(self._sockets)

    def let_pass(self) -> None:
        """End the connections that there are; over others everything passes."""
        self._lets_pass = True
        self.drop()

    def _pass(self, source: socket.socket, target: socket.socket, from_broker: bool) -> None:
        with contextlib.suppress(OSError):
            if from_broker:
                self._tell(source, target)
            else:
                self._hear(source, target)
        if from_broker or target not in self._stuck:
            for one in (source, target):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _hear(self, client: socket.socket, broker: socket.socket) -> None:
        """What a client says, frame by frame; none has a body."""
        rest = b""
        while data := client.recv(65536):
            *frames, rest = (rest + data).split(b"\0")
            for frame in frames:
                self._hear_frame(frame + b"\0", broker)
            if not rest.strip(b"\n"):  # heart-beats
                self._hear_frame(rest, broker)
                rest = b""

    def _hear_frame(self, frame: bytes, broker: socket.socket) -> None:
        found = None if broker in self._stuck or self._lets_pass else _ACK.match(frame)
        if found is not None:
            self._stuck.add(broker)
            self.acks.append([int(bookmark) for bookmark in found["named"].split(b",")])
        elif broker not in self._stuck:
            broker.sendall(frame)

    def _tell(self, broker: socket.socket, client: socket.socket) -> None:
        """What the broker says. It may go on when the client is gone."""
        stream = ServerStream()
        while data := broker.recv(65536):
            stream.take(data)
            for message in [one for one in stream.frames if one.command == "MESSAGE"]:
                bookmark, count = numbers(message)
                self.deliveries.setdefault(bookmark, []).append(count)
            stream.frames.clear()
            with contextlib.suppress(OSError):
                client.sendall(data)
