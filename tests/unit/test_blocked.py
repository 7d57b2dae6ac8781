"""Senders that wait: what many wait for is asked once for all of them, and who waits longest goes on first."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

from artemis_py.server.blocked_senders import BlockedSenders
from artemis_py.server.connection import Connection


@dataclass(eq=False)
class Room:
    """What senders wait for; it counts how often it is asked."""

    room: int = 0
    asked: int = 0

    @property
    def may_go_on(self) -> bool:
        self.asked += 1
        return self.room > 0


class Sender:
    """A connection that has logged in."""

    session = SimpleNamespace(is_open=True)


def senders(count: int) -> list[Connection]:
    return [cast(Connection, Sender()) for _ in range(count)]


def test_what_many_wait_for_is_asked_once() -> None:
    blocked, full, others = BlockedSenders(), Room(), senders(5000)
    for sender in others:
        blocked.add(sender, full)
    assert not blocked.has_ready
    assert blocked.ready() == []
    assert full.asked == 2, "it does not depend on how many wait"
    assert len(blocked) == 5000


def test_as_many_go_on_as_there_is_room_for_and_the_first_comes_first() -> None:
    blocked, room, waiting = BlockedSenders(), Room(2), senders(5)
    for sender in waiting:
        blocked.add(sender, room)
    gone: list[object] = []
    for freed in blocked.waiting_for(room):
        gone.append(freed)
        room.room -= 1
    assert gone == waiting[:2]
    assert list(blocked) == waiting[2:]


def test_who_has_to_wait_again_stands_behind_the_others() -> None:
    blocked, room, waiting = BlockedSenders(), Room(1), senders(3)
    for sender in waiting:
        blocked.add(sender, room)
    gone: list[object] = []
    for freed in blocked.waiting_for(room):
        gone.append(freed)
        blocked.add(freed, room)
    assert gone == waiting, "each once, though there is still room"
    first = next(blocked.waiting_for(room))
    assert first is waiting[0]


def test_what_was_served_comes_last_in_the_next_turn() -> None:
    blocked, rooms = BlockedSenders(), [Room(1), Room(1)]
    for room in rooms:
        for sender in senders(3):
            blocked.add(sender, room)
    assert blocked.ready() == rooms
    next(blocked.waiting_for(rooms[0]))
    assert blocked.ready() == [rooms[1], rooms[0]]


def test_nothing_is_left_of_who_is_gone() -> None:
    blocked, room, waiting = BlockedSenders(), Room(), senders(2)
    for sender in [*waiting, *waiting]:
        blocked.add(sender, room)
        blocked.discard(sender)
    assert not len(blocked)
    assert not blocked._waiting
    assert list(blocked.waiting_for(room)) == []


def test_everybody_is_asked_whether_he_is_there_in_turn() -> None:
    blocked, room, waiting = BlockedSenders(), Room(), senders(5)
    for sender in waiting:
        blocked.add(sender, room)
    assert blocked.next_of(2) + blocked.next_of(2) + blocked.next_of(2) == [*waiting, waiting[0]]
    assert sum(1 for _ in blocked) == 5
