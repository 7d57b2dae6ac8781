"""A SEND with a duplicate id that fails inside the broker: the same message may be sent again, and arrives."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from artemis_py.core.queue.arrivals import Arrivals
from tests.kit.in_process import InProcessBroker, configuration

pytestmark = [pytest.mark.wire, pytest.mark.interpreted]

SEND = b"SEND\ndestination:/queue/q\npersistent:%b\n_AMQ_DUPL_ID:1\nreceipt:r\n\nx\0"


@pytest.mark.parametrize("persistent", [b"true", b"false"])
def test_the_id_of_a_message_that_nobody_has_is_forgotten(persistent: bytes) -> None:
    world = InProcessBroker(configuration())
    for name in ("a", "b"):
        world.client(name).greet()

    with patch.object(Arrivals, "arrive", side_effect=RuntimeError("a step that fails")):
        world.client("a").send(SEND % persistent)
    assert world.client("a").is_closed
    assert "RECEIPT" not in [frame.command for frame in world.client("a").collect()]
    world.client("b").send(SEND % persistent)
    assert "RECEIPT" in [frame.command for frame in world.client("b").collect()]
    assert world.queue("q").message_count == 1
