"""A broker with a past: its file changes from one life to the next."""

from __future__ import annotations

from tests.kit.crash.retained import Archive
from tests.kit.life import Life
from tests.kit.replays import Stage
from tests.kit.views import addresses

RETAINED = "<journal-retention-directory unit='DAYS' period='7'>kept</journal-retention-directory>"


DESK = "<address name='orders.eu'><anycast><queue name='desk'/></anycast></address>"


class Past(Stage):
    """A broker whose file changes from one life to the next."""

    def __init__(self, *declared: str, before: Past | None = None, settings: str = "") -> None:
        core = RETAINED + addresses(*declared, settings=settings)
        if before is not None:
            before.life.broker.drain()
        super().__init__(
            Life(
                "",
                None if before is None else before.life.disk,
                archive=Archive() if before is None else before.archive,
                instead=core,
            )
        )

    def then(self, *declared: str, settings: str = "") -> Past:
        """The next life, with another file."""
        return Past(*declared, before=self, settings=settings)

    def publish(self, *bodies: str, to: str = "/queue/orders.eu", headers: tuple[str, ...] = ()) -> None:
        """Persistent messages."""
        self.send(*bodies, to=to, headers=headers)

    def take(self, queue: str, count: int = 1000, *, name: str = "taker") -> list[str]:
        """What a client gets of a queue and acknowledges, one by one."""
        address = self.life.broker.broker.queues[queue].address.name
        self.write(name, "SUBSCRIBE", "id:1", f"destination:{address}::{queue}", "ack:client-individual",
                   "consumer-window-size:0")  # fmt: skip
        bodies: list[str] = []
        while len(bodies) < count and (frames := self.messages(name)):
            for frame in frames:
                bodies.append(frame.body.decode())
                self.write(name, "ACK", f"id:{frame.header('ack')}")
        self.write(name, "UNSUBSCRIBE", "id:1")
        self.frames(name)
        return bodies

    def count_of(self, queue: str) -> int:
        """How many messages a queue has."""
        return self.life.broker.broker.queues[queue].message_count

    def bookmarks(self) -> list[int]:
        """Where in the log the messages are."""
        return self.offsets("orders.eu")
