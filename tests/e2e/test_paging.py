"""Paging as a client sees it: an address holds more than its memory, in order, over restarts, for all of its queues."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from artemis_py.terminal_output import many
from tests.kit.client import Closed, StompSocket, connected, frame
from tests.kit.files import flip
from tests.kit.forks import run_text
from tests.kit.process import WAIT_S, running, storing

pytestmark = pytest.mark.e2e

PERSISTENT = {"persistent": "true"}
ADDRESSES = """\
      <address name="late"><anycast><queue name="late"/></anycast></address>
      <address name="dead"><anycast><queue name="dead"/></anycast></address>
      <address name="news"><multicast><queue name="news.a"/><queue name="news.b"/></multicast></address>
"""
SETTINGS = """\
      <address-setting match="#">
        <expiry-address>late</expiry-address>
        <max-size-messages>5</max-size-messages>
        <page-size-bytes>{page_size}</page-size-bytes>
        <redelivery-delay>0</redelivery-delay>
        <max-delivery-attempts>3</max-delivery-attempts>
        <dead-letter-address>dead</dead-letter-address>
        {more}
      </address-setting>
      <address-setting match="late"><max-size-messages>-1</max-size-messages></address-setting>
"""


CORE = "<journal-file-size>{}</journal-file-size><message-expiry-scan-period>20</message-expiry-scan-period>"
paging = partial(
    storing, core=CORE.format("64K"), addresses=ADDRESSES, settings=SETTINGS.format(page_size="1K", more="")
)
"""A broker whose addresses keep five messages in memory and page the others, 1 KiB a page."""


def bodies(client: StompSocket, count: int) -> list[int]:
    """The next messages' numbers; each is acknowledged before the next one is awaited."""
    found: list[int] = []
    for _ in range(count):
        message = client.message()
        found.append(int(message.body))
        client.send("ACK", {"id": message.header("ack")})
    return found


def pages_of(folder: Path) -> list[Path]:
    """The page files there are."""
    return sorted((folder / "paging").rglob("*.page"))


@pytest.mark.parametrize("persistence", [True, False])
def test_order_is_kept_and_pages_go(tmp_path: Path, persistence: bool) -> None:
    """Scenario (a): 20 messages with room for five; all come, in order; then nothing is left of the pages."""
    with paging(tmp_path, persists=persistence) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 21))
        broker.await_count("q", 20)
        assert broker.metric("artemis_number_of_pages", address="q") >= 1
        broker.eventually("pages on disk", lambda: len(pages_of(tmp_path)), lambda count: count >= 1)
        assert broker.metric("artemis_address_size", address="q") < 5 * 1000
        client.subscribe("/queue/q")
        assert bodies(client, 20) == list(range(1, 21))
        broker.await_count("q", 0)
        broker.await_metric(0, "artemis_number_of_pages", address="q")
        broker.eventually("no pages on disk", lambda: pages_of(tmp_path), lambda left: not left)
        client.publish("/queue/q", range(21, 23))
        assert bodies(client, 2) == [21, 22]


def test_what_was_receipted_survives_a_kill_and_what_was_acknowledged_does_not_come_again(tmp_path: Path) -> None:
    """Scenarios (c) and (d)."""
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 51))
        client.subscribe("/queue/q")
        assert bodies(client, 20) == list(range(1, 21))
        client.nothing_waits_but_messages()
        broker.kill()
    with paging(tmp_path) as broker, connected(broker.port) as client:
        broker.await_count("q", 30)
        client.subscribe("/queue/q")
        assert bodies(client, 30) == list(range(21, 51))
        broker.await_count("q", 0)
        broker.await_metric(0, "artemis_number_of_pages", address="q")
    with paging(tmp_path) as broker:
        broker.await_count("q", 0)


def test_transient_messages_are_paged_and_gone_after_a_restart(tmp_path: Path) -> None:
    with paging(tmp_path) as broker, connected(broker.port) as client:
        for number in range(1, 41):
            client.send("SEND", {"destination": "/queue/q", "persistent": str(number % 2 == 0).lower()}, b"%d" % number)
        broker.await_count("q", 40)
        client.subscribe("/queue/q")
        assert bodies(client, 10) == list(range(1, 11))
        client.nothing_waits_but_messages()
    with paging(tmp_path) as broker, connected(broker.port) as client:
        broker.await_count("q", 15)
        client.subscribe("/queue/q")
        assert bodies(client, 15) == list(range(12, 41, 2))
        client.nothing_waits()
        broker.await_metric(0, "artemis_number_of_pages", address="q")


def test_a_transaction_is_paged_whole(tmp_path: Path) -> None:
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 11))
        client.send("BEGIN", {"transaction": "t"})
        for number in range(11, 31):
            client.send("SEND", {"destination": "/queue/q", **PERSISTENT, "transaction": "t"}, b"%d" % number)
            client.send("SEND", {"destination": "/queue/other", **PERSISTENT, "transaction": "t"}, b"%d" % number)
        broker.await_count("q", 10)
        client.ask("COMMIT", {"transaction": "t"})
        broker.kill()
    with paging(tmp_path) as broker, connected(broker.port) as client:
        broker.await_count("q", 30)
        broker.await_count("other", 20)
        client.subscribe("/queue/q", id="q")
        assert bodies(client, 30) == list(range(1, 31))
        client.subscribe("/queue/other", id="o")
        assert bodies(client, 20) == list(range(11, 31))


@pytest.mark.parametrize("selector", [{}, {"selector": "color IS NULL"}])
def test_failed_deliveries_are_counted_over_a_restart(tmp_path: Path, selector: dict[str, str]) -> None:
    """Also for a consumer that chooses: it has a way of its own through the pages."""
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 31))
        client.subscribe("/queue/q", id="s", consumer_window_size=0, **selector)
        assert bodies(client, 9) == list(range(1, 10))
        for _ in range(2):
            client.ask("NACK", {"id": client.message().header("ack")})
        client.ask("DISCONNECT")
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.subscribe("/queue/dead", id="dead")
        client.subscribe("/queue/q", id="s", consumer_window_size=0, **selector)
        third = client.message()
        assert (third.body, third.header("redelivered")) == (b"10", "true")
        client.send("NACK", {"id": third.header("ack")})
        got = {client.message().body for _ in range(2)}
        assert got == {b"10", b"11"}, "the third failure was the last"


def test_a_ring_counts_only_what_is_in_memory(tmp_path: Path) -> None:
    """Paged messages count in messageCount, not against a ring."""
    settings = SETTINGS.format(page_size="1K", more="<default-ring-size>3</default-ring-size>")
    with paging(tmp_path, settings=settings) as broker, connected(broker.port) as client:
        client.publish("/queue/other", range(1, 4))
        client.subscribe("/queue/q", id="hold", consumer_window_size=-1)
        client.publish("/queue/q", range(1, 41))
        assert bodies(client, 40) == list(range(1, 41)), "in order, none of them lost to the ring"


def test_damage_in_a_page_is_told_and_the_rest_comes(tmp_path: Path) -> None:
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 61))
        broker.await_count("q", 60)
    path = pages_of(tmp_path)[1]
    flip(path, path.stat().st_size // 2, 0x55)
    with paging(tmp_path) as broker, connected(broker.port) as client:
        broker.await_count("q", 60)
        client.subscribe("/queue/q")
        found = bodies(client, 59)
        assert len(set(range(1, 61)) - set(found)) == 1
        assert found == sorted(found)
        broker.await_count("q", 0)
        assert f"{path.name} at byte" in broker.said
        assert "DAMAGED" in broker.said
        kept = tmp_path / "paging" / f"quarantined-{path.name}"
        broker.eventually("quarantined", kept.exists, bool)


def test_a_lost_page_file_is_told_and_the_rest_comes(tmp_path: Path) -> None:
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 61))
    pages_of(tmp_path)[1].unlink()
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.subscribe("/queue/q")
        found = bodies(client, broker.count("q") - 5)
        assert found == sorted(found)
        client.send("SEND", {"destination": "/queue/q", **PERSISTENT}, b"1000")
        while found[-1] != 1000:
            found += bodies(client, 1)
        assert 40 < len(found) < 60
        assert "DAMAGED" in broker.said


def test_page_state_survives_the_end_of_journal_files(tmp_path: Path) -> None:
    """Journal files are tiny: what they said of pages has to be said again before they go."""
    with paging(tmp_path, core=CORE.format("2K")) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 201))
        client.subscribe("/queue/q", id="odd", selector="color IS NULL")
        assert bodies(client, 100) == list(range(1, 101))
        client.nothing_waits_but_messages()
    with paging(tmp_path, core=CORE.format("2K")) as broker, connected(broker.port) as client:
        broker.await_count("q", 100)
        client.subscribe("/queue/q")
        assert bodies(client, 100) == list(range(101, 201))
        broker.await_metric(0, "artemis_number_of_pages", address="q")


def test_a_sender_that_is_faster_than_the_disk_waits_and_loses_nothing(tmp_path: Path) -> None:
    """More than the broker lets gather is sent at once; nothing gets lost, and the memory stays small."""
    count, size = 60_000, 2000
    settings = SETTINGS.format(page_size="10M", more="")
    with paging(tmp_path, core=CORE.format("10M"), settings=settings) as broker:
        before = broker.memory_bytes
        with connected(broker.port) as client:
            block = frame("SEND", {"destination": "/queue/q"}, bytes(size)) * 100
            for _ in range(count // 100):
                client.raw(block)
            broker.await_count("q", count)
            assert broker.memory_bytes - before < 64 << 20
            client.subscribe("/queue/q", ack="auto")
            for _ in range(count):
                client.message()
            broker.await_count("q", 0)


def test_pages_can_be_looked_at_when_the_broker_is_stopped(tmp_path: Path) -> None:
    """``artemis-py pages list`` and ``dump``, and what ``journal verify`` says of them."""
    with paging(tmp_path) as broker, connected(broker.port) as client:
        client.publish("/queue/q", range(1, 21))
        client.subscribe("/queue/q")
        assert bodies(client, 8) == list(range(1, 9))
        client.ask("DISCONNECT")

    def told(*arguments: str) -> list[str]:
        done = run_text(arguments, timeout=WAIT_S, check=True)
        return done.stdout.splitlines()

    folder, journal = f"{tmp_path}/paging", f"{tmp_path}/journal"
    found = [json.loads(line) for line in told("pages", "list", folder, "--json")]
    with_journal = ("--journal", journal, "--json")
    left = [json.loads(line) for line in told("pages", "list", folder, *with_journal)]
    assert {one["address"] for one in found} == {"q"}
    assert sum(one["messages"] for one in found) >= 12
    assert sum(one["left"] for one in left) == 12
    assert told("pages", "list", folder)[-1].startswith(f"in all: {many(len(found), 'page')} of 1 address,")
    dumped = [line for path in pages_of(tmp_path) for line in told("pages", "dump", str(path), "--json")]
    assert [json.loads(line)["body"] for line in dumped][-1] == "20"
    assert any("12 in" in line and "pages" in line for line in told("journal", "verify", journal))
    assert any(" acked " in line for line in told("journal", "dump", journal, "--type", "page-settled"))


def test_a_failing_disk_ends_the_broker_and_no_promise(tmp_path: Path) -> None:
    """The paging directory vanishes under a running broker: one clear message, exit code 3."""
    with paging(tmp_path) as broker:
        client = connected(broker.port)
        client.publish("/queue/q", range(1, 6))
        shutil.rmtree(tmp_path / "paging")
        (tmp_path / "paging").write_text("no directory")
        with pytest.raises((Closed, OSError)):
            client.publish("/queue/q", range(6, 31))
        assert broker.process.wait(120) == 3
        assert "storage failed" in broker.said
        broker.code_expected = 3


def test_the_configuration_in_the_documents_does_what_they_say(tmp_path: Path) -> None:
    """docs/paging.md, with a small page size and a port of its own."""
    page = (Path(__file__).parents[2] / "docs" / "paging.md").read_text("utf-8")
    text = page[page.index("<configuration") : page.index("</configuration>")] + "</configuration>"
    for ours, theirs in (("127.0.0.1:61613", "127.0.0.1:0"), ("data/", f"{tmp_path}/"), ("20M", "20K"), ("10M", "10K")):
        assert ours in text
        text = text.replace(ours, theirs)
    with running(text, tmp_path) as broker, connected(broker.port) as client:
        client.publish("/queue/orders", range(1, 501))
        broker.eventually("pages on disk", lambda: len(pages_of(tmp_path)), lambda count: count >= 2)
        client.subscribe("/queue/orders")
        assert bodies(client, 500) == list(range(1, 501))
        broker.eventually("no pages on disk", lambda: pages_of(tmp_path), lambda left: not left)
