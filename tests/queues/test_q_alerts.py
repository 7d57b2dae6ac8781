"""Qpid's alerts and operational log (rows Q-62 and Q-72 of rows.py; docs/queues.md)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from artemis_py.core.clock import NEVER_MS
from artemis_py.core.events import Event
from artemis_py.core.order.entry import PURGED
from artemis_py.core.queue_reference import AutoDelete
from artemis_py.server.operational_log import (
    KEYS_MAX,
    LINES_PER_TURN,
    LOGGER_NAME,
    WAITING_MAX,
    WINDOW_MS,
    OperationalLog,
    line_of,
)
from tests.kit.bench import ONE_AT_A_TIME, Bench
from tests.kit.core import lines_run, queue_config, told
from tests.kit.life import Life
from tests.queues.outcomes import size_of

pytestmark = pytest.mark.wire


def alerts(bench: Bench) -> list[tuple[str | int, str | int, int]]:
    """The alerts since somebody asked: kind, value, how often."""
    return [(event.fields["alert"], event.fields["value"], event.count) for event in told(bench.core, "ART-1001")]


# ---- alerts --------------------------------------------------------------------------------------


def test_Q_72_depth_in_messages(cut: bool) -> None:
    """It alerts at the threshold, and refuses nothing."""
    bench = Bench("alert-threshold-depth-messages='3'", cut=cut)
    for body in "ab":
        bench.send(body)
    assert alerts(bench) == []
    bench.send("c")
    assert alerts(bench) == [("MESSAGE_COUNT_ALERT", 3, 1)]
    bench.send("d")
    assert (alerts(bench), bench.count()) == ([], 4)


def test_Q_72_depth_in_bytes(cut: bool) -> None:
    bench = Bench(f"alert-threshold-depth-bytes='{2 * size_of('a')}'", cut=cut)
    bench.send("a")
    assert alerts(bench) == []
    bench.send("b")
    assert alerts(bench) == [("QUEUE_DEPTH_ALERT", 2 * size_of("a"), 1)]


def test_Q_72_size_of_each_message(cut: bool) -> None:
    """Headers count; there is no gap between two of them."""
    bench = Bench(f"alert-threshold-message-size='{size_of('large')}'", cut=cut)
    for body in ("small"[:4], "large", "larger"):
        bench.send(body)
    assert [(kind, count) for kind, _, count in alerts(bench)] == [("MESSAGE_SIZE_ALERT", 2)]
    alerts_of_queue = bench.queue().alerts
    assert alerts_of_queue is not None
    assert alerts_of_queue.alerts.raised_count == 2


@pytest.mark.parametrize("attributes", ["", "sort-key='k'", "queue-type='standard'", "hold-on-publish='true'"])
def test_Q_72_age(attributes: str, cut: bool) -> None:
    """Above the threshold, of the oldest message, whatever its place and state; nothing need arrive for it."""
    bench = Bench(f"alert-threshold-message-age='1000' {attributes}", cut=cut)
    bench.send("old", "k:z", "priority:0", f"x-qpid-not-valid-before:{bench.world.now_ms + 60_000}")
    bench.world.advance(500)
    bench.send("new", "k:a", "priority:9")
    bench.world.advance(500)
    assert alerts(bench) == []
    bench.world.advance(20)
    ((kind, age_ms, _),) = alerts(bench)
    assert kind == "MESSAGE_AGE_ALERT"
    assert 1000 < int(age_ms) <= 1020


def test_Q_72_age_looks_at_what_is_in_delivery_too(cut: bool) -> None:
    bench = Bench("alert-threshold-message-age='1000'", cut=cut)
    bench.send("a")
    bench.subscribe("c", ONE_AT_A_TIME)
    (frame,) = bench.messages("c")
    bench.world.advance(1100)
    assert len(alerts(bench)) == 1
    bench.settle("c", frame)
    bench.world.advance(100_000)
    assert alerts(bench) == []


def test_Q_72_the_same_alert_comes_after_the_gap(cut: bool) -> None:
    """And while the state lasts it comes again, without an arrival."""
    bench = Bench("alert-threshold-depth-messages='1' alert-repeat-gap='5000'", cut=cut)
    bench.send("a")
    assert len(alerts(bench)) == 1
    bench.world.advance(4999)
    bench.send("b")
    assert alerts(bench) == []
    bench.world.advance(1)
    assert alerts(bench) == [("MESSAGE_COUNT_ALERT", 2, 1)]
    bench.queue().purge(PURGED, bench.world.now_ms)
    bench.world.advance(100_000)
    assert alerts(bench) == []
    bench.send("c")
    assert len(alerts(bench)) == 1


def test_Q_72_from_an_address_setting() -> None:
    settings = """<default-alert-threshold-depth-messages>2</default-alert-threshold-depth-messages>
    <default-alert-repeat-gap>10</default-alert-repeat-gap>"""
    bench = Bench(settings=settings)
    for body in "ab":
        bench.send(body, to="/queue/made.by.itself")
    assert [event.queue for event in told(bench.core, "ART-1001")] == ["made.by.itself"]


@pytest.mark.parametrize(
    "settings", ["", "<max-size-messages>1</max-size-messages><page-size-bytes>300</page-size-bytes>"]
)
def test_Q_72_over_a_restart_and_pages(settings: str) -> None:
    life = Life("alert-threshold-depth-messages='3'", settings=settings)
    for body in "abc":
        life.send(body)
    assert life.core.events.counts["ART-1001"] == 1
    life = life.again()
    life.send("d")
    assert life.core.events.counts["ART-1001"] == 1


def test_without_thresholds_nothing_is_kept() -> None:
    bench = Bench("alert-repeat-gap='10'")
    assert bench.queue().alerts is None
    assert bench.world.broker.next_due_ms() == Bench().world.broker.next_due_ms()


# ---- operational log -----------------------------------------------------------------------------


def test_Q_62_what_each_policy_tells(cut: bool) -> None:
    """Ring 1005, flow control 1003 and 1004; a refusal is ours; NONE and FLOW_TO_DISK tell nothing (Qpid)."""
    found = {}
    for policy in ("NONE", "RING", "PRODUCER_FLOW_CONTROL", "FLOW_TO_DISK", "REJECT"):
        bench = Bench(f"overflow-policy='{policy}' max-depth-messages='1'", cut=cut)
        bench.world.broker.events.take()
        for body in "abc":
            bench.write(body, "SEND", "destination:/queue/q", body=body)
        codes = {event.code for event in bench.world.broker.events.take()}
        found[policy] = {code for code in codes if not code.startswith(("SUB", "CHN"))}
    assert found == {
        "NONE": set(),
        "RING": {"QUE-1005"},
        "PRODUCER_FLOW_CONTROL": {"QUE-1003"},
        "FLOW_TO_DISK": set(),
        "REJECT": {"ART-1002", "ART-1018"},  # and the ERROR that its client got
    }


def test_queues_and_subscriptions_begin_and_end(cut: bool) -> None:
    bench = Bench(cut=cut)
    (event,) = told(bench.core, "QUE-1001")
    assert (event.queue, event.fields["address"], event.fields["life"]) == ("q", "q", "declared")
    bench.write("c", "SUBSCRIBE", "id:1", "destination:/topic/t", "selector:a = 1")
    created, subscribed = told(bench.core, "QUE-1001", "SUB-1001")
    assert created.fields["life"] == "temporary"
    assert subscribed.queue == created.queue
    bench.leave("c")
    assert [event.code for event in told(bench.core, "QUE-1002", "SUB-1002")] == ["SUB-1002", "QUE-1002"]
    bench.world.broker.queue_changes.create(queue_config("made"), AutoDelete(), creates_address=True)
    (event,) = told(bench.core, "QUE-1001")
    assert event.fields["life"] == "created"


def test_operations_of_management_are_told() -> None:
    bench = Bench()
    broker = bench.world.broker
    broker.queue_operations.pause("q")
    broker.queue_operations.set_ring_size("q", 3)
    assert [event.fields["operation"] for event in told(bench.core, "QUE-1016")] == [
        "pause",
        "set ring-size to 3",
    ]


def test_a_restart_opens_queues() -> None:
    life = Life("").again()
    codes = [event.code for event in life.core.events.take()]
    assert codes == ["QUE-1018"]


def test_the_events_of_one_turn_are_told_together() -> None:
    bench = Bench("ring-size='1'")
    bench.send("first")
    bench.world.broker.events.take()
    bench.world.client("producer").send(b"SEND\ndestination:/queue/q\n\nx\0" * 50)
    (event,) = told(bench.core, "QUE-1005")
    assert (event.count, event.fields["depth_messages"]) == (50, 1)


def log_with(lines: list[str]) -> OperationalLog:
    """A log that writes there and nowhere else."""
    logger: Any = logging.Logger(LOGGER_NAME)
    logger.info = lines.append
    return OperationalLog(logger)


def test_a_line_is_logfmt() -> None:
    event = Event("QUE-1003", "my queue", {"messages": 11, "limit": '10 "messages"'}, 3)
    assert line_of(event, 4) == (
        'QUE-1003 queue="my queue" messages=11 limit="10 \\"messages\\"" count=3 not_written_before=4 '
        "queue overfull, senders wait"
    )


def test_lines_are_limited_for_each_queue() -> None:
    lines: list[str] = []
    log = log_with(lines)
    for turn in range(100):
        log.write([Event("QUE-1005", name, {}, 2) for name in ("a", "b")], turn)
    assert len(lines) == 2
    assert log.write([], WINDOW_MS - 1) == WINDOW_MS
    assert len(lines) == 2
    assert log.write([], WINDOW_MS) == NEVER_MS
    ago = f"ago_ms={WINDOW_MS - 99}"
    said = [f"QUE-1005 queue={name} count=198 {ago} messages dropped by a ring" for name in ("a", "b")]
    assert lines[2:] == said


def test_a_line_that_was_held_back_counts_the_lines_before_it() -> None:
    lines: list[str] = []
    log = log_with(lines)
    for number in range(5):
        due_ms = log.write([Event("QUE-1016", "a", {"operation": f"step {number}"}, 3)], 7)
    assert due_ms == 7 + WINDOW_MS
    log.end()
    assert lines[1:] == ['QUE-1016 queue=a operation="step 4" count=3 not_written_before=3 management operation']


def test_what_was_held_back_begins_the_next_window() -> None:
    lines: list[str] = []
    log = log_with(lines)
    for turn in range(3):
        log.write([Event("QUE-1005", "a", {})], turn)
    log.write([Event("QUE-1005", "a", {})], WINDOW_MS)
    assert [line.split()[2] for line in lines] == ["count=1", "count=2"]
    log.write([], 2 * WINDOW_MS)
    assert [line.split()[2] for line in lines] == ["count=1", "count=2", "count=1"]


def test_lines_of_many_queues_that_come_and_go_are_limited_together() -> None:
    lines: list[str] = []
    log = log_with(lines)
    log.write([Event("QUE-1001", f"temporary-{number}", {}) for number in range(1000)], 0)
    assert len(lines) == 20
    log.write([], WINDOW_MS)
    assert lines[-1].startswith("QUE-1001 queue=temporary-999 not_written_before=979")


def test_different_alerts_of_a_queue_do_not_hide_each_other() -> None:
    lines: list[str] = []
    log_with(lines).write([Event("ART-1001", "q", {"alert": kind}) for kind in ("one", "two")], 0)
    assert len(lines) == 2


def held_back(lines: list[str], names: Sequence[str], now_ms: int = 0) -> OperationalLog:
    """A log that holds a line of each queue back."""
    log = log_with(lines)
    for name in names:
        for _ in range(2):
            log.write([Event("QUE-1005", name, {})], now_ms)
    assert len(lines) == len(names)
    return log


def turns_until_idle(log: OperationalLog, now_ms: int) -> int:
    """Call the log as turns do, as long as it asks to be called at once."""
    for turn in range(1, KEYS_MAX):
        if log.write([], now_ms) > now_ms:
            return turn
    raise AssertionError("the log does not come to rest")


def test_a_turn_costs_the_same_however_many_queues_hold_a_line_back() -> None:
    costs = set[int]()
    for count in (100, 1000, KEYS_MAX):
        log = held_back([], [f"q{number}" for number in range(count)])
        costs.add(lines_run(lambda log=log: log.write([Event("QUE-1005", "q0", {})], 1)))  # type: ignore[misc]
    assert len(costs) == 1, costs
    assert costs.pop() < 200


@pytest.mark.parametrize("count", [LINES_PER_TURN, 1000, KEYS_MAX])
def test_windows_that_end_together_are_written_over_some_turns(count: int) -> None:
    lines: list[str] = []
    names = [f"q{number}" for number in range(count)]
    log = held_back(lines, names)
    lines.clear()
    log.write([], WINDOW_MS)
    assert len(lines) == LINES_PER_TURN
    turns_until_idle(log, WINDOW_MS)
    assert [line.split()[1] for line in lines] == [f"queue={name}" for name in names], "in order, each once"
    assert log.write([], 2 * WINDOW_MS) == NEVER_MS


def test_what_happens_while_a_line_waits_for_its_turn_is_in_that_line() -> None:
    lines: list[str] = []
    log = held_back(lines, [f"q{number}" for number in range(100)])
    log.write([Event("QUE-1005", "q99", {})], WINDOW_MS)
    turns_until_idle(log, WINDOW_MS)
    assert [line.split()[2] for line in lines if "=q99 " in line] == ["count=1", "count=2"]


def test_the_oldest_of_too_many_keys_makes_room() -> None:
    lines: list[str] = []
    log = held_back(lines, [f"q{number}" for number in range(KEYS_MAX)])
    lines.clear()
    log.write([Event("QUE-1005", "new", {})], 1)
    assert [line.split()[1] for line in lines] == ["queue=q0", "queue=new"]
    log.write([Event("QUE-1005", "q1", {})], 1)
    assert len(lines) == 2, "the others are as they were"
    log.end()
    assert len(lines) == 2 + KEYS_MAX - 1


def test_many_new_lines_are_written_over_some_turns() -> None:
    lines: list[str] = []
    log = log_with(lines)
    names = [f"q{number}" for number in range(WAITING_MAX)]
    assert log.write([Event("QUE-1005", name, {}) for name in names], 0) == 0
    assert len(lines) == LINES_PER_TURN
    turns_until_idle(log, 0)
    assert [line.split()[1] for line in lines] == [f"queue={name}" for name in names]
    for turn in range(2):
        log.write([Event("QUE-1016", f"{turn}-{name}", {}) for name in names], 0)
    assert len(lines) >= 2 * WAITING_MAX, "no more than so many wait"
    log.end()
    assert len(lines) == 3 * WAITING_MAX


def test_a_log_with_nothing_to_write_is_not_called() -> None:
    """Windows in which nothing is held back end without a turn; a held line behind them is written in time."""
    lines: list[str] = []
    log = log_with(lines)
    assert log.write([Event("QUE-1005", "early", {})], 0) == NEVER_MS
    for number in range(3 * LINES_PER_TURN):
        log.write([Event("QUE-1005", f"q{number}", {})], 10 + number)
    for _ in range(2):
        due_ms = log.write([Event("QUE-1005", "late", {})], 1000)
    calls = 0
    while due_ms != NEVER_MS:
        calls, now_ms = calls + 1, due_ms
        due_ms = log.write([], now_ms)
        assert due_ms > now_ms
    assert now_ms == 1000 + WINDOW_MS
    assert lines[-1].split()[1] == "queue=late"
    assert calls <= 5
