"""A broker with a journal on a disk in memory, and clients by name: for what needs bookmarks."""

from __future__ import annotations

from tests.kit.crash.retained import Archive
from tests.kit.frames import ServerFrame
from tests.kit.life import Life, OnLife

FLAT = "consumer-window-size:-1"


class DurableBench(OnLife):
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
        super().__init__(life or Life(attributes, settings=settings, more=more, core=core, archive=archive))

    def again(self, attributes: str | None = None) -> DurableBench:
        """The next life."""
        return DurableBench("", life=self.life.again(attributes))

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

    def got(self, name: str) -> str:
        """The bodies of the messages that a client got since it was asked last, one behind the other."""
        return "".join(frame.body.decode() for frame in self.messages(name))

    def settle(self, name: str, command: str, *headers: str, to: str = "q") -> None:
        """A client settles messages that it names itself."""
        self.write(name, command, f"destination:/queue/{to}", *headers)

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
