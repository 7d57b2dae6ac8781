"""How messages end, other than by ACK: expiry, dead letters, delays, and the queues that nobody uses any more."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    AddressExists,
    Connect,
    Counts,
    Disconnect,
    Drop,
    Either,
    Exists,
    Nothing,
    PassTime,
    Refused,
    Routed,
    Step,
    ack,
    anycast,
    begin,
    commit,
    messages,
    nack,
    send,
    subscribe,
    unsubscribe,
)
from tests.oracle.values import ABSENT, PRESENT, AfterSend, Expected, In

LONG_MS = 60_000


def _expires(name: str, asked_ms: int | None, expected: Expected) -> tuple[Step, ...]:
    headers = {} if asked_ms is None else {"expires": In(asked_ms)}
    body = f"asked {asked_ms}"
    return (anycast(name, body, headers=headers), messages(body, headers={"expires": expected}))


def _loses(name: str, *, redelivered: str) -> tuple[Step, ...]:
    """A consumer is sent the message and its connection is lost."""
    return (
        Connect("d"), subscribe(name, who="d"), messages("m", who="d", headers={"redelivered": redelivered}), Drop("d"),
    )  # fmt: skip


EXPIRY: tuple[Scenario, ...] = (
    Scenario(
        "expiry_delay",
        "expiry-delay is for messages that name no time of their own",
        (
            Connect(), subscribe("exp.delay", ack="auto"),
            *_expires("exp.delay", None, AfterSend(5000)), *_expires("exp.delay", LONG_MS, AfterSend(LONG_MS)),
        ),
        addresses=(xml.anycast("exp.delay"),),
        settings=(xml.setting("exp.delay", expiry_delay=5000),),
    ),
    Scenario(
        "expiry_min_max",
        "min-expiry-delay and max-expiry-delay hold the time between them",
        (
            Connect(), subscribe("exp.range", ack="auto"),
            *_expires("exp.range", None, AfterSend(50_000)), *_expires("exp.range", 100, AfterSend(10_000)),
            *_expires("exp.range", 90_000, AfterSend(50_000)), *_expires("exp.range", 30_000, AfterSend(30_000)),
        ),
        addresses=(xml.anycast("exp.range"),),
        settings=(xml.setting("exp.range", min_expiry_delay=10_000, max_expiry_delay=50_000),),
    ),
    Scenario(
        "no_expiry",
        "no-expiry takes the time away",
        (Connect(), subscribe("exp.never", ack="auto"), *_expires("exp.never", LONG_MS, "0")),
        addresses=(xml.anycast("exp.never"),),
        settings=(xml.setting("exp.never", no_expiry=True),),
    ),
    Scenario(
        "expired_at_dispatch",
        "a message whose time is over is not delivered, though no scan has found it",
        (
            Connect(), anycast("exp.late", "gone", headers={"expires": In(40)}), anycast("exp.late", "stays"),
            Counts("exp.late", 2, expired=0), PassTime(60),
            subscribe("exp.late"), messages("stays"), Counts("exp.late", 1, 1, expired=1),
        ),
        addresses=(xml.anycast("exp.late"),),
    ),
    Scenario(
        "expiry_address",
        "an expired message goes to the expiry address, with word of where it was",
        (
            Connect(), anycast("exp.source", "m", headers={"expires": In(60), "priority": "7", "mine": "kept"}),
            Counts("exp.source", 0, expired=1), Counts("exp.target", 1),
            subscribe("exp.target"),
            messages(
                "m",
                headers={
                    "_AMQ_ORIG_ADDRESS": "exp.source", "_AMQ_ORIG_QUEUE": "exp.source", "_AMQ_ACTUAL_EXPIRY": PRESENT,
                    "_AMQ_ORIG_MESSAGE_ID": PRESENT, "_AMQ_ORIG_ROUTING_TYPE": "1",
                    "expires": "0", "priority": "7", "mine": "kept", "redelivered": "false",
                },
            ),
        ),
        addresses=(xml.anycast("exp.source"), xml.anycast("exp.target")),
        settings=(xml.setting("exp.source", expiry_address="exp.target"),),
        scans=True,
    ),
    Scenario(
        "expiry_resources",
        "auto-create-expiry-resources makes a queue for what expires of this address",
        (
            Connect(), anycast("exp.auto", "m", headers={"expires": In(60)}),
            Counts("exp.auto", 0, expired=1), Counts("EXP.exp.auto", 1),
            subscribe("exp.auto.target::EXP.exp.auto"), messages("m", headers={"_AMQ_ORIG_ADDRESS": "exp.auto"}),
        ),
        addresses=(xml.anycast("exp.auto"),),
        settings=(xml.setting("exp.auto", expiry_address="exp.auto.target", auto_create_expiry_resources=True),),
        scans=True,
    ),
    Scenario(
        "expired_while_scheduled",
        "a scheduled message whose time is over when it falls due is not delivered",
        (
            Connect(), anycast("exp.later", "m", headers={"AMQ_SCHEDULED_DELAY": "200", "expires": In(50)}),
            Counts("exp.later", 1, 0, 1, expired=0), Counts("exp.later", 1, 0, 0), subscribe("exp.later"), Nothing(),
            Counts("exp.later", 0, expired=1),
        ),
        addresses=(xml.anycast("exp.later"),),
    ),
    Scenario(
        "expires_negative",
        "expires below 0",
        (
            Connect("c", "1.1"), subscribe("exp.negative"),
            Either(
                ours=(Refused(anycast("exp.negative", "m", headers={"expires": "-1"}), closes=False),),
                artemis=(
                    anycast("exp.negative", "m", headers={"expires": "-1"}), Nothing(),
                    Counts("exp.negative", 0, expired=1),
                ),
            ),
        ),
        addresses=(xml.anycast("exp.negative"),),
        departures=("negative-expires",),
    ),
    Scenario(
        "expired_in_delivery",
        "what is in delivery does not expire",
        (
            Connect(), subscribe("exp.held"), anycast("exp.held", "m", headers={"expires": In(80)}), messages("m"),
            PassTime(300), Counts("exp.held", 1, 1, expired=0), ack("m"), Counts("exp.held", 0, acknowledged=1),
        ),
        addresses=(xml.anycast("exp.held"),),
        scans=True,
    ),
    Scenario(
        "expired_on_expiry_address",
        "what expires on the expiry address itself stays there, and expires no more",
        (
            Connect(), anycast("exp.self", "m", headers={"expires": In(40)}), PassTime(60), subscribe("exp.self"),
            messages("m", headers={"expires": "0", "_AMQ_ORIG_ADDRESS": "exp.self"}),
            Counts("exp.self", 1, 1, expired=1),
        ),
        addresses=(xml.anycast("exp.self"),),
        settings=(xml.setting("exp.self", expiry_address="exp.self"),),
    ),
    Scenario(
        "expiry_nowhere",
        "without an expiry address the message is gone",
        (Connect(), anycast("exp.gone", "m", headers={"expires": In(60)}), Counts("exp.gone", 0, expired=1, killed=0)),
        addresses=(xml.anycast("exp.gone"),),
        scans=True,
    ),
)  # fmt: skip

DEAD: tuple[Scenario, ...] = (
    Scenario(
        "dead_letter",
        "after the last attempt the message goes to the dead-letter address, with word of where it was",
        (
            Connect(), anycast("dead.source", "m", headers={"persistent": "true", "mine": "kept"}),
            *_loses("dead.source", redelivered="false"), Counts("dead.source", 1, 0),
            *_loses("dead.source", redelivered="true"), Counts("dead.source", 1, 0),
            *_loses("dead.source", redelivered="true"), Counts("dead.source", 0, killed=1),
            Counts("dead.target", 1), subscribe("dead.target"),
            messages(
                "m",
                headers={
                    "_AMQ_ORIG_ADDRESS": "dead.source", "_AMQ_ORIG_QUEUE": "dead.source",
                    "_AMQ_ORIG_MESSAGE_ID": PRESENT, "persistent": "true", "redelivered": "false", "mine": "kept",
                    "_AMQ_ACTUAL_EXPIRY": ABSENT,
                },
            ),
        ),
        addresses=(xml.anycast("dead.source"), xml.anycast("dead.target")),
        settings=(xml.setting("dead.source", dead_letter_address="dead.target", max_delivery_attempts=3),),
    ),
    Scenario(
        "dead_after_ten",
        "ten attempts, when nothing else is set",
        (
            Connect(), anycast("dead.ten", "m"), *_loses("dead.ten", redelivered="false"),
            *(step for _ in range(9) for step in _loses("dead.ten", redelivered="true")),
            Counts("dead.ten", 0, killed=1),
        ),
        addresses=(xml.anycast("dead.ten"),),
    ),
    Scenario(
        "dead_multicast",
        "every queue of a multicast dead-letter address gets the dead message, which expires no more",
        (
            Connect(), anycast("dead.many", "m", headers={"expires": In(LONG_MS)}),
            *_loses("dead.many", redelivered="false"),
            Counts("dead.many.a", 1), Counts("dead.many.b", 1), subscribe("dead.many.to::dead.many.a"),
            messages("m", headers={"expires": "0"}),
        ),
        addresses=(
            xml.anycast("dead.many"),
            xml.address("dead.many.to", multicast=(xml.queue("dead.many.a"), xml.queue("dead.many.b"))),
        ),
        settings=(xml.setting("dead.many", dead_letter_address="dead.many.to", max_delivery_attempts=1),),
    ),
    Scenario(
        "dead_on_dead_letter_address",
        "what dies on the dead-letter address itself stays there, as a new message",
        (
            Connect(), anycast("dead.self", "m"), *_loses("dead.self", redelivered="false"),
            Counts("dead.self", 1, 0, killed=1),
            subscribe("dead.self"), messages("m", headers={"redelivered": "false"}),
        ),
        addresses=(xml.anycast("dead.self"),),
        settings=(xml.setting("dead.self", dead_letter_address="dead.self", max_delivery_attempts=1),),
    ),
    Scenario(
        "dead_twice",
        "a dead message may die again; its headers tell of the last place",
        (
            Connect(), anycast("dead.first", "m"), *_loses("dead.first", redelivered="false"),
            Counts("dead.second", 1), *_loses("dead.second", redelivered="false"), Counts("dead.third", 1),
            subscribe("dead.third"),
            messages("m", headers={"_AMQ_ORIG_ADDRESS": "dead.second", "_AMQ_ORIG_QUEUE": "dead.second"}),
        ),
        addresses=(xml.anycast("dead.first"), xml.anycast("dead.second"), xml.anycast("dead.third")),
        settings=(
            xml.setting("dead.first", dead_letter_address="dead.second", max_delivery_attempts=1),
            xml.setting("dead.second", dead_letter_address="dead.third", max_delivery_attempts=1),
        ),
    ),
    Scenario(
        "dead_without_address",
        "without a dead-letter address the message is gone after its last attempt",
        (
            Connect(), anycast("dead.nowhere", "m"),
            *_loses("dead.nowhere", redelivered="false"), Counts("dead.nowhere", 0, killed=1),
        ),
        addresses=(xml.anycast("dead.nowhere"),),
        settings=(xml.setting("dead.nowhere", max_delivery_attempts=1),),
    ),
    Scenario(
        "dead_resources",
        "auto-create-dead-letter-resources makes a queue for the dead of this address",
        (
            Connect(), anycast("dead.auto", "m"), *_loses("dead.auto", redelivered="false"),
            Counts("dead.auto", 0, killed=1), Counts("DLQ.dead.auto", 1),
            subscribe("dead.auto.target::DLQ.dead.auto"), messages("m", headers={"_AMQ_ORIG_QUEUE": "dead.auto"}),
        ),
        addresses=(xml.anycast("dead.auto"),),
        settings=(
            xml.setting(
                "dead.auto",
                dead_letter_address="dead.auto.target",
                max_delivery_attempts=1,
                auto_create_dead_letter_resources=True,
            ),
        ),
    ),
    Scenario(
        "dead_no_route",
        "send-to-dla-on-no-route keeps what reaches no queue",
        (
            Connect(), send("dead.unrouted", "m"), Counts("dead.unrouted.target", 1),
            subscribe("dead.unrouted.target"),
            Either(
                ours=(messages("m", headers={"_AMQ_ORIG_ADDRESS": "dead.unrouted", "_AMQ_ORIG_QUEUE": ABSENT}),),
                artemis=(messages("m", headers={"_AMQ_ORIG_ADDRESS": "dead.unrouted", "_AMQ_ORIG_QUEUE": ""}),),
            ),
        ),
        departures=("null-header",),
        addresses=(xml.address("dead.unrouted", multicast=()), xml.anycast("dead.unrouted.target")),
        settings=(
            xml.setting(
                "dead.unrouted", dead_letter_address="dead.unrouted.target", send_to_dla_on_no_route=True
            ),
        ),
    ),
    Scenario(
        "redelivery_delay",
        "which ends of a delivery count as an attempt that redelivery-delay puts off",
        (
            Connect(), anycast("delayed", "m"),
            *_loses("delayed", redelivered="false"),
            Either(
                ours=(Counts("delayed", 1, 0, 1), Counts("delayed", 1, 0, 0)),
                artemis=(Counts("delayed", 1, 0, 0),),
            ),
            Connect("d"), subscribe("delayed", who="d"), messages("m", who="d"), Disconnect("d"),
            Either(
                ours=(Counts("delayed", 1, 0, 0),),
                artemis=(Counts("delayed", 1, 0, 1), Counts("delayed", 1, 0, 0)),
            ),
            subscribe("delayed"), messages("m"), unsubscribe(), Counts("delayed", 1, 0, 0),
        ),
        addresses=(xml.anycast("delayed"),),
        settings=(xml.setting("delayed", redelivery_delay=400),),
        departures=("redelivery-delay-when", "disconnect-attempt"),
    ),
    Scenario(
        "nack",
        "NACK gives the message back; after the last attempt it is dead",
        (
            Connect(), anycast("nacked", "m"), subscribe("nacked"), messages("m", headers={"redelivered": "false"}),
            nack("m"),
            Either(
                ours=(
                    messages("m", headers={"redelivered": "true"}), nack("m"),
                    Counts("nacked", 0, 0, killed=1, acknowledged=0), Counts("nacked.dead", 1),
                ),
                artemis=(Nothing(), Counts("nacked", 0, 0, killed=0, acknowledged=1), Counts("nacked.dead", 0)),
            ),
        ),
        addresses=(xml.anycast("nacked"), xml.anycast("nacked.dead")),
        settings=(xml.setting("nacked", dead_letter_address="nacked.dead", max_delivery_attempts=2),),
        departures=("nack",),
    ),
)  # fmt: skip

SCHEDULES: tuple[Scenario, ...] = (
    Scenario(
        "scheduled",
        "a scheduled message waits for its time, and counts meanwhile",
        (
            Connect(), subscribe("later"), anycast("later", "m", headers={"AMQ_SCHEDULED_DELAY": "300"}),
            Counts("later", 1, 0, 1, added=1),
            messages("m", headers={"redelivered": "false"}), Counts("later", 1, 1, 0),
        ),
        addresses=(xml.anycast("later"),),
    ),
    Scenario(
        "scheduled_both",
        "AMQ_SCHEDULED_TIME wins over AMQ_SCHEDULED_DELAY; a delay of 0 or less is none",
        (
            Connect(), subscribe("later.both", ack="auto"),
            anycast(
                "later.both", "m", headers={"AMQ_SCHEDULED_DELAY": "60000", "AMQ_SCHEDULED_TIME": In(100)}
            ),
            messages("m"),
            anycast("later.both", "now", headers={"AMQ_SCHEDULED_DELAY": "-5"}), messages("now"),
        ),
        addresses=(xml.anycast("later.both"),),
    ),
    Scenario(
        "scheduled_past",
        "a schedule in the past is due at once, and goes to the head",
        (
            Connect(), anycast("later.past", "old"), anycast("later.past", "past", headers={"AMQ_SCHEDULED_TIME": "1"}),
            Counts("later.past", 2, 0, 0), subscribe("later.past"), messages("past", "old"),
        ),
        addresses=(xml.anycast("later.past"),),
    ),
    Scenario(
        "scheduled_priority",
        "messages that fall due keep to their priorities",
        (
            Connect(), anycast("later.prio", "low", headers={"AMQ_SCHEDULED_DELAY": "150", "priority": "1"}),
            anycast("later.prio", "high", headers={"AMQ_SCHEDULED_DELAY": "150", "priority": "9"}),
            Counts("later.prio", 2, 0, 2), Counts("later.prio", 2, 0, 0), subscribe("later.prio"),
            messages("high", "low"),
        ),
        addresses=(xml.anycast("later.prio"),),
    ),
    Scenario(
        "scheduled_in_transaction",
        "the delay of a message in a transaction",
        (
            Connect(), begin(),
            anycast("later.tx", "m", headers={"AMQ_SCHEDULED_DELAY": "200", "transaction": "t"}),
            Counts("later.tx", 0, added=0), commit(), Counts("later.tx", 1, 0, 1), Counts("later.tx", 1, 0, 0),
        ),
        addresses=(xml.anycast("later.tx"),),
    ),
    Scenario(
        "scheduled_headers",
        "the headers that a scheduled message and one of a group arrive with",
        (
            Connect(), subscribe("later.headers", ack="auto"),
            anycast("later.headers", "m", headers={"AMQ_SCHEDULED_DELAY": "20", "JMSXGroupID": "g"}),
            Either(
                ours=(messages("m", headers={"AMQ_SCHEDULED_DELAY": "20", "JMSXGroupID": "g", "_AMQ_GROUP_ID": "g"}),),
                artemis=(
                    messages(
                        "m",
                        headers={"AMQ_SCHEDULED_DELAY": ABSENT, "JMSXGroupID": ABSENT, "_AMQ_GROUP_ID": "g"},
                    ),
                ),
            ),
        ),
        addresses=(xml.anycast("later.headers"),),
        departures=("renamed-headers",),
    ),
)  # fmt: skip

UNUSED: tuple[Scenario, ...] = (
    Scenario(
        "auto_delete",
        "an auto-created queue that was used and is empty goes, and its address; one with a message stays",
        (
            Connect(), anycast("made.used", "m"), anycast("made.full", "m"), Exists("made.used"), Exists("made.full"),
            subscribe("made.used", headers={"subscription-type": "ANYCAST"}), messages("m"), ack("m"), unsubscribe(),
            Exists("made.used", yes=False), AddressExists("made.used", yes=False),
            Counts("made.full", 1),
        ),
        scans=True,
    ),
    Scenario(
        "auto_delete_off",
        "auto-delete-queues false keeps the queue, and with it the address",
        (
            Connect(), anycast("made.kept", "m"), anycast("made.other", "m"),
            *(
                step
                for name in ("made.kept", "made.other")
                for step in (
                    subscribe(name, headers={"subscription-type": "ANYCAST"}), messages("m"), ack("m"), unsubscribe(),
                )
            ),
            Exists("made.other", yes=False), Counts("made.kept", 0), Routed("made.kept", 1),
        ),
        settings=(xml.setting("made.kept", auto_delete_queues=False),),
        scans=True,
    ),
)  # fmt: skip

SCENARIOS: tuple[Scenario, ...] = (*EXPIRY, *DEAD, *SCHEDULES, *UNUSED)
