"""Rows of AMPS (rows.py) about where in the log a queue begins: ``recovery-point``."""

from __future__ import annotations

import pytest

from tests.queues.life import Life
from tests.queues.replays import Stage
from tests.queues.views import addresses, view
from tests.sim.retained import Archive

pytestmark = pytest.mark.wire

DESK = "<address name='orders.eu'><anycast><queue name='desk'/></anycast></address>"
US = "<address name='orders.us'><anycast><queue name='us'/></anycast></address>"


def over(attributes: str = "", name: str = "work", underlying: str = "orders.eu", target: str = "orders.eu") -> str:
    """A view with more attributes."""
    return view(f"underlying-address='{underlying}' default-publish-target='{target}' {attributes}", name)


class Past(Stage):
    """A broker whose file changes from one life to the next."""

    def __init__(self, *declared: str, before: Past | None = None, settings: str = "") -> None:
        core = addresses(*declared, settings=settings)
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
        return bodies

    def count_of(self, queue: str) -> int:
        """How many messages a queue has."""
        return self.life.broker.broker.queues[queue].message_count


def test_A_61_a_new_view_gets_the_history_of_what_it_reads() -> None:
    """What was acknowledged on another queue, too."""
    past = Past(DESK)
    past.publish("a", "b", "c")
    assert past.take("desk", 2) == ["a", "b"]
    now = past.then(DESK, over())
    assert now.count_of("work") == 3
    now.publish("d")
    assert now.take("work") == ["a", "b", "c", "d"]
    assert now.take("desk") == ["c", "d"]
    again = now.then(DESK, over())
    assert (again.count_of("work"), again.count_of("desk")) == (0, 0)
