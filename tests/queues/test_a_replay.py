"""Row A-13 (rows.py): replays of the log. The disk is in memory, and the clock is set by hand."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from tests.queues.bench import Bench
from tests.queues.replays import QUEUE, Stage, bookmarks

pytestmark = pytest.mark.wire


def stage(cut: bool, *bodies: str) -> Stage:
    """A broker whose log has these messages."""
    made = Stage(cut=cut)
    made.send(*bodies)
    return made


# ---- what a replay shows -------------------------------------------------------------------------


def test_A_13_everything_again_though_all_is_acknowledged(cut: bool) -> None:
    here = stage(cut, "a", "b", "c")
    assert here.life.read(here.client("consumer")) == ["a", "b", "c"]
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a", "b", "c"]
    assert here.life.broker.broker.queues["q"].message_count == 0


def test_A_13_the_queue_stays_as_it_is(cut: bool) -> None:
    """Nothing is leased, counted or taken, and ``ack`` does not matter."""
    here = stage(cut, "a", "b")
    queue = here.life.broker.broker.queues["q"]
    for name, ack in (("c1", "auto"), ("c2", "client"), ("c3", "client-individual")):
        here.replay(name, "EPOCH", f"ack:{ack}")
        assert here.got(name) == ["a", "b"]
    assert (queue.message_count, queue.consumer_count, queue.contents.tally.held_count) == (2, 0, 0)
    assert here.life.read(here.client("consumer")) == ["a", "b"]


def test_A_13_then_what_is_published(cut: bool) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH")
    here.send("b")
    assert here.got("c1") == ["a", "b"]
    here.send("c", "d")
    assert here.got("c1") == ["c", "d"]


def test_A_13_nothing_is_created(cut: bool) -> None:
    here = stage(cut)
    before = set(here.life.broker.broker.queues), set(here.life.broker.broker.addresses)
    here.replay("c1", "EPOCH", of="destination:/queue/nowhere")
    here.replay("c1", "EPOCH", of="destination:/topic/nowhere.#", id="2")
    assert (set(here.life.broker.broker.queues), set(here.life.broker.broker.addresses)) == before


def test_A_13_an_address_without_queues_and_one_that_is_gone(cut: bool) -> None:
    here = stage(cut)
    here.send("unrouted", to="/topic/news")
    here.send("gone", to="/queue/brief")
    assert here.life.read(here.client("consumer")) == []
    here.write("consumer", "SUBSCRIBE", "id:2", "destination:/queue/brief", "ack:auto")
    here.write("consumer", "UNSUBSCRIBE", "id:2")
    here.advance(120_000)
    assert "brief" not in here.life.broker.broker.queues
    here.replay("c1", "EPOCH", of="destination:/topic/news")
    here.replay("c2", "EPOCH", of="destination:/queue/brief")
    assert (here.got("c1"), here.got("c2")) == (["unrouted"], ["gone"])


def test_A_13_only_persistent_messages(cut: bool) -> None:
    here = stage(cut, "a")
    here.write("producer", "SEND", QUEUE, body="transient")
    here.replay("c1", "EPOCH")
    here.write("producer", "SEND", QUEUE, body="transient")
    here.send("b")
    assert here.got("c1") == ["a", "b"]


def test_A_13_a_transaction_in_order(cut: bool) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH")
    here.write("producer", "BEGIN", "transaction:t")
    here.send("b", "c", headers=("transaction:t",))
    here.send("d", by="other")
    assert here.got("c1") == ["a", "d"]
    here.write("producer", "COMMIT", "transaction:t")
    here.replay("c2", "EPOCH")
    assert here.got("c1") == ["b", "c"]
    assert here.got("c2") == ["a", "d", "b", "c"]


def test_A_13_a_transaction_larger_than_a_slice(cut: bool) -> None:
    """Its record is not read as a whole."""
    here = Stage()
    bodies = [f"{number:03}" + "x" * 9000 for number in range(60)]
    here.replay("c1", "EPOCH")
    here.write("producer", "BEGIN", "transaction:t")
    here.send(*bodies, headers=("transaction:t",))
    here.write("producer", "COMMIT", "transaction:t")
    here.send("after")
    here.replay("c2", "EPOCH")
    for name in ("c1", "c2"):
        frames = here.messages(name)
        assert [frame.body.decode() for frame in frames] == [*bodies, "after"]
        assert bookmarks(frames) == here.offsets()


def test_A_13_messages_in_pages(cut: bool) -> None:
    here = Stage(cut=cut, settings="<max-size-bytes>2000</max-size-bytes><page-size-bytes>2000</page-size-bytes>")
    bodies = [f"{number}" + "x" * 300 for number in range(20)]
    here.send(*bodies[:10])
    here.replay("c1", "EPOCH")
    here.send(*bodies[10:])
    assert here.life.broker.broker.addresses["q"].must_page
    assert here.got("c1") == bodies


def test_A_13_large_bodies(cut: bool) -> None:
    """Also those that no queue needs any more, as long as the log has them; a header tells of others."""
    here = Stage()
    large = "large" * 40_000
    here.send("a", large, "b")
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a", large, "b"]
    assert here.life.read(here.client("consumer")) == ["a", large, "b"]
    here.advance(1)
    here.replay("c2", "EPOCH", "completed:true")
    first, second, third, completed = here.messages("c2")
    assert (first.body, second.body, third.body) == (b"a", b"", b"b")
    assert second.header("body-removed") == str(len(large))
    assert (first.header("body-removed"), completed.header("completed")) == (None, "true")


def test_A_13_copies_of_compaction_are_not_shown_twice(cut: bool) -> None:
    here = stage(cut, "a")
    journal = here.life.broker.journal
    journal.write_again([kept for segment in journal.segments for kept in segment.live.values()])
    here.send("b")
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a", "b"]


def test_A_13_across_segments(cut: bool) -> None:
    here = Stage()
    bodies = [f"{number:03}" + "x" * 3000 for number in range(80)]
    here.send(*bodies[:40])
    here.life.read(here.client("consumer"))
    assert len(here.archive.retired) > 0
    here.replay("c1", "EPOCH")
    here.send(*bodies[40:])
    frames = here.messages("c1")
    assert [frame.body.decode() for frame in frames] == bodies
    assert bookmarks(frames) == here.offsets()


# ---- which messages ------------------------------------------------------------------------------


def test_A_13_a_queue_of_another_address(cut: bool) -> None:
    """The replay is of the address, whatever the filter of the queue is."""
    here = stage(cut, "other")
    here.send("blue", headers=("colour:blue",), to="/queue/far")
    here.send("red", headers=("colour:red",), to="/queue/far")
    for number, destination in enumerate(("far", "near", "far::near", "far::unknown"), 1):
        here.replay("c1", "EPOCH", of=f"destination:/queue/{destination}", id=str(number))
        assert here.got("c1") == ["blue", "red"]
    here.replay("c2", "EPOCH", of="destination:/queue/q::near")
    assert here.error("c2") == "Queue near is on address far, not on q"


def test_A_13_a_wildcard_address(cut: bool) -> None:
    here = stage(cut)
    for address in ("eu.fr", "us.ny", "eu.de"):
        here.send(address, to=f"/queue/{address}")
    here.replay("c1", "EPOCH", of="destination:/queue/eu.*")
    here.replay("c2", "EPOCH", of="destination:/queue/#")
    here.send("eu.it", to="/queue/eu.it")
    here.send("us.la", to="/queue/us.la")
    assert here.got("c1") == ["eu.fr", "eu.de", "eu.it"]
    assert here.got("c2") == ["eu.fr", "us.ny", "eu.de", "eu.it", "us.la"]


def test_A_13_a_selector(cut: bool) -> None:
    here = stage(cut, "plain")
    here.send("red", headers=("colour:red", "size:5"))
    here.replay("c1", "EPOCH", "selector:colour = 'red' AND AMQPriority = 4")
    here.send("blue", headers=("colour:blue",))
    here.send("red 2", headers=("colour:red",))
    assert here.got("c1") == ["red", "red 2"]
    here.replay("c2", "EPOCH", "selector:colour = ")
    assert here.error("c2").startswith("selector:")


def test_A_13_no_local(cut: bool) -> None:
    here = stage(cut, "other")
    here.send("own", by="c1")
    here.replay("c1", "EPOCH", "no-local:true")
    here.send("own 2", by="c1")
    here.write("c1", "BEGIN", "transaction:t")
    here.send("own 3", by="c1", headers=("transaction:t",))
    here.write("c1", "COMMIT", "transaction:t")
    here.send("other 2")
    assert here.got("c1") == ["other", "other 2"]


def test_A_13_temporary_destinations_have_no_history(cut: bool) -> None:
    here = stage(cut)
    here.replay("c1", "EPOCH", of="destination:/temp-queue/mine")
    assert here.error("c1").startswith("A temporary destination has no history")


# ---- where it begins and ends --------------------------------------------------------------------


def test_A_13_a_bookmark_is_the_place_in_the_log(cut: bool) -> None:
    """It is the number that Spark shows as ``offset``."""
    here = stage(cut, "a", "b", "c")
    here.replay("c1", "EPOCH")
    assert bookmarks(here.messages("c1")) == here.offsets()


def test_A_13_a_bookmark_is_the_same_after_a_restart(cut: bool) -> None:
    here = stage(cut, "a", "b", "c")
    here.replay("c1", "EPOCH")
    before = bookmarks(here.messages("c1"))
    here = here.again()
    here.send("d")
    here.replay("c1", "EPOCH")
    frames = here.messages("c1")
    assert bookmarks(frames)[:3] == before
    assert [frame.body.decode() for frame in frames] == ["a", "b", "c", "d"]
    here.replay("c2", str(before[1]))
    assert here.got("c2") == ["c", "d"]


@pytest.mark.parametrize("epoch", ["EPOCH", "0", " EPOCH ", "NOW,EPOCH"])
def test_A_13_from_the_beginning(cut: bool, epoch: str) -> None:
    here = stage(cut, "a", "b")
    here.replay("c1", epoch)
    assert here.got("c1") == ["a", "b"]


@pytest.mark.parametrize("now", ["NOW", "0|1|", "999999999", "NOW,999999999"])
def test_A_13_from_now_on(cut: bool, now: str) -> None:
    """A bookmark beyond the end is now, too."""
    here = stage(cut, "a", "b")
    here.replay("c1", now)
    here.send("c")
    assert here.got("c1") == ["c"]


def test_A_13_now_is_when_the_frame_arrives() -> None:
    """What was sent before is not new, even if it is not durable yet."""
    here = stage(False, "a")
    client = here.client("c1")
    lines = ("destination:/queue/q", "persistent:true")
    frames = [("SEND", *lines), ("SUBSCRIBE", "id:1", QUEUE, "bookmark:NOW"), ("SEND", *lines)]
    client.send("".join("\n".join(frame) + f"\n\n{frame[0]}\0" if frame[0] == "SEND" else "\n".join(frame) + "\n\n\0"
                        for frame in frames).encode())  # fmt: skip
    here.life.broker.drain()
    assert here.got("c1") == ["SEND"]
    assert len(here.offsets()) == 3


def test_A_13_after_a_bookmark(cut: bool) -> None:
    here = stage(cut, "a", "b", "c")
    first, second, third = here.offsets()
    for number, (bookmark, expected) in enumerate(
        [
            (str(first), ["b", "c"]),
            (str(third), []),
            (f"{third},{first},{second}", ["b", "c"]),
            (f"{second},NOW", ["c"]),
            (str(first - 1), ["a", "b", "c"]),
        ]
    ):
        here.replay("c1", bookmark, id=str(number))
        assert here.got("c1") == expected, bookmark


def test_A_13_a_range(cut: bool) -> None:
    here = stage(cut, "a", "b", "c", "d")
    a, b, c, d = here.offsets()
    for number, (bookmark, expected) in enumerate(
        [
            (f"[{b}:{c}]", ["b", "c"]),
            (f"({b}:{c}]", ["c"]),
            (f"[{b}:{c})", ["b"]),
            (f"({b}:{c})", []),
            (f"[EPOCH:{b}]", ["a", "b"]),
            ("[EPOCH:NOW]", ["a", "b", "c", "d"]),
            (f"[{c}:]", ["c", "d"]),
            (f"({c}:]", ["d"]),
            (f"[{d}:{a}]", []),
            ("[EPOCH:EPOCH]", []),
            (f"[{d},{b}:{d},{c}]", ["b", "c"]),
        ]
    ):
        here.replay("c1", bookmark, id=str(number))
        assert here.got("c1") == expected, bookmark
    here.send("e")
    assert here.got("c1") == ["e", "e"], "the two open ranges go on"


def test_A_13_a_range_that_ends_later(cut: bool) -> None:
    here = stage(cut, "a")
    end = here.offsets()[0] + 6
    here.replay("c1", f"[EPOCH:{end}]", "completed:true")
    while here.offsets()[-1] < end + 5:
        here.send(str(len(here.offsets())))
    inside = [str(number) for number, offset in enumerate(here.offsets()) if number and offset <= end]
    assert here.got("c1") == ["a", *inside, "completed"]
    assert inside


def moment(at_ms: int, *, zone: str = "Z") -> str:
    """A date as bookmark."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y%m%dT%H%M%S}{zone}"


def timed(cut: bool) -> tuple[Stage, list[int]]:
    """A message in each of three minutes, and the dates of them in whole seconds."""
    here = Stage(cut=cut)
    dates: list[int] = []
    for body in "abc":
        here.advance(60_000 - here.life.broker.loop.clock_ms() % 1000)
        dates.append(here.life.broker.loop.clock_ms())
        here.send(body)
    return here, dates


def test_A_13_from_a_time(cut: bool) -> None:
    here, (a, b, c) = timed(cut)
    for number, (bookmark, expected) in enumerate(
        [
            (moment(b), ["b", "c"]),
            (moment(b, zone=""), ["b", "c"]),
            (moment(b + 1000), ["c"]),
            ("19700101T000000Z", ["a", "b", "c"]),
            (moment(c + 1000), []),
            (f"{moment(c)},{here.offsets()[0]}", ["b", "c"]),
            (f"{moment(b)},NOW", ["b", "c"]),
            (f"[{moment(b)}:{moment(b)}]", ["b"]),
            (f"({moment(b)}:{moment(c)}]", ["c"]),
            (f"[{moment(a)}:{moment(c)})", ["a", "b"]),
            (f"[{here.offsets()[1]}:{moment(b + 1000)}]", ["b"]),
        ]
    ):
        here.replay("c1", bookmark, id=str(number))
        assert here.got("c1") == expected, bookmark


def test_A_13_a_time_is_found_after_a_restart(cut: bool) -> None:
    here, dates = timed(cut)
    here = here.again()
    here.replay("c1", moment(dates[1]))
    assert here.got("c1") == ["b", "c"]


def test_A_13_a_range_ends_when_its_time_is_over(cut: bool) -> None:
    """Although nothing is published then."""
    here = stage(cut, "a")
    end_ms = (here.life.broker.loop.clock_ms() // 1000 + 10) * 1000
    here.replay("c1", f"[EPOCH:{moment(end_ms)}]", "completed:true")
    here.advance(1000)
    here.send("b")
    assert here.got("c1") == ["a", "b"]
    here.advance(20_000)
    assert here.got("c1") == ["completed"]
    here.send("c")
    assert here.got("c1") == []


@pytest.mark.parametrize(
    ("bookmark", "reason"),
    [
        ("MOST_RECENT", "bookmark:MOST_RECENT is not known here: the broker keeps no place for a client. Send the last"),
        ("yesterday", "bookmark is not one: 'yesterday'; use EPOCH, NOW"),
        ("20261301T000000Z", "bookmark is not one: '20261301T000000Z'"),
        ("1,,2", "bookmark is not one: ''"),
        ("-5", "bookmark is not one: '-5'"),
        ("", "bookmark is not one: ''"),
        ("[1:2", "bookmark is no range: '[1:2'"),
        ("[1]", "bookmark is no range: '[1]'"),
        ("(:5]", "bookmark is not one: ''"),
    ],
)
def test_A_13_what_is_no_bookmark(cut: bool, bookmark: str, reason: str) -> None:
    here = stage(cut, "a")
    here.replay("c1", bookmark)
    assert here.error("c1").startswith(reason)


# ---- what is removed -----------------------------------------------------------------------------


def worn(count: int = 60) -> tuple[Stage, list[str]]:
    """A log of several segments, most of them retained."""
    here = Stage()
    bodies = [f"{number:03}" + "x" * 3000 for number in range(count)]
    here.send(*bodies)
    here.life.read(here.client("consumer"))
    here.frames("consumer")
    assert len(here.archive.retired) >= 2
    return here, bodies


def test_A_13_from_the_beginning_of_what_is_left() -> None:
    here, bodies = worn()
    here.archive.remove_oldest()
    left = here.offsets()
    here.replay("c1", "EPOCH")
    frames = here.messages("c1")
    assert bookmarks(frames) == left
    assert [frame.body.decode() for frame in frames] == bodies[-len(left) :]


def test_A_13_a_bookmark_that_retention_has_removed_is_refused() -> None:
    here, _ = worn()
    first = here.offsets()[0]
    here.archive.remove_oldest()
    here.replay("c1", str(first))
    text = here.error("c1")
    assert text.startswith(f"The log after bookmark {first} was removed: what is left of it begins with lsn ")
    assert "Go on with bookmark:EPOCH" in text


def test_A_13_a_replay_does_not_hide_what_is_removed_while_it_is_paused() -> None:
    """It goes as far as it can, and then says where it was."""
    here, bodies = worn(200)
    here.replay("c1", "EPOCH", "rate:1000")
    here.advance(10)
    shown = here.messages("c1")
    assert 0 < len(shown) < 20
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "pause:true")
    while len(here.archive.retired) > 1:
        here.archive.remove_oldest()
    left = here.offsets()[0]
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    here.advance(1000)
    *others, error = here.frames("c1")
    shown += others
    assert [frame.body.decode() for frame in shown] == bodies[: len(shown)]
    found = re.match(r"Replay '1' ended. The log after bookmark (\d+) was removed", error.body.decode())
    assert found is not None, error.text
    assert bookmarks(shown)[-1] <= int(found[1]) < left - 1
    assert here.client("c1").is_closed
    assert here.replays.count == 0


def test_A_13_a_replay_that_has_shown_nothing_begins_with_what_is_left() -> None:
    here, bodies = worn()
    here.replay("c1", "EPOCH", "pause:true")
    here.archive.remove_oldest()
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    left = len(here.offsets())
    assert here.got("c1") == bodies[-left:]


# ---- completed -----------------------------------------------------------------------------------


def test_A_13_completed_is_told_once_and_only_on_request(cut: bool) -> None:
    here = stage(cut, "a", "b")
    here.replay("c1", "EPOCH", "completed:true")
    here.replay("c2", "EPOCH")
    first, second, completed = here.messages("c1")
    assert (first.body, second.body, completed.body) == (b"a", b"b", b"")
    assert (completed.header("completed"), completed.header("subscription")) == ("true", "1")
    assert completed.header("destination") == "/queue/q"
    bookmark = int(completed.header("bookmark") or 0)
    assert bookmark >= here.offsets()[-1]
    here.send("c")
    assert (here.got("c1"), here.got("c2")) == (["c"], ["a", "b", "c"])
    here.replay("c3", str(bookmark))
    assert here.got("c3") == ["c"]


@pytest.mark.parametrize("bookmark", ["NOW", "EPOCH", "[EPOCH:NOW]", "[5:2]"])
def test_A_13_completed_where_nothing_matches(cut: bool, bookmark: str) -> None:
    here = stage(cut, "a", "b", "c", "d", "e", "f")
    here.replay("c1", bookmark, "completed:true", of="destination:/queue/nowhere")
    assert here.got("c1") == ["completed"]


# ---- rate ----------------------------------------------------------------------------------------


def test_A_13_so_many_messages_in_a_second(cut: bool) -> None:
    here = stage(cut, *map(str, range(20)))
    here.replay("c1", "EPOCH", "rate:10")
    assert here.got("c1") == ["0"]
    for number in range(1, 20):
        here.advance(99)
        assert here.got("c1") == [], number
        here.advance(1)
        assert here.got("c1") == [str(number)]


def test_A_13_so_many_bytes_in_a_second() -> None:
    here = Stage()
    here.send(*["x" * 10_000] * 20)
    here.replay("c1", "EPOCH", "rate:100KB")
    count = 0
    for _ in range(10):
        here.advance(100)
        count += len(here.got("c1"))
    assert 9 <= count <= 12


def test_A_13_twice_as_fast_as_it_was_published(cut: bool) -> None:
    here, _ = timed(cut)
    here.replay("c1", "EPOCH", "rate:2X", "rate-max-gap:1h")
    assert here.got("c1") == ["a"]
    here.advance(29_000)
    assert here.got("c1") == []
    here.advance(2_000)
    assert here.got("c1") == ["b"]
    here.advance(30_000)
    assert here.got("c1") == ["c"]


def test_A_13_a_long_pause_is_cut(cut: bool) -> None:
    """To ten seconds of the original, unless ``rate-max-gap`` says otherwise."""
    here, _ = timed(cut)
    here.replay("c1", "EPOCH", "rate:2X")
    here.replay("c2", "EPOCH", "rate:1X", "rate-max-gap:2s")
    assert (here.got("c1"), here.got("c2")) == (["a"], ["a"])
    here.advance(1_999)
    assert (here.got("c1"), here.got("c2")) == ([], [])
    here.advance(1)
    assert (here.got("c1"), here.got("c2")) == ([], ["b"])
    here.advance(3_000)
    assert (here.got("c1"), here.got("c2")) == (["b"], ["c"])


def test_A_13_the_wall_clock_does_not_matter_to_a_rate(cut: bool) -> None:
    here = stage(cut, "a", "b")
    here.replay("c1", "EPOCH", "rate:1")
    assert here.got("c1") == ["a"]
    here.life.broker.loop.ahead_ms += 3_600_000
    here.life.broker.broker.clock.shift_ms += 3_600_000
    here.advance(999)
    assert here.got("c1") == []
    here.advance(1)
    assert here.got("c1") == ["b"]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (("rate:0",), "rate must be a number of messages"),
        (("rate:-1",), "rate must be a number of messages"),
        (("rate:fast",), "rate must be a number of messages"),
        (("rate:0X",), "rate must be a number of messages"),
        (("rate-max-gap:1s",), "rate-max-gap needs rate"),
        (("rate:10", "rate-max-gap:1s"), "rate-max-gap belongs to a multiple"),
        (("rate:1X", "rate-max-gap:long"), "rate-max-gap must be a period"),
    ],
)
def test_A_13_what_is_no_rate(cut: bool, headers: tuple[str, ...], reason: str) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH", *headers)
    assert here.error("c1").startswith(reason)


# ---- pause and resume ----------------------------------------------------------------------------


def change(here: Stage, name: str, *headers: str, id: str = "1") -> None:
    """A SUBSCRIBE that changes a replay."""
    here.write(name, "SUBSCRIBE", f"id:{id}", QUEUE, *headers)


def test_A_13_pause_keeps_the_place(cut: bool) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a"]
    change(here, "c1", "pause:true")
    here.send("b")
    assert here.got("c1") == []
    change(here, "c1", "pause:true")
    change(here, "c1", "resume:true")
    assert here.got("c1") == ["b"]
    change(here, "c1", "resume:true")
    here.send("c")
    assert here.got("c1") == ["c"]


def test_A_13_nothing_comes_behind_the_receipt_of_a_pause() -> None:
    here = Stage()
    here.send(*["x" * 3000] * 200)
    client = here.client("c1")
    client.stall()
    here.replay("c1", "EPOCH")
    change(here, "c1", "pause:true", "receipt:r")
    client.read_again()
    here.life.broker.drain()
    frames = here.frames("c1")
    assert [frame.command for frame in frames] == ["MESSAGE"] * (len(frames) - 1) + ["RECEIPT"]
    assert len(frames) < 200
    change(here, "c1", "resume:true")
    assert len(here.messages("c1")) + len(frames) == 201


def test_A_13_a_replay_may_begin_paused(cut: bool) -> None:
    """Then NOW is when it begins."""
    here = stage(cut, "a")
    here.replay("c1", "EPOCH", "pause:true")
    here.replay("c1", "NOW", "pause:true", id="2")
    here.send("b")
    assert here.got("c1") == []
    change(here, "c1", "resume:true")
    assert here.got("c1") == ["a", "b"]
    change(here, "c1", "resume:true", id="2")
    assert here.got("c1") == ["b"]


def test_A_13_time_does_not_pass_for_a_paced_replay_that_is_paused(cut: bool) -> None:
    here, _ = timed(cut)
    here.replay("c1", "EPOCH", "rate:1X", "rate-max-gap:1h")
    assert here.got("c1") == ["a"]
    here.advance(20_000)
    change(here, "c1", "pause:true")
    here.advance(500_000)
    change(here, "c1", "resume:true")
    here.advance(39_000)
    assert here.got("c1") == []
    here.advance(2_000)
    assert here.got("c1") == ["b"]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (("pause:true",), "pause:true is for replays, and this connection has no replay '9'"),
        (("resume:true",), "resume:true is for replays, and this connection has no replay '9'"),
        (("bookmark:EPOCH", "resume:true"), "resume:true is for a replay that is paused"),
        (("bookmark:EPOCH", "pause:true", "resume:true"), "pause:true and resume:true exclude each other"),
    ],
)
def test_A_13_pause_and_resume_of_what_is_no_replay(cut: bool, headers: tuple[str, ...], reason: str) -> None:
    here = stage(cut, "a")
    change(here, "c1", *headers, id="9")
    assert here.error("c1").startswith(reason)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (("ack:client",), ("pause:true",), "The subscription '1' is no replay"),
        (("ack:client",), ("bookmark:EPOCH",), "The subscription '1' is no replay"),
        (("bookmark:EPOCH",), ("ack:client",), "There is already a replay '1': pause:true or resume:true changes it"),
        (("bookmark:EPOCH",), ("bookmark:NOW",), "There is already a replay '1'"),
        (("bookmark:EPOCH",), ("pause:true", "rate:5"), "pause and resume change nothing else: leave out rate"),
        (("bookmark:EPOCH",), ("replace:true",), "There is already a replay '1'"),
    ],
)
def test_A_13_what_a_subscription_cannot_become(
    cut: bool, first: tuple[str, ...], second: tuple[str, ...], reason: str
) -> None:
    here = stage(cut)
    change(here, "c1", *first)
    change(here, "c1", *second)
    assert here.error("c1").startswith(reason)


def test_A_13_pause_names_the_same_destination(cut: bool) -> None:
    here = stage(cut)
    here.replay("c1", "EPOCH")
    here.write("c1", "SUBSCRIBE", "id:1", "destination:/queue/far", "pause:true")
    assert here.error("c1") == "The replay '1' is of /queue/q, not of /queue/far"


# ---- the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("browser:true", "browser"),
        ("exclusive:true", "exclusive"),
        ("max-backlog:5", "max-backlog"),
        ("consumer-window-size:0", "consumer-window-size"),
        ("activemq.prefetchSize:5", "activemq.prefetchSize"),
        ("durable-subscription-name:x", "durable-subscription-name"),
        ("consumer-priority:5", "consumer-priority"),
        ("x-qpid-replay-period:5", "x-qpid-replay-period"),
        ("replace:true", "replace"),
    ],
)
def test_A_13_headers_that_make_no_sense_are_named(cut: bool, header: str, name: str) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH", header)
    assert here.error("c1") == f"{name} and bookmark exclude each other: a replay takes nothing from a queue"


def test_A_13_the_same_headers_are_fine_when_they_are_false(cut: bool) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH", "browser:false", "exclusive:false", "no-local:false", "pause:false", "resume:false")
    assert here.got("c1") == ["a"]


def test_A_13_ack_and_nack_do_nothing(cut: bool) -> None:
    here = stage(cut, "a", "b", "c")
    here.replay("c1", "EPOCH", "ack:client-individual")
    here.replay("c1", "EPOCH", id="auto")
    first, second, third, *others = here.messages("c1")
    here.write("c1", "ACK", f"id:{first.header('ack')}", "receipt:1")
    here.write("c1", "NACK", f"id:{second.header('ack')}", "receipt:2")
    here.write("c1", "BEGIN", "transaction:t")
    here.write("c1", "ACK", f"id:{third.header('ack')}", "transaction:t", "receipt:3")
    here.write("c1", "COMMIT", "transaction:t", "receipt:4")
    assert [other.header("ack") for other in others] == [None] * 3
    here.write("c1", "ACK", f"id:{others[0].header('message-id')}", "receipt:5")
    assert [frame.command for frame in here.frames("c1")] == ["RECEIPT"] * 5
    assert here.life.read(here.client("consumer")) == ["a", "b", "c"]


def test_A_13_a_run_of_acks_between_those_of_a_queue() -> None:
    here = stage(False, "a", "b")
    here.write("c1", "SUBSCRIBE", "id:q", QUEUE, "ack:client-individual")
    here.replay("c1", "EPOCH", "ack:client")
    frames = here.messages("c1")
    assert sorted(frame.header("subscription") or "" for frame in frames) == ["1", "1", "q", "q"]
    acks = "".join(f"ACK\nid:{frame.header('ack')}\n\n\0" for frame in (frames[0], frames[2], frames[1], frames[3]))
    here.put(here.client("c1"), acks)
    assert here.frames("c1") == []
    assert here.life.broker.broker.queues["q"].message_count == 0


def test_A_13_stomp_1_1_and_1_0(cut: bool) -> None:
    here = stage(cut, "a")
    here.client("c1", "1.1")
    here.replay("c1", "EPOCH", "ack:client")
    (frame,) = here.messages("c1")
    here.write("c1", "ACK", "subscription:1", f"message-id:{frame.header('message-id')}", "receipt:1")
    assert [frame.command for frame in here.frames("c1")] == ["RECEIPT"]
    here.client("c2", "1.0")
    here.write("c2", "SUBSCRIBE", QUEUE, "bookmark:EPOCH")
    assert here.got("c2") == ["a"]
    here.write("c2", "UNSUBSCRIBE", QUEUE)
    here.send("b")
    assert here.got("c2") == []


def test_A_13_unsubscribe_and_disconnect_end_it(cut: bool) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH")
    here.replay("c2", "EPOCH")
    assert here.replays.count == 2
    here.write("c1", "UNSUBSCRIBE", "id:1", "receipt:r")
    here.client("c2").drop()
    here.send("b")
    assert [frame.body for frame in here.frames("c1")] == [b"a", b""]
    assert here.replays.count == 0
    here.write("c1", "UNSUBSCRIBE", "id:1")
    assert here.error("c1").startswith("There is no subscription '1'")


def test_A_13_replays_count_as_subscriptions(cut: bool) -> None:
    bench = Bench(cut=cut, acceptor="maxSubscriptions=1")
    bench.write("c1", "SUBSCRIBE", "id:1", QUEUE)
    bench.write("c1", "SUBSCRIBE", "id:2", QUEUE, "bookmark:EPOCH")
    (frame,) = bench.frames("c1")
    assert frame.body.startswith(b"Too many subscriptions")


def test_A_13_without_a_retained_log_it_is_refused(cut: bool) -> None:
    bench = Bench(cut=cut, core="<persistence-enabled>true</persistence-enabled>")
    bench.write("c1", "SUBSCRIBE", "id:1", QUEUE, "bookmark:EPOCH")
    (frame,) = bench.frames("c1")
    expected = "A replay (bookmark) reads the retained log, and this broker has none: set "
    assert frame.body.decode() == f"{expected}journal-retention-directory"
    bench = Bench(cut=cut, core="<persistence-enabled>false</persistence-enabled>")
    bench.write("c1", "SUBSCRIBE", "id:1", QUEUE, "bookmark:EPOCH")
    (frame,) = bench.frames("c1")
    assert frame.body.decode() == f"{expected}persistence-enabled to true, and journal-retention-directory"
