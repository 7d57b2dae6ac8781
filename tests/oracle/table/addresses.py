"""Where messages go: routing types, names, creation on use, diverts, duplicates, and full addresses."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    AddressExists,
    Answer,
    Connect,
    Counts,
    Either,
    Exists,
    Nothing,
    Raw,
    Refused,
    Routed,
    Silent,
    Subscribe,
    ack,
    anycast,
    begin,
    commit,
    messages,
    send,
    unnamed,
    unsubscribe,
)
from tests.oracle.values import ABSENT, PRESENT, AfterSend, In

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
            Subscribe("six::six.a", id="a"), Subscribe("six::six.b", id="b"), messages("1"), Nothing(),
            Routed("six", 1),
        ),
        addresses=(FOUR_QUEUES.replace("four", "six"),),
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
            Connect("c"), Connect("d"), Subscribe("served::served.b", who="d"), Counts("served.b", consumers=1),
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
            Connect(), Subscribe("/queue/contradicted"), send("/queue/contradicted", "m", headers=TO_MULTICAST),
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
            Connect("c"), Connect("d"), Subscribe("/queue/prefixed", who="d"),
            send("/queue/prefixed", "m"), Counts("prefixed", 1, 1),
            messages("m", who="d", headers={"destination": "/queue/prefixed", "destination-type": "ANYCAST"}),
        ),
    ),
    Scenario(
        "prefix_of_sender",
        "consumers see the destination as the sender wrote it",
        (
            Connect("c"), Connect("d"), Subscribe("/queue/written", who="d"), anycast("written", "m"),
            messages("m", who="d", headers={"destination": "written"}),
        ),
    ),
    Scenario(
        "topic",
        "every subscriber of a multicast address gets a message, those that come later do not",
        (
            Connect("c"), Connect("d"), Connect("e"),
            Subscribe("/topic/news", who="c"), Subscribe("/topic/news", who="d"), send("/topic/news", "1", who="d"),
            messages("1", who="c"), messages("1", who="d"), Subscribe("/topic/news", who="e"), Nothing("e"),
            send("/topic/news", "2", who="d"), messages("2", who="e"), messages("2", who="c"),
        ),
    ),
    Scenario(
        "topic_twice",
        "two subscriptions of one connection each get their copy",
        (
            Connect(), Subscribe("/topic/twice", id="1"), Subscribe("/topic/twice", id="2"),
            send("/topic/twice", "m"), messages("m", "m"), Nothing(),
        ),
    ),
    Scenario(
        "wildcard_subscribe",
        "a subscription to a wildcard address gets what is sent to all addresses it matches",
        (
            Connect(), Subscribe("/topic/wild.*"), send("/topic/wild.a", "a"), send("/topic/wild.b", "b"),
            send("/topic/wild.b.c", "c"), messages("a", headers={"destination": "/topic/wild.a"}), messages("b"),
            Nothing(),
        ),
    ),
    Scenario(
        "wildcard_any_words",
        "# stands for any number of words, also none",
        (
            Connect(), Subscribe("/topic/deep.#"), send("/topic/deep", "0"), send("/topic/deep.a", "1"),
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
            Connect(), Subscribe("fresh.subscribed", headers=ANYCAST), Counts("fresh.subscribed", 0, consumers=1),
            unsubscribe(), Counts("fresh.subscribed", 0, consumers=0),
        ),
    ),
    Scenario(
        "default_types",
        "default-address-routing-type and default-queue-routing-type decide where nothing else does",
        (Connect(), send("typed.m", "m"), Counts("typed.m", 1), Subscribe("typed.m"), messages("m")),
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
        (Connect("c", "1.1"), unnamed(Subscribe("shut.unknown", headers=ANYCAST))),
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
        (Connect(), Subscribe("open.topic", headers=MULTICAST), send("open.topic", "m"), messages("m")),
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
                ours=(Subscribe("sole"), anycast("sole", "m"), messages("m"), Counts("sole.queue", 1, 1)),
                artemis=(Refused(Subscribe("sole"), closes=False, has_receipt=False),),
            ),
        ),
        addresses=(xml.address("sole", anycast=(xml.queue("sole.queue"),)),),
        departures=("sole-queue",),
    ),
    Scenario(
        "several_queues",
        "SUBSCRIBE to an anycast address with several queues, none of which has its name",
        (Connect("c", "1.1"), unnamed(Subscribe("several"))),
        addresses=(xml.address("several", anycast=(xml.queue("several.a"), xml.queue("several.b"))),),
        departures=("error-receipt",),
    ),
    Scenario(
        "dual_multicast",
        "SUBSCRIBE with subscription-type:MULTICAST to an address with both routing types",
        (
            Connect("c"), Connect("d"), Subscribe("dual", who="d", headers=MULTICAST),
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
            Connect(), Subscribe("dual.plain"), anycast("dual.plain", "a"), messages("a"),
            send("dual.plain", "m", headers=TO_MULTICAST), Nothing(), Counts("dual.plain.other", 1),
        ),
        addresses=(
            xml.address("dual.plain", anycast=(xml.queue("dual.plain"),), multicast=(xml.queue("dual.plain.other"),)),
        ),
    ),
)  # fmt: skip

QUALIFIED: tuple[Scenario, ...] = (
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
            Connect(), Subscribe("read::read.c"), send("read", "m", headers=TO_MULTICAST), messages("m"), ack("m"),
            Counts("read.c", 0, acknowledged=1), Counts("read.d", 1),
        ),
        addresses=(FOUR_QUEUES.replace("four", "read"),),
    ),
    Scenario(
        "fqqn_creates",
        "address::queue makes both when they do not exist",
        (
            Connect(), Subscribe("fq.address::fq.queue", headers=ANYCAST), Counts("fq.queue", 0, consumers=1),
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
        (Connect("c", "1.1"), unnamed(Subscribe("fq.empty::"))),
        departures=("error-receipt",),
    ),
    Scenario(
        "fqqn_no_address",
        "::queue without an address, where no such queue exists",
        (
            Connect("c", "1.1"),
            Either(
                ours=(Subscribe("::alone", headers=ANYCAST), anycast("alone", "m"), messages("m")),
                artemis=(Refused(Subscribe("::alone", headers=ANYCAST), closes=False, has_receipt=False),),
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
                ours=(Refused(Subscribe("fq.one::fq.two.queue", headers=ANYCAST), closes=False),),
                artemis=(Subscribe("fq.one::fq.two.queue", headers=ANYCAST), Counts("fq.two.queue", consumers=1)),
            ),
        ),
        addresses=(xml.address("fq.one", anycast=()), xml.address("fq.two", anycast=(xml.queue("fq.two.queue"),))),
        departures=("fqqn-other-address",),
    ),
)  # fmt: skip

DIVERTS: tuple[Scenario, ...] = (
    Scenario(
        "divert_copy",
        "a divert that is not exclusive copies",
        (
            Connect(), anycast("dv.a", "m"), Counts("dv.a", 1), Counts("dv.a.to", 1),
            Subscribe("dv.a.to"),
            messages(
                "m",
                headers={"_AMQ_ORIG_ADDRESS": "dv.a", "_AMQ_ORIG_QUEUE": "dv_a", "_AMQ_ORIG_MESSAGE_ID": PRESENT},
            ),
        ),
        addresses=(xml.anycast("dv.a"), xml.anycast("dv.a.to")),
        diverts=(xml.divert("dv_a", "dv.a", "dv.a.to", routing_name="dv_a"),),
    ),
    Scenario(
        "divert_move",
        "an exclusive divert moves",
        (Connect(), anycast("dv.b", "m"), Counts("dv.b.to", 1), Counts("dv.b", 0)),
        addresses=(xml.anycast("dv.b"), xml.anycast("dv.b.to")),
        diverts=(xml.divert("dv_b", "dv.b", "dv.b.to", exclusive=True),),
    ),
    Scenario(
        "divert_filter",
        "a divert takes what its filter lets through",
        (
            Connect(), anycast("dv.c", "no"), anycast("dv.c", "yes", headers={"colour": "red"}),
            Counts("dv.c.to", 1), Counts("dv.c", 1), Subscribe("dv.c.to"), messages("yes"),
        ),
        addresses=(xml.anycast("dv.c"), xml.anycast("dv.c.to")),
        diverts=(xml.divert("dv_c", "dv.c", "dv.c.to", exclusive=True, filter="colour = 'red'"),),
    ),
    Scenario(
        "divert_both",
        "where an exclusive divert matches, no other one gets the message",
        (Connect(), anycast("dv.d", "m"), Counts("dv.d.move", 1), Counts("dv.d.copy", 0), Counts("dv.d", 0)),
        addresses=(xml.anycast("dv.d"), xml.anycast("dv.d.copy"), xml.anycast("dv.d.move")),
        diverts=(
            xml.divert("dv_d_copy", "dv.d", "dv.d.copy"),
            xml.divert("dv_d_move", "dv.d", "dv.d.move", exclusive=True),
        ),
    ),
    Scenario(
        "divert_strip",
        "a diverted copy has no routing type, unless the divert passes it on",
        (
            Connect(), send("/queue/dv.e", "m"), Subscribe("dv.e.strip", id="1"),
            messages("m", headers={"destination-type": ABSENT}), Subscribe("dv.e.pass", id="2"),
            messages("m", headers={"destination-type": "ANYCAST"}),
        ),
        addresses=(xml.anycast("dv.e"), xml.anycast("dv.e.strip"), xml.anycast("dv.e.pass")),
        diverts=(
            xml.divert("dv_e_strip", "dv.e", "dv.e.strip"),
            xml.divert("dv_e_pass", "dv.e", "dv.e.pass", routing_type="PASS"),
        ),
    ),
    Scenario(
        "divert_fan_out",
        "a divert with several targets copies to each",
        (Connect(), anycast("dv.f", "m"), Counts("dv.f.one", 1), Counts("dv.f.two", 1), Counts("dv.f", 1)),
        addresses=(xml.anycast("dv.f"), xml.anycast("dv.f.one"), xml.anycast("dv.f.two")),
        diverts=(xml.divert("dv_f", "dv.f", "dv.f.one, dv.f.two"),),
    ),
)  # fmt: skip

MORE_DIVERTS: tuple[Scenario, ...] = (
    Scenario(
        "divert_chain",
        "a diverted copy can be diverted again; its headers tell of the last hop",
        (
            Connect(), anycast("dw.a", "m"), Counts("dw.a.two", 1), Subscribe("dw.a.two"),
            messages("m", headers={"_AMQ_ORIG_ADDRESS": "dw.a.one", "_AMQ_ORIG_QUEUE": "dw_a_one"}),
        ),
        addresses=(xml.anycast("dw.a"), xml.anycast("dw.a.one"), xml.anycast("dw.a.two")),
        diverts=(xml.divert("dw_a", "dw.a", "dw.a.one"), xml.divert("dw_a_one", "dw.a.one", "dw.a.two")),
    ),
    Scenario(
        "divert_times",
        "a diverted copy keeps its schedule and its expiry, and gets those of its new address",
        (
            Connect(), anycast("dw.b", "m", headers={"AMQ_SCHEDULED_DELAY": "60000"}),
            Counts("dw.b", 1, 0, 1), Counts("dw.b.to", 1, 0, 1),
            anycast("dw.b", "n", headers={"expires": In(60_000)}),
            Subscribe("dw.b.to"), messages("n", headers={"expires": AfterSend(60_000)}),
            anycast("dw.b", "o"), messages("o", headers={"expires": AfterSend(5000)}),
        ),
        addresses=(xml.anycast("dw.b"), xml.anycast("dw.b.to")),
        settings=(xml.setting("dw.b.to", expiry_delay=5000),),
        diverts=(xml.divert("dw_b", "dw.b", "dw.b.to"),),
    ),
    Scenario(
        "divert_counts",
        "both addresses count a diverted message as routed; a duplicate is not diverted, a transaction at COMMIT",
        (
            Connect(), anycast("dw.c", "m", headers={"_AMQ_DUPL_ID": "x"}),
            anycast("dw.c", "m", headers={"_AMQ_DUPL_ID": "x"}), Counts("dw.c.to", 1), Routed("dw.c", 1),
            Routed("dw.c.to", 1), begin(), anycast("dw.c", "n", headers={"transaction": "t"}), Counts("dw.c.to", 1),
            commit(), Counts("dw.c.to", 2),
        ),
        addresses=(xml.anycast("dw.c"), xml.anycast("dw.c.to")),
        diverts=(xml.divert("dw_c", "dw.c", "dw.c.to", exclusive=True),),
    ),
    Scenario(
        "divert_creates",
        "a divert with a routing type makes the address that it leads to",
        (Connect(), anycast("dw.e", "m"), Counts("dw.e", 0), AddressExists("dw.e.to"), Counts("dw.e.to", 1)),
        addresses=(xml.anycast("dw.e"),),
        diverts=(xml.divert("dw_e", "dw.e", "dw.e.to", exclusive=True, routing_type="ANYCAST"),),
    ),
    Scenario(
        "divert_to_full",
        "a divert to a full address with FAIL",
        (
            Connect("c", "1.1"), anycast("dw.f", "1"),
            Either(
                ours=(anycast("dw.f", "2"), Counts("dw.f.to", 2)),
                artemis=(Refused(anycast("dw.f", "2"), closes=False), Counts("dw.f.to", 1)),
            ),
        ),
        addresses=(xml.anycast("dw.f"), xml.anycast("dw.f.to")),
        settings=(xml.setting("dw.f.to", max_size_messages=1, address_full_policy="FAIL"),),
        diverts=(xml.divert("dw_f", "dw.f", "dw.f.to"),),
        departures=("copies-to-full",),
    ),
    Scenario(
        "divert_destination",
        "the destination of a diverted copy, when the sender wrote a prefix",
        (
            Connect(), send("/queue/dw.d", "m"), Subscribe("dw.d.to"),
            Either(
                ours=(messages("m", headers={"destination": "dw.d.to"}),),
                artemis=(messages("m", headers={"destination": "/queue/dw.d.to"}),),
            ),
        ),
        addresses=(xml.anycast("dw.d"), xml.anycast("dw.d.to")),
        diverts=(xml.divert("dw_d", "dw.d", "dw.d.to"),),
        departures=("forwarded-destination",),
    ),
)  # fmt: skip

DUPLICATES: tuple[Scenario, ...] = (
    Scenario(
        "duplicate",
        "the second message with a duplicate id is confirmed and dropped",
        (
            Connect(), anycast("dup", "1", headers={"_AMQ_DUPL_ID": "x"}),
            anycast("dup", "2", headers={"_AMQ_DUPL_ID": "x"}), anycast("dup", "3", headers={"_AMQ_DUPL_ID": "y"}),
            Counts("dup", 2, added=2), Subscribe("dup"), messages("1", "3"),
        ),
        addresses=(xml.anycast("dup"),),
    ),
    Scenario(
        "duplicate_forgotten",
        "id-cache-size bounds how many ids an address remembers",
        (
            Connect(), *(anycast("dup.cache", body, headers={"_AMQ_DUPL_ID": body}) for body in "12341"),
            Counts("dup.cache", 5),
        ),
        addresses=(xml.anycast("dup.cache"),),
        settings=(xml.setting("dup.cache", id_cache_size=3),),
    ),
    Scenario(
        "duplicate_unrouted",
        "an id is remembered even if its message reached nobody",
        (
            Connect(), send("/topic/dup.topic", "1", headers={"_AMQ_DUPL_ID": "x"}), Subscribe("/topic/dup.topic"),
            send("/topic/dup.topic", "2", headers={"_AMQ_DUPL_ID": "x"}), Nothing(),
        ),
    ),
    Scenario(
        "duplicate_in_transaction",
        "a duplicate id in a transaction makes COMMIT fail, and nothing of it arrives",
        (
            Connect("c", "1.1"), anycast("dup.tx", "1", headers={"_AMQ_DUPL_ID": "x"}), begin(),
            anycast("dup.tx", "2", headers={"transaction": "t"}),
            anycast("dup.tx", "3", headers={"_AMQ_DUPL_ID": "x", "transaction": "t"}),
            Refused(commit(), closes=False), Counts("dup.tx", 1, added=1),
        ),
        addresses=(xml.anycast("dup.tx"),),
    ),
)  # fmt: skip

FULL: tuple[Scenario, ...] = (
    Scenario(
        "full_drop",
        "a full address with DROP keeps what it has; what is dropped is confirmed",
        (
            Connect(), anycast("full.drop", *"12345"), Counts("full.drop", 3, added=3),
            Subscribe("full.drop"), messages(*"123"), ack("1"), Counts("full.drop", 2),
            anycast("full.drop", "6"), messages("6"),
        ),
        addresses=(xml.anycast("full.drop"),),
        settings=(xml.setting("full.drop", max_size_messages=3, address_full_policy="DROP"),),
    ),
    Scenario(
        "full_counts_messages",
        "a limit counts messages of the address, scheduled ones too, and each once however many queues have it",
        (
            Connect(), send("full.count", "1", "2", "3", headers=TO_MULTICAST), Counts("full.count.a", 2),
            Counts("full.count.b", 2), Routed("full.count", 3),
            anycast("full.later", *"123", headers={"AMQ_SCHEDULED_DELAY": "60000"}), Counts("full.later", 2, 0, 2),
        ),
        addresses=(
            xml.address("full.count", multicast=(xml.queue("full.count.a"), xml.queue("full.count.b"))),
            xml.anycast("full.later"),
        ),
        settings=(
            xml.setting("full.count", max_size_messages=2, address_full_policy="DROP"),
            xml.setting("full.later", max_size_messages=2, address_full_policy="DROP"),
        ),
    ),
    Scenario(
        "full_bytes",
        "max-size-bytes and messages of 5,000 bytes",
        (
            Connect(), anycast("full.bytes", *(("x" * 5000,) * 4)),
            Either(ours=(Counts("full.bytes", 2),), artemis=(Counts("full.bytes", 1),)),
        ),
        addresses=(xml.anycast("full.bytes"),),
        settings=(xml.setting("full.bytes", max_size_bytes="10K", address_full_policy="DROP"),),
        departures=("size-estimate",),
    ),
    Scenario(
        "full_fail",
        "a full address with FAIL refuses; what is in delivery still fills it",
        (
            Connect("c", "1.1"), anycast("full.fail", *"123"), Refused(anycast("full.fail", "4"), closes=False),
            Subscribe("full.fail"), messages(*"123"), Refused(anycast("full.fail", "5"), closes=False),
            ack("1"), Counts("full.fail", 2), anycast("full.fail", "6"), messages("6"),
        ),
        addresses=(xml.anycast("full.fail"),),
        settings=(xml.setting("full.fail", max_size_messages=3, address_full_policy="FAIL"),),
    ),
    Scenario(
        "full_fail_transaction",
        "a full address with FAIL makes COMMIT fail, and nothing of the transaction arrives",
        (
            Connect("c", "1.1"), anycast("full.tx", "1", "2"), begin(),
            anycast("full.tx", "3", headers={"transaction": "t"}),
            Either(
                ours=(anycast("full.tx", "4", headers={"transaction": "t"}),),
                artemis=(Refused(anycast("full.tx", "4", headers={"transaction": "t"}), closes=False),),
            ),
            Refused(commit(), closes=False), Counts("full.tx", 2, added=2),
        ),
        addresses=(xml.anycast("full.tx"),),
        settings=(xml.setting("full.tx", max_size_messages=3, address_full_policy="FAIL"),),
        departures=("fail-in-transaction",),
    ),
    Scenario(
        "full_block",
        "a full address with BLOCK makes its sender wait",
        (
            Connect("c"), Connect("d"), anycast("full.block", "1", "2"),
            Raw(b"SEND\ndestination:full.block\ndestination-type:ANYCAST\nreceipt:waits\n\n3\0"),
            Either(
                ours=(Subscribe("full.block", who="d"), Counts("full.block", 2, 2), Silent("c")),
                artemis=(Counts("full.block", 3), Subscribe("full.block", who="d")),
            ),
            messages("1", "2", who="d"), ack("1", who="d"), Answer("RECEIPT", {"receipt-id": "waits"}),
            messages("3", who="d"),
        ),
        addresses=(xml.anycast("full.block"),),
        settings=(xml.setting("full.block", max_size_messages=2, address_full_policy="BLOCK"),),
        departures=("block",),
    ),
)  # fmt: skip

SCENARIOS: tuple[Scenario, ...] = (*ROUTING, *CREATION, *QUALIFIED, *DIVERTS, *MORE_DIVERTS, *DUPLICATES, *FULL)
