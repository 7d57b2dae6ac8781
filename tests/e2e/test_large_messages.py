"""Large bodies through the real process: memory and turns while they pass, kills in the middle, a disk that fails."""

from __future__ import annotations

import hashlib
import resource
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from artemis_py.message import LargeBody
from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.names import find_body, read_name
from artemis_py.storage.format.reader import LogReader
from artemis_py.storage.format.scan import log_files
from tests.e2e import small_files
from tests.kit.client import READ_BYTES, Closed, StompSocket, connected, frame
from tests.kit.files import flip
from tests.kit.meanwhile import meanwhile
from tests.kit.process import HTTP, STOMP, WAIT_S, BrokerProcess, retained, started

pytestmark = pytest.mark.e2e

MEBIBYTE = 1 << 20
RSS_BYTES_MAX = 150_000_000
PASSAGES_MAX = 5
TURN_SHARE_MAX = 0.2
"""Of the time of all turns."""
TEST_BYTES = 64 * MEBIBYTE
SOAK_BYTES = 1024 * MEBIBYTE
CHUNK = bytes(range(1, 256)) * 4096
BODY = CHUNK[:500_000]
PERSISTENT: dict[str, Any] = {"persistent": "true"}


CORE = "<max-disk-usage>100</max-disk-usage>"
ACCEPTORS = {"stomp": f"{STOMP};maxBodyBytes=2000000000", "http": HTTP}
configured = partial(small_files.configured, core=CORE, acceptors=ACCEPTORS)


def bodies_in(folder: Path) -> list[str]:
    """The files of bodies below a folder."""
    return sorted(path.name for path in folder.rglob("*") if read_name(path.name) is not None)


def beginning(size: int, *, sized: bool = True, **headers: str) -> bytes:
    """A SEND up to its body."""
    named = {"destination": "/queue/q", **headers} | ({"content-length": str(size)} if sized else {})
    return ("SEND\n" + "".join(f"{name}:{value}\n" for name, value in named.items()) + "\n").encode()


# ---- memory and turns ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """What the passage of one body cost the broker."""

    rss_bytes_max: int
    turn_s_max: float
    turn_share_max: float


def pass_through(folder: Path, size: int, *, persistent: bool, sized: bool) -> Passage:
    """Send a body of ``size`` bytes to a broker and get it back; nothing of it is left afterwards."""
    with started(configured(folder, persists=persistent)) as broker:
        seen_bytes: list[int] = []
        with meanwhile(lambda: seen_bytes.append(broker.memory_bytes), pause_s=0.002):
            with connected(broker.port) as producer:
                headers = {"receipt": "sent"} | (PERSISTENT if persistent else {})
                producer.raw(beginning(size, sized=sized, **headers))
                sent = hashlib.sha256()
                for start in range(0, size, len(CHUNK)):
                    chunk = CHUNK[: size - start]
                    sent.update(chunk)
                    producer.raw(chunk)
                producer.raw(b"\0")
                producer.await_receipt("sent")
            with connected(broker.port) as consumer:
                consumer.send("SUBSCRIBE", {"id": "1", "destination": "/queue/q", "ack": "client"})
                head, received = received_body(consumer, size)
                assert received == sent.hexdigest()
                assert f"content-length:{size}\n".encode() in head
                ack = head.partition(b"\nack:")[2].partition(b"\n")[0].decode()
                consumer.ask("ACK", {"id": ack})
        passage = Passage(
            max(seen_bytes), broker.metric("artemis_turn_duration_seconds_max"), broker.longest_turn_share
        )
        broker.await_metric(0, "artemis_large_messages")
        broker.eventually("no file left", lambda: bodies_in(folder), lambda found: not found)
        assert broker.stop() == 0
    return passage


def received_body(consumer: StompSocket, size: int) -> tuple[bytes, str]:
    """The header block of the next frame, and what its body of ``size`` bytes hashes to; nothing is kept."""
    data = b""
    while b"\n\n" not in data:
        data += consumer.socket.recv(READ_BYTES)
    head, _, data = data.partition(b"\n\n")
    digest = hashlib.sha256()
    left = size
    while left:
        digest.update(data[:left])
        rest = data[left:]
        left -= min(len(data), left)
        data = rest or consumer.socket.recv(READ_BYTES)
        assert data, "the broker closed the connection"
    while len(data) < len(b"\0\n"):
        data += consumer.socket.recv(READ_BYTES)
    assert data == b"\0\n"
    return head + b"\n", digest.hexdigest()


@pytest.mark.parametrize("sized", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("persistent", [True, False], ids=["journal", "memory"])
def test_64_mib(tmp_path: Path, persistent: bool, sized: bool) -> None:
    """A disk that stalls makes a turn long, whatever the broker does: one passage of a few must be even."""
    shares: list[float] = []
    while not shares or (shares[-1] >= TURN_SHARE_MAX and len(shares) < PASSAGES_MAX):
        folder = tmp_path / str(len(shares))
        folder.mkdir()
        passage = pass_through(folder, TEST_BYTES, persistent=persistent, sized=sized)
        assert passage.rss_bytes_max < RSS_BYTES_MAX - TEST_BYTES, "it must not matter how long the body is"
        shares.append(passage.turn_share_max)
    assert shares[-1] < TURN_SHARE_MAX, shares


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif("'slow' not in config.option.markexpr", reason="1 GiB: make soak")
@pytest.mark.parametrize("sized", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("persistent", [True, False], ids=["journal", "memory"])
def test_1_gib(tmp_path: Path, persistent: bool, sized: bool, capsys: pytest.CaptureFixture[str]) -> None:
    passage = pass_through(tmp_path, SOAK_BYTES, persistent=persistent, sized=sized)
    with capsys.disabled():
        print(
            f"\n1 GiB: {passage.rss_bytes_max / 1e6:.0f} MB resident, longest turn {passage.turn_s_max * 1000:.1f} ms"
        )
    assert passage.rss_bytes_max < RSS_BYTES_MAX
    assert passage.turn_share_max < TURN_SHARE_MAX


# ---- kill -9 -------------------------------------------------------------------------------------


def test_killed_in_the_middle_of_an_upload(tmp_path: Path) -> None:
    """What was receipted is there, what was under way is not, and its file neither."""
    file = configured(tmp_path)
    with started(file) as broker, connected(broker.port) as producer:
        producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, BODY)
        producer.raw(beginning(TEST_BYTES, **PERSISTENT))
        producer.raw(CHUNK * 8)
        broker.eventually("half of it on disk", lambda: len(bodies_in(tmp_path)), lambda count: count == 2)
        broker.kill()
    with started(file) as broker:
        with connected(broker.port) as consumer:
            consumer.finds("/queue/q", BODY)
        broker.eventually("one file", lambda: len(bodies_in(tmp_path)), lambda count: count == 1)
        assert broker.stop() == 0


def test_killed_in_the_middle_of_a_delivery(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as producer:
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, CHUNK * 8)
        with connected(broker.port) as consumer:
            consumer.send("SUBSCRIBE", {"id": "1", "destination": "/queue/q", "ack": "client"})
            assert consumer.socket.recv(READ_BYTES)
            broker.kill()
    with started(file) as broker:
        with connected(broker.port) as consumer:
            consumer.subscribe("/queue/q")
            message = consumer.message()
            assert message.body == CHUNK * 8
            consumer.acknowledge(message)
        broker.eventually("no file", lambda: bodies_in(tmp_path), lambda found: not found)
        assert broker.stop() == 0


def test_killed_without_a_journal_it_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    file = configured(tmp_path, persists=False)
    with started(file) as broker:
        with connected(broker.port) as producer:
            producer.ask("SEND", {"destination": "/queue/q"}, BODY)
        broker.kill()
    assert len(bodies_in(tmp_path)) == 1
    with started(file) as broker:
        assert bodies_in(tmp_path) == []
        with connected(broker.port) as producer:
            producer.ask("SEND", {"destination": "/queue/q"}, BODY)
        assert len(bodies_in(tmp_path)) == 1
        assert broker.stop() == 0
    assert bodies_in(tmp_path) == []


# ---- restarts and damage -------------------------------------------------------------------------


def test_a_stop_keeps_persistent_bodies_only(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as producer:
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, BODY)
            producer.ask("SEND", {"destination": "/queue/q"}, BODY)
        assert broker.stop() == 0
    with started(file) as broker:
        broker.eventually("one file", lambda: len(bodies_in(tmp_path)), lambda count: count == 1)
        with connected(broker.port) as consumer:
            consumer.finds("/queue/q", BODY)
        assert broker.stop() == 0


def test_a_lost_file_is_told_and_its_message_taken_away(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as producer:
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, BODY)
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"small")
        assert broker.stop() == 0
    name = bodies_in(tmp_path)[0]
    (tmp_path / "large" / name).unlink()
    with started(file) as broker:
        assert f"(file {name.partition('.')[0]}) is missing: the message is DAMAGED" in broker.said
        with connected(broker.port) as consumer:
            consumer.finds("/queue/q", b"small")
        assert broker.stop() == 0
    with started(file) as broker:
        assert "DAMAGED" not in broker.said
        assert broker.stop() == 0


@pytest.mark.parametrize(("persistent", "place"), [(True, 0), (True, 499_999), (False, 262_144)])
def test_a_flipped_bit_in_a_body_is_told_and_the_message_ends_at_dead_letter(
    tmp_path: Path, persistent: bool, place: int
) -> None:
    """No consumer gets it as if it were whole: its connection ends in the middle of the frame."""
    dead = (
        '<address-setting match="q"><max-delivery-attempts>2</max-delivery-attempts>'
        "<dead-letter-address>dead</dead-letter-address><auto-create-dead-letter-resources>true"
        "</auto-create-dead-letter-resources></address-setting>"
    )
    with started(configured(tmp_path, persists=persistent, settings=dead)) as broker:
        with connected(broker.port) as producer:
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, BODY)
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"small")
        (path,) = [path for path in (tmp_path / "large").rglob("*") if read_name(path.name) is not None]
        with path.open("r+b") as file:
            file.seek(place)
            file.write(bytes([BODY[place] ^ 1]))
        for _ in range(2):
            with connected(broker.port) as consumer:
                consumer.raw(frame("SUBSCRIBE", {"id": 1, "destination": "/queue/q", "ack": "client-individual"}))
                with pytest.raises((Closed, OSError)):
                    consumer.message()
            broker.await_metric(0, "artemis_connection_count")
        assert f"{path.name} is DAMAGED: its checksum does not match" in broker.said
        broker.await_count("q", 1)
        with connected(broker.port) as consumer:
            consumer.subscribe("/queue/q")
            assert consumer.message().body == b"small"
        assert broker.stop() == 0


def test_damage_in_a_page_costs_no_other_body(tmp_path: Path) -> None:
    """The bodies of all that stands behind it were removed at the start, and its reader was never answered."""
    pages_all = '<address-setting match="q"><max-size-messages>0</max-size-messages></address-setting>'
    file = configured(tmp_path, settings=pages_all)
    bodies = [bytes([letter]) * 200_000 for letter in b"abc"]
    with started(file) as broker:
        with connected(broker.port) as client:
            for body in bodies:
                client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, body)
        broker.kill()
    (page,) = (tmp_path / "paging").glob("*.page")
    flip(page, b"destination")
    with started(file) as broker:
        with connected(broker.port) as client:
            client.subscribe("/queue/q")
            for body in bodies[1:]:
                message = client.message()
                assert message.body == body
                client.acknowledge(message)
            client.nothing_waits()
        assert broker.stop() == 0


def test_a_disk_that_fails_ends_the_broker(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as producer:
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"before")
            resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (MEBIBYTE, MEBIBYTE))
            with pytest.raises((Closed, OSError)):
                producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, CHUNK * 8)
        assert broker.process.wait(WAIT_S) == 3
        failures = [line for line in broker.said.splitlines() if " storage failed" in line]
        assert len(failures) == 1
        assert "File too large" in failures[0]
        assert str(tmp_path / "large") in failures[0]
        assert "Traceback" not in broker.said
    with started(file) as broker:
        with connected(broker.port) as consumer:
            consumer.finds("/queue/q", b"before")
        assert broker.stop() == 0


def test_a_retained_log_keeps_its_bodies(tmp_path: Path) -> None:
    with started(configured(tmp_path, core=CORE + retained(tmp_path))) as broker:
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, BODY)
            client.subscribe("/queue/q")
            client.acknowledge(client.message())
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"y" * 200_000)
        broker.eventually("moved", lambda: len(bodies_in(tmp_path / "kept")), lambda count: count == 1)
        assert broker.stop() == 0
    log = LogReader([tmp_path / "kept", tmp_path / "journal"])
    bodies = [event.kept.message.body for event in log.events() if isinstance(event, Published)]
    assert log_files([tmp_path / "journal"])
    directories = [tmp_path / "large", *log.directories]
    found = [find_body(body.number, directories) for body in bodies if isinstance(body, LargeBody)]
    assert [path.read_bytes() for path in found if path is not None] == [BODY, b"y" * 200_000]


def test_a_second_broker_may_not_have_the_directory(tmp_path: Path) -> None:
    """It would take the bodies of the first for files that nobody needs."""
    other = tmp_path / "other"
    other.mkdir()
    with started(configured(tmp_path)) as first:
        file = configured(other)
        text = file.read_text("utf-8").replace(f"{other}/large", f"{tmp_path}/large")
        file.write_text(text, "utf-8")
        second = BrokerProcess(["run", str(file)], other / "broker.log")
        assert second.process.wait(WAIT_S) == 1
        assert f"{tmp_path}/large is in use by another broker (process {first.process.pid} on host " in second.said
        assert first.stop() == 0
    shutil.rmtree(other)


def test_stopped_in_the_middle_of_bodies(tmp_path: Path) -> None:
    """An upload and a delivery are under way: the broker stops all the same, and keeps what was receipted."""
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as producer, connected(broker.port) as consumer:
            producer.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, CHUNK * 8)
            consumer.send("SUBSCRIBE", {"id": "1", "destination": "/queue/q", "ack": "client"})
            assert consumer.socket.recv(READ_BYTES)
            producer.raw(beginning(TEST_BYTES, **PERSISTENT))
            producer.raw(CHUNK)
            assert broker.stop() == 0
        assert "Traceback" not in broker.said
    with started(file) as broker:
        with connected(broker.port) as consumer:
            consumer.finds("/queue/q", CHUNK * 8)
            # It goes with the consumer: one attempt is all that a message has here.
            broker.eventually("one file", lambda: len(bodies_in(tmp_path)), lambda count: count == 1)
        assert broker.stop() == 0
