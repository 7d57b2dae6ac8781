"""A broker whose files lack something tells it by name and count, and throws nothing else away of its own accord."""

from __future__ import annotations

from pathlib import Path

import pytest

from artemis_py.storage.format.scan import log_files
from tests.e2e.small_files import configured
from tests.kit.client import connected
from tests.kit.files import flip
from tests.kit.forks import run_text
from tests.kit.process import BOTH, WAIT_S, started

pytestmark = pytest.mark.e2e

COUNT = 300
BODY = b"%04d" + bytes(996)


def filled(folder: Path) -> Path:
    """A stopped broker with messages in several journal files; returns its configuration."""
    file = configured(folder, acceptors=BOTH)
    with started(file) as broker:
        with connected(broker.port) as client:
            for first in range(0, COUNT, 20):
                client.publish("/queue/q", [BODY % number for number in range(first, first + 20)])
        assert broker.stop() == 0
    return file


def test_a_missing_file_is_named_and_nothing_else_goes(tmp_path: Path) -> None:
    file = filled(tmp_path)
    journal = tmp_path / "journal"
    files = log_files([journal])
    assert len(files) >= 4
    data = files[1].path.read_bytes()
    lost = sum(data.count(b"\n\n%04d\0" % number) for number in range(COUNT))
    assert 0 < lost < COUNT / 2
    files[1].path.unlink()
    before = {path.name: path.read_bytes() for path in journal.glob("*.log")}
    refused = run_text(["run", str(file)], timeout=WAIT_S)
    assert refused.returncode == 4
    assert f"  {files[1].path.name} is missing: its messages were of q\n" in refused.stderr
    assert "artemis-py journal repair" in refused.stderr
    assert "--accept-loss" in refused.stderr
    assert {path.name: path.read_bytes() for path in journal.glob("*.log")} == before
    files[1].path.write_bytes(data)
    with started(file) as broker:
        assert broker.stop() == 0
    assert f"  q (queue 1): {COUNT} messages\n" in run_text(["journal", "verify", str(journal)], timeout=WAIT_S).stdout
    files[1].path.unlink()
    (tmp_path / "paging").mkdir(exist_ok=True)
    page = tmp_path / "paging" / "000000001-000000007.page"
    page.write_bytes(b"nobody tells of this one")
    body = tmp_path / "large" / "0000000100000001.body"
    body.write_bytes(b"nor of this one")
    with started(file, "--accept-loss") as broker:
        assert f"warning: accepted: {files[1].path.name} is missing" in broker.said
        with connected(broker.port) as client:
            assert len({one.body for one in client.take("/queue/q", COUNT - lost)}) == COUNT - lost
        broker.await_count("q", 0)
        assert broker.stop() == 0
    [folder] = journal.glob("lost+found-*")
    assert (folder / files[2].path.name).read_bytes() == before[files[2].path.name]
    assert page.with_name(f"quarantined-{page.name}").exists()
    assert body.with_name(f"quarantined-{body.name}").exists()
    assert run_text(["journal", "verify", str(journal)], timeout=WAIT_S).returncode == 0


def test_a_damaged_queue_record_costs_nothing(tmp_path: Path) -> None:
    """All of the messages of a queue were thrown away, because one bit of the record with its name was wrong."""
    file = filled(tmp_path)
    path = log_files([tmp_path / "journal"])[0].path
    flip(path, b'"name":"q","address"')
    with started(file) as broker:
        assert "restored from the copy of bindings: queue q" in broker.said
        assert "DAMAGE in 1 place of 1 journal file: at most 1 record lost" in broker.said
        assert broker.metric("artemis_journal_damaged_places") == 1
        assert broker.metric("artemis_journal_lost_records") == 1
        with connected(broker.port) as client:
            assert len({one.body for one in client.take("/queue/q", COUNT)}) == COUNT
        broker.await_count("q", 0)
        assert broker.stop() == 0
