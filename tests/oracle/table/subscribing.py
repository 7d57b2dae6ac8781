"""SUBSCRIBE and UNSUBSCRIBE: ids, durable subscriptions, selectors, no-local."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Connect,
    Counts,
    Disconnect,
    Either,
    Exists,
    Nothing,
    Refused,
    Request,
    ack,
    anycast,
    messages,
    send,
    subscribe,
    unnamed,
    unsubscribe,
)
from tests.oracle.values import ABSENT, PRESENT

DURABLE = {"durable-subscription-name": "notes"}


def _client(name: str, who: str = "d", version: str = "1.1") -> Connect:
    return Connect(who, version, {"client-id": name})


IDS: tuple[Scenario, ...] = (
    Scenario(
        "id_of_10",
        "in STOMP 1.0 a subscription without an id",
        (
            Connect("c", "1.0"), subscribe("/topic/sub.ten", id=None), send("/topic/sub.ten", "m"),
            Either(
                ours=(messages("m", headers={"subscription": ABSENT}),),
                artemis=(messages("m", headers={"subscription": PRESENT}),),
            ),
            Request("UNSUBSCRIBE", {"destination": "/topic/sub.ten"}), send("/topic/sub.ten", "n"), Nothing(),
        ),
        departures=("subscription-of-10",),
    ),
    Scenario(
        "id_missing",
        "SUBSCRIBE without an id in STOMP 1.1 and 1.2",
        tuple(
            step
            for version in ("1.1", "1.2")
            for step in (
                Connect("c", version),
                subscribe("sub.nameless", id=None),
            )
        ),
        addresses=(xml.anycast("sub.nameless"),),
    ),
    Scenario(
        "id_twice",
        "a second subscription with the same id is refused",
        (Connect("c", "1.1"), subscribe("/topic/sub.twice"), unnamed(subscribe("/topic/sub.twice"))),
        departures=("error-receipt",),
    ),
    Scenario(
        "id_again",
        "after UNSUBSCRIBE the id is free, and nothing more comes",
        (
            Connect("c"), Connect("d"), subscribe("/topic/sub.again"), send("/topic/sub.again", "1", who="d"),
            messages("1"),
            unsubscribe(), send("/topic/sub.again", "2", who="d"), Nothing(), subscribe("/topic/sub.again"),
            send("/topic/sub.again", "3", who="d"), messages("3"),
        ),
    ),
    Scenario(
        "unsubscribe_unknown",
        "UNSUBSCRIBE of an unknown id is refused",
        (Connect("c", "1.1"), Refused(unsubscribe("never"), closes=False)),
    ),
    Scenario(
        "subscribe_nowhere",
        "SUBSCRIBE without a destination is refused",
        (
            Connect("c", "1.2"),
            Either(
                ours=(Refused(Request("SUBSCRIBE", {"id": "1"}), closes=True),),
                artemis=(Refused(Request("SUBSCRIBE", {"id": "1"}), closes=True, has_receipt=False),),
            ),
        ),
        departures=("error-receipt",),
    ),
    Scenario(
        "window_wrong",
        "a window that is no number, and one below -1",
        (
            Connect("c", "1.1"), unnamed(subscribe("/topic/sub.window", headers={"consumer-window-size": "wide"})),
            Either(
                ours=(Refused(subscribe("/topic/sub.window", id="2", window=-5), closes=False),),
                artemis=(subscribe("/topic/sub.window", id="2", window=-5),),
            ),
        ),
        departures=("error-receipt", "window-negative"),
    ),
    Scenario(
        "topic_queue_goes",
        "the queue of a subscription goes with it",
        (
            Connect(), subscribe("/topic/sub.gone"), send("/topic/sub.gone", "m"), messages("m"), Disconnect(),
            Connect(),
            subscribe("/topic/sub.gone"), Nothing(),
        ),
    ),
)  # fmt: skip

DURABLES: tuple[Scenario, ...] = (
    Scenario(
        "durable",
        "a durable subscription gathers messages while nobody reads it",
        (
            Connect("c"), _client("dur1"), subscribe("/topic/dur.one", who="d", headers=DURABLE), Disconnect("d"),
            send("/topic/dur.one", "1", "2"), Counts("dur1.notes", 2, consumers=0),
            _client("dur1"), subscribe("/topic/dur.one", who="d", headers=DURABLE), messages("1", "2", who="d"),
            ack("1", "2", who="d"), Counts("dur1.notes", 0),
        ),
    ),
    Scenario(
        "durable_header_names",
        "the older names of the header",
        (
            Connect("c"), _client("dur2"),
            subscribe("/topic/dur.two", who="d", id="1", headers={"durable-subscriber-name": "a"}),
            subscribe("/topic/dur.two", who="d", id="2", headers={"activemq.subscriptionName": "b"}),
            Exists("dur2.a"), Exists("dur2.b"),
        ),
    ),
    Scenario(
        "durable_unsubscribe_id",
        "UNSUBSCRIBE by id keeps a durable subscription",
        (
            Connect("c"), _client("dur3"), subscribe("/topic/dur.three", who="d", headers=DURABLE),
            unsubscribe(who="d"),
            send("/topic/dur.three", "m"), Counts("dur3.notes", 1, consumers=0),
        ),
    ),
    Scenario(
        "durable_unsubscribe_name",
        "UNSUBSCRIBE with the name deletes a durable subscription, also one that is not active",
        (
            Connect("c"), _client("dur4"), subscribe("/topic/dur.four", who="d", headers=DURABLE),
            Request("UNSUBSCRIBE", {"id": "s", **DURABLE}, "d"), Exists("dur4.notes", yes=False),
            subscribe("/topic/dur.four", who="d", headers=DURABLE), Disconnect("d"), Exists("dur4.notes"),
            _client("dur4"), Request("UNSUBSCRIBE", dict(DURABLE), "d"), Exists("dur4.notes", yes=False),
        ),
    ),
    Scenario(
        "durable_without_client_id",
        "a durable subscription of a client without client-id is refused",
        (
            Connect("d", "1.1"),
            unnamed(subscribe("/topic/dur.five", who="d", headers=DURABLE)),
        ),
        departures=("error-receipt",),
    ),
    Scenario(
        "durable_keeps_filter",
        "a durable subscription keeps the selector that it began with",
        (
            Connect("c"), _client("dur6"),
            subscribe("/topic/dur.six", who="d", headers={**DURABLE, "selector": "colour = 'red'"}), Disconnect("d"),
            send("/topic/dur.six", "red", headers={"colour": "red"}),
            send("/topic/dur.six", "blue", headers={"colour": "blue"}),
            _client("dur6"), subscribe("/topic/dur.six", who="d", headers={**DURABLE, "selector": "colour = 'blue'"}),
            messages("red", who="d"), Nothing("d"),
        ),
    ),
    Scenario(
        "durable_unknown",
        "UNSUBSCRIBE with the name of a durable subscription that does not exist",
        (
            _client("dur8"),
            Either(
                ours=(Refused(Request("UNSUBSCRIBE", dict(DURABLE), "d"), closes=False),),
                artemis=(Request("UNSUBSCRIBE", dict(DURABLE), "d"),),
            ),
        ),
        departures=("durable-unknown",),
    ),
    Scenario(
        "durable_active",
        "UNSUBSCRIBE with the name alone of a durable subscription that is active on this connection",
        (
            _client("dur9"), subscribe("/topic/dur.nine", who="d", headers=DURABLE),
            Either(
                ours=(Request("UNSUBSCRIBE", dict(DURABLE), "d"), Exists("dur9.notes", yes=False)),
                artemis=(Refused(Request("UNSUBSCRIBE", dict(DURABLE), "d"), closes=False), Exists("dur9.notes")),
            ),
        ),
        departures=("durable-active",),
    ),
    Scenario(
        "durable_other_address",
        "a durable subscription's name with another address",
        (
            _client("dur10"), subscribe("/topic/dur.ten", who="d", headers=DURABLE),
            Either(
                ours=(Refused(subscribe("/topic/dur.eleven", who="d", id="2", headers=DURABLE), closes=False),),
                artemis=(
                    subscribe("/topic/dur.eleven", who="d", id="2", headers=DURABLE),
                    Counts("dur10.notes", consumers=2),
                ),
            ),
        ),
        departures=("durable-other-address",),
    ),
    Scenario(
        "durable_anycast",
        "on an anycast destination the name of a durable subscription has no meaning",
        (
            _client("dur12"), subscribe("/queue/dur.twelve", who="d", headers=DURABLE),
            Exists("dur12.notes", yes=False),
            Counts("dur.twelve", consumers=1),
        ),
    ),
    Scenario(
        "durable_twice",
        "a second reader of an active durable subscription",
        (
            Connect("c"), _client("dur7"), _client("dur7", "e"),
            subscribe("/topic/dur.seven", who="d", headers=DURABLE),
            subscribe("/topic/dur.seven", who="e", headers=DURABLE), Counts("dur7.notes", consumers=2),
        ),
    ),
)  # fmt: skip

SELECTORS: tuple[Scenario, ...] = (
    Scenario(
        "selector_queue",
        "a selector takes its messages from a queue; the others stay for other consumers",
        (
            Connect("c"), Connect("d"), Connect("e"),
            anycast("sel.queue", "red", headers={"colour": "red"}),
            anycast("sel.queue", "blue", headers={"colour": "blue"}),
            anycast("sel.queue", "plain"),
            subscribe("sel.queue", who="d", headers={"selector": "colour = 'blue'"}), messages("blue", who="d"),
            Nothing("d"),
            Counts("sel.queue", 3, 1), subscribe("sel.queue", who="e", headers={"selector": "colour = 'red'"}),
            messages("red", who="e"), Counts("sel.queue", 3, 2), subscribe("sel.queue"), messages("plain"),
        ),
        addresses=(xml.anycast("sel.queue"),),
    ),
    Scenario(
        "selector_topic",
        "a selector on a multicast address lets only its messages in",
        (
            Connect("c"), Connect("d"),
            subscribe("/topic/sel.topic", who="d", headers={"selector": "colour = 'red' AND size IS NOT NULL"}),
            send("/topic/sel.topic", "1", headers={"colour": "red"}),
            send("/topic/sel.topic", "2", headers={"colour": "red", "size": "XL"}), messages("2", who="d"),
            Nothing("d"),
        ),
    ),
    Scenario(
        "selector_numbers",
        "headers are text: a comparison with a number is false unless strings are converted",
        (
            Connect("c"), Connect("d"), anycast("sel.number", "21", headers={"age": "21"}),
            subscribe("sel.number", who="d", id="1", headers={"selector": "age > 18"}), Nothing("d"),
            subscribe("sel.number", who="d", id="2", headers={"selector": "age = 21"}), Nothing("d"),
            subscribe("sel.number", who="d", id="3", headers={"selector": "convert_string_expressions:age > 18"}),
            messages("21", who="d", headers={"subscription": "3"}),
        ),
        addresses=(xml.anycast("sel.number"),),
    ),
    Scenario(
        "selector_hyphens",
        "names with hyphens need a prefix, or quotes",
        (
            Connect("c"), Connect("d"), anycast("sel.hyphen", "1", "2", headers={"a-b": "x"}),
            subscribe("sel.hyphen", who="d", window=0, headers={"selector": "hyphenated_props:a-b = 'x'"}),
            messages("1", who="d", headers={"subscription": "s"}),
        ),
        addresses=(xml.anycast("sel.hyphen"),),
    ),
    Scenario(
        "selector_built_in",
        "what a selector can ask of a message itself",
        (
            Connect("c"), Connect("d"),
            subscribe("/topic/sel.own", who="d", id="priority", headers={"selector": "AMQPriority > 6"}),
            subscribe("/topic/sel.own", who="d", id="durable", headers={"selector": "AMQDurable = 'DURABLE'"}),
            subscribe("/topic/sel.own", who="d", id="jms", headers={"selector": "JMSPriority > 6"}),
            send("/topic/sel.own", "high", headers={"priority": "7"}),
            messages("high", who="d", headers={"subscription": "priority"}),
            send("/topic/sel.own", "kept", headers={"persistent": "true"}),
            messages("kept", who="d", headers={"subscription": "durable"}), Nothing("d"),
        ),
    ),
    *(
        Scenario(
            f"selector_{name}",
            f"the selector {selector}",
            (
                Connect("c"), Connect("d"), subscribe(f"/topic/sel.{name}", who="d", headers={"selector": selector}),
                send(f"/topic/sel.{name}", "1", headers={"a": "abc", "b": "5", "c_": "x%y"}),
                *((messages("1", who="d"),) if matches else (Nothing("d"),)),
            ),
        )
        for name, selector, matches in (
            ("like", "a LIKE 'a_c'", True),
            ("like_any", "a LIKE '%c'", True),
            ("like_not", "a NOT LIKE 'b%'", True),
            ("like_escape", "c_ LIKE 'x!%y' ESCAPE '!'", True),
            ("in", "a IN ('x', 'abc')", True),
            ("not_in", "a NOT IN ('x', 'abc')", False),
            ("is_null", "zzz IS NULL", True),
            ("unknown", "zzz = 'x'", False),
            ("unknown_not", "NOT (zzz = 'x')", False),
            ("unknown_or", "zzz = 'x' OR a = 'abc'", True),
            ("unequal", "a <> 'x'", True),
            ("between", "convert_string_expressions:b BETWEEN 4 AND 6", True),
            ("arithmetic", "convert_string_expressions:b * 2 + 1 = 11", True),
            ("precedence", "a = 'abc' OR a = 'x' AND a = 'y'", True),
            ("case", "a like 'abc' aNd not (a = 'x')", True),
            ("quote", "a <> 'it''s'", True),
            ("true", "TRUE", True),
            ("literal", "1 = 1", True),
        )
    ),
    *(
        Scenario(
            f"selector_{name}",
            f"the selector {selector}",
            (
                Connect("c"), Connect("d"), subscribe(f"/topic/sel.{name}", who="d", headers={"selector": selector}),
                send(f"/topic/sel.{name}", "1", headers={"a": "abc", "n": "21.5", "yes": "yes"}),
                Either(
                    ours=(messages("1", who="d"),) if ours else (Nothing("d"),),
                    artemis=(Nothing("d"),) if ours else (messages("1", who="d"),),
                ),
            ),
            departures=("selector-not",) if name == "not" else ("selector-errors",),
        )
        for name, selector, ours in (
            ("not", "NOT a = 'x'", True),
            ("broken_part", "a - 1 > 2 OR a = 'abc'", True),
            ("divided_by_zero", "1 / 0 > 5", False),
            ("converted_fraction", "convert_string_expressions:n > 21", True),
        )
    ),
    *(
        Scenario(
            f"selector_wrong_{number}",
            f"a selector that does not parse is refused: {selector!r}",
            (
                Connect("d", "1.1"),
                unnamed(subscribe("/topic/sel.wrong", who="d", headers={"selector": selector})),
            ),
            departures=("error-receipt",),
        )
        for number, selector in enumerate(("a =", "a == 'x'", "(a = 'x'", "a LIKE b", "'unfinished"))
    ),
    Scenario(
        "no_local_queue",
        "no-local on a queue",
        (
            Connect("c"), Connect("d"), subscribe("local.queue", headers={"no-local": "true"}),
            anycast("local.queue", "mine"), anycast("local.queue", "yours", who="d"), messages("yours"), Nothing(),
            Counts("local.queue", 2, 1),
        ),
        addresses=(xml.anycast("local.queue"),),
    ),
    Scenario(
        "no_local",
        "no-local leaves out what the same connection sends",
        (
            Connect("c"), Connect("d"), subscribe("/topic/local", headers={"no-local": "true"}),
            send("/topic/local", "mine"),
            send("/topic/local", "yours", who="d"), messages("yours"), Nothing(),
        ),
    ),
)  # fmt: skip

SCENARIOS: tuple[Scenario, ...] = (*IDS, *DURABLES, *SELECTORS)
