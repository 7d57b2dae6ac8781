"""Ways to a broker: one breaks at a chosen word, and on another one acknowledgements get stuck."""

from __future__ import annotations

import re
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from tests.kit.frames import ServerFrame, ServerStream
from tests.kit.proxy import Proxy

_ACK = re.compile(rb"\n*ACK\n(?:.+\n)*?bookmarks:(?P<named>[1-9][\d,]*)\n")
"""One that names messages; others only ask how the queue is."""


@dataclass
class CuttingProxy(Proxy):
    """The nth time a word passes in its direction, the bytes before it are passed on, and both sides are closed;
    ``at_cut`` is called before that.
    """

    word: bytes
    from_broker: bool = False
    nth: int = 1
    at_cut: Callable[[], object] = lambda: None
    has_cut: bool = field(default=False, init=False)
    _tails: dict[socket.socket, bytes] = field(default_factory=lambda: defaultdict(bytes), init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def _forward(self, data: bytes, source: socket.socket, target: socket.socket, from_broker: bool) -> bool:
        if self.has_cut or from_broker != self.from_broker:
            return super()._forward(data, source, target, from_broker)
        with self._lock:
            seen = self._tails[source] + data
            found = [match.start() for match in re.finditer(re.escape(self.word), seen)]
            is_here = self.has_cut = len(found) >= self.nth
            if is_here:
                data = data[: max(0, found[self.nth - 1] - len(self._tails[source]))]
            self.nth -= len(found)
            self._tails[source] = seen[max(0, len(seen) - len(self.word) + 1) :]
        super()._forward(data, source, target, from_broker)
        if is_here:
            self.at_cut()
        return not is_here


@contextmanager
def cutting(broker_port: int, word: bytes, **options: Any) -> Iterator[CuttingProxy]:
    """A proxy that is there for a while, and has to cut."""
    with closing(CuttingProxy(broker_port, word, **options)) as proxy:
        yield proxy
        assert proxy.has_cut, f"{word!r} never passed"


@dataclass
class HoldingProxy(Proxy):
    """The broker is stuck from the first ACK on that names messages, until it ``lets_pass``."""

    acks: list[list[int]] = field(default_factory=list, init=False)
    """The bookmarks in each ACK that did not pass."""
    deliveries: dict[int, list[int]] = field(default_factory=dict, init=False)
    """For each bookmark the ``delivery-count`` of each MESSAGE."""
    lets_pass: bool = field(default=False, init=False)
    _said: dict[socket.socket, ServerStream] = field(default_factory=lambda: defaultdict(ServerStream), init=False)
    _heard: dict[socket.socket, bytes] = field(default_factory=lambda: defaultdict(bytes), init=False)

    def hold(self) -> None:
        """Let all brokers be stuck from now on, even without an ACK."""
        self.stuck.update(self._sockets[1::2])

    def _forward(self, data: bytes, source: socket.socket, target: socket.socket, from_broker: bool) -> bool:
        if from_broker:
            stream = self._said[source]
            stream.take(data)
            for bookmark, count in (numbers(one) for one in stream.frames if one.command == "MESSAGE"):
                self.deliveries.setdefault(bookmark, []).append(count)
            stream.frames.clear()
            with suppress(OSError):  # it may go on when the client is gone
                super()._forward(data, source, target, from_broker)
            return True
        *frames, rest = (self._heard[source] + data).split(b"\0")  # no frame of these clients has a body
        for frame in frames:
            found = None if target in self.stuck or self.lets_pass else _ACK.match(frame)
            if found is not None:
                self.stuck.add(target)
                self.acks.append([int(bookmark) for bookmark in found["named"].split(b",")])
            super()._forward(frame + b"\0", source, target, from_broker)
        self._heard[source] = rest if rest.strip(b"\n") else b""
        if not self._heard[source]:  # heart-beats
            super()._forward(rest, source, target, from_broker)
        return True


def numbers(message: ServerFrame) -> tuple[int, int]:
    """The bookmark of a message, and which delivery of it this is."""
    return int(message.header("bookmark") or 0), int(message.header("delivery-count") or 0)
