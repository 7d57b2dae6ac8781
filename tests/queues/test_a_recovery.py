"""Rows of AMPS (rows.py) about where in the log a queue begins: ``recovery-point``."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from artemis_py.cli.explain import compose
from artemis_py.config.explain import explain
from artemis_py.core.queue.recovery_point import Recovery
from artemis_py.core.replay import recovery_points as fills
from artemis_py.server.replays import ReplayTurns
from artemis_py.storage.journal.settings import JournalSettings
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.projection import Projection
from tests.kit.documents import errors_of, load_core
from tests.kit.in_process import configuration
from tests.kit.past import RETAINED, Past
from tests.kit.views import DESK, addresses, view

pytestmark = pytest.mark.wire

US = "<address name='orders.us'><anycast><queue name='us'/></anycast></address>"


def over(attributes: str = "", name: str = "work", underlying: str = "orders.eu", target: str = "orders.eu") -> str:
    """A view with more attributes."""
    return view(f"underlying-address='{underlying}' default-publish-target='{target}' {attributes}", name)


def begins(point: object) -> str:
    """A view that begins there."""
    return over(f"recovery-point='{point}'")


# ---- a new queue ---------------------------------------------------------------------------------


def test_A_61_a_new_view_gets_the_history_of_what_it_reads() -> None:
    """What was acknowledged on another queue, too; and then what comes. A restart changes nothing."""
    past = Past(DESK)
    past.send_all("abc")
    assert past.read(of="desk", count_max=2) == ["a", "b"]
    now = Past(DESK, over(), before=past)
    assert now.count("work") == 3
    now.send("d")
    assert now.read(of="work") == ["a", "b", "c", "d"]
    assert now.read(of="desk") == ["c", "d"]
    again = Past(DESK, over(), before=now)
    assert (again.count("work"), again.count("desk")) == (0, 0)


@pytest.mark.parametrize(
    ("point", "bodies"),
    [
        ("epoch", ["a", "b", "c"]),
        ("EPOCH", ["a", "b", "c"]),
        ("now", []),
        ("creation", []),
        ("0", ["a", "b", "c"]),
        ("{first}", ["b", "c"]),
        ("{last}", []),
        ("99999999", []),
        ("{second_time}", ["b", "c"]),
        ("19700101T000000", ["a", "b", "c"]),
        ("20991231T235959Z", []),
    ],
)
@pytest.mark.parametrize("is_view", [True, False])
def test_A_61_a_new_queue_begins_at_its_recovery_point(point: str, bodies: list[str], is_view: bool) -> None:
    past = Past(DESK)
    past.send("a")
    past.broker.advance(5000)
    second = datetime.fromtimestamp(past.broker.loop.now_ms / 1000, UTC)
    past.send_all("bc")
    first, _, last = past.offsets("orders.eu")
    text = point.format(first=first, last=last, second_time=f"{second:%Y%m%dT%H%M%SZ}")
    if is_view:
        now = Past(DESK, begins(text), before=past)
    else:
        beside = f"<queue name='work' recovery-point='{text}'/></anycast></address>"
        now = Past(DESK.replace("</anycast></address>", beside), before=past)
    assert now.read(of="work") == bodies
    now.send_all("de")
    expected = ["d", "e"] if is_view else ["e"]  # anycast queues of an address take turns
    assert now.read(of="work") in (expected, ["d"])


def test_A_61_without_a_word_a_view_begins_with_the_log_and_other_queues_are_empty() -> None:
    past = Past(DESK)
    past.send("a")
    now = Past(DESK.replace("</anycast>", "<queue name='plain'/></anycast>"), over(), before=past)
    assert (now.count("work"), now.count("plain")) == (1, 0)


def test_A_61_a_view_that_was_there_before_the_log_was_kept_begins_nowhere() -> None:
    """That its default is another one now is no change of its recovery point."""
    past = Past(DESK, over("recovery-point='now'"))
    past.send("a")
    assert past.read(of="work") == ["a"]
    now = Past(DESK, over("recovery-point='now'"), before=past)
    assert now.count("work") == 0
    assert Past(DESK, over("recovery-point=' now '"), before=now).count("work") == 0


def test_A_61_a_default_that_is_another_one_now_is_no_change() -> None:
    """A view that was made before the log was kept; then what is written is a change."""
    fields = {"written": "", "point": "now", "created": 5}
    recovery = Recovery("", is_view=True, has_past=True)
    recovery.resume(fields, 10)
    assert (recovery.is_filling, recovery.fields()) == (False, fields)
    written = Recovery("epoch", is_view=True, has_past=True)
    written.resume(fields, 10)
    assert (written.is_filling, written.after_lsn) == (True, 0)


def test_A_63_a_queue_that_begins_at_a_time_in_a_pass_with_others() -> None:
    past = Past(DESK)
    past.send("a")
    past.broker.advance(5000)
    second = datetime.fromtimestamp(past.broker.loop.now_ms / 1000, UTC)
    past.send("b")
    late = over(f"recovery-point='{second:%Y%m%dT%H%M%SZ}'", "late")
    now = Past(DESK, over(), late, before=past)
    assert (now.read(of="work"), now.read(of="late")) == (["a", "b"], ["b"])


def test_A_61_only_what_the_queue_would_get() -> None:
    """Nothing that its filter refuses, that is expired, that was sent to another address or to one queue alone, and
    nothing transient.
    """
    past = Past(DESK, US)
    past.send("red", "colour:red")
    past.send("blue", "colour:blue")
    past.send("late", "colour:red", "expires:1000000")
    past.send("far", "colour:red", to="/queue/orders.us")
    past.send("desk's", "colour:red", to="orders.eu::desk")
    past.write("producer", "SEND", "destination:/queue/orders.eu", "colour:red", body="transient")
    past.send("last", "colour:red", "expires:99000000000")
    red = view("underlying-address='orders.eu'", "work", "<filter string=\"colour='red'\"/>")
    now = Past(DESK, US, red, before=past)
    assert now.queue("work").contents.counters.added == 2
    assert now.read(of="work") == ["red", "last"]


def test_A_61_what_is_sent_to_a_view_itself_is_history_of_others() -> None:
    past = Past(DESK, over())
    past.send("a", to="/queue/work")
    past.send("b", to="work::work")
    now = Past(DESK, over(), over("", "second"), before=past)
    assert now.read(of="second") == ["a", "b"]
    assert now.read(of="work") == ["a", "b"]


def test_A_61_history_of_several_addresses_in_order_of_arrival() -> None:
    past = Past(DESK, US)
    for number in range(6):
        past.send(str(number), to=("/queue/orders.eu", "/topic/orders.us", "/topic/orders.us.ny")[number % 3])
    both = over("", "work", "orders.eu,orders.#", "orders.eu")
    assert Past(DESK, US, both, before=past).read(of="work") == ["0", "1", "2", "3", "4", "5"]


def test_A_61_what_was_in_pages_comes_back_too() -> None:
    pages = "<max-size-messages>2</max-size-messages><page-size-bytes>2000</page-size-bytes>"
    past = Past(DESK, settings=pages)
    past.send_all("abcdefgh")
    assert past.read(of="desk", count_max=5) == list("abcde")
    now = Past(DESK, over(), before=past, settings=pages)
    now.send("i")
    assert now.read(of="desk") == list("fghi")
    assert now.read(of="work") == list("abcdefghi")
    assert Past(DESK, over(), before=now, settings=pages).read(of="work") == []


def test_A_61_a_message_that_is_scheduled_waits_there_too() -> None:
    past = Past(DESK)
    past.send("later", "AMQ_SCHEDULED_DELAY:60000")
    past.send("now")
    now = Past(DESK, over(), before=past)
    assert now.read(of="work") == ["now"]
    now.broker.advance(61_000)
    assert now.read(of="work") == ["later"]


def test_A_61_large_bodies_of_the_past() -> None:
    """One that another queue still has, and one that was removed, which is told. A body that is kept for readers of the
    log is in tests/e2e/test_filling.py.
    """
    past = Past(DESK)
    past.send_all(["x" * 300_000, "y" * 300_000])
    assert [body[:1] for body in past.read(of="desk", count_max=1)] == ["x"]
    now = Past(DESK, over(), before=past)
    assert now.core.events.counts["ART-1010"] == 1
    again = Past(DESK, over(), before=now)
    assert [(body[:1], len(body)) for body in again.read(of="work")] == [("y", 300_000)]


# ---- while it is filled --------------------------------------------------------------------------


def full(monkeypatch: pytest.MonkeyPatch, count: int = 12) -> Past:
    """A view that has room for a few messages of its history, because its address is full."""
    monkeypatch.setattr(fills, "AHEAD_BYTES", 400)
    past = Past(DESK)
    past.send_all([f"h{number}" for number in range(count)])
    assert len(past.read(of="desk")) == count
    now = Past(DESK, over(), before=past, settings=FULL)
    assert 0 < now.count("work") < count
    assert now.queue("work").filling is not None
    return now


FULL = "<max-size-messages>1</max-size-messages><address-full-policy>PAGE</address-full-policy>"


@pytest.mark.interpreted
def test_A_61_what_comes_now_stands_behind_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """However full the address is, and however slow consumers are."""
    now = full(monkeypatch)
    history = [f"h{number}" for number in range(12)]
    now.send_all(["l0", "l1"])
    assert now.read(of="work", count_max=5) == history[:5]
    now.send("l2")
    assert now.read(of="work") == [*history[5:], "l0", "l1", "l2"]
    assert now.read(of="desk") == ["l0", "l1", "l2"]
    now.send("l3")
    assert now.read(of="work") == ["l3"]
    assert now.queue("work").filling is None


@pytest.mark.interpreted
def test_A_61_a_restart_goes_on_where_the_queue_had_got(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was acknowledged does not come again, also when the journal no longer has the records of that."""
    now = full(monkeypatch, 30)
    now.send("live")
    taken: list[str] = []
    for _ in range(5):
        taken += now.read(of="work", count_max=3)
        now = Past(DESK, over(), before=now, settings=FULL)
        for number in range(40):
            now.send(f"{number} " + "x" * 4000, to="/queue/elsewhere")
        assert now.read(of="elsewhere")
        now.broker.advance(60_000)
    taken += now.read(of="work")
    assert taken == [*[f"h{number}" for number in range(30)], "live"]


@pytest.mark.interpreted
def test_A_61_a_queue_without_room_does_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    past = Past(DESK)
    past.send_all([str(number) for number in range(20)])
    limited = over("overflow-policy='REJECT' max-depth-messages='3'", "limited")
    now = Past(DESK, limited, over(), before=past)
    assert (now.count("limited"), now.count("work")) == (3, 20)
    assert now.read(of="limited") == [str(number) for number in range(20)]
    now.send("live")
    assert (now.read(of="limited"), now.read(of="work")[-1]) == (["live"], "live")


@pytest.mark.interpreted
def test_A_61_a_queue_may_be_deleted_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the log for it any more, and one of the same name is a new one."""
    now = full(monkeypatch)
    broker = now.core
    broker.registry.delete_queue(broker.queues["work"], broker.log.now_ms)
    now.send("live")
    assert now.replays.count == 0
    assert now.read(of="desk") == ["live"]
    monkeypatch.setattr(fills, "AHEAD_BYTES", 1 << 20)
    again = Past(DESK, over(), before=now, settings=FULL)
    assert again.read(of="work") == [*[f"h{number}" for number in range(12)], "live"]


@pytest.mark.interpreted
def test_A_61_a_turn_has_time_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the history is, few of its messages come in a turn."""
    past = Past(DESK)
    past.write("producer", "BEGIN", "transaction:t")
    for number in range(2000):
        past.write("producer", "SEND", "destination:orders.eu", "persistent:true", "transaction:t", body=str(number))
    past.write("producer", "COMMIT", "transaction:t")
    placed: list[int] = []
    run = ReplayTurns.run

    def counted(turns: ReplayTurns, units: int, now_ms: int) -> None:
        before = broker.records.last_lsn
        run(turns, units, now_ms)
        placed.append(broker.records.last_lsn - before)

    past.broker.drain()
    monkeypatch.setattr(ReplayTurns, "run", counted)
    disk, archive = past.disk, past.archive
    journal = JournalSettings(file_bytes=65536, compact_files_min=0, duplicate_ids_kept=10, retains=True)
    config = configuration(RETAINED + addresses(DESK, over()))
    broker = Incarnation(config, SimStore(disk, journal, archive), Projection(10), 1_000_000)
    broker.drain()
    assert broker.broker.queues["work"].message_count == 2000
    assert max(placed) < 150


@pytest.mark.interpreted
def test_A_61_transient_messages_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log does not have them."""
    now = full(monkeypatch)
    now.write("producer", "SEND", "destination:/queue/orders.eu", body="transient")
    assert "transient" in now.read(of="work")


@pytest.mark.interpreted
def test_A_61_a_message_on_its_way_to_a_queue_is_not_unrouted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fills, "AHEAD_BYTES", 400)
    to_dead = "<send-to-dla-on-no-route>true</send-to-dla-on-no-route>"
    dead = f"{FULL}<dead-letter-address>dead</dead-letter-address>{to_dead}"
    past = Past()
    past.send_all("abcdefgh", to="/topic/orders.eu")
    now = Past(over(), before=past, settings=dead)
    assert now.queue("work").filling is not None
    now.send("live", to="/topic/orders.eu")
    assert now.core.addresses["orders.eu"].unrouted_message_count == 0
    assert now.read(of="work") == [*"abcdefgh", "live"]
    assert "dead" not in now.core.addresses


def test_A_61_what_retention_has_removed_is_told_of() -> None:
    past = Past(DESK)
    past.send_all([f"{number} " + "x" * 8000 for number in range(20)])
    past.read(of="desk")
    past = Past(DESK, before=past)
    past.send_all([f"{number} " + "x" * 8000 for number in range(20, 30)])
    past.read(of="desk")
    first = past.offsets("orders.eu")[0]
    assert past.archive.retired
    past.archive.remove_oldest()
    now = Past(DESK, begins(first), before=past)
    left = now.offsets("orders.eu")
    assert now.count("work") == len(left) < 29
    assert now.core.events.counts["ART-1010"] == 1
    assert now.core.events.counts["ART-1009"] == 1


# ---- a changed recovery point --------------------------------------------------------------------


def test_A_61_a_changed_recovery_point_begins_there_again() -> None:
    """What was acknowledged returns, and what is on the queue is there once."""
    past = Past(DESK, over("recovery-point='now'"))
    past.send_all("abc")
    assert past.read(of="work", count_max=2) == ["a", "b"]
    first = past.offsets("orders.eu")[0]
    now = Past(DESK, over("recovery-point='epoch'"), before=past)
    assert now.count("work") == 3
    now.send("d")
    assert sorted(now.read(of="work")) == ["a", "b", "c", "d"]
    assert Past(DESK, over("recovery-point='epoch'"), before=now).count("work") == 0
    now = Past(DESK, begins(first), before=now)
    assert now.read(of="work") == ["b", "c", "d"]
    assert Past(DESK, over("recovery-point='now'"), before=now).count("work") == 0


def test_A_61_creation_is_when_the_queue_was_made() -> None:
    past = Past(DESK)
    past.send("before")
    past = Past(DESK, over("recovery-point='now'"), before=past)
    past.send_all("ab")
    assert past.read(of="work") == ["a", "b"]
    now = Past(DESK, over("recovery-point='creation'"), before=past)
    assert now.read(of="work") == ["a", "b"]


@pytest.mark.interpreted
def test_A_61_what_is_in_pages_is_not_doubled() -> None:
    """The queue gets its history when they are empty."""
    pages = "<max-size-messages>2</max-size-messages><page-size-bytes>2000</page-size-bytes>"
    past = Past(over("recovery-point='now'"), settings=pages)
    past.send_all("abcdefgh", to="/topic/orders.eu")
    assert past.read(of="work", count_max=1) == ["a"]
    now = Past(over("recovery-point='epoch'"), before=past, settings=pages)
    assert now.count("work") == 7
    assert now.read(of="work", count_max=7) == list("bcdefgh")
    assert sorted(now.read(of="work")) == list("abcdefgh")


def test_A_61_a_declared_queue_that_leaves_the_file_goes_on() -> None:
    past = Past(DESK)
    past.send_all("ab")
    now = Past(DESK, over("recovery-point='epoch'"), before=past)
    assert now.count("work") == 2
    assert Past(DESK, before=now).count("work") == 2


# ---- one pass, one body --------------------------------------------------------------------------


def test_A_63_one_pass_for_all_queues_that_are_new_at_a_start() -> None:
    """Whatever they read, and wherever they begin: the log is read from the first of these places on, once."""
    past = Past(DESK, US)
    for number in range(40):
        past.send(f"{number} " + "x" * 5000, to=("/queue/orders.eu", "/queue/orders.us")[number % 2])
    first = past.offsets("orders.eu")[0]
    one = Past(DESK, US, over(), before=past)
    names = ("second", "third", "fourth")
    now = Past(
        DESK, US, over(), over("", "second"), over("", "third", "orders.us", "orders.us"),
        over(f"recovery-point='{first}'", "fourth", "orders.#", "orders.eu"), before=one,
    )  # fmt: skip
    assert [now.count(name) for name in names] == [20, 20, 39]
    files = now.archive.files(now.disk).values()
    assert now.broker.log_files is not None
    assert now.broker.log_files.read_bytes < 1.1 * sum(len(data.rstrip(b"\0")) for data in files)


def test_A_15_a_body_of_the_past_is_there_once() -> None:
    """Whether or not another queue still has the message; also after a restart."""
    past = Past(DESK)
    past.send_all(["x" * 1000, "y" * 1000])
    assert len(past.read(of="desk", count_max=1)) == 1
    now = Past(DESK, over(), over("", "second"), before=past)
    for life in (now, Past(DESK, over(), over("", "second"), before=now)):
        account = life.core.memory.account
        assert account.message_count == 2
        assert account.size_bytes < 3000
        assert [life.count(name) for name in ("desk", "work", "second")] == [1, 2, 2]


# ---- other starts --------------------------------------------------------------------------------


def test_A_60_a_start_finds_the_state_in_the_log() -> None:
    """Out, acknowledged, and never delivered: each as it was."""
    past = Past(DESK, over())
    past.send_all("abcdef")
    assert past.read(of="work", count_max=2) == ["a", "b"]
    past.write("holder", "SUBSCRIBE", "id:1", "destination:work::work", "ack:client-individual")
    assert past.got("holder") == list("cdef")
    now = Past(DESK, over(), before=past)
    assert (now.count("work"), now.count("desk")) == (4, 6)
    assert now.read(of="work") == list("cdef")


def test_A_62_a_start_needs_only_what_somebody_has_not_acknowledged() -> None:
    """Without the rest of the log everything is as it was."""
    past = Past(DESK, over())
    past.send_all([f"{number} " + "x" * 8000 for number in range(30)])
    assert len(past.read(of="work", count_max=28)) == 28
    assert len(past.read(of="desk", count_max=29)) == 29
    past = Past(DESK, over(), before=past)
    assert past.archive.retired
    while past.archive.retired:
        past.archive.remove_oldest()
    now = Past(DESK, over(), before=past)
    assert [body[:2] for body in now.read(of="work")] == ["28", "29"]
    assert [body[:2] for body in now.read(of="desk")] == ["29"]


# ---- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["yesterday", "-1", "20261301T000000Z", "2026-01-31", "12345678901234567890", "1.5"])
def test_A_61_points_that_are_none(point: str) -> None:
    (problem,) = errors_of(RETAINED + addresses("\n" + begins(point)))
    assert problem.line == 4
    assert (problem.message, problem.value) == ("recovery-point of queue 'work' is not a place in the log", point)
    assert problem.allowed == ("epoch, now, creation, the bookmark of a message, or a time in UTC as 20260131T235959Z")


@pytest.mark.parametrize("point", ["epoch", "5", "20260131T235959Z"])
def test_A_61_the_past_needs_a_log_that_is_kept(point: str) -> None:
    (problem,) = errors_of(addresses("\n" + begins(point)))
    assert problem.line == 4
    assert "recovery-point without journal-retention-directory" in problem.message


@pytest.mark.parametrize("point", ["now", "creation"])
def test_A_61_what_comes_needs_none(point: str) -> None:
    assert errors_of(addresses(begins(point))) == []


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("<queue name='q' recovery-point='epoch'><durable>false</durable></queue>", "and is not durable"),
        ("<queue name='q' recovery-point='epoch' purge-on-no-consumers='true'/>", "and purge-on-no-consumers"),
    ],
)
def test_A_61_queues_that_cannot_begin_in_the_past(queue: str, said: str) -> None:
    (problem,) = errors_of(RETAINED + addresses(f"<address name='q'><anycast>\n{queue}</anycast></address>"))
    assert problem.line == 4
    assert said in problem.message


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("epoch", "the beginning of the log"),
        ("now", "what comes"),
        ("creation", "what came since it was made"),
        ("17", "the messages behind bookmark 17"),
        ("20260131T235959Z", "what was published at 20260131T235959Z or later"),
    ],
)
def test_A_61_explain_shows_where_a_queue_begins(point: str, said: str) -> None:
    config = load_core(RETAINED + addresses(begins(point)))
    assert ("begins with", said, "when it is new, or this was changed") in compose(explain(config, "work::work"))
