"""``artemis-py send`` says where a message is, or that it is nowhere and why; so does the RECEIPT that it asks for."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kit.client import StompSocket, connected
from tests.kit.forks import run_text
from tests.kit.frames import ServerFrame
from tests.kit.process import LOOPBACK, WAIT_S, BrokerProcess, for_each_test, for_the_module, storing

pytestmark = pytest.mark.e2e

LATE = "temp-queue.0123456789abcdef0123456789abcdef.x"
"""A temporary destination whose client has gone."""

DIVERTS = """\
    <diverts>
      <divert name="d1"><address>away</address><forwarding-address>orders</forwarding-address>
        <exclusive>true</exclusive></divert>
      <divert name="d2"><address>astray</address><forwarding-address>nobody</forwarding-address>
        <exclusive>true</exclusive></divert>
      <divert name="d4"><address>overfull</address><forwarding-address>full</forwarding-address>
        <exclusive>true</exclusive></divert>
      <divert name="d5"><address>chased</address><forwarding-address>chased.too</forwarding-address></divert>
      <divert name="d6"><address>copied</address><forwarding-address>orders</forwarding-address></divert>
      <divert name="d7"><address>large</address><forwarding-address>nobody</forwarding-address></divert>
      <divert name="d3"><address>doubled</address><forwarding-address>orders</forwarding-address></divert>
    </diverts>
"""
ADDRESSES = """\
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="news"><multicast><queue name="news.a"/><queue name="news.b"/>
        <queue name="news.red"><filter string="color = 'red'"/></queue></multicast></address>
      <address name="picky"><anycast><queue name="picky"><filter string="color = 'red'"/></queue></anycast></address>
      <address name="closed"><anycast><queue name="closed" enabled="false"/></anycast></address>
      <address name="none"><anycast><queue name="none" ring-size="0"/></anycast></address>
      <address name="ring"><anycast><queue name="ring" ring-size="2"/></anycast></address>
      <address name="last"><anycast><queue name="last" last-value-key="k"/></anycast></address>
      <address name="some"><multicast><queue name="some.ring" ring-size="3"/><queue name="some.all"/>
      </multicast></address>
      <address name="large"><anycast><queue name="large"/></anycast></address>
      <address name="two"><multicast><queue name="t1" ring-size="1"/>
        <queue name="t2" ring-size="1"/></multicast></address>
      <address name="chased"><anycast><queue name="chased" ring-size="1"/></anycast></address>
      <address name="chased.too"><anycast><queue name="chased.too" ring-size="1"/></anycast></address>
      <address name="copied"><anycast><queue name="copied" ring-size="1"/></anycast></address>
      <address name="failing"><anycast><queue name="failing"/></anycast></address>
      <address name="waiting"><anycast><queue name="waiting"/></anycast></address>
      <address name="limited"><anycast>
        <queue name="limited" overflow-policy="REJECT" max-depth-messages="2"/></anycast></address>
      <address name="full"><anycast><queue name="full"/></anycast></address>
      <address name="paged"><anycast><queue name="paged"/></anycast></address>
      <address name="doubled"><anycast><queue name="doubled"/></anycast></address>
      <address name="wild.#"><multicast><queue name="wild"/></multicast></address>
      <address name="buried"><multicast/></address>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
"""
SETTINGS = """\
      <address-setting match="full"><max-size-messages>2</max-size-messages>
        <address-full-policy>DROP</address-full-policy></address-setting>
      <address-setting match="waiting"><max-size-messages>2</max-size-messages>
        <address-full-policy>BLOCK</address-full-policy></address-setting>
      <address-setting match="failing"><max-size-messages>2</max-size-messages>
        <address-full-policy>FAIL</address-full-policy></address-setting>
      <address-setting match="paged"><max-size-messages>1</max-size-messages>
        <address-full-policy>PAGE</address-full-policy></address-setting>
      <address-setting match="buried"><dead-letter-address>DLQ</dead-letter-address>
        <send-to-dla-on-no-route>true</send-to-dla-on-no-route></address-setting>
"""


told_by = partial(storing, core=DIVERTS, addresses=ADDRESSES, settings=SETTINGS)
"""A broker with places for messages, and ways to nowhere."""
broker = for_each_test(told_by)
shared = for_the_module(told_by)
"""The broker of tests that change nothing for each other."""


def _sent(broker: BrokerProcess, *words: str) -> tuple[int, str, str]:
    line = ["send", words[0], "x", *words[1:], "--stomp", f"stomp://{LOOPBACK}:{broker.port}"]
    done = run_text(line, timeout=WAIT_S)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["orders"], "orders: it is on queue orders\n"),
        (["orders::orders"], "orders::orders: it is on queue orders\n"),
        (["orders", "--delay", "60"], "orders: it is on queue orders\n"),
        (
            ["orders", "--header", "AMQ_SCHEDULED_CRON=0 0 1 1 *"],
            "orders: it is on queue $schedules (artemis-py schedule ls)\n",
        ),
        (["orders", "--no-persistent"], "orders: it is on queue orders\n"),
        (["news"], "news: it is on queues news.a, news.b\n"),
        (["news::news.b"], "news::news.b: it is on queue news.b\n"),
        (["news", "--header", "color=red"], "news: it is on queues news.a, news.b, news.red\n"),
        (["fresh", "--type", "ANYCAST"], "fresh: it is on queue fresh\n"),
        (["away"], "away: it is on queue orders\n"),
        (["wild.a"], "wild.a: it is on queue wild\n"),
        (["buried"], "buried: it is on queue DLQ\n"),
    ],
)
def test_it_is_there(shared: BrokerProcess, words: list[str], said: str) -> None:
    assert _sent(shared, *words) == (0, f"sent 1 message to {said}", "")


def test_a_copy_is_where_it_is(shared: BrokerProcess) -> None:
    code, said, _ = _sent(shared, "doubled")
    assert code == 0
    assert set(said.strip().removeprefix("sent 1 message to doubled: it is on queues ").split(", ")) == {
        "doubled", "orders",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["strange"], "address strange has no queue"),
        (["strange", "--type", "MULTICAST"], "address strange has no queue"),
        (["picky"], "no queue of address picky takes it"),
        (["picky::picky"], "no queue of address picky::picky takes it"),
        (["closed"], "no queue of address closed takes it"),
        (["none"], "the queue dropped it at once"),
        (["/queue/picky"], "no queue of address picky takes it"),
        (["astray"], "a divert of address astray sends it to address nobody, and no queue there keeps it"),
        (["/queue/astray"], "Make a queue (artemis-py queue create NAME --address nobody)"),
    ],
)
def test_it_is_nowhere(shared: BrokerProcess, words: list[str], why: str) -> None:
    code, said, errors = _sent(shared, *words)
    assert (code, said) == (1, "")
    assert errors.startswith("1 message of 1 is nowhere: ")
    assert why in errors


def test_some_are_nowhere(broker: BrokerProcess) -> None:
    code, said, errors = _sent(broker, "full", "--count", "5")
    assert (code, said) == (1, "sent 5 messages to full: 2 of them are on queue full\n")
    assert errors.startswith("3 messages of 5 are nowhere: address full is full, and its address-full-policy DROP")
    code, said, errors = _sent(broker, "full", "--json")
    told = json.loads(said)
    told.pop("seconds")
    assert told == {
        "address": "full",
        "sent": 1,
        "queues": [],
        "nowhere": 1,
        "replaced": 0,
        "reasons": {"address-full": 1},
    }


def test_behind_a_divert_it_is_the_other_address_that_is_full(broker: BrokerProcess) -> None:
    assert _sent(broker, "full", "--count", "2")[0] == 0
    code, said, errors = _sent(broker, "overfull")
    assert (code, said) == (1, "")
    assert "a divert of address overfull sends it to address full, and no queue there keeps it" in errors


@pytest.mark.parametrize(
    ("name", "queues"),
    [("two", {"t1", "t2"}), ("chased", {"chased", "chased.too"}), ("copied", {"copied", "orders"})],
)
@pytest.mark.parametrize("count", [2, 5])
def test_a_message_is_nowhere_when_it_has_left_the_last_queue(
    broker: BrokerProcess, name: str, queues: set[str], count: int
) -> None:
    """Whatever queues have it, or a copy: rings of one message, but for orders, which keeps everything."""
    code, said, errors = _sent(broker, name, "--count", str(count))
    which, _, where = said.strip().partition(" on queues ")
    assert set(where.partition("; ")[0].split(", ")) == queues
    assert ("later ones took" in where) == (name == "copied")
    if name == "copied":
        assert (code, which, errors) == (0, f"sent {count} messages to {name}: they are", "")
        return
    assert (code, which) == (1, f"sent {count} messages to {name}: 1 of them is")
    assert f"of {count} {'is' if count == 2 else 'are'} nowhere: a later one took its place" in errors


@pytest.mark.parametrize("name", ["failing", "limited"])
def test_what_came_before_a_refused_message_is_told(shared: BrokerProcess, name: str, tmp_path: Path) -> None:
    """Otherwise somebody sends it again."""
    lines = tmp_path / "lines"
    lines.write_text("1\n2\n3\n4\n5\n")
    link = ("--stomp", f"stomp://{LOOPBACK}:{shared.port}")
    done = run_text(["send", name, "--file", str(lines), "--lines", *link], timeout=WAIT_S)
    assert (done.returncode, done.stdout) == (1, f"sent 2 of 5 messages to {name}: they are on queue {name}\n")
    assert "is full" in done.stderr
    assert "; the last 3 of 5 were not taken: when that is mended, send only what is left" in done.stderr
    done = run_text(["send", name, "x", "--json", *link], timeout=WAIT_S)
    told = json.loads(done.stdout)
    assert (done.returncode, told["sent"], told["unconfirmed"]) == (1, 0, 1)
    assert "is full" in told["error"]


def test_what_was_not_confirmed_in_time_may_be_there(shared: BrokerProcess) -> None:
    code, said, errors = _sent(shared, "waiting", "--count", "3", "--timeout", "1")
    assert (code, said) == (1, "sent 2 of 3 messages to waiting: they are on queue waiting\n")
    assert errors.endswith("; the last of 3 was not confirmed, and may be there or not\n")


def test_pages_rings_and_repeated_ids(shared: BrokerProcess) -> None:
    assert _sent(shared, "paged", "--count", "4")[:2] == (0, "sent 4 messages to paged: they are on queue paged\n")
    code, said, errors = _sent(shared, "ring", "--count", "5")
    assert (code, said) == (1, "sent 5 messages to ring: 2 of them are on queue ring\n")
    assert errors.startswith(
        "3 messages of 5 are nowhere: a later one took its place, on a ring that keeps no more, or"
    )
    assert _sent(shared, "ring", "--count", "2") == (0, "sent 2 messages to ring: they are on queue ring\n", "")
    code, _, errors = _sent(shared, "ring", "--priority", "1")
    assert code == 1, "those with a higher priority rank above it"
    assert "the queue dropped it at once" in errors
    assert _sent(shared, "ring", "--priority", "9")[0] == 0
    assert _sent(shared, "orders", "--header", "_AMQ_DUPL_ID=one")[0] == 0
    code, said, errors = _sent(shared, "orders", "--header", "_AMQ_DUPL_ID=one")
    assert (code, errors) == (0, "")
    assert said.endswith("orders: the address has had one with this _AMQ_DUPL_ID, and drops it as repeated\n")


def test_a_newer_value_of_the_same_key_takes_the_place(shared: BrokerProcess) -> None:
    code, said, errors = _sent(shared, "last", "--count", "2", "--header", "k=1")
    assert (code, said) == (1, "sent 2 messages to last: 1 of them is on queue last\n")
    assert "or as the newer value of its key" in errors


def test_places_that_later_ones_took_on_one_queue_of_several(shared: BrokerProcess) -> None:
    """Each is still on the other queue."""
    code, said, errors = _sent(shared, "some", "--count", "5")
    came = "they are on queues some.ring, some.all; later ones took 2 of their 10 places there"
    assert (code, said, errors) == (0, f"sent 5 messages to some: {came}\n", "")
    told = json.loads(_sent(shared, "some", "--count", "4", "--json")[1])
    assert (told["nowhere"], told["replaced"]) == (0, 1)


def test_a_request_to_management_is_no_message(shared: BrokerProcess) -> None:
    """It says what HTTP says."""
    reply = shared.ask("POST", "/messages/activemq.management", b"x")
    assert reply.status == 400
    assert _sent(shared, "activemq.management") == (1, "", f"1 request of 1 failed: {reply.error}\n")
    asked = ("--header", "_AMQ_ResourceName=broker", "--header", "_AMQ_OperationName=getVersion")
    line = ["send", "activemq.management", "[]", *asked, "--stomp", f"stomp://{LOOPBACK}:{shared.port}"]
    done = run_text(line, timeout=WAIT_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the broker has carried out 1 request to activemq.management\n"


def test_a_message_that_a_consumer_takes_at_once_was_there(shared: BrokerProcess) -> None:
    with connected(shared.port) as client:
        client.subscribe("live", id="1", ack="auto", subscription_type="MULTICAST")
        code, said, errors = _sent(shared, "live", "--no-persistent")
        assert (code, errors) == (0, "")
        assert "it is on queue " in said
        assert client.message().body == b"x"


def test_what_it_says_is_what_the_queues_have(shared: BrokerProcess) -> None:
    for address in ("orders", "news", "picky", "none", "away", "astray", "fresh", "buried", "doubled"):
        before = {name: row["messageCount"] for name, row in shared.rows("queues").items()}
        code, said, _ = _sent(shared, address)
        after = {name: row["messageCount"] for name, row in shared.rows("queues").items()}
        grown = {name for name, count in after.items() if count > before.get(name, 0)}
        told = set(said.strip().rpartition("on queue")[2].removeprefix("s ").strip().split(", ")) if not code else set()
        assert told == grown, address


def test_a_late_reply_is_not_told_to_make_a_queue(shared: BrokerProcess) -> None:
    code, _, said = _sent(shared, LATE)
    assert code == 1
    assert "is a temporary destination, and the client that would have read it has gone" in said
    assert "queue create" not in said


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_the_receipt_tells_those_who_ask(broker: BrokerProcess, version: str) -> None:
    asked: dict[str, Any] = {"accept-version": version, "receipt-routing": "true"}
    with connected(broker.port, **asked) as client:
        assert _receipt(client, "SEND", destination="news").header("queues") == "2"
        told = _receipt(client, "SEND", destination="nix")
        assert (told.header("queues"), told.header("reason")) == ("0", "no-queue")
        told = _receipt(client, "SEND", destination=LATE)
        assert (told.header("queues"), told.header("reason")) == ("0", "gone")
        client.send("BEGIN", {"transaction": "t"})
        for destination in ("news", "nix", "nix", "none", "full", "full", "full"):
            kept = _receipt(client, "SEND", destination=destination, transaction="t")
            assert kept.header("queues") is None, "it is on none before COMMIT"
        told = _receipt(client, "COMMIT", transaction="t")
        assert (told.header("unrouted"), told.header("dropped")) == ("2", "1")
        client.send("BEGIN", {"transaction": "t"})
        for destination in ("astray", "overfull", "buried", "large", "nobody"):
            _receipt(client, "SEND", destination=destination, transaction="t")
        told = _receipt(client, "COMMIT", transaction="t")
        assert (told.header("unrouted"), told.header("dropped")) == ("2", "1"), "a copy counts for its original"
    with connected(broker.port, **{"accept-version": version}) as client:
        assert _receipt(client, "SEND", destination="news").header("queues") is None


def _receipt(client: StompSocket, command: str, **headers: str) -> ServerFrame:
    client.send(command, {**headers, "receipt": "r"}, b"x" if command == "SEND" else b"")
    return client.expect("RECEIPT")
