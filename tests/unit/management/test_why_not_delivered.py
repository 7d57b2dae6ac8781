"""Each reason why a queue delivers nothing, with the line of its setting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.core.consumer import Consumer
from artemis_py.management.why.not_delivered import LOOKS_MAX, about_message, not_delivered
from artemis_py.management.why.question import NOWHERE, Question
from tests.kit.core import NOW_MS, consumer_on, head_of, lines_run, send, turn
from tests.kit.managed import FakeClient
from tests.kit.paged_bench import PagedBench
from tests.unit.management.why_parts import Asked, one, why

_URI = "tcp://127.0.0.1:0?protocols=STOMP;stompConsumerWindowSize"


@pytest.mark.parametrize(
    ("attributes", "code", "setting"),
    [
        ('consumers-before-dispatch="2"', "consumers-before-dispatch", "consumers-before-dispatch"),
        ('max-backlog="1" max-per-subscription-backlog="9"', "max-backlog", "max-backlog"),
        ('lease-period="60000" max-per-subscription-backlog="1"', "backlog", "max-per-subscription-backlog"),
        ('lease-period="60000"', "leased", "lease-period"),
        ('target-queue-depth="1" lease-period="9000"', "target-queue-depth", "target-queue-depth"),
    ],
)
def test_settings_of_the_queue(tmp_path: Path, attributes: str, code: str, setting: str) -> None:
    it = Asked(tmp_path, attributes)
    send(it.broker, count=3)
    consumer_on(it.broker, it.queue(), backlog_max=1)
    turn(it.broker)
    reason = one(it.not_delivered(), code)
    assert (reason.place.setting, reason.place.where) == (setting, it.line("<queue"))
    assert reason.remedy


def test_a_limit_that_a_client_asked_for(tmp_path: Path) -> None:
    """What its SUBSCRIBE says is no setting of the queue, and the queue would allow more."""
    it = Asked(tmp_path)
    send(it.broker, count=3)
    consumer_on(it.broker, it.queue(), backlog_max=1)
    turn(it.broker)
    reason = one(it.not_delivered(), "backlog")
    assert reason.place == NOWHERE
    assert "its SUBSCRIBE may ask for more (max-backlog, prefetch-count or activemq.prefetchSize)" in reason.sentence


def test_a_default_of_an_address_setting(tmp_path: Path) -> None:
    it = Asked(tmp_path, settings="<default-consumers-before-dispatch>2</default-consumers-before-dispatch>")
    send(it.broker)
    reason = one(it.not_delivered(), "consumers-before-dispatch")
    assert reason.place == (
        "default-consumers-before-dispatch",
        "2 consumers",
        it.line("<default-consumers") + " (address-setting #)",
    )


def test_paused_and_nobody_there(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    it.queue().pause()
    send(it.broker)
    found = it.not_delivered()
    assert [reason.code for reason in found] == ["paused", "no-consumer"]
    assert "queue resume" in found[0].remedy


def test_nobody_takes_dead_letters(tmp_path: Path) -> None:
    """That needs no consumer: an operator looks at them."""
    it = Asked(tmp_path, settings="<dead-letter-address>a</dead-letter-address>")
    send(it.broker)
    found = it.not_delivered()
    assert [reason.code for reason in found] == ["dead-letters"]
    assert "artemis-py why dead" in found[0].remedy
    consumer_on(it.broker, it.queue())
    assert "dead-letters" not in [reason.code for reason in it.not_delivered()]


@pytest.mark.parametrize("attributes", ['ring-size="9"', 'non-destructive="true"'])
def test_a_queue_that_keeps_its_messages_needs_no_consumer(tmp_path: Path, attributes: str) -> None:
    it = Asked(tmp_path, attributes)
    send(it.broker)
    (reason,) = it.not_delivered()
    assert reason.code == "kept"
    assert "none is needed" in reason.sentence
    consumer_on(it.broker, it.queue())
    assert "kept" not in [reason.code for reason in it.not_delivered()]


def test_a_bridge_that_is_not_connected(tmp_path: Path) -> None:
    it = Asked(
        tmp_path,
        core='<connectors><connector name="c">tcp://far:1</connector></connectors>\n<bridges><bridge name="b">'
        "<queue-name>q</queue-name><static-connectors><connector-ref>c</connector-ref></static-connectors></bridge>"
        "</bridges>",
    )
    (config,) = it.broker.config.bridges
    bridge = Mock(config=config, state="waiting", reason="far:1: nothing listens there", connected_count=0)
    bridge.name = "b"
    it.managed = replace(it.managed, bridges=lambda: {"b": bridge})
    send(it.broker)
    found = it.not_delivered()
    assert [reason.code for reason in found] == ["bridge"]
    assert found[0].sentence == "bridge b to far:1 is waiting: far:1: nothing listens there"
    assert found[0].place.where == f"{it.line('<bridge name=')} (bridge b)"
    bridge.connected_count = 1
    assert [reason.code for reason in it.not_delivered()] == ["no-consumer"]


def test_a_paused_address(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    it.broker.address_changes.pause(it.broker.addresses["a"])
    send(it.broker)
    found = it.not_delivered()
    assert [reason.code for reason in found] == ["address-paused", "no-consumer"]
    assert found[0].sentence == "its address a is paused, and has to be resumed"
    assert "artemis-py address resume a." in found[0].remedy
    it.queue().pause()
    assert [reason.code for reason in it.not_delivered()] == ["paused", "address-paused", "no-consumer"]
    it.queue().resume()
    list(it.broker.address_changes.resume(it.broker.addresses["a"]))
    assert [reason.code for reason in it.not_delivered()] == ["no-consumer"]


@pytest.mark.parametrize("is_of_acceptor", [True, False])
def test_a_window_names_its_client_and_who_gave_it(tmp_path: Path, is_of_acceptor: bool) -> None:
    """The acceptor, or else the SUBSCRIBE."""
    size = 1 if is_of_acceptor else 2
    it = Asked(tmp_path, core=f"<acceptors>\n<acceptor name='s'>{_URI}={size}</acceptor>\n</acceptors>")
    send(it.broker, count=2)
    consumer = consumer_on(it.broker, it.queue(), window_bytes=1)
    consumer.owner = FakeClient(acceptor=it.broker.config.acceptors[0])
    turn(it.broker)
    found = it.not_delivered()
    window = one(found, "window")
    assert window.about == f"consumer {consumer.id} (from 10.0.0.7:5000)"
    if is_of_acceptor:
        line = it.line("<acceptor name")
        assert window.place == ("stompConsumerWindowSize", "1", f"{line} (acceptor s)")
    else:
        assert window.place.setting == ""
    assert "has 1 message and did not acknowledge" in one(found, "held").sentence


def test_a_client_that_does_not_read(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    send(it.broker, count=2)
    consumer = consumer_on(it.broker, it.queue(), room=0)
    consumer.owner = FakeClient(state="stalled")
    assert one(it.not_delivered(), "not-reading").about


def test_a_group_and_its_owner(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    owner = consumer_on(it.broker, it.queue(), window_bytes=1)
    consumer_on(it.broker, it.queue())
    send(it.broker, count=2, head=head_of(JMSXGroupID="g7"))
    turn(it.broker)
    reason = one(it.not_delivered(), "groups")
    assert f"group g7 belongs to consumer {owner.id}" in reason.sentence


def test_others_are_served_first(tmp_path: Path) -> None:
    it = Asked(tmp_path, 'exclusive="true"')
    consumer_on(it.broker, it.queue(), window_bytes=1)
    consumer_on(it.broker, it.queue())
    send(it.broker, count=2)
    turn(it.broker)
    reason = one(it.not_delivered(), "exclusive")
    assert (reason.place.setting, reason.place.where) == ("exclusive", it.line("<queue"))


def test_a_failed_delivery_and_a_schedule(tmp_path: Path) -> None:
    it = Asked(tmp_path, settings="<redelivery-delay>60000</redelivery-delay>")
    consumer = consumer_on(it.broker, it.queue())
    send(it.broker)
    turn(it.broker)
    it.queue().release(consumer, consumer.let_go_all(), failed=True, now_ms=NOW_MS)
    send(it.broker, due_ms=NOW_MS + 500_000)
    it.now_ms += 10_000
    found = it.not_delivered()
    tried = one(found, "redelivery-delay")
    assert "another attempt after a failed delivery: the first is due in 50 s" in tried.sentence
    assert tried.place.where.startswith(it.line("<redelivery-delay>"))
    assert one(found, "scheduled").used == 1


def test_a_barrier(tmp_path: Path) -> None:
    it = Asked(tmp_path, "barrier-expression=\"kind = 'end'\"")
    send(it.broker)
    send(it.broker, head=head_of(kind="end"))
    send(it.broker)
    assert one(it.not_delivered(), "due").used == 3
    turn(it.broker)
    reason = one(it.not_delivered(), "barrier")
    assert reason.place.where == it.line("<queue")


def test_nothing_came_or_passed(tmp_path: Path) -> None:
    it = Asked(tmp_path, filter="x = '1'")
    assert [reason.code for reason in it.not_delivered()] == ["nothing-waits", "nothing-waits"]
    send(it.broker, count=2)
    reason = one(it.not_delivered(), "filtered")
    assert (reason.used, reason.place.setting) == (2, "filter")
    it = Asked(tmp_path, 'enabled="false"')
    send(it.broker)
    reason = one(it.not_delivered(), "disabled")
    assert (reason.place.value, reason.place.where) == ("false", it.line("<queue"))
    assert "artemis-py queue enable q" in reason.remedy


def test_nothing_came_for_other_reasons(tmp_path: Path) -> None:
    """An exclusive divert, another queue of the address, a queue that needs a consumer."""
    line = "<divert name='d'><address>a</address><forwarding-address>b</forwarding-address><exclusive>true</exclusive>"
    it = Asked(tmp_path, core=f"<diverts>\n{line}</divert>\n</diverts>", filter="x = '1'")
    send(it.broker)
    found = it.not_delivered()
    assert [reason.code for reason in found] == ["diverted", "filtered"]
    assert found[0].sentence == "the exclusive divert d takes all messages for a"
    assert found[0].place == ("exclusive", "true", it.line("<divert "))
    two = "<address name='a'><anycast><queue name='q'/><queue name='r'/></anycast></address>"
    it = Asked(tmp_path, addresses=two)
    send(it.broker, queue="r")
    first, second = it.not_delivered()
    assert first.sentence == "nothing came; 1 message for a did not come to this queue"
    assert second.sentence == "nothing was sent to any other address"
    it = Asked(tmp_path, 'purge-on-no-consumers="true"')
    send(it.broker)
    assert one(it.not_delivered(), "purge-on-no-consumers").place.value == "true"


def test_reading_ahead_is_used_up_by_what_is_not_acknowledged() -> None:
    """The limit is named, and nothing that does not hold: there are no groups, and nobody is served first."""
    bench = PagedBench(1, settings={"max_read_page_messages": 3, "prefetch_page_messages": -1})
    for _ in range(9):
        send(bench.broker, "q", head=head_of("q"))
    idle = [consumer_on(bench.broker, bench.queue) for _ in range(2)]
    bench.settle()
    assert sum(len(one.held) for one in idle) == 3
    limit, *others = why(bench, not_delivered, bench.queue)
    assert [reason.code for reason in (limit, *others)] == ["read-ahead", "held", "held"]
    assert (limit.place.setting, limit.place.value, limit.used) == ("max-read-page-messages", "3 messages", 3)
    assert "acknowledge" in limit.remedy


def test_a_queue_that_was_disabled(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    send(it.broker)
    it.broker.queue_changes.enable(it.queue(), enabled=False)
    assert send(it.broker) == 1
    found = it.not_delivered()
    assert [reason.code for reason in found] == ["no-consumer", "disabled"]
    assert found[1].sentence == "the queue is not enabled: no further messages come to it"
    it.broker.queue_operations.purge("q", NOW_MS)
    assert one(it.not_delivered(), "disabled").sentence == "nothing comes any more: the queue is not enabled"


def test_many_consumers_are_summed_up(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    for _ in range(12):
        consumer_on(it.broker, it.queue(), selector="x = '2'")
    for _ in range(2):
        consumer_on(it.broker, it.queue(), window_bytes=1)
    send(it.broker, count=5)
    turn(it.broker)
    found = it.not_delivered()
    unwanted = one(found, "unwanted")
    assert unwanted.about == "12 of 14 consumers"
    assert (unwanted.used, unwanted.limit) == (12, 14)
    assert one(found, "window").about == "2 of 14 consumers"


# ---- how much is looked at -------------------------------------------------------------------------


def test_only_so_many_messages_are_looked_at_and_no_step_is_long(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    consumers = [consumer_on(it.broker, it.queue(), selector=f"color = '{place}'") for place in range(8)]
    send(it.broker, count=LOOKS_MAX + 5)
    turn(it.broker)
    steps: list[int] = []

    question = Question(it.managed, queue=it.queue())
    work = not_delivered(question, it.queue())
    said: list[object] = []
    while work not in said:
        steps.append(lines_run(lambda: said.append(next(work, work))))
    assert [reason.used for reason in question.findings if reason.code == "unwanted"] == [LOOKS_MAX] * len(consumers)
    assert len(steps) > 8 * LOOKS_MAX / 200
    assert max(steps) < 5_000


def test_a_look_that_is_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    consumer_on(it.broker, it.queue(), selector="x = '1'")
    send(it.broker, count=1000)
    order: Any = it.queue().contents.order
    before = len(order.cursors)
    work = not_delivered(Question(it.managed, queue=it.queue()), it.queue())
    for _ in range(4):
        next(work)
    assert len(order.cursors) > before
    work.close()
    assert len(order.cursors) == before


# ---- one message -----------------------------------------------------------------------------------


def about(it: Asked, number: int) -> list[str]:
    return [f"{reason.code}: {reason.sentence}" for reason in why(it, about_message, it.queue(), number)]


def test_one_message(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    send(it.broker, count=3)
    send(it.broker, due_ms=NOW_MS + 5_000)
    assert about(it, 1) == ["no-consumer: no consumer is attached"]
    assert about(it, 3) == ["no-consumer: no consumer is attached", "behind: 2 messages before it"]
    assert about(it, 4) == ["scheduled: it waits for its time, which is in 5 s"]
    assert about(it, 9) == ["not-there: it is not among the 3 ready, and nobody holds it"]
    holder: Consumer = consumer_on(it.broker, it.queue(), window_bytes=1)
    turn(it.broker)
    it.now_ms += 2_000
    assert about(it, 1) == [f"held: consumer {holder.id} has it and did not acknowledge; it came 2 s ago"]
    consumer_on(it.broker, it.queue(), selector="x = '1'")
    assert about(it, 2) == [
        "unwanted: 1 of 2 consumers do not want it: consumer 2",
        "window: 1 of 2 consumers want it and have no room: consumer 1",
    ]


def test_what_waits_for_the_disk(tmp_path: Path) -> None:
    it = Asked(tmp_path)
    consumer_on(it.broker, it.queue(), window_bytes=1)
    send(it.broker)
    turn(it.broker)
    it.health.durable_lsn = -5
    assert one(it.not_delivered(), "sync").used == 5


def test_groups_that_are_handed_out_anew(tmp_path: Path) -> None:
    it = Asked(tmp_path, 'group-rebalance="true" group-rebalance-pause-dispatch="true"')
    consumer_on(it.broker, it.queue())
    send(it.broker, count=2, head=head_of(JMSXGroupID="g"))
    turn(it.broker)
    consumer_on(it.broker, it.queue())
    send(it.broker, head=head_of(JMSXGroupID="h"))
    turn(it.broker)
    reason = one(it.not_delivered(), "rebalance")
    assert (reason.used, reason.place.value, reason.place.where) == (2, "true", it.line("<queue"))


def test_a_group_that_waits(tmp_path: Path) -> None:
    it = Asked(tmp_path, settings="<redelivery-delay>60000</redelivery-delay>")
    consumer = consumer_on(it.broker, it.queue())
    send(it.broker, head=head_of(JMSXGroupID="g"))
    turn(it.broker)
    it.queue().release(consumer, consumer.let_go_all(), failed=True, now_ms=NOW_MS)
    send(it.broker, head=head_of(JMSXGroupID="g"))
    turn(it.broker)
    assert about(it, 2)[0] == "group-waits: its group g waits for another attempt at 1 message"
    assert "group g waits for another attempt" in one(it.not_delivered(), "group-waits").sentence
