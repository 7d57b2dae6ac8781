"""A broker with a journal on a disk in memory, and clients by name: for what needs bookmarks."""

from __future__ import annotations

from tests.kit.crash.retained import Archive
from tests.kit.frames import ServerFrame
from tests.kit.in_process import Client
from tests.kit.life import Life

FLAT = "consumer-window-size:-1"


class Ledger:
    """As ``Bench``, but on a journal. ``again`` begins the next life, to which all clients have to connect anew."""

    def __init__(
        self,
        attributes: str,
        *,
        settings: str = "",
        more: str = "",
        core: str = "",
        life: Life | None = None,
        retained: bool = False,
    ) -> None:
        archive = Archive() if retained else None
        self.life = life or Life(attributes, settings=settings, more=more, core=core, archive=archive)
        self._clients: dict[str, Client] = {}

    def again(self, attributes: str | None = None) -> Ledger:
        """The next life."""
        return Ledger("", life=self.life.again(attributes))

    def client(self, name: str) -> Client:
        """A client, connected when it is first asked for."""
        if name not in self._clients:
            self._clients[name] = self.life.client()
        return self._clients[name]

    def write(self, name: str, command: str, *headers: str, body: str = "") -> None:
        """A client writes one frame."""
        self.life.write(self.client(name), command, *headers, body=body)

    def send(self, bodies: str, *headers: str, to: str = "q", persistent: bool = True) -> None:
        """A persistent message for each character."""
        kind = f"persistent:{str(persistent).lower()}"
        for body in bodies:
            self.write("producer", "SEND", f"destination:/queue/{to}", kind, *headers, body=body)

    def subscribe(
        self, name: str, *headers: str, to: str = "q", ack: str = "client-individual", number: str = "1"
    ) -> None:
        """A client subscribes."""
        self.write(name, "SUBSCRIBE", f"id:{number}", f"destination:/queue/{to}", f"ack:{ack}", FLAT, *headers)

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

    def got(self, name: str) -> str:
        """The bodies of the messages that a client got since it was asked last, one behind the other."""
        return "".join(frame.body.decode() for frame in self.messages(name))

    def error(self, name: str) -> str:
        """What the ERROR says that a client got, and nothing else."""
        (frame,) = self.frames(name)
        assert frame.command == "ERROR"
        return frame.header("message") or ""

    def settle(self, name: str, command: str, *headers: str, to: str = "q") -> None:
        """A client settles messages that it names itself."""
        self.write(name, command, f"destination:/queue/{to}", *headers)

    def lose(self, name: str) -> None:
        """A client's connection breaks."""
        self._clients.pop(name).drop()
        self.life.broker.drain()

    def advance(self, ms: int) -> None:
        """Let time pass."""
        self.life.broker.advance(ms)
        self.life.broker.drain()

    def count(self, name: str = "q") -> int:
        """The message count of a queue."""
        return self.life.broker.broker.queues[name].message_count

    def delivering(self, name: str = "q") -> int:
        """How many messages of a queue are in delivery."""
        return self.life.broker.broker.queues[name].contents.delivering_count


def bookmarks(frames: list[ServerFrame]) -> list[str]:
    """The bookmarks of messages."""
    found = [frame.header("bookmark") for frame in frames]
    assert all(found), "every message has one"
    return [one or "" for one in found]
