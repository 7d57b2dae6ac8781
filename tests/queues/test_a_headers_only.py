"""Consumers that are not sent the bodies: ``headers-only`` of SUBSCRIBE (docs/stomp.md)."""

from __future__ import annotations

import pytest

from tests.kit.bench import FLAT
from tests.kit.crash.retained import Archive
from tests.kit.life import Life
from tests.kit.replays import bookmarks

pytestmark = pytest.mark.wire

LEASED = "lease-period='1s' max-per-subscription-backlog='9'"
HEADS = ("headers-only:true", "max-backlog:9")


@pytest.mark.parametrize("attributes", ["", LEASED])
def test_all_but_the_body(attributes: str) -> None:
    bench = Life(attributes)
    bench.write("p", "SEND", "destination:/queue/q", "persistent:true", "colour:red", "body-size:9", body="hello")
    bench.subscribe("whole", FLAT, "max-backlog:9")
    (whole,) = bench.messages("whole")
    bench.lose("whole")
    bench.subscribe("heads", FLAT, *HEADS)
    (head,) = bench.messages("heads")
    assert (head.body, head.header("body-size"), head.header("content-length")) == (b"", "5", None)
    changed = ("message-id", "ack", "redelivered", "content-length", "delivery-count", "body-size", "JMSXDeliveryCount")
    same = [line for line in whole.lines if line.partition(":")[0] not in changed]
    assert [line for line in head.lines if line.partition(":")[0] not in changed] == same
    assert [line for line in head.lines if line.startswith("body-size:")] == ["body-size:5", "body-size:9"]
    assert head.header("redelivered") == "true"
    bench.write("heads", "ACK", f"id:{head.header('ack')}")
    assert bench.count() == 0


def test_others_get_the_body() -> None:
    bench = Life(LEASED)
    bench.send_all("ab")
    bench.subscribe("heads", FLAT, "headers-only:true", "max-backlog:1")
    bench.subscribe("whole", FLAT, "max-backlog:9")
    assert (bench.got("heads"), bench.got("whole")) == ([""], ["b"])
    bench.lose("heads")
    assert bench.got("whole") == ["a"]


@pytest.mark.parametrize("attributes", ["", LEASED])
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_the_window_counts_what_is_sent(attributes: str, version: str) -> None:
    """A frame is as long as it is taken to be, in every version."""
    bench = Life(attributes)
    client = bench.client("c", version=version)
    client.transport.taken.clear()
    for body in ("", "x" * 5000):
        bench.write("p", "SEND", "destination:/queue/q", "persistent:true", "a:b", body=body)
    bench.subscribe("c", "headers-only:true", "max-backlog:9", FLAT, ack="client")
    (consumer,) = bench.queue().distribution.consumers
    sizes = [consumer.weigh(entry.message) for entry in consumer.held.values()]
    written = bytes(client.transport.taken)
    assert len(sizes) == 2
    assert len(written) in (sum(sizes), sum(sizes) - 2)  # those that are sent again say true, a byte less
    assert b"xxxx" not in written


def test_a_browser_may_ask_for_it() -> None:
    bench = Life("")
    bench.send("a")
    bench.subscribe("c1", FLAT, "browser:true", "headers-only:true", ack="auto")
    (frame,) = bench.messages("c1")
    assert (frame.body, frame.header("body-size"), bench.count()) == (b"", "1", 1)


@pytest.mark.parametrize(
    ("attributes", "ack"), [("", "auto"), ("delivery-semantics='at-most-once'", "client-individual")]
)
def test_nobody_loses_a_body(attributes: str, ack: str) -> None:
    bench = Life(attributes)
    bench.send("a")
    bench.subscribe("c1", FLAT, "headers-only:true", ack=ack)
    assert "would lose the bodies of messages" in (bench.error("c1").header("message") or "")
    assert bench.count() == 1
    bench.subscribe("c2", FLAT)
    assert bench.got("c2") == ["a"]


def test_a_refused_subscription_leaves_no_queue() -> None:
    bench = Life("")
    bench.write("c1", "SUBSCRIBE", "id:1", "destination:/topic/t", "headers-only:true")
    assert "headers-only" in (bench.error("c1").header("message") or "")
    assert list(bench.core.queues) == ["q"]


def test_it_stays_as_it_is() -> None:
    bench = Life(LEASED)
    bench.subscribe("c1", FLAT, *HEADS)
    bench.subscribe("c1", FLAT, "max-backlog:3", "replace:true")
    assert "headers-only was true and cannot become false" in (bench.error("c1").header("message") or "")
    bench.subscribe("c2", FLAT, *HEADS)
    bench.subscribe("c2", FLAT, "max-backlog:1", "headers-only:true", "replace:true")
    bench.send_all("ab")
    assert [frame.header("body-size") for frame in bench.messages("c2")] == ["1"]


def test_a_replay_without_bodies() -> None:
    stage = Life(archive=Archive())
    stage.send_all(["hello", "you"])
    stage.replay("heads", "EPOCH", "headers-only:true")
    frames = stage.messages("heads")
    assert [(frame.body, frame.header("body-size")) for frame in frames] == [(b"", "5"), (b"", "3")]
    assert bookmarks(frames) == stage.offsets()
