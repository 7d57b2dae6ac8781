"""ACK, NACK, transactions, and what happens to messages that were never acknowledged."""

from __future__ import annotations

from tests.oracle import xml_parts as xml
from tests.oracle.scenario import Scenario
from tests.oracle.steps import (
    Connect,
    Counts,
    Disconnect,
    Drop,
    Either,
    Nothing,
    Refused,
    Request,
    Step,
    abort,
    ack,
    anycast,
    begin,
    commit,
    messages,
    nack,
    subscribe,
    unsubscribe,
)
from tests.oracle.values import ABSENT, PRESENT

IN_T = {"transaction": "t"}


def _given(name: str, *bodies: str, version: str = "1.2", mode: str = "client-individual") -> tuple[Step, ...]:
    """Messages delivered to ``d`` and not acknowledged."""
    return (
        Connect("c", version), Connect("d", version), subscribe(name, who="d", ack=mode), anycast(name, *bodies),
        messages(*bodies, who="d"), Counts(name, len(bodies), len(bodies)),
    )  # fmt: skip


def on(name: str, why: str, *steps: Step, departures: tuple[str, ...] = (), more: str = "") -> Scenario:
    """A scenario on one anycast queue that is called like it."""
    settings = (more,) if more else ()
    return Scenario(name, why, steps, addresses=(xml.anycast(name),), settings=settings, departures=departures)


ACKS: tuple[Scenario, ...] = (
    on(
        "ack_auto", "ack:auto settles a message when it is sent",
        Connect("c"), Connect("d"), subscribe("ack_auto", who="d", ack="auto"), anycast("ack_auto", "m"),
        messages("m", who="d", headers={"ack": ABSENT}), Counts("ack_auto", 0, 0, acknowledged=1),
    ),
    on(
        "ack_default", "without an ack header the mode is auto",
        Connect("c"), Connect("d"), subscribe("ack_default", who="d", ack=None, window=None),
        anycast("ack_default", "m"),
        messages("m", who="d"), Counts("ack_default", 0, 0, acknowledged=1),
    ),
    *(
        on(
            f"ack_client_{version}", f"ack:client settles all up to the message, STOMP {version}",
            *_given(f"ack_client_{version}", "1", "2", "3", version=version, mode="client"), ack("2", who="d"),
            Counts(f"ack_client_{version}", 1, 1, acknowledged=2), ack("3", who="d"),
            Counts(f"ack_client_{version}", 0, 0, acknowledged=3),
        )
        for version in ("1.0", "1.1", "1.2")
    ),
    on(
        "ack_client_other", "ack:client settles nothing of another subscription",
        Connect("c"), Connect("d"), subscribe("ack_client_other", who="d", id="1", ack="client"),
        subscribe("ack_client_other", who="d", id="2", ack="client"), Counts("ack_client_other", consumers=2),
        anycast("ack_client_other", "1"), Counts("ack_client_other", 1, 1), anycast("ack_client_other", "2"),
        Counts("ack_client_other", 2, 2), messages("1", "2", who="d", in_order=False), ack("2", who="d"),
        Counts("ack_client_other", 1, 1, acknowledged=1),
    ),
    *(
        on(
            f"ack_individual_{version}", f"ack:client-individual settles the one message, STOMP {version}",
            *_given(f"ack_individual_{version}", "1", "2", "3", version=version), ack("2", who="d"),
            Counts(f"ack_individual_{version}", 2, 2, acknowledged=1), ack("1", "3", who="d"),
            Counts(f"ack_individual_{version}", 0, 0, acknowledged=3),
        )
        for version in ("1.1", "1.2")
    ),
    on(
        "ack_header", "in STOMP 1.2 a message to be acknowledged has an ack header",
        Connect("c"), Connect("d"), subscribe("ack_header", who="d"), anycast("ack_header", "m"),
        messages("m", who="d", headers={"ack": PRESENT, "message-id": PRESENT}),
    ),
    on(
        "ack_twice", "a second ACK of a message is refused",
        *_given("ack_twice", "m", version="1.1"), ack("m", who="d"), Refused(ack("m", who="d"), closes=False),
        Counts("ack_twice", 0, acknowledged=1),
    ),
    on(
        "ack_covered", "ACK of a message that an ACK of a later one covered is refused",
        *_given("ack_covered", "1", "2", "3", version="1.1", mode="client"), ack("3", who="d"),
        Refused(ack("1", who="d"), closes=False), Counts("ack_covered", 0, acknowledged=3),
    ),
    on(
        "ack_after_unsubscribe", "ACK after UNSUBSCRIBE is refused: the message is back",
        *_given("ack_after_unsubscribe", "m", version="1.1"), unsubscribe(who="d"),
        Refused(ack("m", who="d"), closes=False), Counts("ack_after_unsubscribe", 1, 0),
    ),
    on(
        "ack_unknown", "ACK of a message that was never sent is refused, and closes a 1.2 connection",
        Connect(), subscribe("ack_unknown"), Refused(Request("ACK", {"id": "nothing"}), closes=True),
    ),
    on(
        "ack_other_subscription", "ACK that names the wrong subscription is refused",
        *_given("ack_other_subscription", "m", version="1.1"),
        Refused(ack("m", who="d", headers={"subscription": "another"}), closes=False),
        Counts("ack_other_subscription", 1, 1),
        Either(
            ours=(ack("m", who="d"), Counts("ack_other_subscription", 0)),
            artemis=(Refused(ack("m", who="d"), closes=False),),
        ),
        departures=("ack-wrong-subscription",),
    ),
    on(
        "ack_without_id", "ACK without an id is refused",
        *_given("ack_without_id", "m"), Refused(Request("ACK", {}, "d"), closes=True),
    ),
    on(
        "ack_mode_unknown", "an ack mode that is none",
        Connect("c", "1.1"),
        Either(
            ours=(Refused(subscribe("ack_mode_unknown", ack="sometimes"), closes=False),),
            artemis=(subscribe("ack_mode_unknown", ack="sometimes"),),
        ),
        departures=("ack-mode",),
    ),
    on(
        "nack_10", "STOMP 1.0 has no NACK",
        *_given("nack_10", "m", version="1.0"),
        Either(
            ours=(Refused(nack("m", who="d"), closes=False), Counts("nack_10", 1, 1)),
            artemis=(Refused(nack("m", who="d"), closes=True, has_receipt=False), Counts("nack_10", 1, 0)),
        ),
        departures=("nack-of-10",),
    ),
    on(
        "nack_client", "NACK with ack:client is for all up to the message",
        *_given("nack_client", "1", "2", mode="client"), nack("2", who="d"),
        Either(
            ours=(messages("1", "2", who="d", headers={"redelivered": "true"}), Counts("nack_client", 2, 2)),
            artemis=(Nothing("d"), Counts("nack_client", 0, acknowledged=2)),
        ),
        departures=("nack",),
    ),
)  # fmt: skip

UNSETTLED: tuple[Scenario, ...] = (
    on(
        "back_lost", "a lost connection gives its messages back as redelivered",
        *_given("back_lost", "m"), Drop("d"), Counts("back_lost", 1, 0), subscribe("back_lost"),
        messages("m", headers={"redelivered": "true"}),
    ),
    on(
        "back_unsubscribe", "UNSUBSCRIBE gives its messages back",
        *_given("back_unsubscribe", "m"), unsubscribe(who="d"), Counts("back_unsubscribe", 1, 0),
        subscribe("back_unsubscribe"),
        Either(
            ours=(messages("m", headers={"redelivered": "true"}),),
            artemis=(messages("m", headers={"redelivered": "false"}),),
        ),
        departures=("redelivered-flag",),
    ),
    on(
        "back_disconnect", "DISCONNECT gives its messages back",
        *_given("back_disconnect", "1", "2"), Disconnect("d"), Counts("back_disconnect", 2, 0),
        subscribe("back_disconnect"),
        messages("1", headers={"redelivered": "true"}),
        Either(
            ours=(messages("2", headers={"redelivered": "true"}),),
            artemis=(messages("2", headers={"redelivered": "false"}),),
        ),
        departures=("redelivered-flag",),
    ),
    on(
        "back_error", "a connection that an ERROR ended gives its messages back",
        *_given("back_error", "m"), Refused(Request("ACK", {"id": "nothing"}, "d"), closes=True),
        Counts("back_error", 1, 0), subscribe("back_error"), messages("m"),
    ),
)  # fmt: skip

TRANSACTIONS: tuple[Scenario, ...] = (
    on(
        "tx_commit", "a transaction's messages arrive at COMMIT, in order",
        Connect(), begin(), anycast("tx_commit", "1", "2", headers=IN_T), Counts("tx_commit", 0, added=0), commit(),
        Counts("tx_commit", 2), subscribe("tx_commit"), messages("1", "2"),
    ),
    on(
        "tx_abort", "after ABORT nothing of a transaction arrives, and its name is free",
        Connect(), begin(), anycast("tx_abort", "1", headers=IN_T), abort(), begin(),
        anycast("tx_abort", "2", headers=IN_T), commit(), subscribe("tx_abort"), messages("2"), Nothing(),
    ),
    on(
        "tx_lost", "a lost connection aborts its transactions",
        Connect("c"), Connect("d"), begin(who="d"), anycast("tx_lost", "1", who="d", headers=IN_T), Drop("d"),
        anycast("tx_lost", "2"), subscribe("tx_lost"), messages("2"), Counts("tx_lost", 1, 1, added=1),
    ),
    on(
        "tx_disconnect", "DISCONNECT aborts open transactions",
        Connect("c"), Connect("d"), begin(who="d"), anycast("tx_disconnect", "1", who="d", headers=IN_T),
        Disconnect("d"),
        anycast("tx_disconnect", "2"), subscribe("tx_disconnect"), messages("2"),
        Counts("tx_disconnect", 1, 1, added=1),
    ),
    on(
        "tx_overtaken", "what is sent outside a transaction does not wait for it",
        Connect(), begin(), anycast("tx_overtaken", "1", headers=IN_T), anycast("tx_overtaken", "2"), commit(),
        subscribe("tx_overtaken"), messages("2", "1"),
    ),
    on(
        "tx_two", "two transactions of a connection do not know each other",
        Connect(), begin("a"), begin("b"), anycast("tx_two", "a", headers={"transaction": "a"}),
        anycast("tx_two", "b", headers={"transaction": "b"}), commit("b"), Counts("tx_two", 1), abort("a"),
        subscribe("tx_two"), messages("b"), Nothing(),
    ),
    on(
        "tx_begin_twice", "BEGIN of an open transaction is refused",
        Connect("c", "1.1"), begin(), Refused(begin(), closes=False),
    ),
    on(
        "tx_unknown", "COMMIT and ABORT of a transaction that is not open are refused",
        Connect("c", "1.1"), Refused(commit(), closes=False), Refused(abort(), closes=False),
        begin(), commit(), Refused(commit(), closes=False),
    ),
    on(
        "tx_nameless", "BEGIN without a name is refused",
        Connect("c", "1.1"),
        Either(
            ours=(Refused(Request("BEGIN", {}), closes=True),),
            artemis=(Refused(Request("BEGIN", {}), closes=False),),
        ),
        departures=("missing-header",),
    ),
    on(
        "tx_send_unknown", "SEND in a transaction that has not begun",
        Connect("c", "1.1"),
        Either(
            ours=(Refused(anycast("tx_send_unknown", "m", headers=IN_T), closes=False),),
            artemis=(anycast("tx_send_unknown", "m", headers=IN_T), Refused(commit(), closes=False)),
        ),
        Counts("tx_send_unknown", 0, added=0),
        departures=("transaction-unknown",),
    ),
    on(
        "tx_ack", "ACK in a transaction",
        *_given("tx_ack", "m"), begin(who="d"), ack("m", who="d", headers=IN_T),
        Either(ours=(Counts("tx_ack", 1, 1, acknowledged=0),), artemis=(Counts("tx_ack", 0, 0, acknowledged=1),)),
        abort(who="d"),
        Either(
            ours=(messages("m", who="d", headers={"redelivered": "true"}), ack("m", who="d")),
            artemis=(Nothing("d"),),
        ),
        Counts("tx_ack", 0, acknowledged=1),
        departures=("ack-in-transaction",),
    ),
    on(
        "tx_ack_commit", "ACK in a transaction is final after COMMIT",
        *_given("tx_ack_commit", "m"), begin(who="d"), ack("m", who="d", headers=IN_T), commit(who="d"),
        Counts("tx_ack_commit", 0, 0, acknowledged=1), Disconnect("d"), subscribe("tx_ack_commit"), Nothing(),
    ),
    on(
        "tx_ack_unknown", "ACK in a transaction that has not begun",
        *_given("tx_ack_unknown", "m", version="1.1"),
        Either(
            ours=(Refused(ack("m", who="d", headers=IN_T), closes=False), Counts("tx_ack_unknown", 1, 1)),
            artemis=(ack("m", who="d", headers=IN_T), Counts("tx_ack_unknown", 0, 0)),
        ),
        departures=("ack-in-transaction",),
    ),
    on(
        "tx_nack", "NACK in a transaction",
        *_given("tx_nack", "m"), begin(who="d"), nack("m", who="d", headers=IN_T),
        Either(
            ours=(Nothing("d"), commit(who="d"), messages("m", who="d", headers={"redelivered": "true"})),
            artemis=(commit(who="d"), Nothing("d"), Counts("tx_nack", 0, acknowledged=1)),
        ),
        departures=("nack", "ack-in-transaction"),
    ),
)  # fmt: skip

SCENARIOS: tuple[Scenario, ...] = (*ACKS, *UNSETTLED, *TRANSACTIONS)
