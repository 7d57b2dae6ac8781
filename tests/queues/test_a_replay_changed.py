"""Row A-13 (rows.py): what clients ask of replays: news, rates, pauses; and what they must not ask."""

from __future__ import annotations

import pytest

from tests.kit.bench import Bench
from tests.kit.crash.retained import Archive
from tests.kit.life import Life
from tests.kit.replays import QUEUE, stage, timed

pytestmark = pytest.mark.wire


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


def test_A_13_completed_is_not_told_too_early(cut: bool) -> None:
    """What another replay has read when it was the end of the log, and is still in memory, is no end now."""
    here = Life(archive=Archive(), cut=cut)
    here.replay("c1", "EPOCH")
    for body in ("a", "b", "c"):
        here.send(body)
    here.replay("c2", "EPOCH", "completed:true")
    assert here.got("c2") == ["a", "b", "c", "completed"]
    here.send("d")
    assert here.got("c2") == ["d"]


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
        here.broker.advance(99)
        assert here.got("c1") == [], number
        here.broker.advance(1)
        assert here.got("c1") == [str(number)]


def test_A_13_so_many_bytes_in_a_second() -> None:
    here = Life(archive=Archive())
    here.send_all(["x" * 10_000] * 20)
    here.replay("c1", "EPOCH", "rate:100KB")
    count = 0
    for _ in range(10):
        here.broker.advance(100)
        count += len(here.got("c1"))
    assert 9 <= count <= 12


def test_A_13_twice_as_fast_as_it_was_published(cut: bool) -> None:
    here, _ = timed(cut)
    here.replay("c1", "EPOCH", "rate:2X", "rate-max-gap:1h")
    assert here.got("c1") == ["a"]
    here.broker.advance(29_000)
    assert here.got("c1") == []
    here.broker.advance(2_000)
    assert here.got("c1") == ["b"]
    here.broker.advance(30_000)
    assert here.got("c1") == ["c"]


def test_A_13_a_long_pause_is_cut(cut: bool) -> None:
    """To ten seconds of the original, unless ``rate-max-gap`` says otherwise."""
    here, _ = timed(cut)
    here.replay("c1", "EPOCH", "rate:2X")
    here.replay("c2", "EPOCH", "rate:1X", "rate-max-gap:2s")
    assert (here.got("c1"), here.got("c2")) == (["a"], ["a"])
    here.broker.advance(1_999)
    assert (here.got("c1"), here.got("c2")) == ([], [])
    here.broker.advance(1)
    assert (here.got("c1"), here.got("c2")) == ([], ["b"])
    here.broker.advance(3_000)
    assert (here.got("c1"), here.got("c2")) == (["b"], ["c"])


def test_A_13_the_wall_clock_does_not_matter_to_a_rate(cut: bool) -> None:
    here = stage(cut, "a", "b")
    here.replay("c1", "EPOCH", "rate:1")
    assert here.got("c1") == ["a"]
    here.broker.loop.ahead_ms += 3_600_000
    here.core.clock.set_ahead(here.core.clock.shift_ms + 3_600_000)
    here.broker.advance(999)
    assert here.got("c1") == []
    here.broker.advance(1)
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
    assert here.error("c1").body.decode().startswith(reason)


# ---- pause and resume ----------------------------------------------------------------------------


def test_A_13_pause_keeps_the_place(cut: bool) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a"]
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "pause:true")
    here.send("b")
    assert here.got("c1") == []
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "pause:true")
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    assert here.got("c1") == ["b"]
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    here.send("c")
    assert here.got("c1") == ["c"]


def test_A_13_nothing_comes_behind_the_receipt_of_a_pause() -> None:
    here = Life(archive=Archive())
    here.send_all(["x" * 3000] * 200)
    client = here.client("c1")
    client.stall()
    here.replay("c1", "EPOCH")
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "pause:true", "receipt:r")
    client.read_again()
    here.broker.drain()
    frames = here.frames("c1")
    assert [frame.command for frame in frames] == ["MESSAGE"] * (len(frames) - 1) + ["RECEIPT"]
    assert len(frames) < 200
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    assert len(here.messages("c1")) + len(frames) == 201


def test_A_13_a_replay_may_begin_paused(cut: bool) -> None:
    """Then NOW is when it begins."""
    here = stage(cut, "a")
    here.replay("c1", "EPOCH", "pause:true")
    here.replay("c1", "NOW", "pause:true", id="2")
    here.send("b")
    assert here.got("c1") == []
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    assert here.got("c1") == ["a", "b"]
    here.write("c1", "SUBSCRIBE", "id:2", QUEUE, "resume:true")
    assert here.got("c1") == ["b"]


def test_A_13_time_does_not_pass_for_a_paced_replay_that_is_paused(cut: bool) -> None:
    here, _ = timed(cut)
    here.replay("c1", "EPOCH", "rate:1X", "rate-max-gap:1h")
    assert here.got("c1") == ["a"]
    here.broker.advance(20_000)
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "pause:true")
    here.broker.advance(500_000)
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    here.broker.advance(39_000)
    assert here.got("c1") == []
    here.broker.advance(2_000)
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
    here.write("c1", "SUBSCRIBE", "id:9", QUEUE, *headers)
    assert here.error("c1").body.decode().startswith(reason)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (("ack:client",), ("pause:true",), "The subscription '1' is not a replay"),
        (("ack:client",), ("bookmark:EPOCH",), "The subscription '1' is not a replay"),
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
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, *first)
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, *second)
    assert here.error("c1").body.decode().startswith(reason)


def test_A_13_pause_names_the_same_destination(cut: bool) -> None:
    here = stage(cut)
    here.replay("c1", "EPOCH")
    here.write("c1", "SUBSCRIBE", "id:1", "destination:/queue/far", "pause:true")
    assert here.error("c1").body.decode() == "The replay '1' is of /queue/q, not of /queue/far"


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
    assert (
        here.error("c1").body.decode() == f"{name} and bookmark exclude each other: a replay takes nothing from a queue"
    )


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
    assert here.read("consumer") == ["a", "b", "c"]


def test_A_13_a_run_of_acks_between_those_of_a_queue() -> None:
    here = stage(False, "a", "b")
    here.write("c1", "SUBSCRIBE", "id:q", QUEUE, "ack:client-individual")
    here.replay("c1", "EPOCH", "ack:client")
    frames = here.messages("c1")
    assert sorted(frame.header("subscription") or "" for frame in frames) == ["1", "1", "q", "q"]
    acks = "".join(f"ACK\nid:{frame.header('ack')}\n\n\0" for frame in (frames[0], frames[2], frames[1], frames[3]))
    here.client("c1").send(acks.encode())
    assert here.frames("c1") == []
    assert here.count("q") == 0


def test_A_13_stomp_1_1_and_1_0(cut: bool) -> None:
    here = stage(cut, "a")
    here.client("c1", version="1.1")
    here.replay("c1", "EPOCH", "ack:client")
    (frame,) = here.messages("c1")
    here.write("c1", "ACK", "subscription:1", f"message-id:{frame.header('message-id')}", "receipt:1")
    assert [frame.command for frame in here.frames("c1")] == ["RECEIPT"]
    here.client("c2", version="1.0")
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
    assert here.error("c1").body.decode().startswith("There is no subscription '1'")


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
