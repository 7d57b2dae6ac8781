"""Who gets what, and in which order: priority, exclusive and non-destructive queues, consumers before dispatch."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Connect,
    Counts,
    Drop,
    Either,
    Nothing,
    PassTime,
    ack,
    anycast,
    messages,
    send,
    subscribe,
    unnamed,
    unsubscribe,
)

ONE_BY_ONE = 0

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "fifo_return",
        "what comes back goes to its own place, before what was sent later",
        (
            Connect("c"), Connect("d"), anycast("fifo", "1", "2", "3"),
            subscribe("fifo", who="d", window=ONE_BY_ONE), messages("1", who="d"), Counts("fifo", 3, 1),
            Drop("d"), Counts("fifo", 3, 0, consumers=0),
            Connect("d"), subscribe("fifo", who="d"), messages("1", "2", "3", who="d"),
        ),
        addresses=(xml.anycast("fifo"),),
    ),
    Scenario(
        "round_robin",
        "consumers of one queue take turns",
        (
            Connect("c"), Connect("d"), Connect("e"),
            subscribe("robin", who="d"), subscribe("robin", who="e"), Counts("robin", 0, consumers=2),
            anycast("robin", "1"), Counts("robin", 1, 1), anycast("robin", "2"), Counts("robin", 2, 2),
            anycast("robin", "3"), Counts("robin", 3, 3), anycast("robin", "4"), Counts("robin", 4, 4),
            messages("1", "3", who="d"), messages("2", "4", who="e"),
        ),
        addresses=(xml.anycast("robin"),),
    ),
    Scenario(
        "busy_consumer",
        "a consumer without room is passed over",
        (
            Connect("c"), Connect("d"), Connect("e"),
            subscribe("busy", who="d", window=ONE_BY_ONE), anycast("busy", "1"), messages("1", who="d"),
            subscribe("busy", who="e"), Counts("busy", consumers=2),
            anycast("busy", "2", "3"), messages("2", "3", who="e"), ack("2", "3", who="e"),
            ack("1", who="d"), Counts("busy", 0, acknowledged=3),
        ),
        addresses=(xml.anycast("busy"),),
    ),
    Scenario(
        "priority_order",
        "the highest priority first, arrival order inside a priority",
        (
            Connect(),
            anycast("prio", "1", headers={"priority": "1"}), anycast("prio", "9a", headers={"priority": "9"}),
            anycast("prio", "4"), anycast("prio", "9b", headers={"priority": "9"}),
            subscribe("prio", ack="auto", window=None), messages("9a", "9b", "4", "1"), Counts("prio", 0),
        ),
        addresses=(xml.anycast("prio"),),
    ),
    Scenario(
        "priority_return",
        "a message that comes back stands before a later one of its priority",
        (
            Connect("c"), Connect("d"),
            anycast("prio.return", "9a", "9b", headers={"priority": "9"}),
            subscribe("prio.return", who="d", window=ONE_BY_ONE), messages("9a", who="d"),
            anycast("prio.return", "9c", headers={"priority": "9"}), unsubscribe(who="d"), Counts("prio.return", 3, 0),
            subscribe("prio.return", who="d"), messages("9a", "9b", "9c", who="d"),
        ),
        addresses=(xml.anycast("prio.return"),),
    ),
    Scenario(
        "exclusive",
        "the first consumer of an exclusive queue gets everything until it leaves",
        (
            Connect("c"), Connect("d"), Connect("e"),
            subscribe("excl", who="d"), Counts("excl", consumers=1), subscribe("excl", who="e"),
            Counts("excl", consumers=2),
            anycast("excl", *"123456"), messages(*"123456", who="d"), Nothing("e"),
            ack(*"12345", who="d"), Counts("excl", 1, 1), Drop("d"),
            messages("6", who="e", headers={"redelivered": "true"}),
            anycast("excl", "7"), messages("7", who="e", headers={"redelivered": "false"}),
            Connect("d"), subscribe("excl", who="d"), anycast("excl", "8"), messages("8", who="e"), Nothing("d"),
        ),
        addresses=(xml.anycast("excl", exclusive=True),),
    ),
    Scenario(
        "exclusive_selector",
        "an exclusive queue whose first consumer does not want a message",
        (
            Connect("c"), Connect("d"), Connect("e"),
            subscribe("excl.sel", who="d", headers={"selector": "colour = 'red'"}), Counts("excl.sel", consumers=1),
            subscribe("excl.sel", who="e"), Counts("excl.sel", consumers=2), anycast("excl.sel", "plain"),
            Either(ours=(Nothing("e"), Counts("excl.sel", 1, 0)), artemis=(messages("plain", who="e"),)),
        ),
        addresses=(xml.anycast("excl.sel", exclusive=True),),
        departures=("exclusive-selector",),
    ),
    Scenario(
        "defaults",
        "the default-… settings hold for declared queues too (purge-on-no-consumers does not)",
        (
            Connect("c", "1.1"), Connect("d", "1.1"),
            anycast("def.keep", "1"), subscribe("def.keep"), messages("1"), ack("1"), Counts("def.keep", 1, 0),
            subscribe("def.one", id="1"), unnamed(subscribe("def.one", id="2")),
            anycast("def.gate", "1"), subscribe("def.gate", id="3"), Nothing(),
            subscribe("def.first", id="4"), Counts("def.first", consumers=1), subscribe("def.first", who="d"),
            Counts("def.first", consumers=2), anycast("def.first", "1", "2"), messages("1", "2"), Nothing("d"),
            anycast("def.purge", "1"), Counts("def.purge", 1),
        ),
        addresses=tuple(xml.anycast(f"def.{name}") for name in ("keep", "one", "gate", "first", "purge")),
        settings=(
            xml.setting("def.keep", default_non_destructive=True), xml.setting("def.one", default_max_consumers=1),
            xml.setting("def.gate", default_consumers_before_dispatch=2),
            xml.setting("def.first", default_exclusive_queue=True),
            xml.setting("def.purge", default_purge_on_no_consumers=True),
        ),
        departures=("error-receipt",),
    ),
    Scenario(
        "topic_ring",
        "default-ring-size makes rings of the queues of subscriptions",
        (
            Connect("c"), Connect("d"), subscribe("/topic/ringed", who="d", window=ONE_BY_ONE),
            send("/topic/ringed", "1"), messages("1", who="d"), send("/topic/ringed", "2", "3", "4"),
            ack("1", who="d"), messages("3", who="d"), ack("3", who="d"), messages("4", who="d"),
        ),
        settings=(xml.setting("ringed", default_ring_size=2),),
    ),
    Scenario(
        "selector_among_others",
        "a consumer with a selector gets its messages in their order, and so do others when it leaves",
        (
            Connect("c"), Connect("d"),
            subscribe("sifting", who="d", window=ONE_BY_ONE, headers={"selector": "n = '1'"}),
            anycast("sifting", "a", "b", headers={"n": "1"}), anycast("sifting", "c", headers={"n": "2"}),
            messages("a", who="d"), ack("a", who="d"), messages("b", who="d"), subscribe("sifting"), messages("c"),
            unsubscribe(who="d"), messages("b"),
        ),
        addresses=(xml.anycast("sifting"),),
    ),
    Scenario(
        "non_destructive",
        "every consumer of a non-destructive queue reads all messages, and takes none",
        (
            Connect("c"), Connect("d"), anycast("keep", *"123"),
            subscribe("keep"), messages(*"123"),
            Either(ours=(Counts("keep", 3, 3),), artemis=(Counts("keep", 6, 3),)),
            ack(*"123"), Counts("keep", 3, 0, acknowledged=0),
            subscribe("keep", who="d"), messages(*"123", who="d"), unsubscribe(who="d"), Counts("keep", 3, 0),
            anycast("keep", "4"), messages("4"),
        ),
        addresses=(xml.anycast("keep", non_destructive=True),),
        departures=("non-destructive-count",),
    ),
    Scenario(
        "max_consumers",
        "one consumer more than max-consumers is refused",
        (
            Connect("c", "1.1"), subscribe("single"),
            Connect("d", "1.1"), unnamed(subscribe("single", who="d")),
            Counts("single", consumers=1), unsubscribe(), Counts("single", consumers=0),
            subscribe("single", who="d"), Counts("single", consumers=1),
        ),
        addresses=(xml.anycast("single", max_consumers=1),),
        departures=("error-receipt",),
    ),
    Scenario(
        "purge_on_no_consumers",
        "a purging queue is empty when its last consumer has left",
        (
            Connect("c"), Connect("d"), anycast("purge", "before"), Counts("purge", 0, added=0),
            subscribe("purge", who="d", window=ONE_BY_ONE), anycast("purge", "1", "2"), messages("1", who="d"),
            Counts("purge", 2, 1), unsubscribe(who="d"), Counts("purge", 0, 0, killed=2),
        ),
        addresses=(xml.anycast("purge", purge_on_no_consumers=True),),
    ),
    Scenario(
        "consumers_before_dispatch",
        "dispatch waits for two consumers, goes on with one, and waits again after none",
        (
            Connect("c"), Connect("d"), Connect("e"), anycast("gate", "1", "2"),
            subscribe("gate", who="d", window=ONE_BY_ONE), Nothing("d"),
            subscribe("gate", who="e", window=ONE_BY_ONE), Counts("gate", 2, 2),
            messages("1", who="d"), messages("2", who="e"), ack("1", who="d"), ack("2", who="e"),
            unsubscribe(who="e"), anycast("gate", "3"), messages("3", who="d"), ack("3", who="d"),
            unsubscribe(who="d"), Counts("gate", 0, consumers=0),
            anycast("gate", "4"), subscribe("gate", who="d"), Nothing("d"),
        ),
        addresses=(xml.anycast("gate", consumers_before_dispatch=2),),
    ),
    Scenario(
        "delay_before_dispatch",
        "when the second consumer does not come, dispatch starts after a while",
        (
            Connect("c"), Connect("d"), anycast("gate.delay", "1"),
            subscribe("gate.delay", who="d"), Nothing("d"),
            Either(
                ours=(messages("1", who="d"),),
                artemis=(PassTime(500), anycast("gate.delay", "event"), messages("1", who="d")),
            ),
            ack("1", who="d"),
        ),
        departures=("delay-before-dispatch-event",),
        addresses=(xml.anycast("gate.delay", consumers_before_dispatch=2, delay_before_dispatch=600),),
    ),
    Scenario(
        "window_zero",
        "a window of 0 is exactly one message",
        (
            Connect("c"), Connect("d"), anycast("zero", "1", "2"),
            subscribe("zero", who="d", window=0), messages("1", who="d"), Nothing("d"), Counts("zero", 2, 1),
            ack("1", who="d"), messages("2", who="d"),
        ),
        addresses=(xml.anycast("zero"),),
    ),
    Scenario(
        "window_bytes",
        "a window counts the bytes of frames; it may be passed by the last one",
        (
            Connect("c"), Connect("d"), anycast("bytes", *("x" * 1000 for _ in range(5))),
            subscribe("bytes", who="d", window=2500), messages(*("x" * 1000 for _ in range(3)), who="d"),
            Nothing("d"), Counts("bytes", 5, 3), ack("x" * 1000, who="d"), messages("x" * 1000, who="d"),
            Counts("bytes", 4, 3),
        ),
        addresses=(xml.anycast("bytes"),),
    ),
    Scenario(
        "window_default",
        "without a header the window is 10,240 bytes in the client modes",
        (
            Connect("c"), Connect("d"), anycast("default.window", *("x" * 6000 for _ in range(4))),
            subscribe("default.window", who="d", window=None),
            messages(*("x" * 6000 for _ in range(2)), who="d"), Nothing("d"), Counts("default.window", 4, 2),
        ),
        addresses=(xml.anycast("default.window"),),
    ),
    Scenario(
        "window_of_auto",
        "ack:auto with a window",
        (
            Connect("c"), Connect("d"), anycast("auto.window", *("x" * 1000 for _ in range(5))),
            subscribe("auto.window", who="d", ack="auto", window=2500),
            messages(*("x" * 1000 for _ in range(3)), who="d"),
            Either(
                ours=(messages(*("x" * 1000 for _ in range(2)), who="d"), Counts("auto.window", 0)),
                artemis=(Nothing("d"), Counts("auto.window", 2)),
            ),
        ),
        addresses=(xml.anycast("auto.window"),),
        departures=("auto-window",),
    ),
)  # fmt: skip
