"""A disk that is full to the last byte: the broker lives, consumers drain it, a restart works, and room comes back."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.kit.client import StompSocket, connected, frame
from tests.kit.process import STOP_S, BrokerProcess, configuration, eventually, for_each_test, retained, started
from tests.kit.small_disk import FILLER, MEBIBYTE, fill, mounted

pytestmark = pytest.mark.e2e

SETTINGS = """\
      <address-setting match="#"><auto-delete-queues>false</auto-delete-queues></address-setting>
      <address-setting match="fails.#"><disk-full-policy>FAIL</disk-full-policy></address-setting>
      <address-setting match="pages.#">
        <disk-full-policy>FAIL</disk-full-policy>
        <max-size-bytes>100K</max-size-bytes>
        <page-size-bytes>256K</page-size-bytes>
        <address-full-policy>PAGE</address-full-policy>
      </address-setting>
"""
PERSISTENT = {"persistent": "true"}
NO_LIMIT = "<max-disk-usage>-1</max-disk-usage><disk-scan-period>200</disk-scan-period>"


disk = for_each_test(mounted)
ROOM = 3 * MEBIBYTE
GONE = "was removed from the retained log"


@contextmanager
def on_disk(
    disk: Path, more: str = NO_LIMIT, *, persists: bool = True, file_size: str = "1M"
) -> Iterator[BrokerProcess]:
    """A broker with everything on this disk, its configuration and log elsewhere."""
    core = f"<journal-file-size>{file_size}</journal-file-size>{more}"
    file = disk.parent / "broker.xml"
    file.write_text(configuration(folder=disk, persists=persists, core=core, settings=SETTINGS), "utf-8")
    with started(file) as broker:
        yield broker


def send(client: StompSocket, address: str, count: int, size: int = 1000) -> None:
    """So many messages, all confirmed, every twentieth at once: then no segment of the journal has many more."""
    body = b"x" * size
    for number in range(count):
        say = client.ask if number % 20 == 19 or number == count - 1 else client.send
        say("SEND", {"destination": f"/queue/{address}", "number": number, **PERSISTENT}, body)


def send_until_refused(client: StompSocket, address: str, number: int = 0, size: int = 50_000) -> int:
    """Messages numbered from ``number`` on, each confirmed; the number of the one that got an ERROR."""
    while True:
        headers = {"destination": f"/queue/{address}", "number": number, "receipt": number, **PERSISTENT}
        client.send("SEND", headers, bytes(size))
        answer = client.receive()
        if answer.command == "ERROR":
            return number
        assert answer.header("receipt-id") == str(number)
        number += 1


def take(port: int, address: str, count: int) -> list[str]:
    """So many messages, each acknowledged with a receipt of its own; their numbers."""
    with connected(port) as client:
        client.subscribe(f"/queue/{address}")
        numbers = []
        for _ in range(count):
            message = client.message()
            client.acknowledge(message)
            numbers.append(message.header("number") or "")
    return numbers


def test_at_the_last_byte_consumers_drain_everything_over_restarts(disk: Path) -> None:
    """The room that the journal needs for acknowledgements is the broker's own; what they free comes back to it."""
    total = 400
    with on_disk(disk) as broker:
        with connected(broker.port) as client:
            send(client, "fails.a", total, 16_000)
        fill(disk)
        assert take(broker.port, "fails.a", 20) == [str(number) for number in range(20)]
        broker.kill()
    taken = 20
    for _ in range(4):  # there was a crash loop
        fill(disk)
        with on_disk(disk) as broker:
            assert take(broker.port, "fails.a", 5) == [str(number) for number in range(taken, taken + 5)]
            taken += 5
            assert broker.stop() == 0, broker.said
    with on_disk(disk) as broker:
        assert take(broker.port, "fails.a", total - taken) == [str(number) for number in range(taken, total)]
        broker.await_metric(0, "artemis_disk_without_room")
        broker.eventually(
            "what was consumed gives its room back", lambda: shutil.disk_usage(disk).free, lambda free: free > ROOM
        )
        with connected(broker.port) as client:
            send(client, "fails.a", 10)
        assert broker.stop() == 0, broker.said


def test_senders_are_held_back_from_the_first_byte_of_the_reserve(disk: Path) -> None:
    """Until there is as much room as the reserve again: then they go on by themselves."""
    with on_disk(disk) as broker, connected(broker.port) as waiting:
        send(waiting, "waits", 100)
        fill(disk)
        with connected(broker.port) as client:
            assert send_until_refused(client, "fails.a") < 400, "segments that were made ahead, and little more"
        broker.await_metric(1, "artemis_disk_without_room")
        broker.await_metric(1, "artemis_disk_full")
        with connected(broker.port) as client:
            client.send("SEND", {"destination": "/queue/fails.a", "receipt": "no", **PERSISTENT}, b"no")
            assert "full" in client.expect("ERROR").text
        waiting.send("SEND", {"destination": "/queue/waits", "receipt": "later", **PERSISTENT}, b"later")
        broker.await_metric(1, "artemis_connections", state="blocked")
        (disk / FILLER).unlink()
        waiting.await_receipt("later")
        broker.await_metric(0, "artemis_disk_full")
        assert broker.metric("artemis_disk_reserve_taken_bytes") == 0
        assert broker.stop() == 0, broker.said
    assert broker.said.count("has room again") == 1


def test_the_limit_is_looked_at_before_the_period_is_over(disk: Path) -> None:
    """With the period of an hour a sender filled the disk to its end."""
    more = "<max-disk-usage>70</max-disk-usage><disk-scan-period>3600000</disk-scan-period>"
    with on_disk(disk, more) as broker:
        with connected(broker.port) as client:
            send_until_refused(client, "fails.a")
        assert "is full" in broker.said
        assert shutil.disk_usage(disk).free > 8 * MEBIBYTE
        assert broker.metric("artemis_disk_without_room") == 0
        assert broker.stop() == 0, broker.said


def test_a_page_file_that_finds_no_room_stops_nobody(disk: Path) -> None:
    """What an address had taken in is written to the reserve; then its senders are refused, and consumers get all."""
    with on_disk(disk) as broker:
        with connected(broker.port) as client:
            send(client, "pages.a", 200, 5000)
        assert broker.metric("artemis_number_of_pages", address="pages.a") > 1
        fill(disk)
        with connected(broker.port) as client:
            confirmed = send_until_refused(client, "pages.a", 200)
        fill(disk)
        broker.kill()
    with on_disk(disk) as broker:
        (disk / FILLER).unlink()
        assert take(broker.port, "pages.a", confirmed) == [str(number) for number in range(confirmed)]
        broker.await_metric(0, "artemis_disk_full")
        assert broker.stop() == 0, broker.said


def test_a_large_body_that_finds_no_room_is_refused_and_its_room_comes_back(disk: Path) -> None:
    with on_disk(disk) as broker:
        with connected(broker.port) as client:
            send(client, "a", 10)
            send(client, "a", 1, 300_000)
        before = shutil.disk_usage(disk).free
        with connected(broker.port) as client:
            client.raw(b"SEND\ndestination:/queue/a\nreceipt:1\npersistent:true\ncontent-length:%d\n\n" % (80 << 20))
            for _ in range(80):
                client.raw(bytes(MEBIBYTE))
            client.raw(b"\0")
            error = client.expect("ERROR").text
        assert "No disk space for this body" in error
        assert "No space left on device" in error
        broker.await_metric(1, "artemis_large_messages_without_room")
        eventually("free bytes", lambda: shutil.disk_usage(disk).free, lambda seen: seen > before - 3 * MEBIBYTE)
        broker.await_metric(0, "artemis_disk_full")
        with connected(broker.port) as client:
            send(client, "a", 1, 300_000)
        broker.await_count("a", 12)
        assert broker.stop() == 0, broker.said


def test_without_a_journal_pages_wait_for_room(disk: Path) -> None:
    """What was taken in stays in memory meanwhile; it is written when others were consumed."""
    with on_disk(disk, persists=False) as broker, connected(broker.port) as sender:
        send(sender, "pages.a", 200)
        fill(disk)
        for number in range(200, 5000):
            sender.send("SEND", {"destination": "/queue/pages.a", "number": number}, bytes(1000))
        broker.await_said("when there is room again")
        (disk / FILLER).unlink()
        sender.ask("BEGIN", {"transaction": "all were read"})
        assert take(broker.port, "pages.a", 5000) == [str(number) for number in range(5000)]
        assert broker.stop() == 0, broker.said


@pytest.mark.parametrize("reserve", ["with", "without"])
def test_history_goes_before_an_acknowledgement_finds_no_room(disk: Path, reserve: str) -> None:
    """A retained log without a limit of size takes what consumers free; it is what goes first, also when nothing is
    left of the reserve. The broker goes on, whatever moment somebody takes the room that is left.
    """
    total = 800
    with on_disk(disk, NO_LIMIT + retained(disk), file_size="64K") as broker:
        with connected(broker.port) as client:
            send(client, "fails.a", total, 24_000)
        assert take(broker.port, "fails.a", 100) == [str(number) for number in range(100)]
        eventually("history", lambda: list((disk / "kept").glob("*.log")), bool)
        if reserve == "without":
            (disk / "journal" / "reserve.room").unlink()
        taken = 100
        while taken < 400 or (
            GONE not in broker.said and taken < total - 100
        ):  # a file made ahead may have room for some
            fill(disk)
            assert take(broker.port, "fails.a", 100) == [str(number) for number in range(taken, taken + 100)]
            taken += 100
        broker.await_said(GONE)
        (disk / FILLER).unlink()
        assert take(broker.port, "fails.a", total - taken) == [str(number) for number in range(taken, total)]
        broker.await_metric(0, "artemis_disk_full")
        with connected(broker.port) as client:
            send(client, "fails.a", 1)
        assert broker.stop() == 0, broker.said


def test_a_stop_on_a_full_disk(disk: Path) -> None:
    with on_disk(disk) as broker, connected(broker.port) as client:
        send(client, "fails.a", 100)
        fill(disk)
        for _ in range(9):
            client.raw(frame("SEND", {"destination": "/queue/fails.a", **PERSISTENT}, bytes(9000)))
        assert broker.stop(signal.SIGINT) == 0, broker.said
    with on_disk(disk) as broker:
        assert take(broker.port, "fails.a", 100) == [str(number) for number in range(100)]


def test_without_even_the_reserve_it_ends_and_says_what_to_do(disk: Path) -> None:
    """Nothing that was confirmed is lost; with room it starts again."""
    with on_disk(disk) as broker, connected(broker.port) as client:
        (disk / "journal" / "reserve.room").unlink()
        fill(disk)
        confirmed = 0
        with suppress(AssertionError, OSError):
            while True:
                client.ask("SEND", {"destination": "/queue/a", "number": confirmed, **PERSISTENT}, bytes(50_000))
                confirmed += 1
        assert broker.process.wait(STOP_S) == 3
        failed, advice = (line.partition(" ART-2010 ")[2] for line in broker.said.splitlines()[-2:])
        assert failed.startswith("storage failed and the broker stops; it confirmed nothing after this: ")
        assert "No space left on device" in failed
        assert advice.startswith("free space on that file system and start the broker again")
    (disk / FILLER).unlink()
    with on_disk(disk) as broker:
        broker.eventually("messages", lambda: broker.count("a"), lambda seen: seen >= confirmed)
        assert take(broker.port, "a", confirmed) == [str(number) for number in range(confirmed)]
        assert broker.stop() == 0, broker.said
