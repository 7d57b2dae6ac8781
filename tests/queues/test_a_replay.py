"""Row A-13 (rows.py): replays of the log. The disk is in memory, and the clock is set by hand."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from artemis_py.config.reader import loads
from artemis_py.security.identity import Identity
from artemis_py.security.rights import Authorizer
from tests.kit.crash.retained import Archive
from tests.kit.life import Life
from tests.kit.replays import QUEUE, bookmarks, stage, timed

pytestmark = pytest.mark.wire


# ---- what a replay shows -------------------------------------------------------------------------


def test_A_13_everything_again_though_all_is_acknowledged(cut: bool) -> None:
    here = stage(cut, "a", "b", "c")
    assert here.read("consumer") == ["a", "b", "c"]
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a", "b", "c"]
    assert here.count("q") == 0


def test_A_13_the_queue_stays_as_it_is(cut: bool) -> None:
    """Nothing is leased, counted or taken, and ``ack`` does not matter."""
    here = stage(cut, "a", "b")
    queue = here.queue("q")
    for name, ack in (("c1", "auto"), ("c2", "client"), ("c3", "client-individual")):
        here.replay(name, "EPOCH", f"ack:{ack}")
        assert here.got(name) == ["a", "b"]
    assert (queue.message_count, queue.consumer_count, queue.contents.counters.held_count) == (2, 0, 0)
    assert here.read("consumer") == ["a", "b"]


def test_A_13_then_what_is_published(cut: bool) -> None:
    here = stage(cut, "a")
    here.replay("c1", "EPOCH")
    here.send("b")
    assert here.got("c1") == ["a", "b"]
    here.send_all("cd")
    assert here.got("c1") == ["c", "d"]


def test_A_13_nothing_is_created(cut: bool) -> None:
    here = stage(cut)
    before = set(here.core.queues), set(here.core.addresses)
    here.replay("c1", "EPOCH", of="destination:/queue/nowhere")
    here.replay("c1", "EPOCH", of="destination:/topic/nowhere.#", id="2")
    assert (set(here.core.queues), set(here.core.addresses)) == before


def test_A_13_an_address_without_queues_and_one_that_is_gone(cut: bool) -> None:
    here = stage(cut)
    here.send("unrouted", to="/topic/news")
    here.send("gone", to="/queue/brief")
    assert here.read("consumer") == []
    here.write("consumer", "SUBSCRIBE", "id:2", "destination:/queue/brief", "ack:auto")
    here.write("consumer", "UNSUBSCRIBE", "id:2")
    here.broker.advance(120_000)
    assert "brief" not in here.core.queues
    here.replay("c1", "EPOCH", of="destination:/topic/news")
    here.replay("c2", "EPOCH", of="destination:/queue/brief")
    assert (here.got("c1"), here.got("c2")) == (["unrouted"], ["gone"])


def test_A_13_only_what_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a crash may undo, neither by a replay that follows nor by one that begins now."""
    here = Life(archive=Archive())
    committer = here.broker.committer
    monkeypatch.setattr(committer, "run_now", committer.submit)  # the disk does nothing before it is told to
    here.replay("c1", "EPOCH")
    here.broker.disk_works = False
    producer, late = here.client("producer"), here.client("c2")
    producer.send(f"SEND\n{QUEUE}\npersistent:true\nreceipt:r\n\na\0".encode())
    late.send(f"SUBSCRIBE\nid:1\n{QUEUE}\nbookmark:EPOCH\n\n\0".encode())
    assert [here.frames(name) for name in ("producer", "c1", "c2")] == [[], [], []]
    here.broker.drain()
    assert [frame.command for frame in here.frames("producer")] == ["RECEIPT"]
    assert (here.got("c1"), here.got("c2")) == (["a"], ["a"])


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
    here.send_all("bc", "transaction:t")
    here.send("d", by="other")
    assert here.got("c1") == ["a", "d"]
    here.write("producer", "COMMIT", "transaction:t")
    here.replay("c2", "EPOCH")
    assert here.got("c1") == ["b", "c"]
    assert here.got("c2") == ["a", "d", "b", "c"]


def test_A_13_a_transaction_larger_than_a_slice(cut: bool) -> None:
    """Its record is not read as a whole."""
    here = Life(archive=Archive())
    bodies = [f"{number:03}" + "x" * 9000 for number in range(60)]
    here.replay("c1", "EPOCH")
    here.write("producer", "BEGIN", "transaction:t")
    here.send_all(bodies, "transaction:t")
    here.write("producer", "COMMIT", "transaction:t")
    here.send("after")
    here.replay("c2", "EPOCH")
    for name in ("c1", "c2"):
        frames = here.messages(name)
        assert [frame.body.decode() for frame in frames] == [*bodies, "after"]
        assert bookmarks(frames) == here.offsets()


def test_A_13_messages_in_pages(cut: bool) -> None:
    here = Life(
        cut=cut,
        settings="<max-size-bytes>2000</max-size-bytes><page-size-bytes>2000</page-size-bytes>",
        archive=Archive(),
    )
    bodies = [f"{number}" + "x" * 300 for number in range(20)]
    here.send_all(bodies[:10])
    here.replay("c1", "EPOCH")
    here.send_all(bodies[10:])
    assert here.core.addresses["q"].must_page
    assert here.got("c1") == bodies


def test_A_13_large_bodies(cut: bool) -> None:
    """Also those that no queue needs any more, as long as the log has them; a header tells of others."""
    here = Life(archive=Archive())
    large = "large" * 40_000
    here.send_all(["a", large, "b"])
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a", large, "b"]
    assert here.read("consumer") == ["a", large, "b"]
    here.broker.advance(1)
    here.replay("c2", "EPOCH", "completed:true")
    first, second, third, completed = here.messages("c2")
    assert (first.body, second.body, third.body) == (b"a", b"", b"b")
    assert second.header("body-removed") == str(len(large))
    assert (first.header("body-removed"), completed.header("completed")) == (None, "true")


def test_A_13_copies_of_compaction_are_not_shown_twice(cut: bool) -> None:
    here = stage(cut, "a")
    journal = here.broker.journal
    journal.write_again([kept for segment in journal.segments for kept in segment.live.values()])
    here.send("b")
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["a", "b"]


def test_A_13_across_segments(cut: bool) -> None:
    here = Life(archive=Archive())
    bodies = [f"{number:03}" + "x" * 3000 for number in range(80)]
    here.send_all(bodies[:40])
    here.read("consumer")
    assert len(here.archive.retired) > 0
    here.replay("c1", "EPOCH")
    here.send_all(bodies[40:])
    frames = here.messages("c1")
    assert [frame.body.decode() for frame in frames] == bodies
    assert bookmarks(frames) == here.offsets()


# ---- which messages ------------------------------------------------------------------------------


def test_A_13_a_queue_of_another_address(cut: bool) -> None:
    """The replay is of the address, whatever the filter of the queue is."""
    here = stage(cut, "other")
    here.send("blue", "colour:blue", to="/queue/far")
    here.send("red", "colour:red", to="/queue/far")
    for number, destination in enumerate(("far", "near", "far::near", "far::unknown"), 1):
        here.replay("c1", "EPOCH", of=f"destination:/queue/{destination}", id=str(number))
        assert here.got("c1") == ["blue", "red"]
    here.replay("c2", "EPOCH", of="destination:/queue/q::near")
    assert here.error("c2").body.decode() == "Queue near is on address far, not on q"


VIEWS = """<addresses>
<address name="orders.eu"><multicast/></address>
<address name="work"><anycast><queue name="work" underlying-address="orders.eu,orders.us.#"
  default-publish-target="orders.eu"/></anycast></address>
</addresses>"""


def test_A_13_a_view(cut: bool) -> None:
    """All that is published to the addresses under it, in the order of the log."""
    here = Life("", core=VIEWS, archive=Archive(), instead="", cut=cut)
    here.send("a", to="/topic/orders.eu")
    here.send("b", to="/topic/orders.us.ny")
    here.send("other", to="/topic/orders.asia")
    for number, destination in enumerate(("/queue/work", "/queue/work::work", "/topic/work")):
        here.replay("c1", "EPOCH", of=f"destination:{destination}", id=str(number))
        assert here.got("c1") == ["a", "b"]
    here.send("c", to="/topic/orders.us.la")
    here.send("other", to="/topic/orders.asia")
    assert here.got("c1") == ["c", "c", "c"]
    here.replay("c2", "EPOCH", of="destination:/topic/orders.eu")
    assert here.got("c2") == ["a"]


SECURED = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><security-settings>
<security-setting match="#"><permission type="send" roles="clerk"/></security-setting>
<security-setting match="work"><permission type="consume" roles="cook"/></security-setting>
<security-setting match="orders.eu"><permission type="consume" roles="boss"/></security-setting>
</security-settings></core></configuration>"""


def test_A_13_it_needs_the_permission_to_consume(cut: bool) -> None:
    """Of the address; of a view, that of its own address."""
    here = Life("", core=VIEWS, archive=Archive(), instead="", cut=cut)
    here.send("a", to="/topic/orders.eu")
    authorizer = Authorizer(loads(SECURED), lambda *_: None)
    for name, role, destination, is_allowed in (
        ("c1", "cook", "/queue/work", True),
        ("c2", "cook", "/topic/orders.eu", False),
        ("c3", "cook", "/topic/#", False),
        ("c4", "boss", "/topic/orders.eu", True),
        ("c5", "boss", "/queue/work", False),
        ("c6", "clerk", "/topic/orders.eu", False),
    ):
        state = here.client(name).connection.session.state
        state.rights = authorizer.rights_of(Identity(name, frozenset([role])))
        here.replay(name, "EPOCH", of=f"destination:{destination}")
        if is_allowed:
            assert here.got(name) == ["a"]
        else:
            assert "does not have permission='CONSUME'" in here.error(name).body.decode()


def test_A_13_what_became_of_a_message_does_not_matter(cut: bool) -> None:
    """Expired, scheduled, dropped by a ring, or dead."""
    rows = """<addresses><address name="ring"><anycast><queue name="ring" ring-size="1"/></anycast></address>
    <address name="dead"><anycast><queue name="dead"/></anycast></address>
    <address name="q"><anycast><queue name="q"/></anycast></address></addresses>
    <address-settings><address-setting match="q"><dead-letter-address>dead</dead-letter-address>
    <max-delivery-attempts>1</max-delivery-attempts></address-setting></address-settings>"""
    here = Life("", core=rows, archive=Archive(), instead="", cut=cut)
    here.send("expired", f"expires:{here.broker.loop.now_ms + 1000}")
    here.broker.advance(60_000)
    here.send("later", "AMQ_SCHEDULED_DELAY:1000000")
    here.send("failed")
    here.write("consumer", "SUBSCRIBE", "id:1", QUEUE, "ack:client-individual")
    (frame,) = here.messages("consumer")
    here.write("consumer", "NACK", f"id:{frame.header('ack')}")
    here.send_all(["old", "new"], to="/queue/ring")
    here.replay("c1", "EPOCH")
    assert here.got("c1") == ["expired", "later", "failed"]
    here.replay("c2", "EPOCH", of="destination:/queue/ring")
    assert here.got("c2") == ["old", "new"]
    here.replay("c3", "EPOCH", of="destination:/queue/dead")
    assert here.got("c3") == ["failed"]


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
    here.send("red", "colour:red", "size:5")
    here.replay("c1", "EPOCH", "selector:colour = 'red' AND AMQPriority = 4")
    here.send("blue", "colour:blue")
    here.send("red 2", "colour:red")
    assert here.got("c1") == ["red", "red 2"]
    here.replay("c2", "EPOCH", "selector:colour = ")
    assert here.error("c2").body.decode().startswith("selector:")


def test_A_13_no_local(cut: bool) -> None:
    here = stage(cut, "other")
    here.send("own", by="c1")
    here.replay("c1", "EPOCH", "no-local:true")
    here.send("own 2", by="c1")
    here.write("c1", "BEGIN", "transaction:t")
    here.send("own 3", "transaction:t", by="c1")
    here.write("c1", "COMMIT", "transaction:t")
    here.send("other 2")
    assert here.got("c1") == ["other", "other 2"]


def test_A_13_temporary_destinations_have_no_history(cut: bool) -> None:
    here = stage(cut)
    here.replay("c1", "EPOCH", of="destination:/temp-queue/mine")
    assert here.error("c1").body.decode().startswith("A temporary destination has no history")


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
    here.broker.drain()
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
    end_ms = (here.broker.loop.clock_ms() // 1000 + 10) * 1000
    here.replay("c1", f"[EPOCH:{moment(end_ms)}]", "completed:true")
    here.broker.advance(1000)
    here.send("b")
    assert here.got("c1") == ["a", "b"]
    here.broker.advance(20_000)
    assert here.got("c1") == ["completed"]
    here.send("c")
    assert here.got("c1") == []


@pytest.mark.parametrize(
    ("bookmark", "reason"),
    [
        ("MOST_RECENT", "bookmark:MOST_RECENT is not known here: the broker keeps no place for a client."),
        ("yesterday", "bookmark is not one: 'yesterday'; use EPOCH, NOW"),
        ("20261301T000000Z", "bookmark is not one: '20261301T000000Z'"),
        ("1,,2", "bookmark is not one: ''"),
        ("-5", "bookmark is not one: '-5'"),
        ("", "bookmark is not one: ''"),
        ("[1:2", "bookmark is not a range: '[1:2'"),
        ("[1]", "bookmark is not a range: '[1]'"),
        ("(:5]", "bookmark is not one: ''"),
    ],
)
def test_A_13_what_is_no_bookmark(cut: bool, bookmark: str, reason: str) -> None:
    here = stage(cut, "a")
    here.replay("c1", bookmark)
    assert here.error("c1").body.decode().startswith(reason)


# ---- what is removed -----------------------------------------------------------------------------


def worn(count: int = 60) -> tuple[Life, list[str]]:
    """A log of several segments, most of them retained."""
    here = Life(archive=Archive())
    bodies = [f"{number:03}" + "x" * 3000 for number in range(count)]
    here.send_all(bodies)
    here.read("consumer")
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
    text = here.error("c1").body.decode()
    assert text.startswith(f"The log after bookmark {first} was removed (journal-retention-directory): ")
    found = re.search(r"Go on with bookmark:(\d+)", text)
    assert found is not None, text
    here.replay("c2", found[1])
    assert bookmarks(here.messages("c2")) == here.offsets()


def test_A_13_a_replay_does_not_hide_what_is_removed_while_it_is_paused() -> None:
    """It goes as far as it can, and then says where it was."""
    here, bodies = worn(200)
    here.replay("c1", "EPOCH", "rate:1000")
    here.broker.advance(10)
    shown = here.messages("c1")
    assert 0 < len(shown) < 20
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "pause:true")
    while len(here.archive.retired) > 1:
        here.archive.remove_oldest()
    left = here.offsets()[0]
    here.write("c1", "SUBSCRIBE", "id:1", QUEUE, "resume:true")
    here.broker.advance(1000)
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
