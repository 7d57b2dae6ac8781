"""Retroactive addresses, and resources that the broker makes by itself."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Connect,
    Counts,
    Drop,
    Either,
    Exists,
    Nothing,
    anycast,
    messages,
    send,
    subscribe,
)

RING = "$.artemis.internal.{}.queue.{}.retro"


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "retroactive",
        "who comes later gets the last messages, and then what comes",
        (
            Connect("c"), Connect("d"), Connect("e"), send("/topic/retro", *"12345"),
            Counts(RING.format("retro", "multicast"), 3, replaced=2),
            subscribe("/topic/retro", who="d"), messages(*"345", who="d"), send("/topic/retro", "6"),
            messages("6", who="d"), subscribe("/topic/retro", who="e"), messages(*"456", who="e"), Nothing("d"),
            Counts(RING.format("retro", "multicast"), 3, replaced=3),
        ),
        addresses=(xml.address("retro", multicast=()),),
        settings=(xml.setting("retro", retroactive_message_count=3),),
    ),
    Scenario(
        "retroactive_anycast",
        "each routing type has its own",
        (
            Connect("c"), Connect("d"), anycast("retro.any", *"1234"), Counts("retro.any", 4),
            Counts(RING.format("retro.any", "anycast"), 2), Counts(RING.format("retro.any", "multicast"), 0),
            subscribe("retro.any::retro.any.later", who="d", headers={"subscription-type": "ANYCAST"}),
            messages("3", "4", who="d"), Counts("retro.any", 4),
        ),
        addresses=(xml.anycast("retro.any"),),
        settings=(xml.setting("retro.any", retroactive_message_count=2),),
    ),
    Scenario(
        "retroactive_filter",
        "only what the filter lets in, with the headers of its sender",
        (
            Connect("c"), Connect("d"),
            send("/topic/retro.some", "red", headers={"color": "red", "priority": "7"}),
            send("/topic/retro.some", "blue", headers={"color": "blue"}),
            Counts(RING.format("retro.some", "multicast"), 2),
            subscribe("/topic/retro.some", who="d", headers={"selector": "color = 'red'"}),
            messages("red", who="d", headers={"destination": "/topic/retro.some", "color": "red", "priority": "7"}),
            Nothing("d"),
        ),
        addresses=(xml.address("retro.some", multicast=()),),
        settings=(xml.setting("retro.some", retroactive_message_count=5),),
    ),
    Scenario(
        "retroactive_named_queue",
        "what is sent to one queue by its full name is not kept",
        (
            Connect("c"), send("retro.named::retro.named.q", "m"), Counts("retro.named.q", 1),
            Either(
                ours=(Counts(RING.format("retro.named", "multicast"), 0),),
                artemis=(Counts(RING.format("retro.named", "multicast"), 1),),
            ),
        ),
        addresses=(xml.address("retro.named", multicast=(xml.queue("retro.named.q"),)),),
        settings=(xml.setting("retro.named", retroactive_message_count=5),),
        departures=("full-name-diverts",),
    ),
    Scenario(
        "retroactive_priority",
        "which messages are the last ones, when they have priorities",
        (
            Connect("c"), Connect("d"), send("/topic/retro.prio", "1", "2", headers={"priority": "1"}),
            send("/topic/retro.prio", "3", headers={"priority": "9"}),
            Counts(RING.format("retro.prio", "multicast"), 2, replaced=1), subscribe("/topic/retro.prio", who="d"),
            Either(ours=(messages("3", "2", who="d"),), artemis=(messages("1", "2", who="d"),)),
        ),
        addresses=(xml.address("retro.prio", multicast=()),),
        settings=(xml.setting("retro.prio", retroactive_message_count=2),),
        departures=("retroactive-priority",),
    ),
    Scenario(
        "dead_resources_named",
        "prefix and suffix name the queues that the dead go to, one for each address",
        (
            Connect(), anycast("named.a", "m"), anycast("named.b", "m"),
            *(
                step
                for name in ("named.a", "named.b")
                for step in (
                    Connect("lost"), subscribe(name, who="lost"), messages("m", who="lost"), Drop("lost"),
                    Counts(name, 0, killed=1),
                )
            ),
            Counts("dead-named.a-end", 1), Counts("dead-named.b-end", 1),
            subscribe("named.target::dead-named.b-end"), messages("m", headers={"_AMQ_ORIG_ADDRESS": "named.b"}),
            Nothing(),
        ),
        addresses=(xml.anycast("named.a"), xml.anycast("named.b")),
        settings=(
            xml.setting(
                "named.#",
                dead_letter_address="named.target",
                max_delivery_attempts=1,
                auto_create_dead_letter_resources=True,
                dead_letter_queue_prefix="dead-",
                dead_letter_queue_suffix="-end",
            ),
        ),
    ),
    Scenario(
        "no_route_resources",
        "send-to-dla-on-no-route with auto-create-dead-letter-resources",
        (
            Connect(), send("unrouted.auto", "m"),
            Either(ours=(Counts("DLQ.unrouted.auto", 1),), artemis=(Exists("DLQ.unrouted.auto", yes=False),)),
        ),
        departures=("no-route-resources",),
        addresses=(xml.address("unrouted.auto", multicast=()),),
        settings=(
            xml.setting(
                "unrouted.auto",
                dead_letter_address="unrouted.target",
                send_to_dla_on_no_route=True,
                auto_create_dead_letter_resources=True,
            ),
        ),
    ),
    Scenario(
        "no_route_nowhere",
        "send-to-dla-on-no-route without a dead-letter address: confirmed, and gone",
        (Connect(), send("unrouted.nowhere", "m")),
        addresses=(xml.address("unrouted.nowhere", multicast=()),),
        settings=(xml.setting("unrouted.nowhere", send_to_dla_on_no_route=True),),
    ),
)  # fmt: skip
