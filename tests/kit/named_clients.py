"""Clients of a broker in this process, by name: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artemis_py.core.broker import Broker
from artemis_py.core.queue.queue import Queue
from tests.kit.frames import ServerFrame, frame
from tests.kit.in_process import Client


@dataclass
class NamedClients:
    """Makes a client at its first use: ``connect`` gives one on which nothing was said. ``rest`` carries out what was
    begun. With ``cut`` every byte arrives alone.
    """

    core: Broker
    connect: Callable[[str], Client]
    rest: Callable[[], None]
    cut: bool = False
    clients: dict[str, Client] = field(default_factory=dict)

    def client(self, name: str, *headers: str, version: str = "1.2") -> Client:
        """The client of that name, which has its CONNECTED; ``headers`` are more of its CONNECT."""
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = self.connect(name)
            self.write(name, "CONNECT", f"accept-version:{version}", "host:x", *headers)
            assert [frame.command for frame in self.frames(name)] == ["CONNECTED"]
        return client

    def write(self, name: str, command: str, *headers: str, body: str = "") -> None:
        """A client writes one frame, and everything happens that follows from it."""
        client, data = self.client(name), frame(command, *headers, body=body.encode())
        for part in [data[at : at + 1] for at in range(len(data))] if self.cut else [data]:
            client.send(part)
        self.rest()

    def subscribe(self, name: str, *headers: str, to: str = "q", ack: str = "client-individual", id: str = "1") -> None:
        """A client subscribes."""
        self.write(name, "SUBSCRIBE", f"id:{id}", f"destination:/queue/{to}", f"ack:{ack}", *headers)

    def settle(self, name: str, frame: ServerFrame, command: str = "ACK", *headers: str) -> None:
        """A client acknowledges a message, or refuses it."""
        self.write(name, command, f"id:{frame.header('ack')}", *headers)

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

    def one_by_one(self, name: str, count_max: int = 1000) -> list[str]:
        """Bodies in the order in which a client gets them that has one message at a time and acknowledges each."""
        bodies: list[str] = []
        while len(bodies) < count_max and (frames := self.messages(name)):
            (frame,) = frames
            bodies.append(frame.body.decode())
            self.settle(name, frame)
        return bodies

    def drain(self, *names: str) -> list[str]:
        """Bodies in the order in which clients get them, each acknowledged, until nothing more comes."""
        bodies: list[str] = []
        while came := [(name, one) for name in names for one in self.messages(name)]:
            for name, one in came:
                bodies.append(one.body.decode())
                self.settle(name, one)
        return bodies

    def leave(self, name: str) -> None:
        """A client unsubscribes: what it has goes back, and no attempt is counted."""
        self.write(name, "UNSUBSCRIBE", "id:1")

    def error(self, name: str) -> ServerFrame:
        """The one frame that a client got, an ERROR. Who has its name next is another client."""
        (frame,) = self.frames(name)
        assert frame.command == "ERROR", frame.text
        del self.clients[name]
        return frame

    def lose(self, name: str) -> None:
        """A client's connection breaks."""
        self.clients.pop(name).drop()
        self.rest()

    def queue(self, name: str = "q") -> Queue:
        """A queue that must exist."""
        return self.core.queues[name]

    def count(self, name: str = "q") -> int:
        """The queue's message count."""
        return self.queue(name).message_count
