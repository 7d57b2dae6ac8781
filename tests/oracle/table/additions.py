"""What this broker has beyond Artemis, and how its settings read names."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Beat,
    Connect,
    Counts,
    Drop,
    Either,
    Nothing,
    Raw,
    anycast,
    messages,
    send,
    subscribe,
)
from tests.oracle.values import ABSENT, Contains

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "browser",
        "SUBSCRIBE with browser:true reads and takes nothing",
        (
            Connect(), anycast("add.browse", "1", "2"),
            subscribe("add.browse", ack="auto", headers={"browser": "true"}), messages("1", "2"),
            Either(ours=(Counts("add.browse", 2, acknowledged=0),), artemis=(Counts("add.browse", 0, acknowledged=2),)),
        ),
        addresses=(xml.anycast("add.browse"),),
        departures=("browser",),
    ),
    Scenario(
        "consumer_priority",
        "the consumer of the higher consumer-priority comes first",
        (
            Connect("c"), Connect("d"), Connect("e"), subscribe("add.priority", who="d"),
            Counts("add.priority", consumers=1),
            subscribe("add.priority", who="e", headers={"consumer-priority": "5"}), Counts("add.priority", consumers=2),
            anycast("add.priority", "1"), Counts("add.priority", 1, 1),
            anycast("add.priority", "2"), Counts("add.priority", 2, 2),
            Either(
                ours=(messages("1", "2", who="e"), Nothing("d")),
                artemis=(messages("1", who="d"), messages("2", who="e")),
            ),
        ),
        addresses=(xml.anycast("add.priority"),),
        departures=("consumer-priority",),
    ),
    Scenario(
        "temporary_destination",
        "/temp-queue/ names a queue of this connection; a reply-to with it tells others where to answer",
        (
            Connect("c"), Connect("d"), subscribe("add.questions", who="d"), subscribe("/temp-queue/mine"),
            anycast("add.questions", "?", headers={"reply-to": "/temp-queue/mine"}),
            Either(
                ours=(messages("?", who="d", headers={"reply-to": Contains("temp-queue.")}),),
                artemis=(messages("?", who="d", headers={"reply-to": "/temp-queue/mine"}),),
            ),
            send("/temp-queue/mine", "another", who="d"),
            Either(ours=(Nothing("c"),), artemis=(messages("another", who="c"),)),
        ),
        addresses=(xml.anycast("add.questions"),),
        departures=("temporary-destinations",),
    ),
    Scenario(
        "reason",
        "a dead message says why it is dead",
        (
            Connect("c"), Connect("d"), anycast("add.reason", "m"), subscribe("add.reason", who="d"),
            messages("m", who="d"), Drop("d"), Counts("add.reason", 0, killed=1), subscribe("add.reason.dead"),
            Either(
                ours=(messages("m", headers={"reason": "max_deliveries"}),),
                artemis=(messages("m", headers={"reason": ABSENT}),),
            ),
        ),
        addresses=(xml.anycast("add.reason"), xml.anycast("add.reason.dead")),
        settings=(xml.setting("add.reason", dead_letter_address="add.reason.dead", max_delivery_attempts=1),),
        departures=("reason",),
    ),
    Scenario(
        "match_plain_text",
        "signs that mean something in a regular expression stand for themselves in a match",
        (
            Connect(), anycast("plain+text.a", "1", "2"), anycast("plainnntext.a", "1", "2"),
            Either(
                ours=(Counts("plain+text.a", 1), Counts("plainnntext.a", 2)),
                artemis=(Counts("plain+text.a", 2), Counts("plainnntext.a", 1)),
            ),
        ),
        settings=(xml.setting("plain+text.*", default_ring_size=1),),
        departures=("match-plain-text",),
    ),
    Scenario(
        "match_order",
        "of two matches the more specific one decides, setting by setting",
        (
            Connect(), anycast("spec.a.b", "1", "2", "3"), Counts("spec.a.b", 1),
            anycast("spec.a.c", "1", "2", "3"), Counts("spec.a.c", 2), anycast("spec.x", *"1234"), Counts("spec.x", 3),
        ),
        settings=(
            xml.setting("spec.#", default_ring_size=3), xml.setting("spec.a.*", default_ring_size=2),
            xml.setting("spec.a.b", default_ring_size=1),
        ),
    ),
    Scenario(
        "beat_while_blocked",
        "a sender that waits for room gets its heart-beats",
        (
            Connect("c", headers={"heart-beat": "0,500"}), anycast("add.blocked", "1"),
            Raw(b"SEND\ndestination:add.blocked\ndestination-type:ANYCAST\n\n2\0"),
            Beat("c"), Beat("c"),
        ),
        addresses=(xml.anycast("add.blocked"),),
        settings=(xml.setting("add.blocked", max_size_messages=1, address_full_policy="BLOCK"),),
    ),
)  # fmt: skip
