"""A view that an operator creates begins with what the retained log has for it."""

from __future__ import annotations

import pytest

from artemis_py.errors import BadRequestError
from tests.kit.past import Past
from tests.kit.views import DESK
from tests.unit.management.operated import Operated


def test_a_view_of_the_past() -> None:
    past = Past(DESK)
    past.send_all("ab")
    operated = Operated(past.broker)
    row = operated.do(
        "createQueue", name="work", routing_type="ANYCAST", underlying_address="orders.eu",
        default_publish_target="orders.eu",
    )  # fmt: skip
    assert row["life"] == "created"
    past.broker.drain()
    past.send("c")
    assert past.read(of="work", count_max=2) == ["a", "b"]
    with pytest.raises(BadRequestError, match="shares its address with queue"):
        operated.do(
            "createQueue", name="other", address="orders.eu", routing_type="ANYCAST",
            underlying_address="orders.us", default_publish_target="orders.us",
        )  # fmt: skip
    again = Past(DESK, before=past)
    assert again.read(of="work") == ["c"]
    assert again.broker.broker.queues["work"].view is not None
