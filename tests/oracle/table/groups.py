"""Message groups: which consumer has which group, and what makes that change."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    ONE_BY_ONE,
    Connect,
    Counts,
    Disconnect,
    Drop,
    Either,
    Nothing,
    Request,
    Step,
    ack,
    anycast,
    messages,
    subscribe,
    unsubscribe,
)
from tests.oracle.values import ABSENT


def of(group: str, to: str, *bodies: str, **headers: str) -> Request:
    """Messages of one group."""
    return anycast(to, *bodies, headers={"JMSXGroupID": group, **headers})


def readers(to: str, *names: str, window: int = -1) -> tuple[Step, ...]:
    """A sender ``c``, and consumers that come in this order."""
    steps: list[Step] = [Connect("c")]
    for number, name in enumerate(names, 1):
        steps += [Connect(name), subscribe(to, who=name, window=window), Counts(to, consumers=number)]
    return tuple(steps)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "group",
        "each group is whole with one consumer, and goes to another one when that leaves",
        (
            *readers("group", "d", "e"),
            of("a", "group", "a1"), of("b", "group", "b1"), of("a", "group", "a2"), of("b", "group", "b2"),
            messages("a1", "a2", who="d"), messages("b1", "b2", who="e"),
            Drop("d"), messages("a1", "a2", who="e"),  # redelivered or not: that depends on Artemis' threads
        ),
        addresses=(xml.anycast("group"),),
    ),
    Scenario(
        "group_busy",
        "a group whose consumer is busy, and other groups",
        (
            *readers("group.busy", "d", "e", window=ONE_BY_ONE),
            of("a", "group.busy", "a1"), messages("a1", who="d"), of("a", "group.busy", "a2"),
            of("b", "group.busy", "b1"), anycast("group.busy", "plain"),
            Either(
                ours=(messages("b1", who="e"), ack("a1", who="d"), messages("a2", who="d")),
                artemis=(Nothing("e"), ack("a1", who="d"), messages("a2", who="d"), messages("b1", who="e")),
            ),
            ack("b1", who="e"), messages("plain", who="e"),
        ),
        addresses=(xml.anycast("group.busy"),),
        departures=("group-blocks",),
    ),
    Scenario(
        "group_close",
        "_AMQ_GROUP_SEQUENCE:-1 is the last message of a group that its consumer gets",
        (
            *readers("group.close", "d", "e"),
            of("a", "group.close", "a1"), of("a", "group.close", "last", _AMQ_GROUP_SEQUENCE="-1"),
            of("a", "group.close", "next"),
            messages("a1", "last", who="d"), messages("next", who="e"),
        ),
        addresses=(xml.anycast("group.close"),),
    ),
    Scenario(
        "group_close_jms",
        "the JMS name of the same header",
        (
            *readers("group.jms", "d", "e"),
            of("a", "group.jms", "a1"), of("a", "group.jms", "last", JMSXGroupSeq="-1"), of("a", "group.jms", "next"),
            messages("a1", "last", who="d"),
            Either(ours=(messages("next", who="e"),), artemis=(messages("next", who="d"),)),
        ),
        addresses=(xml.anycast("group.jms"),),
        departures=("group-headers",),
    ),
    Scenario(
        "group_buckets_0",
        "group-buckets 0 switches groups off",
        (
            *readers("group.off", "d", "e"), *(of("a", "group.off", body) for body in "1234"),
            messages("1", "3", who="d"), messages("2", "4", who="e"),
        ),
        addresses=(xml.anycast("group.off", group_buckets=0),),
    ),
    Scenario(
        "group_buckets",
        "with fewer buckets than consumers some get nothing",
        (
            *readers("group.buckets", "d", "e"),
            *(of(f"g{number}", "group.buckets", f"{number}") for number in range(9)),
            messages(*(f"{number}" for number in range(9)), who="d"), Nothing("e"),
        ),
        addresses=(xml.anycast("group.buckets", group_buckets=1),),
    ),
    Scenario(
        "group_rebalance",
        "with group-rebalance a new consumer gets groups that others had",
        (
            *readers("group.again", "d"), of("a", "group.again", "a1"), of("b", "group.again", "b1"),
            messages("a1", "b1", who="d"), ack("a1", "b1", who="d"),
            Connect("e"), subscribe("group.again", who="e"), Counts("group.again", 0, consumers=2),
            of("a", "group.again", "a2"), of("b", "group.again", "b2"),
            messages("a2", who="d"), messages("b2", who="e"),
            of("a", "group.again", "a3"), messages("a3", who="d"),
        ),
        addresses=(xml.anycast("group.again", group_rebalance=True),),
    ),
    Scenario(
        "group_no_rebalance",
        "without it a new consumer gets new groups only",
        (
            *readers("group.stays", "d"), of("a", "group.stays", "a1"), of("b", "group.stays", "b1"),
            messages("a1", "b1", who="d"),
            Connect("e"), subscribe("group.stays", who="e"), Counts("group.stays", consumers=2),
            of("a", "group.stays", "a2"), of("b", "group.stays", "b2"), messages("a2", "b2", who="d"), Nothing("e"),
        ),
        addresses=(xml.anycast("group.stays"),),
    ),
    Scenario(
        "group_rebalance_pause",
        "group-rebalance-pause-dispatch waits until everything is settled",
        (
            *readers("group.pause", "d"), of("a", "group.pause", "a1"), messages("a1", who="d"),
            Connect("e"), subscribe("group.pause", who="e"), Counts("group.pause", consumers=2),
            of("a", "group.pause", "a2"), of("b", "group.pause", "b1"), Nothing("d"), Nothing("e"),
            ack("a1", who="d"), Counts("group.pause", acknowledged=1),
            Either(ours=(), artemis=(Nothing("d"), of("c", "group.pause", "event"))),
            messages("a2", who="d"), messages("b1", who="e"),
        ),
        departures=("group-rebalance-event",),
        addresses=(xml.anycast("group.pause", group_rebalance=True, group_rebalance_pause_dispatch=True),),
    ),
    Scenario(
        "group_first_key",
        "a header marks the message with which a group comes to a consumer",
        (
            *readers("group.first", "d", "e"), of("a", "group.first", "a1"), of("a", "group.first", "a2"),
            messages("a1", who="d", headers={"first": "true"}), messages("a2", who="d", headers={"first": ABSENT}),
            ack("a1", "a2", who="d"), unsubscribe(who="d"), Counts("group.first", 0, consumers=1),
            of("a", "group.first", "a3"), messages("a3", who="e", headers={"first": "true"}),
        ),
        addresses=(xml.anycast("group.first", group_first_key="first"),),
    ),
    Scenario(
        "group_exclusive",
        "an exclusive queue ignores groups",
        (
            *readers("group.excl", "d", "e"), of("a", "group.excl", "a1"), of("b", "group.excl", "b1"),
            Either(
                ours=(messages("a1", who="d", headers={"first": ABSENT}),),
                artemis=(messages("a1", who="d", headers={"first": "true"}),),
            ),
            messages("b1", who="d", headers={"first": ABSENT}), Nothing("e"),
        ),
        addresses=(xml.anycast("group.excl", exclusive=True, group_first_key="first"),),
        departures=("group-first-exclusive",),
    ),
    Scenario(
        "group_redelivery",
        "a message of a group that waits for its redelivery-delay, and the next of the group",
        (
            *readers("group.delay", "d", window=ONE_BY_ONE), of("a", "group.delay", "a1", "a2"),
            messages("a1", who="d"),
            Either(ours=(Drop("d"),), artemis=(Disconnect("d"),)),
            Counts("group.delay", 2, 0, 1, consumers=0), subscribe("group.delay"),
            Either(ours=(messages("a1", "a2"),), artemis=(messages("a2", "a1"),)),
        ),
        addresses=(xml.anycast("group.delay"),),
        settings=(xml.setting("group.delay", redelivery_delay=600),),
        departures=("group-redelivery",),
    ),
)  # fmt: skip
