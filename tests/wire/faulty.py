"""A socket that fails at any call that somebody chooses, and a client on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from tests.kit import core
from tests.kit.fake_loop import FakeTransport
from tests.kit.frames import ServerStream
from tests.kit.in_process import Client, InProcessBroker

Fails = Callable[[int, str], BaseException | None]
"""Given the number of a call, from 0 on, and its name: what it raises."""
CALLS: Final = (
    "get_extra_info", "set_write_buffer_limits", "get_write_buffer_size", "write", "write_eof", "pause_reading",
    "resume_reading", "is_closing", "close", "abort",
)  # fmt: skip
"""What a server calls of a socket."""


class FaultyClient(Client):
    """A client whose server's end notes every call of the server, and raises where ``fails`` says so, before anything
    happens. What the client does itself is no call.
    """

    def __init__(self, world: InProcessBroker, fails: Fails = lambda *_: None) -> None:
        self._world = world
        self.connection = world.acceptance.connect()
        self.transport = FakeTransport(world.loop, self.connection)
        self.stream = ServerStream()
        self.unread = bytearray()
        self._fails = fails
        self.calls: list[str] = []
        faulty = FakeTransport(world.loop, self.connection)
        for name in CALLS:
            setattr(faulty, name, partial(self._called, name))
        self.connection.connection_made(faulty)
        world.clients["victim"] = self
        world.settle()

    def _called(self, name: str, *arguments: Any, **named: Any) -> Any:
        self.calls.append(name)
        error = self._fails(len(self.calls) - 1, name)
        if error is not None:
            raise error
        return ("10.0.0.7", 4711) if arguments == ("peername",) else getattr(self.transport, name)(*arguments, **named)


def breaking(owner: type, name: str, when: Callable[..., bool]) -> Any:
    """A patch: in the calls that are given a method raises what elsewhere says that a client wrote nonsense, and it
    does what it does in all others.
    """
    return patch.object(owner, name, core.breaking(getattr(owner, name), when, ValueError))


def named(errors: Mapping[str, BaseException]) -> Fails:
    """Fails at every call of these names."""
    return lambda _called, name: errors.get(name)
