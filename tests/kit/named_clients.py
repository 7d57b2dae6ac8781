"""Clients of a broker in this process, by name: frames in, frames out."""

from __future__ import annotations

from artemis_py.core.queue.queue import Queue
from tests.kit.frames import ServerFrame, frame
from tests.kit.in_process import Client, SteppedBroker


class NamedClients:
    """The clients of a broker, which connect at their first use. With ``cut`` every byte arrives alone."""

    def __init__(self, world: SteppedBroker, *, cut: bool = False) -> None:
        self.world = world
        self.core = world.broker
        self.cut = cut
        self.clients = world.clients

    def client(self, name: str, *headers: str, version: str = "1.2") -> Client:
        """The client of that name, which has its CONNECTED; ``headers`` are more of its CONNECT."""
        client = self.clients.get(name)
        if client is None:
            client = self.world.client(name)
            self.write(name, "CONNECT", f"accept-version:{version}", "host:x", *headers)
            assert [frame.command for frame in self.frames(name)] == ["CONNECTED"]
        return client

    # ---- what they say ---------------------------------------------------------------------------

    def write(self, name: str, command: str, *headers: str, body: str = "") -> None:
        """A client writes one frame, and everything happens that follows from it."""
        client, data = self.client(name), frame(command, *headers, body=body.encode())
        for part in [data[at : at + 1] for at in range(len(data))] if self.cut else [data]:
            client.send(part)

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

    # ---- what they get ---------------------------------------------------------------------------

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
        """Bodies in the order in which clients get them, until nothing more comes. No client may get more than
        ``at_once_max`` at a time. Each that needs it is acknowledged, but the last of ``count_max`` is not.
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
