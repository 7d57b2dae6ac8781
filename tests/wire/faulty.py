"""A socket that fails at any call that somebody chooses, and a client on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from artemis_py.server.connection import Connection
from artemis_py.server.turns import READ_BYTES_MAX
from tests.kit.fake_loop import FakeTransport
from tests.kit.frames import ServerStream
from tests.kit.in_process import Client, InProcessBroker

Fails = Callable[[int, str], BaseException | None]
"""Given the number of a call, from 0 on, and its name: what it raises."""


class FaultyTransport(FakeTransport):
    """Notes every call of the server and raises where ``fails`` says so, before anything happens."""

    def __init__(self, world: InProcessBroker, protocol: Connection, fails: Fails) -> None:
        super().__init__(world.loop, protocol)
        self.calls: list[str] = []
        self._fails = fails

    def _called(self, name: str) -> None:
        self.calls.append(name)
        error = self._fails(len(self.calls) - 1, name)
        if error is not None:
            raise error

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.7", 4711) if name == "peername" else default


def _noted(name: str) -> Callable[..., Any]:
    plain = getattr(FaultyTransport, name)

    def call(transport: FaultyTransport, *arguments: Any, **named: Any) -> Any:
        transport._called(name)
        return plain(transport, *arguments, **named)

    return call


CALLS: Final = (
    "get_extra_info", "set_write_buffer_limits", "get_write_buffer_size", "write", "write_eof", "pause_reading",
    "resume_reading", "is_closing", "close", "abort",
)  # fmt: skip
"""What a server calls of a socket."""
for _name in CALLS:
    setattr(FaultyTransport, _name, _noted(_name))


class FaultyClient(Client):
    """A client whose server's end is faulty; what it does itself is no call."""

    def __init__(self, world: InProcessBroker, fails: Fails) -> None:
        self._world = world
        self.connection = world.acceptance.connect()
        self.faulty = self.transport = FaultyTransport(world, self.connection, fails)
        self.stream = ServerStream()
        self._unread = bytearray()
        self.connection.connection_made(self.transport)
        world.clients["victim"] = self
        world.settle()

    def _deliver(self) -> bool:
        transport = self.transport
        if not self._unread or not transport.reading or FakeTransport.is_closing(transport):
            return False
        buffer = self.connection.get_buffer(-1)
        size = min(len(self._unread), READ_BYTES_MAX)
        buffer[:size] = self._unread[:size]
        del self._unread[:size]
        self.connection.buffer_updated(size)
        return True


def never(_number: int, _name: str) -> None:
    """A socket that works."""


def at(number: int, error: BaseException) -> Fails:
    """Fails at one call."""
    return lambda called, _name: error if called == number else None


def since(number: int, error: BaseException) -> Fails:
    """Fails at one call and at all that follow."""
    return lambda called, _name: error if called >= number else None


def named(errors: Mapping[str, BaseException]) -> Fails:
    """Fails at every call of these names."""
    return lambda _called, name: errors.get(name)
