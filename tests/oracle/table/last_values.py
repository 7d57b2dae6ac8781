"""Last-value queues: what replaces what, and when."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    ONE_BY_ONE,
    Connect,
    Counts,
    Drop,
    Either,
    Nothing,
    Pause,
    Request,
    Resume,
    ack,
    anycast,
    messages,
    subscribe,
    unsubscribe,
)


def value(to: str, *bodies: str, key: str = "a", header: str = "k", who: str = "c") -> Request:
    """Values of one key."""
    return anycast(to, *bodies, who=who, headers={header: key})


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "last_value",
        "a newer value replaces the one before and stands at the tail; without the key nothing is replaced",
        (
            Connect(), value("lvq", "v1", "v2"), anycast("lvq", "p"), value("lvq", "v3"),
            Counts("lvq", 2, added=4, replaced=2), subscribe("lvq"), messages("p", "v3"),
        ),
        addresses=(xml.anycast("lvq", last_value_key="k"),),
    ),
    Scenario(
        "last_value_flag",
        "last-value without a key means the header _AMQ_LVQ_NAME",
        (
            Connect(), value("lvq.flag", "v1", "v2", header="_AMQ_LVQ_NAME"), value("lvq.flag", "n1", "n2"),
            Counts("lvq.flag", 3, replaced=1), subscribe("lvq.flag"), messages("v2", "n1", "n2"),
        ),
        addresses=(xml.anycast("lvq.flag", last_value=True),),
    ),
    Scenario(
        "last_value_default",
        "default-last-value-key makes last-value queues of those that come by themselves",
        (
            Connect(), value("lvq.default", "v1", "v2", "v3"), Counts("lvq.default", 1, replaced=2),
            subscribe("lvq.default", headers={"subscription-type": "ANYCAST"}), messages("v3"),
        ),
        settings=(xml.setting("lvq.default", default_last_value_key="k"),),
    ),
    Scenario(
        "last_value_in_delivery",
        "the value that a consumer has is kept; of those behind it the last one is left",
        (
            Connect("c"), Connect("d"), value("lvq.held", "v1"), subscribe("lvq.held", who="d", window=ONE_BY_ONE),
            messages("v1", who="d"),
            Either(ours=(Counts("lvq.held", 1, 1),), artemis=(Counts("lvq.held", 0, 1),)),
            value("lvq.held", "v2", "v3"),
            Either(ours=(Counts("lvq.held", 2, 1),), artemis=(Counts("lvq.held", 1, 1),)),
            ack("v1", who="d"), messages("v3", who="d"),
        ),
        addresses=(xml.anycast("lvq.held", last_value_key="k"),),
        departures=("last-value-count",),
    ),
    Scenario(
        "last_value_outdated",
        "a value that comes back after a newer one came is gone",
        (
            Connect("c"), Connect("d"), value("lvq.old", "v1"), subscribe("lvq.old", who="d", window=ONE_BY_ONE),
            messages("v1", who="d"), value("lvq.old", "v2"), Drop("d"), Counts("lvq.old", 1, 0, consumers=0),
            subscribe("lvq.old"), messages("v2"),
        ),
        addresses=(xml.anycast("lvq.old", last_value_key="k"),),
    ),
    Scenario(
        "last_value_returned",
        "without a newer one it is the value again, and is replaced by the next",
        (
            Connect("c"), Connect("d"), value("lvq.back", "v1"), subscribe("lvq.back", who="d", window=ONE_BY_ONE),
            messages("v1", who="d"), unsubscribe(who="d"), Counts("lvq.back", 1, 0, consumers=0),
            value("lvq.back", "v2"), Counts("lvq.back", 1, 0), subscribe("lvq.back"), messages("v2"),
        ),
        addresses=(xml.anycast("lvq.back", last_value_key="k"),),
    ),
    Scenario(
        "last_value_newer_consumed",
        "a value that comes back after a newer one was consumed",
        (
            Connect("c"), Connect("d"), Connect("e"), value("lvq.late", "v1"),
            subscribe("lvq.late", who="d", window=ONE_BY_ONE), messages("v1", who="d"),
            subscribe("lvq.late", who="e"), value("lvq.late", "v2"), messages("v2", who="e"), ack("v2", who="e"),
            Counts("lvq.late", acknowledged=1), Drop("d"),
            Either(
                ours=(Counts("lvq.late", 0, 0, consumers=1), Nothing("e")),
                artemis=(messages("v1", who="e"),),
            ),
        ),
        addresses=(xml.anycast("lvq.late", last_value_key="k"),),
        departures=("last-value-return",),
    ),
    Scenario(
        "last_value_paused",
        "when values are replaced on a queue that is paused",
        (
            Connect(), Pause("lvq.paused"), value("lvq.paused", "v1", "v2", "v3"),
            Either(
                ours=(Counts("lvq.paused", 1, added=3, replaced=2),),
                artemis=(Counts("lvq.paused", 3, added=3, replaced=0),),
            ),
            Resume("lvq.paused"), Counts("lvq.paused", 1, added=3, replaced=2),
            subscribe("lvq.paused"), messages("v3"),
        ),
        addresses=(xml.anycast("lvq.paused", last_value_key="k"),),
        departures=("last-value-when",),
    ),
    Scenario(
        "last_value_scheduled",
        "a scheduled message is a value from when it is due",
        (
            Connect(), value("lvq.later", "now"),
            *(
                anycast("lvq.later", f"m{number}", headers={"k": "a", "AMQ_SCHEDULED_DELAY": str(200 + 100 * number)})
                for number in range(4)
            ),
            Counts("lvq.later", 5, 0, 4), Counts("lvq.later", 1, 0, 0, replaced=4),
            subscribe("lvq.later"), messages("m3"),
        ),
        addresses=(xml.anycast("lvq.later", last_value_key="k"),),
    ),
    Scenario(
        "last_value_non_destructive",
        "every consumer of a non-destructive last-value queue gets the newest values, then each update",
        (
            Connect("c"), Connect("d"), Connect("e"), value("lvq.keep", "A1"), value("lvq.keep", "B1", key="b"),
            value("lvq.keep", "A2"), Counts("lvq.keep", 2, replaced=1),
            subscribe("lvq.keep", who="d", ack="auto"), messages("B1", "A2", who="d"),
            subscribe("lvq.keep", who="e", ack="auto"), messages("B1", "A2", who="e"),
            value("lvq.keep", "A3"), messages("A3", who="d"), messages("A3", who="e"),
            Counts("lvq.keep", 2, acknowledged=0),
        ),
        addresses=(xml.anycast("lvq.keep", last_value_key="k", non_destructive=True),),
    ),
    Scenario(
        "last_value_slow_reader",
        "a consumer of one message at a time gets the first of a hundred values, then the last",
        (
            Connect("c"), Connect("d"),
            subscribe("lvq.slow", who="d", ack="client", window=ONE_BY_ONE), value("lvq.slow", "1"),
            messages("1", who="d"), value("lvq.slow", *(str(number) for number in range(2, 101))),
            ack("1", who="d"), messages("100", who="d"), ack("100", who="d"), Counts("lvq.slow", 0), Nothing("d"),
        ),
        addresses=(xml.anycast("lvq.slow", last_value_key="k", exclusive=True),),
    ),
)  # fmt: skip
