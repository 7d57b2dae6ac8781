"""A broker with a queue ``q`` on an anycast address ``q``, and its clients by name: frames in, frames out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from artemis_py.core.queue.queue import Queue
from tests.kit.frames import ServerFrame, frame
from tests.kit.in_process import Client, InProcessBroker, SteppedBroker, configuration

FLAT: Final = "consumer-window-size:-1"
"""A SUBSCRIBE header: as many messages as there are."""
ONE_AT_A_TIME: Final = "consumer-window-size:0"
"""A SUBSCRIBE header: never more than one unacknowledged message."""
FREELY: Final = (FLAT, "max-backlog:10")
"""SUBSCRIBE headers: many messages, also where a queue gives few at a time."""


def declared(attributes: str = "", settings: str = "", more: str = "") -> str:
    """XML below ``core``: the queue with these attributes, address-settings for all, and further addresses."""
    return f"""
    <addresses>
      <address name="q"><anycast><queue name="q" {attributes}/></anycast></address>
      {more}
    </addresses>
    <address-settings><address-setting match="#">{settings}</address-setting></address-settings>
    """


class Bench:
    """The broker and its clients, by name. With ``cut`` every byte arrives alone; ``core`` is another configuration,
    as XML below the core element, and ``acceptor`` are more parameters of the acceptor. ``world`` is another broker.
    """

    address = "/queue/q"
    """Where messages go unless a test says where."""
    always: tuple[str, ...] = ()
    """Headers of each message."""

    def __init__(
        self,
        attributes: str = "",
        *,
        settings: str = "",
        more: str = "",
        cut: bool = False,
        core: str | None = None,
        acceptor: str = "",
        world: SteppedBroker | None = None,
    ) -> None:
        self.world = world or InProcessBroker(
            configuration(declared(attributes, settings, more) if core is None else core, acceptor)
        )
        self.core = self.world.broker
        self.cut = cut
        self.clients = self.world.clients

    def client(self, name: str, *headers: str, version: str = "1.2") -> Client:
        """The client of that name, which has its CONNECTED; it connects at its first use. ``headers`` are more of its
        CONNECT.
        """
        client = self.clients.get(name)
        if client is None:
            client = self.world.client(name)
            self.write(name, "CONNECT", f"accept-version:{version}", "host:x", *headers)
            assert [frame.command for frame in self.frames(name)] == ["CONNECTED"]
        return client

    # ---- what clients say ------------------------------------------------------------------------

    def write(self, name: str, command: str, *headers: str, body: str = "") -> None:
        """A client writes one frame, and everything happens that follows from it."""
        client, data = self.client(name), frame(command, *headers, body=body.encode())
        for part in [data[at : at + 1] for at in range(len(data))] if self.cut else [data]:
            client.send(part)

    def send(self, body: str, *headers: str, to: str = "", by: str = "producer") -> None:
        """A client sends a message."""
        self.write(by, "SEND", f"destination:{to or self.address}", *headers, *self.always, body=body)

    def send_all(self, bodies: Iterable[str], *headers: str, to: str = "", by: str = "producer") -> None:
        """A message for each body, which stands for {} in the headers."""
        for body in bodies:
            self.send(body, *(header.format(body) for header in headers), to=to, by=by)

    def subscribe(self, name: str, *headers: str, to: str = "q", ack: str = "client-individual", id: str = "1") -> None:
        """A client subscribes."""
        self.write(name, "SUBSCRIBE", f"id:{id}", f"destination:/queue/{to}", f"ack:{ack}", *headers)

    def settle(self, name: str, frame: ServerFrame, command: str = "ACK", *headers: str) -> None:
        """A client acknowledges a message, or refuses it."""
        self.write(name, command, f"id:{frame.header('ack')}", *headers)

    def leave(self, name: str) -> None:
        """A client unsubscribes: what it has goes back, and no attempt is counted."""
        self.write(name, "UNSUBSCRIBE", "id:1")

    def lose(self, name: str) -> None:
        """A client's connection breaks."""
        self.clients.pop(name).drop()

    # ---- what clients get ------------------------------------------------------------------------

    def frames(self, name: str) -> list[ServerFrame]:
        """What a client got since it was asked last."""
        return self.client(name).heard()

    def messages(self, name: str) -> list[ServerFrame]:
        """The same; it must be messages only."""
        frames = self.frames(name)
        assert all(frame.command == "MESSAGE" for frame in frames), [frame.text for frame in frames]
        return frames

    def got(self, name: str) -> list[str]:
        """Their bodies; of one that says that a replay has sent everything, ``completed``."""
        return ["completed" if frame.header("completed") else frame.body.decode() for frame in self.messages(name)]

    def drain(self, *names: str, at_once_max: int = 1, count_max: int = 1000) -> list[str]:
        """Bodies in the order in which clients get them, each of them so many at a time at most, until nothing more
        comes. Each that needs it is acknowledged, but the last of ``count_max`` is not.
        """
        bodies: list[str] = []
        waiting: list[tuple[str, ServerFrame]] = []
        while len(bodies) < count_max:
            for name in names:
                frames = self.messages(name)
                assert len(frames) <= at_once_max, [frame.text for frame in frames]
                waiting += [(name, frame) for frame in frames]
            if not waiting:
                break
            name, frame = waiting.pop(0)
            bodies.append(frame.body.decode())
            if len(bodies) < count_max and frame.header("ack"):
                self.settle(name, frame)
        return bodies

    def read(self, name: str = "", count_max: int = 1000, *, of: str = "q") -> list[str]:
        """What a queue gives one by one, at most so much, each acknowledged, but the last of ``count_max`` is not. A
        client without a name acknowledges that, too, and has gone afterwards.
        """
        reader = name or f"reader {len(self.clients)}"
        self.subscribe(reader, ONE_AT_A_TIME, to=f"{self.queue(of).address.name}::{of}")
        bodies = self.drain(reader, at_once_max=1000, count_max=count_max + (not name))[:count_max]
        if not name:
            self.lose(reader)
        return bodies

    def error(self, name: str) -> ServerFrame:
        """The one frame that a client got, an ERROR. Who has its name next is another client."""
        (frame,) = self.frames(name)
        assert frame.command == "ERROR", frame.text
        del self.clients[name]
        return frame

    # ---- what the broker has ---------------------------------------------------------------------

    def queue(self, name: str = "q") -> Queue:
        """A queue that must exist."""
        return self.world.queue(name)

    def count(self, name: str = "q") -> int:
        """The queue's message count."""
        return self.queue(name).message_count
