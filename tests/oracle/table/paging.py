"""Addresses that hold more than their memory."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import Connect, Counts, Routed, ack, anycast, messages, send, subscribe
from tests.oracle.table.addresses import TO_MULTICAST

_TWENTY = tuple(str(number) for number in range(1, 21))

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "page_order",
        "with room for five, twenty messages count and come in order",
        (
            Connect(), anycast("page.order", *_TWENTY), Counts("page.order", 20, added=20), subscribe("page.order"),
            messages(*_TWENTY), ack(*_TWENTY), Counts("page.order", 0),
            anycast("page.order", "21"), messages("21"),
        ),
        addresses=(xml.anycast("page.order"),),
        settings=(xml.setting("page.order", max_size_messages=5, address_full_policy="PAGE"),),
    ),
    Scenario(
        "page_queues",
        "each queue of a paging address reads its pages in its own time",
        (
            Connect(), send("page.two", *_TWENTY, headers=TO_MULTICAST),
            Counts("page.two.a", 20), Routed("page.two", 20), subscribe("page.two::page.two.a"), messages(*_TWENTY),
            ack(*_TWENTY), Counts("page.two.a", 0), Counts("page.two.b", 20),
        ),
        addresses=(xml.address("page.two", multicast=(xml.queue("page.two.a"), xml.queue("page.two.b"))),),
        settings=(xml.setting("page.two", max_size_messages=5, address_full_policy="PAGE"),),
    ),
)  # fmt: skip
