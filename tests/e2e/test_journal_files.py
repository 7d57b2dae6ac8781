"""A broker and its files: one broker per directory, a disk that fails, and damage that is told."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import pytest

from artemis_py.storage.format.scan import log_files
from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.client import Closed, connected
from tests.kit.files import flip
from tests.kit.forks import run_text
from tests.kit.process import BOTH, WAIT_S, started

pytestmark = pytest.mark.e2e


# ---- one broker per directory --------------------------------------------------------------------


def test_a_second_broker_is_told_who_has_the_directory(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as first:
        second = run_text(["run", str(file)], timeout=WAIT_S)
        assert second.returncode == 1
        told = f"{tmp_path}/journal is in use by another broker (process {first.process.pid} on host "
        assert f"Z ART-2010 the journal cannot be opened: {told}" in second.stderr.splitlines()[-1]
        with connected(first.port) as client:
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"still here")
        assert first.stop() == 0


def test_a_directory_that_cannot_be_locked_is_told(tmp_path: Path) -> None:
    """As when its owner is somebody else: people saw a traceback."""
    (tmp_path / "journal" / "server.lock").mkdir(parents=True)
    file = configured(tmp_path)
    told = run_text(["run", str(file)], timeout=WAIT_S)
    assert told.returncode == 1
    assert told.stderr.splitlines()[-1].endswith(
        f"Z ART-2010 the journal cannot be opened: {tmp_path}/journal/server.lock: Is a directory"
    )


def test_the_use_of_the_disk_is_measured(tmp_path: Path) -> None:
    """The share of the file system that the journal is on; without a journal it is 0."""
    with started(configured(tmp_path, acceptors=BOTH)) as broker:
        assert 0 < broker.metric("artemis_disk_store_usage") <= 1
        assert broker.stop() == 0


def test_a_killed_broker_leaves_no_lock(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        broker.kill()
    with started(file) as broker:
        assert broker.stop() == 0


def test_an_orderly_stop_is_no_failed_delivery(tmp_path: Path) -> None:
    """One failure would be enough for the dead-letter address; a broker that stops is not the consumer's failure."""
    file = configured(tmp_path)
    with started(file) as broker, connected(broker.port) as client:
        client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"in delivery")
        client.subscribe("/queue/q")
        assert client.message().body == b"in delivery"
        assert broker.stop() == 0
    with started(file) as broker, connected(broker.port) as client:
        client.finds("/queue/q", b"in delivery")


# ---- a disk that fails ---------------------------------------------------------------------------


def test_a_disk_that_fails_ends_the_broker_and_no_promise(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "/queue/first", **PERSISTENT}, b"before")
            spares = tmp_path / "journal"
            broker.eventually(
                "a file made ahead",
                lambda: [path.stat().st_size for path in spares.glob("spare-*.log")],
                lambda sizes: 64 * 1024 in sizes,
            )
            resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (48 * 1024, 48 * 1024))
            receipted: list[bytes] = []
            with suppress(Closed, OSError):
                while len(receipted) < 10_000:
                    body = b"%06d" % len(receipted) + bytes(500)
                    client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, body)
                    receipted.append(body)
            assert len(receipted) < 10_000, "the disk did not fail"
        assert broker.process.wait(WAIT_S) == 3
        failures = [line for line in broker.said.splitlines() if " storage failed" in line]
        assert len(failures) == 1
        assert "File too large" in failures[0]
        assert str(tmp_path / "journal") in failures[0]
        assert "Traceback" not in broker.said
    assert receipted
    with started(file) as broker:
        with connected(broker.port) as client:
            client.subscribe("/queue/q")
            assert [client.message().body for _ in receipted] == receipted
        with connected(broker.port) as client:
            client.finds("/queue/first", b"before")
        assert broker.stop() == 0


# ---- damage --------------------------------------------------------------------------------------


def test_damage_in_the_middle_is_told_and_the_rest_lives(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as client:
            for number in range(5):
                client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"body-%d" % number)
        assert broker.stop() == 0
    path = log_files([tmp_path / "journal"])[0].path
    place = path.read_bytes().index(b"body-2")
    flip(path, place)
    data = path.read_bytes()
    verified = run_text(["journal", "verify", str(tmp_path / "journal")])
    assert verified.returncode == 1
    with started(file) as broker:
        damaged = [line for line in broker.said.splitlines() if "DAMAGED" in line]
        assert len(damaged) == 1
        assert f"{path} at byte " in damaged[0]
        assert int(damaged[0].partition(" at byte ")[2].partition(":")[0]) < place
        with connected(broker.port) as client:
            client.finds("/queue/q", b"body-0", b"body-1", b"body-3", b"body-4")
        assert broker.stop() == 0
    assert (path.parent / f"quarantined-{path.name}").read_bytes() == data


def test_files_of_another_version_are_left_alone(tmp_path: Path) -> None:
    file = configured(tmp_path)
    with started(file) as broker:
        with connected(broker.port) as client:
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"of tomorrow")
        assert broker.stop() == 0
    path = log_files([tmp_path / "journal"])[0].path
    data = bytearray(path.read_bytes())
    data[8] += 1
    data[60:64] = crc32(data[:60]).to_bytes(4, "little")
    path.write_bytes(data)
    refused = run_text(["run", str(file)], timeout=WAIT_S)
    assert refused.returncode == 1
    assert "format version 2" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert path.read_bytes() == data
