"""Directories of large bodies and of pages that are not those that the journal speaks of: a start changes nothing, and
what was given up is put aside when it comes back.
"""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from artemis_py.core.broker import Broker
from artemis_py.message import Account, LargeBody, Message
from artemis_py.paged_messages import Page, PagedBody, PageShare
from artemis_py.server.journal_store import JournalStore, accept_losses
from artemis_py.storage.format.names import first_number, is_start, read_name, start_name
from artemis_py.storage.recovery.accept_journal import LossError
from artemis_py.storage.recovery.damage_report import loss_lines
from artemis_py.storage.recovery.missing_files import GIVEN_UP_NAME, note_given_up, read_given_up
from tests.kit.crash.prepared import QUEUE, QUEUE_ID, message
from tests.kit.disk import PowerCut, SimDisk
from tests.kit.files import contents
from tests.unit.storage.test_room_to_the_end import Life, Start, threads, turn

__all__ = ["threads"]
pytestmark = [pytest.mark.interpreted, pytest.mark.usefixtures("threads")]


class Filled(Life):
    """A store with messages that have large bodies, messages in pages of one each, and some that are both."""

    def __init__(self, root: Path, *, bodies: int = 0, pages: int = 0, both: int = 0) -> None:
        self._counts = bodies, pages, both
        self._held: list[Message] = []
        super().__init__(root, retains=False)
        assert self.failure is None
        self.store._opened.close()

    def _live(self) -> None:
        bodies, pages, both = self._counts
        self.store.log.queue_changed(dict(QUEUE))
        for number in range(1, bodies + 1):
            self._held.append(self._large(number))
            self.store.log.published(self._held[-1], [QUEUE_ID], 0)
        for number in range(1, pages + both + 1):
            self._page(number, message(1000 + number) if number <= pages else self._large(1000 + number))
        turn(self.store)

    def _large(self, number: int) -> Message:
        one = message(number)
        upload = self.store.large.begin(durable=True)  # type: ignore[union-attr]
        upload.append(b"large %d" % number)
        upload.end()
        turn(self.store)
        one.body = upload.body
        return one

    def _page(self, number: int, one: Message) -> None:
        self._held.append(one)
        log, files = self.store.log, self.store.pages
        assert files is not None
        page = Page(1, number, number)
        page.size_bytes = files.open(page, "q")
        log.page_opened(page, "q")
        record = files.encode(one, number, [QUEUE_ID], 0)
        files.append(page, record, durable=True)
        page.count, page.size_bytes = 1, page.size_bytes + len(record)
        page.durable = {QUEUE_ID: PageShare(1, len(record))}
        if isinstance(one.body, LargeBody):
            page.has_large = True
            page.large[number] = PagedBody(one.body, [QUEUE_ID])
        log.paged(page)


def opened(root: Path) -> JournalStore:
    return JournalStore(Life.config_of(root, retains=False), lambda: None, lambda: None, 64)


def refused(root: Path) -> str:
    """What a start says that has to be refused, and has to change nothing."""
    before = contents(root)
    with pytest.raises(LossError) as caught:
        opened(root)
    assert contents(root) == before
    return "\n".join(loss_lines(caught.value.examined, str(root / "journal"), "broker.xml"))


@pytest.mark.parametrize("is_empty", [False, True])
@pytest.mark.parametrize(
    ("filled", "place", "what"),
    [
        ({"bodies": 3}, "large", "all 3 large bodies that the journal needs, with 3 messages of q"),
        ({"bodies": 1}, "large", "the only large body that the journal needs, with 1 message of q"),
        ({"both": 2}, "large", "all 2 large bodies that the journal needs, with 2 messages of q"),
        ({"pages": 2}, "paging", "all 2 pages that the journal needs, with 2 messages of q"),
        ({"pages": 1}, "paging", "the only page that the journal needs, with 1 message of q"),
    ],
)
def test_a_start_without_a_directory_changes_nothing(
    tmp_path: Path, filled: dict[str, int], place: str, what: str, is_empty: bool
) -> None:
    Filled(tmp_path, **filled)
    folder, away = tmp_path / place, tmp_path / "away"
    names = {path.name for path in folder.iterdir()}
    folder.rename(away)
    if is_empty:
        folder.mkdir()
    said = refused(tmp_path)
    assert (
        f"the broker does not start: {folder} lacks more than a broker may give up by itself\n  {folder} lacks {what}\n"
        in said
    )
    assert "without the losses there would be 0 messages on 1 durable queue (q: 0)" in said
    assert f"  mount or restore {folder} as it was, and start again\n" in said
    assert "--accept-loss    starts without the losses" in said
    shutil.rmtree(folder, ignore_errors=True)
    away.rename(folder)
    start = Start(tmp_path)
    assert len(start.messages) == filled.get("bodies", 0)
    assert "DAMAGED" not in start.report
    assert {name for name in names if name.endswith((".body", ".page"))} <= {path.name for path in folder.iterdir()}


def bodies_of(root: Path) -> list[Path]:
    return sorted(path for path in (root / "large").iterdir() if read_name(path.name) is not None)


def test_one_body_alone_may_be_lost_in_the_directory_that_it_was_in(tmp_path: Path) -> None:
    Filled(tmp_path, bodies=1)
    [body] = bodies_of(tmp_path)
    body.unlink()
    start = Start(tmp_path)
    assert f"(file {body.stem}) is missing: the message is DAMAGED" in start.report
    assert not start.messages


def test_a_place_of_an_earlier_start_is_not_the_directory(tmp_path: Path) -> None:
    """A broker ran there once while nothing was mounted, before the body came."""
    Filled(tmp_path)
    (tmp_path / "large" / start_name(4)).touch()
    Filled(tmp_path, bodies=1)
    assert [path.name for path in (tmp_path / "large").iterdir() if is_start(path.name)] == [start_name(5)]
    shutil.rmtree(tmp_path / "large")
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / start_name(4)).touch()
    assert "lacks the only large body" in refused(tmp_path)


def test_all_of_several_bodies_are_asked_for_in_their_directory_too(tmp_path: Path) -> None:
    Filled(tmp_path, bodies=2)
    for body in bodies_of(tmp_path):
        body.unlink()
    assert "lacks all 2 large bodies" in refused(tmp_path)


def test_one_body_of_several_that_comes_back_is_put_aside(tmp_path: Path) -> None:
    Filled(tmp_path, bodies=2, both=2)
    for lost in (bodies_of(tmp_path)[0], bodies_of(tmp_path)[2]):
        data = lost.read_bytes()
        lost.unlink()
        assert f"(file {lost.stem}) is missing" in Start(tmp_path).report
        lost.write_bytes(data)
        assert f"{lost.name}: its message was given up while this body was missing" in Start(tmp_path).report
        assert lost.with_name(f"quarantined-{lost.name}").read_bytes() == data
    assert Start(tmp_path).report.count("warning") == 0


def test_a_page_of_several_that_comes_back_is_put_aside(tmp_path: Path) -> None:
    Filled(tmp_path, pages=2)
    lost = tmp_path / "paging" / "000000001-000000001.page"
    data = lost.read_bytes()
    lost.unlink()
    store = opened(tmp_path)
    page = store._files.journal.index.pages.find(1, 1)
    assert page is not None
    store._files.journal.records.page_dropped(page)  # its messages were killed when they were read
    turn(store)
    store._opened.close()
    lost.write_bytes(data)
    report = Start(tmp_path).report
    assert f"{lost.name}: this page with 1 message was given up while it was missing; it was put aside" in report
    assert lost.with_name(f"quarantined-{lost.name}").read_bytes() == data


@pytest.mark.parametrize("harm", ["gone", "cut off", "flipped"])
def test_bodies_of_a_page_that_cannot_be_read_are_put_aside(tmp_path: Path, harm: str) -> None:
    """Only the page tells which bodies its messages need."""
    Filled(tmp_path, both=2)
    body = bodies_of(tmp_path)[0]
    page = tmp_path / "paging" / "000000001-000000001.page"
    if harm == "gone":
        page.unlink()
    else:
        data = bytearray(page.read_bytes())
        data[-1] ^= 1
        page.write_bytes(data if harm == "flipped" else data[:-40])
    report = Start(tmp_path).report
    assert f"{body.name}: the journal has no message with this body; the file was put aside" in report
    assert body.with_name(f"quarantined-{body.name}").read_bytes() == b"large 1001"
    assert report.count("was put aside") == 1


def test_what_is_accepted_as_lost_is_put_aside_when_it_comes_back(tmp_path: Path) -> None:
    Filled(tmp_path, bodies=3, pages=2)
    config = Life.config_of(tmp_path, retains=False)
    places = [tmp_path / "large", tmp_path / "paging"]
    for folder in places:
        folder.rename(tmp_path / f"{folder.name}-away")
    said = refused(tmp_path)
    assert f"{places[1]} and {places[0]} lack more than a broker may give up" in said
    assert f"  artemis-py journal verify {tmp_path}/journal --paging {places[1]} --large {places[0]}  " in said
    assert len(accept_losses(config)) == 2
    assert accept_losses(config) == []
    first = Start(tmp_path)
    assert first.report.count("the message is DAMAGED") == 3
    assert first.stream == 1
    assert first.next_number == first_number(2), "no body gets the name of one that may come back"
    store = opened(tmp_path)
    for page in store._files.journal.index.pages.pages():
        store._files.journal.records.page_dropped(page)
    turn(store)
    store._opened.close()
    store = opened(tmp_path)
    broker = Broker(config, store.log, 0, store.recovered_state(), store.pages)
    assert broker.streams.open("other", Account(), 1 << 20).number == 2, "and no page"
    store._opened.close()
    for folder in places:
        shutil.rmtree(folder)
        (tmp_path / f"{folder.name}-away").rename(folder)
    Start(tmp_path)
    kept = [path for folder in places for path in folder.glob("quarantined-*")]
    assert len(kept) == 5
    assert sorted(path.read_bytes() for path in kept if path.suffix == ".body") == [b"large 1", b"large 2", b"large 3"]


def test_with_a_list_that_is_damaged_nothing_is_removed(tmp_path: Path) -> None:
    Filled(tmp_path)
    body = tmp_path / "large" / "0000000100000009.body"
    body.write_bytes(b"perhaps it came back")
    (tmp_path / "journal" / GIVEN_UP_NAME).write_bytes(b"not what was written")
    report = Start(tmp_path).report
    assert f"{GIVEN_UP_NAME} is DAMAGED" in report
    assert body.with_name(f"quarantined-{body.name}").exists()


def test_the_list_grows_and_is_whole_after_a_crash() -> None:
    for cut in range(1, 8):
        disk = SimDisk(random.Random(cut))
        note_given_up(disk, ["0000000300000001.body"])
        operations = disk.operations
        note_given_up(disk, ["0000000300000001.body"])
        assert disk.operations == operations, "nothing new"
        disk.cut_at = disk.operations + cut
        with suppress(PowerCut):
            note_given_up(disk, ["000000007-000000001.page"])
        disk.crash()
        disk.cut_at = None
        told = read_given_up(disk)
        assert told.fault is None
        assert (told.start, told.stream) in {(3, 0), (3, 7)}
    assert (told.start, told.stream) == (3, 7)


def test_a_damaged_list_is_kept_beside_the_new_one() -> None:
    disk = SimDisk(random.Random(1))
    note_given_up(disk, ["0000000300000001.body"])
    disk.files[GIVEN_UP_NAME].data[20] ^= 1
    note_given_up(disk, ["0000000400000001.body"])
    assert read_given_up(disk).names == {"0000000400000001.body"}
    assert f"quarantined-{GIVEN_UP_NAME}" in disk.names()
