"""The broker's directories removed, moved or replaced while it runs: noticed, and nothing confirmed after it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.client import StompSocket, connected
from tests.kit.forks import run_text
from tests.kit.process import STOP_S, WAIT_S, BrokerProcess, eventually, retained, started

pytestmark = pytest.mark.e2e


def remove(directory: Path) -> None:
    """All of it goes, also what the broker makes again while it goes."""
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)


def move(directory: Path) -> None:
    """It goes on under another name: whoever has files of it open notices nothing."""
    directory.rename(directory.with_name("elsewhere"))


def replace(directory: Path) -> None:
    """An empty one stands in its place."""
    move(directory)
    directory.mkdir()


def copy_in(directory: Path) -> None:
    """A copy of it stands in its place, as after a backup was put back. What the broker has removed meanwhile is not in
    it.
    """
    move(directory)
    directory.mkdir()
    for file in list(directory.with_name("elsewhere").iterdir()):
        with suppress(FileNotFoundError):
            shutil.copy2(file, directory / file.name)


def ended(broker: BrokerProcess) -> str:
    """What it said at its end, which has to come by itself, and to be told."""
    assert broker.process.wait(STOP_S) == 3
    assert "Traceback" not in broker.said, broker.said
    line = broker.said.splitlines()[-1].partition(" ART-2010 ")[2]
    assert line.startswith("storage failed and the broker stops; it confirmed nothing after this: "), broker.said
    return line


def sends_one(client: StompSocket) -> bool:
    """Is a SEND confirmed? False when the broker is gone."""
    try:
        client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, b"body")
    except (AssertionError, OSError):
        return False
    return True


@pytest.mark.parametrize("vanish", [remove, move, replace, copy_in])
def test_not_one_receipt_after_the_journal_is_gone(tmp_path: Path, vanish: Callable[[Path], None]) -> None:
    with started(configured(tmp_path)) as broker, connected(broker.port) as client:
        assert sends_one(client)
        vanish(tmp_path / "journal")
        assert not sends_one(client)
        assert f"{tmp_path}/journal" in ended(broker)


def test_a_segment_that_somebody_removed(tmp_path: Path) -> None:
    """The directory and all else in it are there."""
    with started(configured(tmp_path)) as broker, connected(broker.port) as client:
        assert sends_one(client)
        for segment in (tmp_path / "journal").glob("artemis-journal-*.log"):
            segment.unlink()
        assert not sends_one(client)
        assert "artemis-journal-" in ended(broker)


def test_a_segment_that_somebody_removed_when_nothing_is_written(tmp_path: Path) -> None:
    with started(configured(tmp_path)) as broker:
        with connected(broker.port) as client:
            assert sends_one(client)
        for segment in (tmp_path / "journal").glob("artemis-journal-*.log"):
            segment.unlink()
        line = ended(broker)
        assert "artemis-journal-" in line
        assert "put it back" in line


@pytest.mark.parametrize("name", ["journal", "paging", "large"])
@pytest.mark.parametrize("vanish", [remove, replace])
def test_a_broker_that_does_nothing_notices_too(tmp_path: Path, name: str, vanish: Callable[[Path], None]) -> None:
    with started(configured(tmp_path)) as broker:
        vanish(tmp_path / name)
        line = ended(broker)
        assert f"{tmp_path}/{name}" in line
        assert "it was removed or replaced while the broker ran; put it back" in line


@pytest.mark.parametrize("vanish", [remove, replace])
def test_a_retained_log_that_vanishes_is_noticed_before_the_next_segment(
    tmp_path: Path, vanish: Callable[[Path], None]
) -> None:
    with started(configured(tmp_path, core=retained(tmp_path))) as broker:
        vanish(tmp_path / "kept")
        assert f"{tmp_path}/kept" in ended(broker)


def test_a_lock_file_that_somebody_removed(tmp_path: Path) -> None:
    with started(configured(tmp_path)) as broker:
        (tmp_path / "journal" / "server.lock").unlink()
        assert "server.lock" in ended(broker)


def test_a_second_broker_beside_a_lock_file_that_was_removed(tmp_path: Path) -> None:
    """The directory itself is locked: whatever the first broker notices when."""
    file = configured(tmp_path)
    with started(file) as broker:
        broker.process.send_signal(signal.SIGSTOP)  # it notices nothing
        (tmp_path / "journal" / "server.lock").unlink()
        done = run_text(["run", str(file)], timeout=WAIT_S)
        assert done.returncode == 1
        assert "in use by another broker" in done.stderr


def test_a_failed_sync_of_a_lone_sender_ends_the_broker_at_once(tmp_path: Path) -> None:
    """Nothing else happens that would wake it: the timers of this broker are seconds away."""
    file = configured(tmp_path)
    text = file.read_text("utf-8").replace("<message-expiry-scan-period>50<", "<message-expiry-scan-period>-1<")
    file.write_text(text, "utf-8")
    with started(file) as broker, connected(broker.port) as client:
        assert sends_one(client)
        remove(tmp_path / "journal")
        client.send("SEND", {"destination": "/queue/q", "receipt": "never", **PERSISTENT}, b"body")
        with suppress(ConnectionResetError):  # its process has ended with a request of ours unread
            assert client.read_to_end() == []
        eventually("the end", broker.process.poll, lambda code: code == 3)
