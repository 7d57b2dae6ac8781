"""A broker with a queue ``q`` on an anycast address ``q``, and clients that send to it and read from it: frames in,
frames out.
"""

from __future__ import annotations

from artemis_py.core.queue.queue import Queue
from tests.kit.frames import ServerFrame
from tests.kit.in_process import Client, InProcessBroker, configuration

ONE_AT_A_TIME = "consumer-window-size:0"
"""A SUBSCRIBE header: never more than one unacknowledged message."""


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
    as XML below the core element, and ``acceptor`` are more parameters of the acceptor.
    """

    def __init__(
        self,
        attributes: str = "",
        *,
        settings: str = "",
        more: str = "",
        cut: bool = False,
        core: str | None = None,
        acceptor: str = "",
    ) -> None:
        self.world = InProcessBroker(
            configuration(declared(attributes, settings, more) if core is None else core, acceptor)
        )
        self._cut = cut

    def queue(self, name: str = "q") -> Queue:
        """A queue that must exist."""
        return self.world.queue(name)

    def write(self, name: str, command: str, *headers: str, body: str = "") -> None:
        """A client writes one frame; it connects before its first."""
        if name not in self.world.clients:
            self._put(self.world.client(name), "CONNECT\naccept-version:1.2\nhost:x\n\n\0")
            assert [frame.command for frame in self.frames(name)] == ["CONNECTED"]
        self._put(self.world.client(name), "\n".join([command, *headers]) + f"\n\n{body}\0")

    def _put(self, client: Client, text: str) -> None:
        data = text.encode()
        for part in [data[at : at + 1] for at in range(len(data))] if self._cut else [data]:
            client.send(part)

    def send(self, body: str, *headers: str, to: str = "q") -> None:
        """A producer sends a message."""
        self.write("producer", "SEND", f"destination:/queue/{to}", *headers, body=body)

    def subscribe(self, name: str, *headers: str, to: str = "q", ack: str = "client-individual") -> None:
        """A client subscribes, under the id 1."""
        self.write(name, "SUBSCRIBE", "id:1", f"destination:/queue/{to}", f"ack:{ack}", *headers)

    def frames(self, name: str) -> list[ServerFrame]:
        """What a client got since it was asked last."""
        collected = self.world.client(name).collect()
        taken = list(collected)
        collected.clear()
        return taken

    def messages(self, name: str) -> list[ServerFrame]:
        """The same; it must be messages only."""
        frames = self.frames(name)
        assert all(frame.command == "MESSAGE" for frame in frames), [frame.text for frame in frames]
        return frames

    def got(self, name: str) -> list[str]:
        """Bodies of the messages that a client got since it was asked last."""
        return [frame.body.decode() for frame in self.messages(name)]

    def settle(self, name: str, frame: ServerFrame, command: str = "ACK") -> None:
        """A client acknowledges a message, or refuses it."""
        self.write(name, command, f"id:{frame.header('ack')}")

    def one_by_one(self, name: str) -> list[str]:
        """Bodies in the order in which a client gets them that has one message at a time and acknowledges each."""
        bodies = []
        while frames := self.messages(name):
            (frame,) = frames
            bodies.append(frame.body.decode())
            self.settle(name, frame)
        return bodies

    def leave(self, name: str) -> None:
        """A client unsubscribes: what it has goes back, and no attempt is counted."""
        self.write(name, "UNSUBSCRIBE", "id:1")

    def lose(self, name: str) -> None:
        """A client's connection breaks."""
        self.world.client(name).drop()
        del self.world.clients[name]

    def count(self, name: str = "q") -> int:
        """The queue's message count."""
        return self.queue(name).message_count
