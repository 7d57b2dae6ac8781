"""What happens on the way through an address: diverts, duplicates, and limits that are reached."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    AddressExists,
    Answer,
    Connect,
    Counts,
    Either,
    Nothing,
    Raw,
    Refused,
    Routed,
    Silent,
    ack,
    anycast,
    begin,
    commit,
    messages,
    send,
    subscribe,
)
from tests.oracle.values import ABSENT, PRESENT, AfterSend, In

TO_MULTICAST = {"destination-type": "MULTICAST"}

DIVERTS: tuple[Scenario, ...] = (
    Scenario(
        "divert_copy",
        "a divert that is not exclusive copies",
        (
            Connect(), anycast("dv.a", "m"), Counts("dv.a", 1), Counts("dv.a.to", 1),
            subscribe("dv.a.to"),
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
            Counts("dv.c.to", 1), Counts("dv.c", 1), subscribe("dv.c.to"), messages("yes"),
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
        "divert_named_queue",
        "what is sent to one queue in full meets exclusive diverts only",
        (
            Connect(), anycast("dv.g::dv.g", "m"), Counts("dv.g", 1),
            Either(ours=(Counts("dv.g.copy", 0),), artemis=(Counts("dv.g.copy", 1),)),
            anycast("dv.g::dv.g", "x", headers={"colour": "red"}), Counts("dv.g", 1), Counts("dv.g.move", 1),
        ),
        addresses=(xml.anycast("dv.g"), xml.anycast("dv.g.copy"), xml.anycast("dv.g.move")),
        diverts=(
            xml.divert("dv_g_copy", "dv.g", "dv.g.copy"),
            xml.divert("dv_g_move", "dv.g", "dv.g.move", exclusive=True, filter="colour = 'red'"),
        ),
        departures=("full-name-diverts",),
    ),
    Scenario(
        "divert_strip",
        "a diverted copy has no routing type, unless the divert passes it on",
        (
            Connect(), send("/queue/dv.e", "m"), subscribe("dv.e.strip", id="1"),
            messages("m", headers={"destination-type": ABSENT}), subscribe("dv.e.pass", id="2"),
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
            Connect(), anycast("dw.a", "m"), Counts("dw.a.two", 1), subscribe("dw.a.two"),
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
            subscribe("dw.b.to"), messages("n", headers={"expires": AfterSend(60_000)}),
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
            Connect(), send("/queue/dw.d", "m"), subscribe("dw.d.to"),
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
            Counts("dup", 2, added=2), subscribe("dup"), messages("1", "3"),
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
        "duplicate_full",
        "a message that is sent again to a full address is confirmed",
        (
            Connect(), anycast("dup.full", "m", headers={"_AMQ_DUPL_ID": "1"}),
            anycast("dup.full", "m", headers={"_AMQ_DUPL_ID": "1"}), Counts("dup.full", 1, added=1),
        ),
        addresses=(xml.anycast("dup.full"),),
        settings=(xml.setting("dup.full", max_size_messages=1, address_full_policy="FAIL"),),
    ),
    Scenario(
        "duplicate_unrouted",
        "an id is remembered even if its message reached nobody",
        (
            Connect(), send("/topic/dup.topic", "1", headers={"_AMQ_DUPL_ID": "x"}), subscribe("/topic/dup.topic"),
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
            subscribe("full.drop"), messages(*"123"), ack("1"), Counts("full.drop", 2),
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
            subscribe("full.fail"), messages(*"123"), Refused(anycast("full.fail", "5"), closes=False),
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
                ours=(subscribe("full.block", who="d"), Counts("full.block", 2, 2), Silent("c")),
                artemis=(Counts("full.block", 3), subscribe("full.block", who="d")),
            ),
            messages("1", "2", who="d"), ack("1", who="d"), Answer("RECEIPT", {"receipt-id": "waits"}),
            messages("3", who="d"),
        ),
        addresses=(xml.anycast("full.block"),),
        settings=(xml.setting("full.block", max_size_messages=2, address_full_policy="BLOCK"),),
        departures=("block",),
    ),
)  # fmt: skip

SCENARIOS: tuple[Scenario, ...] = (*DIVERTS, *MORE_DIVERTS, *DUPLICATES, *FULL)
