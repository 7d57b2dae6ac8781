"""Where messages go: routing types and wildcards, names, and what is created on use."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    AddressExists,
    Connect,
    Counts,
    Either,
    Exists,
    Nothing,
    Refused,
    Routed,
    ack,
    anycast,
    messages,
    send,
    subscribe,
    unnamed,
    unsubscribe,
)

FOUR_QUEUES = xml.address(
    "four",
    anycast=(xml.queue("four.a"), xml.queue("four.b")),
    multicast=(xml.queue("four.c"), xml.queue("four.d")),
)
ANYCAST = {"subscription-type": "ANYCAST"}
MULTICAST = {"subscription-type": "MULTICAST"}
TO_MULTICAST = {"destination-type": "MULTICAST"}

ROUTING: tuple[Scenario, ...] = (
    Scenario(
        "route_anycast",
        "an anycast message reaches one anycast queue, in turn",
        (
            Connect(), anycast("four", "1"), Counts("four.a", 1), anycast("four", "2"), Counts("four.a", 1),
            Counts("four.b", 1), Counts("four.c", 0), Counts("four.d", 0), Routed("four", 2),
        ),
        addresses=(FOUR_QUEUES,),
    ),
    Scenario(
        "route_multicast",
        "a multicast message reaches every multicast queue",
        (
            Connect(), send("five", "1", headers=TO_MULTICAST),
            Counts("five.c", 1), Counts("five.d", 1), Counts("five.a", 0), Counts("five.b", 0),
        ),
        addresses=(FOUR_QUEUES.replace("four", "five"),),
    ),
    Scenario(
        "route_untyped",
        "an untyped message reaches one anycast queue and every multicast queue",
        (
            Connect(), send("six", "1"), Counts("six.c", 1), Counts("six.d", 1),
            subscribe("six::six.a", id="a"), subscribe("six::six.b", id="b"), messages("1"), Nothing(),
            Routed("six", 1),
        ),
        addresses=(FOUR_QUEUES.replace("four", "six"),),
    ),
    Scenario(
        "wildcard_middle",
        "a # in the middle of a routing wildcard",
        (
            Connect(), subscribe("/topic/mid.#.z"), send("/topic/mid.z", "0"), send("/topic/mid.a.z", "1"),
            send("/topic/mid.a.b.z", "2"), send("/topic/mid.a", "no"), messages("0", "1", "2"), Nothing(),
        ),
    ),
    Scenario(
        "wildcard_after_any_words",
        "a # with a * after it, or with two words after it",
        (
            Connect(), subscribe("/topic/any.#.*", id="1"), send("/topic/any.b", "b"),
            Either(ours=(messages("b"),), artemis=(Nothing(),)),
            subscribe("/topic/two.#.a.b", id="2"), send("/topic/two.a.x.b", "no"),
            send("/topic/two.x.a.b", "yes"), messages("yes"),
        ),
        departures=("routing-any-words",),
    ),
    Scenario(
        "route_filters",
        "a queue's filter lets only its messages in",
        (
            Connect(), send("filtered", "sport", headers={"section": "sport"}), send("filtered", "none"),
            Counts("filtered.sport", 1), Counts("filtered.all", 2), Routed("filtered", 2),
        ),
        addresses=(
            xml.address(
                "filtered",
                multicast=(xml.queue("filtered.sport", filter="section = 'sport'"), xml.queue("filtered.all")),
            ),
        ),
    ),
    Scenario(
        "route_filters_anycast",
        "an anycast message when it is the turn of a queue whose filter does not match",
        (
            Connect(), anycast("sifted", "1", "2", "3", "4"),
            Either(ours=(Counts("sifted.all", 4),), artemis=(Counts("sifted.all", 2),)),
            Counts("sifted.red", 0), Routed("sifted", 4),
        ),
        addresses=(
            xml.address(
                "sifted", anycast=(xml.queue("sifted.red", filter="colour = 'red'"), xml.queue("sifted.all"))
            ),
        ),
        departures=("anycast-filter",),
    ),
    Scenario(
        "route_to_consumers",
        "several anycast queues of which one has a consumer",
        (
            Connect("c"), Connect("d"), subscribe("served::served.b", who="d"), Counts("served.b", consumers=1),
            anycast("served", *"1234"),
            Either(
                ours=(Counts("served.a", 2), Counts("served.b", 2)),
                artemis=(Counts("served.a", 0), Counts("served.b", 4)),
            ),
        ),
        addresses=(xml.address("served", anycast=(xml.queue("served.a"), xml.queue("served.b"))),),
        departures=("anycast-turns",),
    ),
    Scenario(
        "route_disabled",
        "a queue that is not enabled takes nothing",
        (
            Connect(), anycast("disabled", "m"), Counts("disabled", 0, added=0),
            Either(ours=(Routed("disabled", 0, 1),), artemis=(Routed("disabled", 1, 0),)),
        ),
        addresses=(xml.anycast("disabled", enabled=False),),
        departures=("disabled-count",),
    ),
    Scenario(
        "route_wildcard_queue",
        "a declared queue on a wildcard address gets what is sent to the addresses it matches",
        (
            Connect(), send("jungle.a.b", "m", headers=TO_MULTICAST), Counts("jungle.all", 1),
            anycast("forest.a", "1", "2"), Counts("forest.all", 2),
        ),
        addresses=(
            xml.address("jungle.#", multicast=(xml.queue("jungle.all"),)),
            xml.address("forest.#", anycast=(xml.queue("forest.all"),)),
        ),
    ),
    Scenario(
        "prefix_and_header",
        "a prefix and a header that contradict each other",
        (
            Connect(), subscribe("/queue/contradicted"), send("/queue/contradicted", "m", headers=TO_MULTICAST),
            Either(ours=(messages("m"),), artemis=(Nothing(),)),
        ),
        departures=("prefix-and-header",),
    ),
    Scenario(
        "unrouted",
        "a message that reaches no queue is confirmed, and counted as unrouted",
        (Connect(), send("lonely", "m"), Routed("lonely", 0, 1)),
        addresses=(xml.address("lonely", multicast=()),),
    ),
    Scenario(
        "prefixes",
        "a prefix decides the routing type, and is part of the destination that consumers see",
        (
            Connect("c"), Connect("d"), subscribe("/queue/prefixed", who="d"),
            send("/queue/prefixed", "m"), Counts("prefixed", 1, 1),
            messages("m", who="d", headers={"destination": "/queue/prefixed", "destination-type": "ANYCAST"}),
        ),
    ),
    Scenario(
        "prefix_of_sender",
        "consumers see the destination as the sender wrote it",
        (
            Connect("c"), Connect("d"), subscribe("/queue/written", who="d"), anycast("written", "m"),
            messages("m", who="d", headers={"destination": "written"}),
        ),
    ),
    Scenario(
        "topic",
        "every subscriber of a multicast address gets a message, those that come later do not",
        (
            Connect("c"), Connect("d"), Connect("e"),
            subscribe("/topic/news", who="c"), subscribe("/topic/news", who="d"), send("/topic/news", "1", who="d"),
            messages("1", who="c"), messages("1", who="d"), subscribe("/topic/news", who="e"), Nothing("e"),
            send("/topic/news", "2", who="d"), messages("2", who="e"), messages("2", who="c"),
        ),
    ),
    Scenario(
        "topic_twice",
        "two subscriptions of one connection each get their copy",
        (
            Connect(), subscribe("/topic/twice", id="1"), subscribe("/topic/twice", id="2"),
            send("/topic/twice", "m"), messages("m", "m"), Nothing(),
        ),
    ),
    Scenario(
        "wildcard_subscribe",
        "a subscription to a wildcard address gets what is sent to all addresses it matches",
        (
            Connect(), subscribe("/topic/wild.*"), send("/topic/wild.a", "a"), send("/topic/wild.b", "b"),
            send("/topic/wild.b.c", "c"), messages("a", headers={"destination": "/topic/wild.a"}), messages("b"),
            Nothing(),
        ),
    ),
    Scenario(
        "wildcard_any_words",
        "# stands for any number of words, also none",
        (
            Connect(), subscribe("/topic/deep.#"), send("/topic/deep", "0"), send("/topic/deep.a", "1"),
            send("/topic/deep.a.b", "2"), send("/topic/deeper", "no"), messages("0", "1", "2"), Nothing(),
        ),
    ),
)  # fmt: skip

CREATION: tuple[Scenario, ...] = (
    Scenario(
        "plain_send",
        "a plain SEND to an unknown name makes a multicast address: the message is confirmed and reaches nobody",
        (Connect(), send("fresh.plain", "m"), Routed("fresh.plain", 0, 1), Exists("fresh.plain", yes=False)),
    ),
    Scenario(
        "anycast_send",
        "an anycast SEND to an unknown name makes the address and its queue",
        (Connect(), anycast("fresh.queue", "m"), Counts("fresh.queue", 1), Routed("fresh.queue", 1)),
    ),
    Scenario(
        "anycast_subscribe",
        "an anycast SUBSCRIBE to an unknown name makes the address and its queue, which outlive it",
        (
            Connect(), subscribe("fresh.subscribed", headers=ANYCAST), Counts("fresh.subscribed", 0, consumers=1),
            unsubscribe(), Counts("fresh.subscribed", 0, consumers=0),
        ),
    ),
    Scenario(
        "default_types",
        "default-address-routing-type and default-queue-routing-type decide where nothing else does",
        (Connect(), send("typed.m", "m"), Counts("typed.m", 1), subscribe("typed.m"), messages("m")),
        settings=(
            xml.setting("typed.#", default_address_routing_type="ANYCAST", default_queue_routing_type="ANYCAST"),
        ),
    ),
    Scenario(
        "added_type",
        "an address gets the routing type that a message asks for",
        (Connect(), anycast("added", "m"), Counts("added", 1), Counts("added.multi", 0)),
        addresses=(xml.address("added", multicast=(xml.queue("added.multi"),)),),
    ),
    Scenario(
        "no_creation_send",
        "SEND to an unknown name is refused where nothing may be created",
        (
            Connect("c", "1.1"), Refused(anycast("closed.unknown", "m"), closes=False),
            AddressExists("closed.unknown", yes=False),
        ),
        settings=(xml.setting("closed.#", auto_create_addresses=False, auto_create_queues=False),),
    ),
    Scenario(
        "no_creation_subscribe",
        "SUBSCRIBE to an unknown name is refused where nothing may be created",
        (Connect("c", "1.1"), unnamed(subscribe("shut.unknown", headers=ANYCAST))),
        settings=(xml.setting("shut.#", auto_create_addresses=False, auto_create_queues=False),),
        departures=("error-receipt",),
    ),
    Scenario(
        "no_added_type",
        "a routing type that the address lacks is refused where nothing may be created",
        (Connect("c", "1.1"), Refused(anycast("fixed.multi", "m"), closes=False)),
        addresses=(xml.address("fixed.multi", multicast=(xml.queue("fixed.multi.q"),)),),
        settings=(xml.setting("fixed.#", auto_create_addresses=False, auto_create_queues=False),),
    ),
    Scenario(
        "subscription_without_creation",
        "the queue of a multicast subscription is made even where queues are not auto-created",
        (Connect(), subscribe("open.topic", headers=MULTICAST), send("open.topic", "m"), messages("m")),
        addresses=(xml.address("open.topic", multicast=()),),
        settings=(xml.setting("open.#", auto_create_addresses=False, auto_create_queues=False),),
    ),
    Scenario(
        "bad_type",
        "a destination-type that is none is refused",
        (Connect("c", "1.1"), Refused(send("any", "m", headers={"destination-type": "anycast"}), closes=False)),
    ),
    Scenario(
        "sole_queue",
        "SUBSCRIBE to an anycast address whose only queue has another name",
        (
            Connect("c", "1.1"),
            Either(
                ours=(subscribe("sole"), anycast("sole", "m"), messages("m"), Counts("sole.queue", 1, 1)),
                artemis=(Refused(subscribe("sole"), closes=False, has_receipt=False),),
            ),
        ),
        addresses=(xml.address("sole", anycast=(xml.queue("sole.queue"),)),),
        departures=("sole-queue",),
    ),
    Scenario(
        "several_queues",
        "SUBSCRIBE to an anycast address with several queues, none of which has its name",
        (Connect("c", "1.1"), unnamed(subscribe("several"))),
        addresses=(xml.address("several", anycast=(xml.queue("several.a"), xml.queue("several.b"))),),
        departures=("error-receipt",),
    ),
    Scenario(
        "dual_multicast",
        "SUBSCRIBE with subscription-type:MULTICAST to an address with both routing types",
        (
            Connect("c"), Connect("d"), subscribe("dual", who="d", headers=MULTICAST),
            send("dual", "m", headers=TO_MULTICAST),
            Either(
                ours=(messages("m", who="d"),),
                artemis=(Nothing("d"), anycast("dual", "queued"), messages("queued", who="d")),
            ),
        ),
        addresses=(xml.address("dual", anycast=(xml.queue("dual"),), multicast=(xml.queue("dual.other"),)),),
        departures=("multicast-on-dual",),
    ),
    Scenario(
        "dual_untyped",
        "SUBSCRIBE without a type to an address with both reads its anycast queue",
        (
            Connect(), subscribe("dual.plain"), anycast("dual.plain", "a"), messages("a"),
            send("dual.plain", "m", headers=TO_MULTICAST), Nothing(), Counts("dual.plain.other", 1),
        ),
        addresses=(
            xml.address("dual.plain", anycast=(xml.queue("dual.plain"),), multicast=(xml.queue("dual.plain.other"),)),
        ),
    ),
)  # fmt: skip

QUALIFIED: tuple[Scenario, ...] = (
    Scenario(
        "full_divert",
        "a message to one queue by its full name meets no divert beside it",
        (
            Connect(), send("dv::dv.q", "m"), Counts("dv.q", 1),
            Either(ours=(Counts("dv.copy", 0),), artemis=(Counts("dv.copy", 1),)),
        ),
        addresses=(
            xml.address("dv", anycast=(xml.queue("dv.q"),)), xml.address("dvc", anycast=(xml.queue("dv.copy"),)),
        ),
        diverts=(xml.divert("dvd", "dv", "dvc"),),
        departures=("full-name-diverts",),
    ),
    Scenario(
        "fqqn_send",
        "address::queue reaches this one queue, whatever its routing type",
        (
            Connect(), send("full::full.b", "1"), send("full::full.c", "2"),
            Counts("full.b", 1), Counts("full.c", 1), Counts("full.a", 0), Counts("full.d", 0),
        ),
        addresses=(FOUR_QUEUES.replace("four", "full"),),
    ),
    Scenario(
        "fqqn_subscribe",
        "address::queue reads this one queue",
        (
            Connect(), subscribe("read::read.c"), send("read", "m", headers=TO_MULTICAST), messages("m"), ack("m"),
            Counts("read.c", 0, acknowledged=1), Counts("read.d", 1),
        ),
        addresses=(FOUR_QUEUES.replace("four", "read"),),
    ),
    Scenario(
        "fqqn_creates",
        "address::queue makes both when they do not exist",
        (
            Connect(), subscribe("fq.address::fq.queue", headers=ANYCAST), Counts("fq.queue", 0, consumers=1),
            anycast("fq.address", "m"), messages("m"),
        ),
    ),
    Scenario(
        "fqqn_creates_by_send",
        "SEND to address::queue makes both, and the message waits there",
        (Connect(), anycast("fs.address::fs.queue", "m"), Counts("fs.queue", 1)),
    ),
    Scenario(
        "fqqn_no_queue",
        "address:: without a queue is refused",
        (Connect("c", "1.1"), unnamed(subscribe("fq.empty::"))),
        departures=("error-receipt",),
    ),
    Scenario(
        "fqqn_no_address",
        "::queue without an address, where no such queue exists",
        (
            Connect("c", "1.1"),
            Either(
                ours=(subscribe("::alone", headers=ANYCAST), anycast("alone", "m"), messages("m")),
                artemis=(Refused(subscribe("::alone", headers=ANYCAST), closes=False, has_receipt=False),),
            ),
        ),
        departures=("fqqn-no-address",),
    ),
    Scenario(
        "fqqn_filter",
        "address::queue does not go round the queue's filter",
        (
            Connect(), send("fqf::fqf.queue", "m"), Counts("fqf.queue", 0),
            Either(ours=(Routed("fqf", 0, 1),), artemis=(Routed("fqf", 1, 0),)),
        ),
        addresses=(xml.address("fqf", multicast=(xml.queue("fqf.queue", filter="colour = 'red'"),)),),
        departures=("disabled-count",),
    ),
    Scenario(
        "fqqn_wrong_address",
        "address::queue with a queue of another address",
        (
            Connect("c", "1.1"),
            Either(
                ours=(Refused(subscribe("fq.one::fq.two.queue", headers=ANYCAST), closes=False),),
                artemis=(subscribe("fq.one::fq.two.queue", headers=ANYCAST), Counts("fq.two.queue", consumers=1)),
            ),
        ),
        addresses=(xml.address("fq.one", anycast=()), xml.address("fq.two", anycast=(xml.queue("fq.two.queue"),))),
        departures=("fqqn-other-address",),
    ),
)  # fmt: skip

SCENARIOS: tuple[Scenario, ...] = (*ROUTING, *CREATION, *QUALIFIED)
