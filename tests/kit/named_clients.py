"""Clients of a broker in this process, by name: frames in, frames out."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tests.kit.frames import ServerFrame
from tests.kit.in_process import Client


class NamedClients(ABC):
    """Makes a client at its first use. With ``cut`` every byte arrives alone."""

    def __init__(self, clients: dict[str, Client] | None = None, *, cut: bool = False) -> None:
        self.cut = cut
        self.clients = {} if clients is None else clients

    @abstractmethod
    def _connected(self, name: str) -> Client:
        """A new connection, on which nothing was said."""

    @abstractmethod
    def _rest(self) -> None:
        """What was begun is carried out."""

    def client(self, name: str, version: str = "1.2") -> Client:
        """The client of that name, which has its CONNECTED."""
        client = self.clients.get(name)
        if client is None:
            client = self.clients[name] = self._connected(name)
            self.put(client, f"CONNECT\naccept-version:{version}\nhost:x\n\n\0")
            assert [frame.command for frame in self.frames(name)] == ["CONNECTED"]
        return client

    def put(self, client: Client, text: str) -> None:
        """Bytes from a client, and everything that follows from them."""
        data = text.encode()
        for part in [data[at : at + 1] for at in range(len(data))] if self.cut else [data]:
            client.send(part)
        self._rest()

    def write(self, name: str, command: str, *headers: str, body: str = "") -> None:
        """A client writes one frame."""
        self.put(self.client(name), "\n".join([command, *headers]) + f"\n\n{body}\0")

    def frames(self, name: str) -> list[ServerFrame]:
        """What a client got since it was asked last."""
        collected = self.client(name).collect()
        taken = list(collected)
        collected.clear()
        return taken

    def messages(self, name: str) -> list[ServerFrame]:
        """The same; it must be messages only."""
        frames = self.frames(name)
        assert all(frame.command == "MESSAGE" for frame in frames), [frame.text for frame in frames]
        return frames

    def error(self, name: str) -> ServerFrame:
        """The one frame that a client got, an ERROR."""
        (frame,) = self.frames(name)
        assert frame.command == "ERROR", frame.text
        return frame

    def lose(self, name: str) -> None:
        """A client's connection breaks."""
        self.clients.pop(name).drop()
        self._rest()
