"""Rows of AMPS (rows.py) about delivery semantics, at the wire: frames in, frames out."""

from __future__ import annotations

import pytest

from tests.kit.bench import Bench, declared
from tests.kit.documents import errors_of
from tests.kit.life import Life

pytestmark = pytest.mark.wire

ONCE = "delivery-semantics='at-most-once'"
ONCE_MANY = f"{ONCE} max-per-subscription-backlog='-1'"
LEAST = "delivery-semantics='at-least-once'"
CLIENT_MODES = pytest.mark.parametrize("ack", ["client", "client-individual"])


def out(bench: Bench) -> tuple[int, int]:
    """What the queue has, and how many of its messages are gone and not acknowledged."""
    return bench.count(), bench.queue().gate.unconfirmed_count


# ---- who sees what -------------------------------------------------------------------------------


def test_A_11_the_address_may_be_subscribed_to_beside_the_queue(cut: bool) -> None:
    core = f"""<addresses><address name="trades"><multicast><queue name="desk" {LEAST}/></multicast></address>
        </addresses>"""
    bench = Bench(core=core, cut=cut)
    for name in ("c1", "c2"):
        bench.write(name, "SUBSCRIBE", "id:1", "destination:/topic/trades")
    bench.write("producer", "SEND", "destination:/topic/trades", body="a")
    assert bench.got("c1") == bench.got("c2") == ["a"]
    assert bench.count("desk") == 1


def test_A_12_consumers_of_a_queue_with_the_address_s_name_compete(cut: bool) -> None:
    bench = Bench(LEAST, cut=cut)
    for name in ("c1", "c2"):
        bench.subscribe(name)
    bench.send_all("ab")
    assert sorted(bench.got("c1") + bench.got("c2")) == ["a", "b"]
    assert bench.queue().contents.delivering_count == 2


# ---- at least once -------------------------------------------------------------------------------


@pytest.mark.parametrize("attributes", [LEAST, ""])
def test_A_17_A_27_A_23_it_comes_again_until_it_is_acknowledged(cut: bool, attributes: str) -> None:
    """And at once: who leaves gives back what it has."""
    bench = Bench(attributes, cut=cut)
    bench.send("a")
    for name in ("c1", "c2", "c3"):
        bench.subscribe(name)
        assert bench.got(name) == ["a"]
        bench.lose(name)
    assert bench.count() == 1


def test_A_22_an_acknowledgement_removes(cut: bool) -> None:
    bench = Bench(LEAST, cut=cut)
    bench.send("a")
    bench.subscribe("c1")
    (frame,) = bench.messages("c1")
    assert bench.count() == 1
    bench.settle("c1", frame)
    assert bench.count() == 0


# ---- at most once --------------------------------------------------------------------------------


@CLIENT_MODES
def test_A_24_it_goes_when_it_is_sent(cut: bool, ack: str) -> None:
    bench = Bench(ONCE, cut=cut)
    bench.send("a")
    bench.subscribe("c1", ack=ack)
    assert bench.got("c1") == ["a"]
    assert out(bench) == (0, 1)
    assert bench.queue().contents.delivering_count == 0
    bench.lose("c1")
    assert out(bench) == (0, 0)
    bench.subscribe("c2", ack=ack)
    assert bench.got("c2") == []


def test_A_24_not_even_a_restart_brings_it_back() -> None:
    life = Life(ONCE)
    reader = life.client("reader")
    for body in "ab":
        life.send(body)
    life.subscribe("reader")
    (first,) = reader.collect()
    assert first.body == b"a"
    life = life.again()
    assert life.read() == ["b"]


def test_A_24_an_acknowledgement_is_confirmed_when_no_crash_brings_the_message_back() -> None:
    """That it has left is written down when it is sent; the ACK writes nothing."""
    life = Life(ONCE)
    producer, reader = life.client("producer"), life.client("reader")
    life.send("a")
    life.broker.disk_works = False
    other = b"SEND\ndestination:/queue/other\npersistent:true\n\n\0"
    subscribe = b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\n\n\0"

    def together(data: bytes) -> list[str]:
        """Two clients send something, so the turn does not write by itself; what the reader gets."""
        life.broker.together = True
        reader.send(data)
        producer.send(other)
        life.broker.together = False
        life.broker.settle()
        frames = list(reader.collect())
        reader.collect().clear()
        return [frame.header("ack") or frame.command for frame in frames]

    (ack,) = together(subscribe)
    assert together(f"ACK\nid:{ack}\nreceipt:r\n\n\0".encode()) == []
    life.broker.drain()
    assert [frame.command for frame in reader.collect()] == ["RECEIPT"]


@CLIENT_MODES
def test_A_25_an_acknowledgement_frees_the_backlog(cut: bool, ack: str) -> None:
    bench = Bench(ONCE, cut=cut)
    bench.send_all("ab")
    bench.subscribe("c1", ack=ack)
    (frame,) = bench.messages("c1")
    assert out(bench) == (1, 1)
    bench.settle("c1", frame)
    assert bench.got("c1") == ["b"]
    assert out(bench) == (0, 1)


def test_A_25_with_ack_auto_the_backlog_is_never_full(cut: bool) -> None:
    bench = Bench(ONCE, cut=cut)
    bench.send_all("abc")
    bench.subscribe("c1", ack="auto")
    assert bench.got("c1") == ["a", "b", "c"]
    assert out(bench) == (0, 0)


def test_A_25_the_backlog_of_all_counts_what_is_gone_and_not_acknowledged(cut: bool) -> None:
    bench = Bench(f"{ONCE_MANY} max-backlog='2'", cut=cut)
    for name in ("c1", "c2"):
        bench.subscribe(name, "max-backlog:5")
    bench.send_all("abc")
    (frame,) = bench.messages("c1")
    assert bench.got("c2") == ["b"]
    bench.settle("c1", frame)
    assert bench.got("c1") == ["c"]
    bench.send_all("d")
    bench.lose("c2")
    assert bench.got("c1") == ["d"], "who leaves frees its backlog, too"


def test_A_25_a_window_counts_what_is_not_acknowledged(cut: bool) -> None:
    bench = Bench(ONCE_MANY, cut=cut)
    bench.send_all("ab")
    bench.subscribe("c1", "max-backlog:5", "consumer-window-size:0")
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame)
    assert bench.got("c1") == ["b"]


@CLIENT_MODES
def test_A_26_nothing_comes_again(cut: bool, ack: str) -> None:
    """Not after a NACK, which frees the backlog like an ACK, and nothing becomes a dead letter."""
    bench = Bench(f"{ONCE} dead-letter-address='dead'", more="<address name='dead'><anycast><queue name='dead'/>"
        "</anycast></address>", cut=cut)  # fmt: skip
    bench.send_all("ab")
    bench.subscribe("c1", ack=ack)
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame, "NACK")
    assert bench.got("c1") == ["b"]
    bench.leave("c1")
    assert out(bench) == (0, 0)
    assert bench.count("dead") == 0


@pytest.mark.parametrize("end", ["COMMIT", "ABORT"])
@pytest.mark.parametrize("command", ["ACK", "NACK"])
def test_A_26_in_a_transaction(cut: bool, end: str, command: str) -> None:
    """The next message may come as soon as the client is done with this one; the backlog of all counts at the end."""
    bench = Bench(f"{ONCE} max-backlog='1'", cut=cut)
    bench.send_all("ab")
    bench.subscribe("c1")
    (frame,) = bench.messages("c1")
    bench.write("c1", "BEGIN", "transaction:t")
    bench.write("c1", command, f"id:{frame.header('ack')}", "transaction:t")
    assert bench.got("c1") == []
    bench.write("c1", end, "transaction:t")
    assert bench.got("c1") == ["b"]
    assert out(bench) == (0, 1)


def test_A_26_an_acknowledgement_of_what_is_acknowledged_is_an_error(cut: bool) -> None:
    bench = Bench(ONCE, cut=cut)
    bench.send("a")
    bench.subscribe("c1")
    (frame,) = bench.messages("c1")
    bench.settle("c1", frame)
    bench.settle("c1", frame)
    (error,) = bench.frames("c1")
    assert error.command == "ERROR"
    assert "waits for acknowledgement" in (error.header("message") or "")


def test_what_is_not_acknowledged_keeps_no_body() -> None:
    bench = Bench(ONCE_MANY)
    bench.subscribe("c1", "max-backlog:1000000", "consumer-window-size:-1")
    bench.send("x" * 1000)
    assert len(bench.messages("c1")) == 1
    (consumer,) = bench.queue().distribution.consumers
    assert [len(entry.message.body) for entry in consumer.held.values()] == [0]
    assert consumer.backlog_max == 10_000, "nothing else limits how many these are"


def test_a_browser_takes_nothing(cut: bool) -> None:
    bench = Bench(ONCE, cut=cut)
    bench.send_all("ab")
    bench.subscribe("c1", "browser:true", "consumer-window-size:-1")
    assert bench.got("c1") == ["a", "b"]
    assert out(bench) == (2, 0)


# ---- fairness ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("attributes", "fourth"), [(LEAST, "c1"), (ONCE, "c2")])
def test_A_37_by_share_for_at_least_once_and_in_turn_for_at_most_once(cut: bool, attributes: str, fourth: str) -> None:
    """After three messages both have used half of what they may have: by share it is the first one's turn again."""
    bench = Bench(f"{attributes} max-per-subscription-backlog='4'", cut=cut)
    for name, backlog in (("c1", 4), ("c2", 2)):
        bench.subscribe(name, f"max-backlog:{backlog}", "consumer-window-size:-1")
    bench.send_all("abc")
    assert (bench.got("c1"), bench.got("c2")) == (["a", "c"], ["b"])
    bench.send_all("d")
    assert bench.got(fourth) == ["d"]


@pytest.mark.parametrize("model", ["fast", "proportional"])
def test_A_37_another_fairness_is_refused_at_most_once(model: str) -> None:
    (problem,) = errors_of(declared(f"{ONCE} fairness-model='{model}'"))
    assert problem.line == 5
    assert problem.allowed == "fairness-model round-robin"
    assert "at most once" in problem.message
