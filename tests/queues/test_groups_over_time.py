"""Message groups together with restarts and pages."""

from __future__ import annotations

import pytest

from tests.kit.bench import ONE_AT_A_TIME
from tests.kit.life import Life

pytestmark = pytest.mark.wire

STICKY = "group-type='STANDARD'"
SHARED = "group-type='SHARED_GROUPS'"
LATER_MS = 2_000_000
GROUP = "JMSXGroupID:{0[0]}"
"""The group of a message is the first letter of its body."""
LITTLE_ROOM = "<max-size-messages>1</max-size-messages><page-size-bytes>300</page-size-bytes>"


@pytest.mark.parametrize("attributes", [STICKY, SHARED])
def test_order_in_groups_over_a_restart(attributes: str) -> None:
    stage = Life(attributes)
    stage.send_all(["a1", "b1", "a2", "b2", "a3"], GROUP)
    stage.subscribe("c1", ONE_AT_A_TIME)
    stage.subscribe("c2", ONE_AT_A_TIME)
    assert [frame.body for frame in stage.frames("c1") + stage.frames("c2")] == [b"a1", b"b1"]
    stage = stage.again()
    stage.subscribe("c1", ONE_AT_A_TIME)
    stage.subscribe("c2", ONE_AT_A_TIME)
    (held,) = stage.frames("c1")
    assert (held.body, stage.drain("c2")) == (b"a1", ["b1", "b2"])
    stage.settle("c1", held)
    assert stage.drain("c1", "c2") == ["a2", "a3"]


@pytest.mark.parametrize("attributes", [STICKY, SHARED])
def test_a_redelivery_delay_holds_its_group_over_a_restart(attributes: str) -> None:
    """Nothing of the group goes by, and what was older than the failed message still is."""
    stage = Life(attributes, settings="<redelivery-delay>60000</redelivery-delay>")
    stage.send_all(["a1", "a2", "b1"], GROUP)
    stage.subscribe("c1", ONE_AT_A_TIME)
    (held,) = stage.frames("c1")
    stage.settle("c1", held, "NACK")
    stage = stage.again()
    stage.subscribe("c1", ONE_AT_A_TIME)
    assert stage.drain("c1") == ["b1"]
    queue = stage.queue()
    assert (queue.message_count, len(queue.contents.scheduled)) == (2, 1)
    stage.core.tick(LATER_MS)
    stage.core.dispatch(LATER_MS)
    other = queue.distribution.consumers[0]
    assert [entry.message.body for entry in other.outbox] == [b"a1"]


@pytest.mark.parametrize("ends", ["valid", "expired"])
def test_a_group_of_which_a_failed_message_is_held_is_not_held_up_for_ever(ends: str) -> None:
    """It failed before its queue held anything: a file with hold-on-publish came with the restart."""
    stage = Life("")
    now_ms = stage.broker.loop.now_ms
    expires = f"expires:{now_ms + 500}" if ends == "expired" else "expires:0"
    stage.send("a1", "JMSXGroupID:a", f"x-qpid-not-valid-before:{now_ms + 1000}", expires)
    stage.send("a2", "JMSXGroupID:a")
    stage.subscribe("c1", ONE_AT_A_TIME)
    (held,) = stage.frames("c1")
    stage.settle("c1", held, "NACK")
    stage = stage.again("hold-on-publish='true'")
    stage.broker.advance(1001)
    stage.subscribe("c1", ONE_AT_A_TIME)
    assert stage.drain("c1") == (["a1", "a2"] if ends == "valid" else ["a2"])


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
@pytest.mark.parametrize("attributes", ["", STICKY, SHARED])
def test_groups_in_pages(attributes: str, restart: bool) -> None:
    """What waits for its group stays in memory, and the queue reads on behind it for the others."""
    stage = Life(attributes, settings=LITTLE_ROOM)
    stage.send_all(["a1", "a2", "a3", "a4", "b1", "a5", "b2"], GROUP)
    assert stage.queue().contents.paged.count == 6
    if restart:
        stage = stage.again()
    stage.subscribe("c1", ONE_AT_A_TIME)
    stage.subscribe("c2", ONE_AT_A_TIME)
    (held,) = stage.frames("c1")
    assert (held.body, stage.drain("c2")) == (b"a1", ["b1", "b2"])
    stage.settle("c1", held)
    assert stage.drain("c1", "c2") == ["a2", "a3", "a4", "a5"]
    assert stage.queue().message_count == 0


def test_what_waits_in_memory_is_limited_by_max_read_page_messages() -> None:
    """Then the groups behind it wait, too: memory has its limit (docs/queues.md, Groups and pages)."""
    room = (
        f"{LITTLE_ROOM}<max-read-page-messages>3</max-read-page-messages><max-read-page-bytes>-1</max-read-page-bytes>"
    )
    stage = Life("", settings=room)
    stage.send_all(["a1", "a2", "a3", "a4", "b1"], GROUP)
    stage.subscribe("c1", ONE_AT_A_TIME)
    stage.subscribe("c2", ONE_AT_A_TIME)
    (held,) = stage.frames("c1")
    assert stage.frames("c2") == []
    stage.settle("c1", held)
    (held,) = stage.frames("c1")
    assert held.body == b"a2"
    stage.settle("c1", held)
    assert [frame.body for frame in stage.frames("c2")] == [b"b1"]


def test_a_selector_on_a_grouped_queue_that_pages() -> None:
    """It is served from what is in memory, in order, and keeps its groups."""
    stage = Life("", settings=LITTLE_ROOM)
    stage.send_all(["a1", "b1", "a2", "b2"], GROUP)
    stage.subscribe("chooser", ONE_AT_A_TIME, "selector:JMSXGroupID = 'b'")
    assert stage.drain("chooser") == ["b1", "b2"]
    stage.subscribe("c1", ONE_AT_A_TIME)
    assert stage.drain("c1") == ["a1", "a2"]
