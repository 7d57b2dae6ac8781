"""Message groups together with restarts and pages."""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME
from tests.kit.frames import ServerFrame
from tests.kit.in_process import Client
from tests.kit.life import Life

pytestmark = pytest.mark.wire

STICKY = "group-type='STANDARD'"
SHARED = "group-type='SHARED_GROUPS'"
LATER_MS = 2_000_000
LITTLE_ROOM = "<max-size-messages>1</max-size-messages><page-size-bytes>300</page-size-bytes>"


def send_all(life: Life, bodies: list[str]) -> None:
    """Persistent messages; the first letter of a body is its group."""
    producer = life.client()
    for body in bodies:
        life.write(producer, "SEND", "destination:/queue/q", "persistent:true", f"JMSXGroupID:{body[0]}", body=body)


def reader(life: Life, *headers: str) -> Client:
    """A consumer that has one message at a time."""
    client = life.client()
    life.write(client, "SUBSCRIBE", "id:1", "destination:/queue/q", "ack:client-individual", ONE_AT_A_TIME, *headers)
    return client


def settle(life: Life, client: Client, frame: ServerFrame, command: str = "ACK") -> None:
    """ACK or NACK."""
    life.write(client, command, f"id:{frame.header('ack')}")


def drain(life: Life, *clients: Client) -> list[str]:
    """Bodies in the order in which clients get them, each acknowledged."""
    bodies = []
    while frames := [(client, frame) for client in clients for frame in client.heard()]:
        for client, frame in frames:
            bodies.append(frame.body.decode())
            settle(life, client, frame)
    return bodies


@pytest.mark.parametrize("attributes", [STICKY, SHARED])
def test_order_in_groups_over_a_restart(attributes: str) -> None:
    life = Life(attributes)
    send_all(life, ["a1", "b1", "a2", "b2", "a3"])
    first, second = reader(life), reader(life)
    assert [frame.body for frame in first.heard() + second.heard()] == [b"a1", b"b1"]
    life = life.again()
    first, second = reader(life), reader(life)
    (held,) = first.heard()
    assert (held.body, drain(life, second)) == (b"a1", ["b1", "b2"])
    settle(life, first, held)
    assert drain(life, first, second) == ["a2", "a3"]


@pytest.mark.parametrize("attributes", [STICKY, SHARED])
def test_a_redelivery_delay_holds_its_group_over_a_restart(attributes: str) -> None:
    """Nothing of the group goes by, and what was older than the failed message still is."""
    life = Life(attributes, settings="<redelivery-delay>60000</redelivery-delay>")
    send_all(life, ["a1", "a2", "b1"])
    first = reader(life)
    (held,) = first.heard()
    settle(life, first, held, "NACK")
    life = life.again()
    assert drain(life, reader(life)) == ["b1"]
    queue = life.broker.broker.queues["q"]
    assert (queue.message_count, len(queue.contents.scheduled)) == (2, 1)
    life.broker.broker.tick(LATER_MS)
    life.broker.broker.dispatch(LATER_MS)
    other = queue.distribution.consumers[0]
    assert [entry.message.body for entry in other.outbox] == [b"a1"]


@pytest.mark.parametrize("ends", ["valid", "expired"])
def test_a_group_of_which_a_failed_message_is_held_is_not_held_up_for_ever(ends: str) -> None:
    """It failed before its queue held anything: a file with hold-on-publish came with the restart."""
    life = Life("")
    now_ms = life.broker.loop.now_ms
    producer = life.client()
    expires = f"expires:{now_ms + 500}" if ends == "expired" else "expires:0"
    life.send(producer, "a1", "JMSXGroupID:a", f"x-qpid-not-valid-before:{now_ms + 1000}", expires)
    life.send(producer, "a2", "JMSXGroupID:a")
    first = reader(life)
    (held,) = first.heard()
    settle(life, first, held, "NACK")
    life = life.again("hold-on-publish='true'")
    life.broker.advance(1001)
    assert drain(life, reader(life)) == (["a1", "a2"] if ends == "valid" else ["a2"])


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
@pytest.mark.parametrize("attributes", ["", STICKY, SHARED])
def test_groups_in_pages(attributes: str, restart: bool) -> None:
    """What waits for its group stays in memory, and the queue reads on behind it for the others."""
    life = Life(attributes, settings=LITTLE_ROOM)
    send_all(life, ["a1", "a2", "a3", "a4", "b1", "a5", "b2"])
    assert life.broker.broker.queues["q"].contents.paged.count == 6
    if restart:
        life = life.again()
    first, second = reader(life), reader(life)
    (held,) = first.heard()
    assert (held.body, drain(life, second)) == (b"a1", ["b1", "b2"])
    settle(life, first, held)
    assert drain(life, first, second) == ["a2", "a3", "a4", "a5"]
    assert life.broker.broker.queues["q"].message_count == 0


def test_what_waits_in_memory_is_limited_by_max_read_page_messages() -> None:
    """Then the groups behind it wait, too: memory has its limit (docs/queues.md, Groups and pages)."""
    room = (
        f"{LITTLE_ROOM}<max-read-page-messages>3</max-read-page-messages><max-read-page-bytes>-1</max-read-page-bytes>"
    )
    life = Life("", settings=room)
    send_all(life, ["a1", "a2", "a3", "a4", "b1"])
    first, second = reader(life), reader(life)
    (held,) = first.heard()
    assert second.heard() == []
    settle(life, first, held)
    (held,) = first.heard()
    assert held.body == b"a2"
    settle(life, first, held)
    assert [frame.body for frame in second.heard()] == [b"b1"]


def test_a_selector_on_a_grouped_queue_that_pages() -> None:
    """It is served from what is in memory, in order, and keeps its groups."""
    life = Life("", settings=LITTLE_ROOM)
    send_all(life, ["a1", "b1", "a2", "b2"])
    chooser = reader(life, "selector:JMSXGroupID = 'b'")
    assert drain(life, chooser) == ["b1", "b2"]
    assert drain(life, reader(life)) == ["a1", "a2"]
