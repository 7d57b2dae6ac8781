"""What waits for listeners, what is kept for those who come again, and what is not noted for nobody."""

from __future__ import annotations

from unittest.mock import Mock, call

import pytest

from artemis_py.core.memory import Holdings
from artemis_py.core.notifications import LOST, NOTED_MAX, Notification, Notifications
from artemis_py.message import Account
from artemis_py.server.events.server_sent_events import BEAT_S, KEPT_MAX, LINGER_S, WAITING_BYTES_MAX, Hub, Listener
from tests.kit.fake_loop import FakeLoop

BEAT_MS, LINGER_MS = round(BEAT_S * 1000), round(LINGER_S * 1000)


def hub_of(loop: FakeLoop | None = None) -> tuple[Hub, Notifications, Holdings]:
    notifications, holdings = Notifications(), Holdings(Account())
    return Hub(notifications, (loop or FakeLoop(0)).as_loop(), holdings, lambda: 7), notifications, holdings


def listener(hub: Hub, *types: str) -> Listener:
    return Listener(frozenset(types), hub.leave, hub.count)


def told(count: int, type: str = "T") -> list[Notification]:
    return [Notification(type, {"n": number}) for number in range(count)]


def everything(one: Listener) -> str:
    pieces: list[bytes] = []
    while piece := one.take():
        pieces.append(piece)
    return b"".join(pieces).decode()


def test_notices_are_bounded_and_say_so() -> None:
    notifications = Notifications()
    for number in range(NOTED_MAX + 3):
        notifications.note("T", {"n": number})
    assert len(notifications.noted) == NOTED_MAX
    assert len(notifications.take(100)) == 100
    rest = notifications.take(NOTED_MAX)
    assert (rest[-1].type, rest[-1].fields) == (LOST, {"count": 3})
    assert (rest[-2].fields, len(notifications.noted)) == ({"n": NOTED_MAX - 1}, 0)


def test_somebody_listens_as_long_as_either_does() -> None:
    notifications = Notifications()
    assert not notifications.is_heard
    notifications.has_queues = True
    notifications.is_listened_to = True
    notifications.has_queues = False
    assert notifications.is_heard
    notifications.is_listened_to = False
    assert not notifications.is_heard


def test_what_does_not_fit_is_left_out_and_counted() -> None:
    hub, _, holdings = hub_of()
    one = listener(hub)
    hub.join(one, "")
    before_bytes = holdings.total_bytes
    hub.send(told(10_000), 1)
    assert WAITING_BYTES_MAX - 200 < holdings.total_bytes - before_bytes <= WAITING_BYTES_MAX
    text = everything(one)
    count = text.count("event: notification")
    assert text.endswith(f'event: lost\ndata: {{"count": {10_000 - count}}}\n\n')
    assert holdings.total_bytes == before_bytes


def test_a_state_that_does_not_fit_is_not_half_told() -> None:
    hub, _, holdings = hub_of()
    one = listener(hub)
    assert one.put(b"x" * (WAITING_BYTES_MAX + 1))  # nothing else waits: it may be large
    assert not one.put(b"y")
    one.close()
    assert holdings.total_bytes == 0


def test_who_comes_again_gets_what_is_kept() -> None:
    hub, notifications, _ = hub_of()
    first = listener(hub)
    hub.join(first, "")
    hub.send(told(1), 1)
    last_id = everything(first).partition("\n")[0].removeprefix("id: ")
    first.close()
    hub.send(told(KEPT_MAX + 5), 2)
    again = listener(hub)
    hub.join(again, last_id)
    text = everything(again)
    assert text.startswith('event: lost\ndata: {"count": 5}\n\n')
    assert text.count("event: notification") == KEPT_MAX
    assert notifications.is_heard


def test_nothing_is_noted_some_time_after_the_last_one_has_left() -> None:
    loop = FakeLoop(0)
    hub, notifications, _ = hub_of(loop)
    one = listener(hub)
    hub.join(one, "")
    one.close()
    other = listener(hub)
    hub.join(other, "")
    loop.advance(LINGER_MS)  # the time of the first one
    assert notifications.is_heard
    other.close()
    loop.advance(LINGER_MS)
    assert not notifications.is_heard
    assert loop._timers == []


def test_a_comment_comes_when_nothing_else_does() -> None:
    loop = FakeLoop(0)
    hub, _, _ = hub_of(loop)
    one = listener(hub)
    hub.join(one, "")
    loop.advance(BEAT_MS)
    assert everything(one) == ""
    loop.advance(BEAT_MS)
    assert everything(one) == ":\n\n"
    hub.send(told(1), 1)
    everything(one)
    loop.advance(BEAT_MS)
    assert everything(one) == ""


def test_only_types_that_are_wanted() -> None:
    hub, _, _ = hub_of()
    one = listener(hub, "A")
    hub.join(one, "")
    hub.send([*told(2, "A"), *told(3, "B")], 1)
    assert everything(one).count("event: notification") == 2


def test_a_stream_ends_with_the_login() -> None:
    loop = FakeLoop(0)
    hub, _, _ = hub_of(loop)
    woken: list[bool] = []
    early, late = (Listener(frozenset(), hub.leave, hub.count, expires_ms) for expires_ms in (7, 8))
    for one in (early, late):
        one.wake = lambda: woken.append(True)
        hub.join(one, "")
    loop.advance(BEAT_MS)
    assert (early.is_over, late.is_over, woken) == (True, False, [True])


@pytest.mark.parametrize("last_id", ["x", "-", "-7", "zz-7", "{epoch}-\u00b2", "{epoch}-" + "9" * 5000])
def test_an_id_that_is_none_leads_to_nothing(last_id: str) -> None:
    hub, _, _ = hub_of()
    first = listener(hub)
    hub.join(first, "")
    hub.send(told(1), 1)
    epoch = everything(first).partition("\n")[0].removeprefix("id: ").partition("-")[0]
    again = listener(hub)
    hub.join(again, last_id.format(epoch=epoch))
    assert everything(again) == 'event: lost\ndata: {"count": -1}\n\n'


def test_the_last_event_says_why_they_end() -> None:
    hub, _, holdings = hub_of()
    one = listener(hub)
    hub.join(one, "")
    hub.send(told(3), 7)
    one.end("withdrawn")
    one.end("twice")
    hub.send(told(1), 7)
    one.note_lost(2)
    assert one.put(b"later")
    one.beat(7)
    one.beat(7)
    assert one.is_over
    assert everything(one) == 'event: problem\ndata: {"error": "withdrawn"}\n\n'
    assert everything(one) == ""
    one.close()
    assert holdings.total_bytes == 0


def test_a_login_that_ends_says_so() -> None:
    one = Listener(frozenset(), lambda _: None, expires_ms=7)
    one.beat(6)
    assert not one.is_over
    one.beat(7)
    assert everything(one) == 'event: problem\ndata: {"error": "the login has ended: log in again"}\n\n'


def test_who_is_told_nothing_more_holds_no_place() -> None:
    """Although the client may not read, and so not be told that."""
    loop = FakeLoop(0)
    hub, _, holdings = hub_of(loop)
    leave = Mock(wraps=hub.leave)
    expired, ended = Listener(frozenset(), leave, hub.count, 6), Listener(frozenset(), leave, hub.count)
    for one in (expired, ended):
        hub.join(one, "")
    before_bytes = holdings.total_bytes
    ended.end("the login has changed")
    loop.advance(BEAT_MS)
    assert hub.listeners == set()
    assert leave.call_args_list == [call(ended), call(expired)]
    assert "the login has changed" in everything(ended)
    assert "log in again" in everything(expired)
    ended.close()
    expired.close()
    assert leave.call_args_list == [call(ended), call(expired)]
    assert holdings.total_bytes == before_bytes
