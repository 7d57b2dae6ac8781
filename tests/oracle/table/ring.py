"""Ring queues: what a full ring gives up, and when (the 26 scenarios of the ring, but for the one of a restart)."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Connect,
    Counts,
    Disconnect,
    Drop,
    Either,
    ManySenders,
    PassTime,
    Pause,
    Refused,
    Resize,
    Resume,
    Step,
    abort,
    ack,
    anycast,
    begin,
    commit,
    messages,
    subscribe,
    unsubscribe,
)
from tests.oracle.values import In

ONE_BY_ONE = 0


def ring(
    number: str,
    why: str,
    *steps: Step,
    size: int = 3,
    departures: tuple[str, ...] = (),
    also: str = "",
    more: str = "",
    scans: bool = False,
    **attributes: object,
) -> Scenario:
    """A scenario on one ring with two clients, ``c`` to send and ``d`` to read."""
    name = f"ring.{number}"
    return Scenario(
        f"ring_{number}",
        why,
        (Connect("c"), Connect("d"), *steps),
        addresses=(xml.anycast(name, ring_size=size, **attributes), also),
        settings=(more,) if more else (),
        departures=departures,
        scans=scans,
    )


def _read(name: str, *bodies: str, who: str = "d") -> tuple[Step, ...]:
    """A new consumer gets these, and nothing is left."""
    return (subscribe(name, who=who, id="reader"), messages(*bodies, who=who), ack(*bodies, who=who), Counts(name, 0))


def _deliver(name: str, bodies: str) -> tuple[Step, ...]:
    """One message after the other, each in delivery before the next is sent."""
    counted = enumerate(bodies, 1)
    return tuple(step for count, body in counted for step in (anycast(name, body), Counts(name, count, count)))


SCENARIOS: tuple[Scenario, ...] = (
    ring(
        "01",
        "a full ring gives up its oldest message for each new one",
        anycast("ring.01", "A"), Counts("ring.01", 1, 0, 0, 0),
        anycast("ring.01", "B", "C"), Counts("ring.01", 3, 0, 0, 0),
        anycast("ring.01", "D"), Counts("ring.01", 3, 0, 0, 1),
        anycast("ring.01", "E"), Counts("ring.01", 3, 0, 0, 2),
        *_read("ring.01", "C", "D", "E"),
        Counts("ring.01", 0, 0, 0, 2, added=5, acknowledged=3, killed=0, expired=0),
    ),
    ring(
        "02",
        "messages in delivery do not count; what comes back is trimmed, the oldest first",
        subscribe("ring.02", who="d"),
        *_deliver("ring.02", "ABCD"), Counts("ring.02", 4, 4, 0, 0),
        unsubscribe(who="d"), Counts("ring.02", 3, 0, 0, 1),
        messages("A", "B", "C", "D", who="d"),
        *_read("ring.02", "B", "C", "D"),
    ),
    ring(
        "03",
        "both messages of a ring of one come back: the newer one stays",
        subscribe("ring.03", who="d"),
        *_deliver("ring.03", "AB"), Counts("ring.03", 2, 2, 0, 0),
        unsubscribe(who="d"), Counts("ring.03", 1, 0, 0, 1),
        messages("A", "B", who="d"),
        *_read("ring.03", "B"), Counts("ring.03", 0, acknowledged=1),
        size=1,
    ),
    ring(
        "04",
        "the message in delivery is safe while ready ones go; when it comes back it finds the ring full of newer ones",
        subscribe("ring.04", who="d", window=ONE_BY_ONE),
        anycast("ring.04", "A"), Counts("ring.04", 1, 1, 0, 0),
        anycast("ring.04", "B", "C", "D"), Counts("ring.04", 4, 1, 0, 0),
        anycast("ring.04", "E"), Counts("ring.04", 4, 1, 0, 1),
        unsubscribe(who="d"), Counts("ring.04", 3, 0, 0, 2),
        messages("A", who="d"),
        *_read("ring.04", "C", "D", "E"),
    ),
    ring(
        "05",
        "an acknowledgement makes room; then the ring fills again behind the next message in delivery",
        subscribe("ring.05", who="d", window=ONE_BY_ONE),
        anycast("ring.05", "A"), Counts("ring.05", 1, 1, 0, 0),
        anycast("ring.05", "B", "C", "D", "E"), Counts("ring.05", 4, 1, 0, 1),
        messages("A", who="d"), ack("A", who="d"), Counts("ring.05", 3, 1, 0, 1),
        anycast("ring.05", "F"), Counts("ring.05", 4, 1, 0, 1),
        anycast("ring.05", "G"), Counts("ring.05", 4, 1, 0, 2),
        messages("C", who="d"), unsubscribe(who="d"), Counts("ring.05", 3, 0, 0, 3),
        *_read("ring.05", "E", "F", "G"),
    ),
    ring(
        "06",
        "what was acknowledged in the middle leaves room for all others to come back",
        subscribe("ring.06", who="d"),
        *_deliver("ring.06", "ABCD"), Counts("ring.06", 4, 4, 0, 0),
        messages("A", "B", "C", "D", who="d"), ack("B", who="d"), Counts("ring.06", 3, 3, 0, 0),
        unsubscribe(who="d"), Counts("ring.06", 3, 0, 0, 0),
        *_read("ring.06", "A", "C", "D"),
    ),
    ring(
        "07",
        "five come back in their old order, not reversed",
        subscribe("ring.07", who="d"),
        *_deliver("ring.07", "ABCDE"), Counts("ring.07", 5, 5, 0, 0),
        unsubscribe(who="d"), Counts("ring.07", 3, 0, 0, 2),
        messages("A", "B", "C", "D", "E", who="d"),
        *_read("ring.07", "C", "D", "E"),
    ),
    ring(
        "08",
        "messages that went from one consumer to another come back: which of them the ring gives up",
        subscribe("ring.08", who="c", id="1"), subscribe("ring.08", who="d", id="2"),
        Counts("ring.08", 0, consumers=2),
        *_deliver("ring.08", "ABCD"), messages("A", "C", who="c"), messages("B", "D", who="d"),
        unsubscribe("1", who="c"), Counts("ring.08", 4, 4, 0, 0), messages("A", "C", who="d"),
        unsubscribe("2", who="d"), Counts("ring.08", 3, 0, 0, 1),
        Either(ours=_read("ring.08", "B", "C", "D"), artemis=_read("ring.08", "A", "C", "D")),
        departures=("ring-return-order",),
    ),
    ring(
        "09",
        "a scheduled message does not count, and finds no place when it is due and the ring is full",
        anycast("ring.09", "A", headers={"AMQ_SCHEDULED_DELAY": "400"}), Counts("ring.09", 1, 0, 1, 0),
        anycast("ring.09", "B"), Counts("ring.09", 2, 0, 1), anycast("ring.09", "C", "D"),
        Counts("ring.09", 4, 0, 1, 0),
        Counts("ring.09", 3, 0, 0, 1),
        *_read("ring.09", "B", "C", "D"),
    ),
    ring(
        "10",
        "a message that falls due goes to the head",
        anycast("ring.10", "A", headers={"AMQ_SCHEDULED_DELAY": "250"}), anycast("ring.10", "B"),
        Counts("ring.10", 2, 0, 1, 0), Counts("ring.10", 2, 0, 0, 0),
        *_read("ring.10", "A", "B"),
    ),
    ring(
        "11",
        "of two that fall due one after the other on a ring of one, the later finds it full",
        anycast("ring.11", "first", headers={"AMQ_SCHEDULED_DELAY": "300"}),
        anycast("ring.11", "second", headers={"AMQ_SCHEDULED_DELAY": "700"}),
        Counts("ring.11", 2, 0, 2, 0), Counts("ring.11", 2, 0, 1, 0), Counts("ring.11", 1, 0, 0, 1),
        *_read("ring.11", "first"),
        size=1,
    ),
    ring(
        "12",
        "five that fall due at the same moment: the last three stay, in their order",
        anycast("ring.12", "1", "2", "3", "4", "5", headers={"AMQ_SCHEDULED_TIME": In(400)}),
        Counts("ring.12", 5, 0, 5, 0), Counts("ring.12", 3, 0, 0, 2),
        *_read("ring.12", "3", "4", "5"),
    ),
    ring(
        "13",
        "a message that falls due before a waiting consumer is delivered, whatever the size of the ring",
        subscribe("ring.13", who="d"),
        *_deliver("ring.13", "ABC"),
        anycast("ring.13", "S", headers={"AMQ_SCHEDULED_DELAY": "250"}), Counts("ring.13", 4, 3, 1, 0),
        Counts("ring.13", 4, 4, 0, 0), messages("A", "B", "C", "S", who="d"),
    ),
    ring(
        "14_one",
        "a ring of one and two priorities: which one stays",
        anycast("ring.14_one", "A"), anycast("ring.14_one", "B", headers={"priority": "9"}),
        Counts("ring.14_one", 1, 0, 0, 1),
        Either(ours=_read("ring.14_one", "B"), artemis=_read("ring.14_one", "A")),
        size=1,
        departures=("ring-least",),
    ),
    ring(
        "14_three",
        "a full ring with one urgent message: what goes",
        anycast("ring.14_three", "A", headers={"priority": "9"}), anycast("ring.14_three", "B", "C", "D"),
        Counts("ring.14_three", 3, 0, 0, 1),
        Either(ours=_read("ring.14_three", "A", "C", "D"), artemis=_read("ring.14_three", "B", "C", "D")),
        departures=("ring-least",),
    ),
    ring(
        "15_unseen",
        "an expired message that nobody has noticed is given up as replaced, not as expired",
        anycast("ring.15_unseen", "A", headers={"expires": In(30)}), anycast("ring.15_unseen", "B", "C"),
        Counts("ring.15_unseen", 3, 0, 0, 0), PassTime(60),
        anycast("ring.15_unseen", "D"), Counts("ring.15_unseen", 3, 0, 0, 1, expired=0),
        *_read("ring.15_unseen", "B", "C", "D"),
    ),
    ring(
        "15_seen",
        "an expired message that the scan has found makes room",
        anycast("ring.15_seen", "A", headers={"expires": In(150)}), anycast("ring.15_seen", "B", "C"),
        Counts("ring.15_seen", 2, 0, 0, 0, expired=1),
        anycast("ring.15_seen", "D"), Counts("ring.15_seen", 3, 0, 0, 0, expired=1),
        scans=True,
    ),
    ring(
        "16_lost",
        "a lost connection with one attempt allowed: all go to the dead letters, none to the ring",
        subscribe("ring.16_lost", who="d"), *_deliver("ring.16_lost", "ABCD"),
        messages("A", "B", "C", "D", who="d"),
        Drop("d"),
        Either(
            ours=(Counts("ring.16_lost", 0, 0, 0, 0, killed=4), Counts("ring.16_lost.dead", 4)),
            artemis=(Counts("ring.16_lost", delivering=0, scheduled=0, consumers=0),),
        ),
        also=xml.anycast("ring.16_lost.dead"),
        more=xml.setting("ring.16_lost", dead_letter_address="ring.16_lost.dead", max_delivery_attempts=1),
        departures=("lost-connection",),
    ),
    ring(
        "16_disconnect",
        "DISCONNECT with one attempt allowed",
        subscribe("ring.16_disconnect", who="d"), *_deliver("ring.16_disconnect", "ABCD"),
        messages("A", "B", "C", "D", who="d"),
        Disconnect("d"),
        Either(
            ours=(Counts("ring.16_disconnect", 3, 0, 0, 1, killed=0),),
            artemis=(Counts("ring.16_disconnect", 3, 0, 0, 0, killed=1),),
        ),
        Connect("d"), *_read("ring.16_disconnect", "B", "C", "D"),
        more=xml.setting("ring.16_disconnect", dead_letter_address="ring.16_disconnect.dead", max_delivery_attempts=1),
        departures=("disconnect-attempt",),
    ),
    ring(
        "16_unsubscribe",
        "UNSUBSCRIBE with one attempt allowed: no attempt is counted, and the ring trims",
        subscribe("ring.16_unsubscribe", who="d"), *_deliver("ring.16_unsubscribe", "ABCD"),
        messages("A", "B", "C", "D", who="d"),
        unsubscribe(who="d"), Counts("ring.16_unsubscribe", 3, 0, 0, 1, killed=0),
        more=xml.setting(
            "ring.16_unsubscribe", dead_letter_address="ring.16_unsubscribe.dead", max_delivery_attempts=1
        ),
    ),
    ring(
        "17",
        "a ring made smaller purges nothing; it only stops growing",
        anycast("ring.17", *"0123456789"), Counts("ring.17", 10, replaced=0),
        Resize("ring.17", 3), Counts("ring.17", 10, replaced=0),
        anycast("ring.17", "a"), Counts("ring.17", 10, replaced=1),
        subscribe("ring.17", who="d", window=ONE_BY_ONE),
        *(step for body in "12345678" for step in (messages(body, who="d"), ack(body, who="d"))),
        messages("9", who="d"), unsubscribe(who="d"), Counts("ring.17", 2, 0, 0, 1, acknowledged=8),
        anycast("ring.17", "b"), Counts("ring.17", 3, replaced=1),
        anycast("ring.17", "c"), Counts("ring.17", 3, replaced=2),
        Resize("ring.17", 5), anycast("ring.17", "d", "e"), Counts("ring.17", 5, replaced=2),
        *_read("ring.17", "a", "b", "c", "d", "e"),
        size=10,
    ),
    ring(
        "18",
        "a transaction's messages meet the ring at COMMIT; after ABORT none does",
        begin(), *(anycast("ring.18", body, headers={"transaction": "t"}) for body in "ABCDE"),
        Counts("ring.18", 0, 0, 0, 0),
        commit(), Counts("ring.18", 3, 0, 0, 2),
        begin(), anycast("ring.18", "F", headers={"transaction": "t"}), abort(), Counts("ring.18", 3, 0, 0, 2),
        *_read("ring.18", "C", "D", "E"),
    ),
    ring(
        "20",
        "a paused queue is a ring all the same",
        Pause("ring.20"), subscribe("ring.20", who="d"),
        anycast("ring.20", *"ABCDE"), Counts("ring.20", 3, 0, 0, 2),
        Resume("ring.20"), messages("C", "D", "E", who="d"), Counts("ring.20", 3, 3, 0, 2),
    ),
    Scenario(
        "ring_21",
        "two rings on one multicast address do not know each other",
        (
            Connect(),
            anycast("ring.21", "A", "B", "C", headers={"destination-type": "MULTICAST"}),
            Counts("ring.21.one", 1, 0, 0, 2), Counts("ring.21.three", 3, 0, 0, 0),
        ),
        addresses=(
            xml.address(
                "ring.21",
                multicast=(xml.queue("ring.21.one", ring_size=1), xml.queue("ring.21.three", ring_size=3)),
            ),
        ),
    ),
    ring(
        "22",
        "reading a ring that keeps its messages takes nothing from it, and acknowledges nothing",
        anycast("ring.22", "0"), Counts("ring.22", 1), anycast("ring.22", "1"), Counts("ring.22", 1, replaced=1),
        subscribe("ring.22", who="d"), messages("1", who="d"), ack("1", who="d"),
        Counts("ring.22", 1, 0, 0, 1, acknowledged=0), unsubscribe(who="d"), Counts("ring.22", 1, 0, consumers=0),
        anycast("ring.22", "2"), Counts("ring.22", 1, 0, 0, 2),
        subscribe("ring.22", who="d"), messages("2", who="d"), unsubscribe(who="d"), Counts("ring.22", 1, 0),
        size=1, non_destructive=True,
    ),
    ring(
        "23",
        "many senders at once leave exactly a full ring",
        ManySenders("ring.23", senders=25, each=25), Counts("ring.23", 25, 0, 0, 600, added=625),
        size=25,
    ),
    ring(
        "24",
        "a ring of none keeps nothing",
        anycast("ring.24", "A", "B"), Counts("ring.24", 0, 0, 0, 2, added=2),
        size=0,
    ),
    ring(
        "24_consumer",
        "a ring of none keeps nothing, whoever waits for messages",
        subscribe("ring.24_consumer", who="d"), anycast("ring.24_consumer", "A", "B"),
        Counts("ring.24_consumer", 0, 0, 0, 2),
        size=0,
    ),
    ring(
        "04_burst",
        "more messages at once than the ring holds, before a consumer with room",
        subscribe("ring.04_burst", who="d"), Counts("ring.04_burst", 0, consumers=1),
        begin(), *(anycast("ring.04_burst", body, headers={"transaction": "t"}) for body in "ABCDE"), commit(),
        Either(
            ours=(messages(*"ABCDE", who="d"), Counts("ring.04_burst", 5, 5, 0, 0)),
            artemis=(Counts("ring.04_burst", scheduled=0, added=5),),
        ),
        departures=("ring-consumer-first",),
    ),
    ring(
        "25",
        "without consumers a purging queue takes nothing; when the last leaves, the ring trims and the rest is killed",
        anycast("ring.25", "X"), Counts("ring.25", 0, 0, 0, 0, added=0),
        subscribe("ring.25", who="d"), *_deliver("ring.25", "ABCD"),
        unsubscribe(who="d"), Counts("ring.25", 0, 0, 0, 1, killed=3),
        purge_on_no_consumers=True,
    ),
    ring(
        "26_drop",
        "the address' own limit acts before the ring: it drops, and the receipt comes all the same",
        anycast("ring.26_drop", "A", "B", "C"), Counts("ring.26_drop", 2, 0, 0, 0, added=2),
        *_read("ring.26_drop", "A", "B"),
        more=xml.setting("ring.26_drop", max_size_messages=2, address_full_policy="DROP"),
    ),
    ring(
        "26_fail",
        "the address' own limit acts before the ring: it refuses",
        Connect("c", "1.1"),
        anycast("ring.26_fail", "A", "B"), Refused(anycast("ring.26_fail", "C"), closes=False),
        Counts("ring.26_fail", 2, 0, 0, 0, added=2),
        *_read("ring.26_fail", "A", "B"),
        anycast("ring.26_fail", "D"), Counts("ring.26_fail", 1),
        more=xml.setting("ring.26_fail", max_size_messages=2, address_full_policy="FAIL"),
    ),
    Scenario(
        "ring_default_size",
        "default-ring-size of the address-setting and queues declared without a size of their own",
        (
            Connect(), anycast("ring.default.declared", "A", "B", "C"), anycast("ring.default.made", "A", "B", "C"),
            Counts("ring.default.made", 2, replaced=1),
            Either(
                ours=(Counts("ring.default.declared", 2, replaced=1),),
                artemis=(Counts("ring.default.declared", 3, replaced=0),),
            ),
        ),
        addresses=(xml.anycast("ring.default.declared"),),
        settings=(xml.setting("ring.default.#", default_ring_size=2),),
        departures=("ring-default-size",),
    ),
)  # fmt: skip
