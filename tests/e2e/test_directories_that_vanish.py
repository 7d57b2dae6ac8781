"""The broker's directories removed, moved or replaced while it runs: noticed, and nothing confirmed after it."""

from __future__ import annotations

import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.small_files import PERSISTENT, configured
from tests.kit.client import StompSocket, connected
from tests.kit.forks import run_text
from tests.kit.process import STOP_S, WAIT_S, BrokerProcess, eventually, retained, started

pytestmark = pytest.mark.e2e


def vanish(directory: Path, how: str) -> None:
    """``removed`` with what the broker makes again while it goes; or ``moved``, which whoever has files of it open does
    not notice; ``replaced`` by an empty one, or by what was ``copied``, as after a backup was put back.
    """
    if how == "removed":
        while directory.exists():
            shutil.rmtree(directory, ignore_errors=True)
        return
    elsewhere = directory.rename(directory.with_name("elsewhere"))
    if how != "moved":
        directory.mkdir()
    for file in list(elsewhere.iterdir()) if how == "copied" else []:
        with suppress(FileNotFoundError):  # the broker has removed it meanwhile
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


@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "copied"])
def test_not_one_receipt_after_the_journal_is_gone(tmp_path: Path, how: str) -> None:
    with started(configured(tmp_path)) as broker, connected(broker.port) as client:
        assert sends_one(client)
        vanish(tmp_path / "journal", how)
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
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_broker_that_does_nothing_notices_too(tmp_path: Path, name: str, how: str) -> None:
    with started(configured(tmp_path)) as broker:
        vanish(tmp_path / name, how)
        line = ended(broker)
        assert f"{tmp_path}/{name}" in line
        assert "it was removed or replaced while the broker ran; put it back" in line


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_retained_log_that_vanishes_is_noticed_before_the_next_segment(tmp_path: Path, how: str) -> None:
    with started(configured(tmp_path, core=retained(tmp_path))) as broker:
        vanish(tmp_path / "kept", how)
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
        vanish(tmp_path / "journal", "removed")
        client.send("SEND", {"destination": "/queue/q", "receipt": "never", **PERSISTENT}, b"body")
        with suppress(ConnectionResetError):  # its process has ended with a request of ours unread
            assert client.read_to_end() == []
        eventually("the end", broker.process.poll, lambda code: code == 3)
