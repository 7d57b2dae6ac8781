"""Messages that expire to and fro between two queues: the round ends, also when the broker is begun again in each."""

from __future__ import annotations

import pytest

from artemis_py.core.publish.copies import HOPS_MAX
from tests.kit.life import Life

pytestmark = pytest.mark.wire

LITTLE_ROOM = "<max-size-messages>0</max-size-messages><page-size-bytes>300</page-size-bytes>"
OTHER = """<address name="r"><anycast><queue name="r" max-message-ttl="50"/></anycast></address>"""
BACK = """</address-setting><address-setting match="r"><expiry-address>q</expiry-address>"""


@pytest.mark.parametrize("paged", [False, True])
def test_the_count_of_hops_survives(paged: bool) -> None:
    life = Life(
        "max-message-ttl='50'",
        settings="<expiry-address>r</expiry-address>" + (LITTLE_ROOM if paged else "") + BACK,
        more=OTHER,
    )
    life.send("a")
    for number in range(HOPS_MAX + 1):
        queues = life.core.queues
        here, there = ("r", "q") if number % 2 else ("q", "r")
        assert (queues[here].message_count, queues[there].message_count) == (1, 0)
        assert queues[here].contents.paged.count == paged
        life.broker.loop.advance(50 * (number + 1))  # each life begins at the same time
        queues[here].expire_paged(life.broker.loop.now_ms)  # as message-expiry-scan-period does
        life.broker.drain()
        looped_count = life.core.copy_maker.looped_message_count
        life = life.again()
    assert looped_count == 1
    assert [queue.message_count for queue in life.core.queues.values()] == [0, 0]
