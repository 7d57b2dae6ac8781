"""A start while the file systems with large bodies and pages are not mounted: it is refused, nothing goes, and what was
accepted as lost is still there when it comes back.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.recovery.missing_files import read_given_up
from tests.e2e.test_large_messages import PERSISTENT, configured
from tests.kit.client import connected
from tests.kit.files import contents
from tests.kit.forks import run_text
from tests.kit.process import WAIT_S, started

pytestmark = pytest.mark.e2e

LARGE = 3
SMALL = 30
BODY = bytes(150_000)
SETTINGS = """\
  <address-setting match="many"><max-size-messages>5</max-size-messages><page-size-bytes>1K</page-size-bytes>
  </address-setting>
"""


def test_directories_that_are_not_mounted_cost_nothing(tmp_path: Path) -> None:
    """Of a broker with large bodies and with pages."""
    file = configured(tmp_path, settings=SETTINGS)
    with started(file) as broker:
        with connected(broker.port) as client:
            for number in range(LARGE):
                client.ask("SEND", {"destination": "/queue/big", **PERSISTENT}, b"%d" % number + BODY)
            for number in range(SMALL):
                client.ask("SEND", {"destination": "/queue/many", **PERSISTENT}, b"%d" % number)
        assert broker.stop() == 0
    large, paging, journal = tmp_path / "large", tmp_path / "paging", tmp_path / "journal"
    away = {folder: tmp_path / f"{folder.name}-away" for folder in (large, paging)}
    before = contents(journal)
    for folder, elsewhere in away.items():
        folder.rename(elsewhere)
    paging.mkdir()  # where it is mounted, when it is
    refused = run_text(["run", str(file)], timeout=WAIT_S)
    assert refused.returncode == 4
    assert f"{paging} and {large} lack more than a broker may give up by itself" in refused.stderr
    assert (
        f"  {large} lacks all {LARGE} large bodies that the journal needs, with {LARGE} messages of big\n"
        in refused.stderr
    )
    assert f"  {paging} lacks all " in refused.stderr
    assert " messages of many\n" in refused.stderr
    assert f"  mount or restore {large} as it was, and start again\n" in refused.stderr
    assert "--accept-loss" in refused.stderr
    assert not large.exists()
    assert not list(paging.iterdir())
    assert contents(journal) == before
    verified = run_text(
        ["journal", "verify", str(journal), "--large", str(large), "--paging", str(paging)], timeout=WAIT_S
    )
    assert verified.returncode == 4
    assert f"LOST: {large} lacks all {LARGE} large bodies" in verified.stdout
    assert f"LOST: {paging} lacks all " in verified.stdout
    paging.rmdir()
    for folder, elsewhere in away.items():
        elsewhere.rename(folder)
    with started(file) as broker:
        assert "DAMAGED" not in broker.said
        broker.await_count("big", LARGE)
        broker.await_count("many", SMALL)
        assert broker.stop() == 0
    for folder, elsewhere in away.items():
        folder.rename(elsewhere)
    with started(file, "--accept-loss") as broker:
        assert f"warning: accepted: {large} lacks all {LARGE} large bodies" in broker.said
        broker.await_count("big", 0)
        with connected(broker.port) as client:
            client.subscribe("/queue/many", ack="auto")
            assert client.message().body == b"0"
            broker.await_count("many", 0)
        assert broker.stop() == 0
    for folder, elsewhere in away.items():
        shutil.rmtree(folder)
        elsewhere.rename(folder)
    given_up = read_given_up(FileDisk(journal)).names
    wanted = {name: next(tmp_path.rglob(name)).read_bytes() for name in given_up}
    assert sum(name.endswith(".body") for name in wanted) == LARGE
    with started(file) as broker:
        assert f"warning: {large}: " in broker.said
        assert f"warning: {paging}: " in broker.said
        assert broker.stop() == 0
    for name, data in wanted.items():
        [kept] = tmp_path.rglob(f"quarantined-{name}")
        assert kept.read_bytes() == data
