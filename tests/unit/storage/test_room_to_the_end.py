"""A disk that somebody else fills to the last byte, at each call at which files grow, and who then takes what is freed:
a store ends for want of room only when there is nothing left that it could give up.
"""

from __future__ import annotations

import os
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.declarations import RetentionConfig
from artemis_py.core.order.entry import ACKED
from artemis_py.message import LargeBody
from artemis_py.paged_messages import Page, PageShare
from artemis_py.server import journal_store as store_module
from artemis_py.server.journal_store import JournalStore, Surveyor
from artemis_py.storage.disk import disk as disk_module
from artemis_py.storage.disk import permissions, space
from artemis_py.storage.disk.disk import DiskError, FileDisk
from artemis_py.storage.disk.space import RESERVE_NAME
from artemis_py.storage.recovery.accept_journal import recover
from artemis_py.storage.retention import retention
from tests.kit.committer import SteppedCommitter
from tests.kit.crash.prepared import QUEUE, QUEUE_ID, kept_ids, message
from tests.kit.process import LONG
from tests.kit.promises import Promises
from tests.unit.storage.tight_system import TightSystem

pytestmark = [pytest.mark.interpreted, pytest.mark.usefixtures("threads")]

CAPACITY_BYTES = 64 << 10
FILE_BYTES = 1500
MESSAGES = 40
FOR_EVER = 1 << 30
STRIDE = 17


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What threads do is done when the test says so, files between two calls that it counts are made by no thread, and
    no machine crashes here.
    """
    monkeypatch.setattr(store_module, "ThreadCommitter", SteppedCommitter)
    monkeypatch.setattr(Surveyor, "add", Surveyor._survey)
    monkeypatch.setattr(store_module, "_say", lambda line: None)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda descriptor: None)


def turn(store: JournalStore, *, inline: bool = False) -> None:
    """Make durable what a store was told, and let go what may."""
    for _ in range(2):
        store.durability.poll()
        store.durability.inline = inline
        store.durability.seal()
        store.large.poll()  # type: ignore[union-attr]
        store.large.seal(store.log.last_lsn, store.durability.durable_lsn)  # type: ignore[union-attr]
        for committer in (store._committer, store._files.pages._reader, store.large._writer):  # type: ignore[union-attr]
            committer.stop()
            if committer.failure is not None:
                raise committer.failure
    store.durability.poll()
    store.large.poll()  # type: ignore[union-attr]


class Life(Promises):
    """A store with everything on one file system, from its opening to the fault."""

    def __init__(self, root: Path, *, retains: bool = True, inline: bool = False) -> None:
        super().__init__()
        self.root = root
        self.has_started = False
        self._inline = inline
        try:
            self.store = JournalStore(self.config_of(root, retains=retains), lambda: None, lambda: None, 64)
        except DiskError as error:  # then it does not start
            self.failure = error
            return
        self.has_started = True
        try:
            self._live()
        except DiskError as error:
            self.failure = error

    @staticmethod
    def config_of(root: Path, *, retains: bool) -> BrokerConfig:
        """Everything in ``root``."""
        kept = RetentionConfig(directory=str(root / "kept"), period_ms=None, storage_limit=None, cursor_ttl_s=60)
        return BrokerConfig(
            journal_directory=str(root / "journal"),
            paging_directory=str(root / "paging"),
            large_messages_directory=str(root / "large"),
            journal_file_size=FILE_BYTES,
            journal_min_files=3,
            journal_retention=kept if retains else None,
        )

    def _live(self) -> None:
        log, pages = self.store.log, self.store.pages
        assert pages is not None
        log.queue_changed(dict(QUEUE))
        page: Page | None = None
        for number in range(1, MESSAGES + 1):
            body: bytes | LargeBody = bytes(200)
            if number % 8 == 0:
                upload = self.store.large.begin(durable=True)  # type: ignore[union-attr]
                upload.append(bytes(300))
                upload.end()
                turn(self.store, inline=self._inline)
                if upload.failure is not None:  # it was refused
                    continue
                body = upload.body
            one = message(number, body)
            del body
            if number % 10 == 0:
                page = Page(1, number, number)
                pages.open(page, "q")
                log.page_opened(page, "q")
            if page is not None:
                pages.append(page, pages.encode(message(number + 1000, b"paged"), number, [QUEUE_ID], 0), durable=True)
                page.count, page.size_bytes = page.count + 1, page.size_bytes + 50
                page.durable = {QUEUE_ID: PageShare(page.count, page.size_bytes)}
                log.paged(page)
            self.written.add(number)
            if self._is_durable(log.published(one, [QUEUE_ID], 0)):
                self.promised.add(number)
            if number % 9:
                self.ended.add(number)
                if self._is_durable(log.settled(QUEUE_ID, [one], ACKED)):
                    self.settled.add(number)
            del one
        turn(self.store, inline=self._inline)
        self.failure = self.failure or self.store.durability.failure  # type: ignore[assignment]

    def _is_durable(self, lsn: int) -> bool:
        turn(self.store, inline=self._inline)
        return lsn <= self.store.durability.durable_lsn


class Start:
    """A start on what is there, and its end."""

    def __init__(self, root: Path, *, retains: bool = False) -> None:
        store = JournalStore(Life.config_of(root, retains=retains), lambda: None, lambda: None, 64)
        journal = store._files.journal
        self.report = "\n".join(store.report)
        self.stream = store.recovered_state().stream
        self.next_number = store.large._next_number  # type: ignore[union-attr]
        self.damaged_places = journal.damaged_places
        self.reserve_bytes, self.wanted_bytes = store.reserves[0].reserve_bytes, store.reserves[0].wanted_bytes
        turn(store)
        self.messages = set(journal.index.home)
        self.pages = {
            (page.stream, page.number): journal.index.pages.left(page) for page in journal.index.pages.pages()
        }
        store._opened.close()


def live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_at: int, greed: int, **named: Any
) -> tuple[Life, TightSystem]:
    """A life on a disk that is full from the ``full_at``-th call on."""
    root = tmp_path / f"{full_at}-{greed}"
    root.mkdir()
    system = TightSystem(root=root, capacity_bytes=CAPACITY_BYTES, full_at=full_at, greed=greed)
    with monkeypatch.context() as patch:
        system.put_in_place(patch, disk_module, permissions, retention, space)  # all that storage does with files
        return Life(root, **named), system


@pytest.mark.parametrize(
    "inline",
    [
        pytest.param(False, marks=pytest.mark.thirds),
        pytest.param(True, marks=pytest.mark.thirds),
        pytest.param(None, marks=LONG, id="every call"),
    ],
)
@pytest.mark.parametrize("greed", [0, 3, FOR_EVER])
@pytest.mark.parametrize("retains", [True, False], ids=["retention", "plain"])
def test_it_ends_only_when_there_is_nothing_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retains: bool, greed: int, inline: bool | None, rng: random.Random
) -> None:
    """Somebody else fills the disk at one of so many calls; in the long run at each."""
    step = 1 if inline is None else STRIDE
    kind = {"retains": retains, "inline": bool(greed) if inline is None else inline}
    life, system = live(tmp_path, monkeypatch, -1, 0, **kind)
    assert life.failure is None
    assert not system.refusals
    life.store._opened.close()
    ended = gave = 0
    for full_at in range(rng.randrange(1, step + 1), system.calls + 1, step):
        life, full = live(tmp_path, monkeypatch, full_at, greed, **kind)
        what = f"full at {full_at}: {full.refusals[-1:]}, {life.failure}"
        if not life.has_started:
            continue
        if life.failure is not None:
            ended += 1
            assert "No space left on device" in str(life.failure), what
            files, journal = life.root.rglob("*"), life.store._files.journal
            left = [
                path.name
                for path in files
                if path.is_file() and path.stat().st_size
                if path.name == RESERVE_NAME
                or (path.is_relative_to(life.root / "kept") and path.suffix in {".log", ".body"})
            ]  # what could still have been given up, with files ahead and segments that go
            left += [*journal.files.spares._ready, *(segment.name for segment in journal.files.retirement._waiting)]
            assert not left, f"{what}: {left}"
        gave += bool(full.refusals)
        life.store._opened.close()
        with closing(FileDisk(life.root / "journal")) as disk:
            life.hold(set(kept_ids(recover(disk))), what)
    assert gave
    assert ended or greed != FOR_EVER
