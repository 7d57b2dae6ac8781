"""Which files of large bodies a world has, and which it should have."""

from __future__ import annotations

from artemis_py.message import LargeBody, Message
from artemis_py.storage.format.names import read_name
from tests.kit.in_process import InProcessBroker


def files_of(world: InProcessBroker) -> set[int]:
    """The numbers of the files on the disk, when everything that can go has gone."""
    world.turns.schedule()
    world.settle()
    return {body.number for body in map(read_name, world.disk.names()) if body is not None}


def bodies_on_queues(world: InProcessBroker) -> set[int]:
    """The numbers of the bodies that queues refer to, in whatever state."""
    messages: list[Message] = []
    for queue in world.broker.queues.values():
        messages += [entry.message for entry in queue.contents.order]
        messages += [entry.message for entry in queue.contents.scheduled.values()]
    return {message.body.number for message in messages if isinstance(message.body, LargeBody)}
