"""A day of a broker's log in many segments, written by the broker's own journal and retention, with its own clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.record_log import Actor, Depth
from artemis_py.storage.disk.disk import FileDisk
from artemis_py.storage.disk.group_commit import Commit, Committer, write_commit
from artemis_py.storage.journal.index import Segment
from artemis_py.storage.journal.index_files import write_index, write_survey
from artemis_py.storage.journal.journal import Journal
from artemis_py.storage.journal.settings import JournalSettings, JournalStart, SegmentCare
from artemis_py.storage.retention.retention import Retention, RetentionSettings
from artemis_py.storage.retention.survey import Survey

BEGIN_MS: Final = 1_700_000_000_000
DAY_MS: Final = 86_400_000
ADDRESSES: Final = 10
SEGMENT_BYTES: Final = 64 << 10
"""Small ones, so that there can be many of them."""
RARE_EVERY: Final = 100
"""In one segment of so many there is a message to a rare address, and one that dies."""
_RUN: Final = 10
_BODY: Final = bytes(range(100))
_DEAD_QUEUE: Final = ADDRESSES + 1
_RARE_QUEUE: Final = ADDRESSES + 2


class DayLog:
    """Ten queues whose messages are consumed at once, in segments that are closed, surveyed and retained as a broker
    does it; nothing is synced.
    """

    def __init__(self, folder: Path, segments: int) -> None:
        self.messages = 0
        self.dead = 0
        self.rare = 0
        self._segments = segments
        self._now_ms = BEGIN_MS
        self._disk = FileDisk(folder / "journal")
        journal = folder / "journal"
        self._retention = Retention(
            self._disk, journal, RetentionSettings(folder / "retained", None, None), lambda: self._now_ms
        )
        settings = JournalSettings(
            file_bytes=SEGMENT_BYTES, sync_transactional=False, sync_non_transactional=False, retains=True,
            broker_name="day",
        )  # fmt: skip
        care = SegmentCare(retire=self._retention.retire, closed=self._close)
        self._journal = Journal(self._disk, _AtOnce(), settings, start=JournalStart(), care=care)
        self._heads = [_head(f"orders.{number}") for number in range(ADDRESSES)]
        self._account = Account()

    def write(self, say: Callable[[int], None]) -> None:
        """All of it; told is how many segments there are."""
        with _unsynced():
            self._write(say)

    def _write(self, say: Callable[[int], None]) -> None:
        consumers = self._begin()
        told = number = 0
        while (number := self._journal.segments[-1].number) <= self._segments:
            self._now_ms = BEGIN_MS + number * DAY_MS // self._segments
            runs = [self._run(queue) for queue in range(ADDRESSES)]
            for queue, run in enumerate(runs):
                self._journal.records.published_run(run, queue + 1, 0)
            if self._journal.records.audit.end_turn():
                held = sum(one.head.size_bytes + len(one.body) for one in runs[0])
                self._journal.records.audit.depths([Depth(queue + 1, _RUN, held, 0, 0) for queue in range(ADDRESSES)])
                if number % RARE_EVERY == 0:
                    self._seldom(runs[0].pop())
            self._turn()
            for queue, run in enumerate(runs):
                self._journal.records.audit.delivered(queue + 1, run, consumers[queue])
                self._journal.records.settled(queue + 1, run, "acked", consumers[queue])
            self._turn()
            if number - told >= 1000:
                told = number
                say(number)
        self._journal.finish()

    def _begin(self) -> list[Actor]:
        journal = self._journal
        names = [*(f"orders.{number}" for number in range(ADDRESSES)), "DLQ", "rare"]
        for number, name in enumerate(names, 1):
            journal.records.queue_changed({"id": number, "name": name, "address": name, "routing_type": "ANYCAST"})
        journal.records.audit.session_opened(1, {"client": "10.0.0.1:50000", "protocol": "STOMP 1.2"})
        fields = {"subscription": "s", "ack": "client"}
        opened = [journal.records.audit.consumer_opened(1, queue + 1, fields) for queue in range(ADDRESSES)]
        return [actor for actor in opened if actor is not None]

    def _run(self, queue: int) -> list[Message]:
        return [self._message(self._heads[queue], 1) for _ in range(_RUN)]

    def _message(self, head: Head, origin: int) -> Message:
        self.messages += 1
        return Message(head, _BODY, self.messages, self._now_ms, 0, self._account, origin)

    def _seldom(self, dying: Message) -> None:
        """One to the rare address, consumed in the next moment, and one that dies and whose copy is purged."""
        journal = self._journal
        rare = self._message(_head("rare"), 1)
        journal.records.published(rare, [_RARE_QUEUE], 0)
        journal.records.settled(_RARE_QUEUE, [rare], "acked")
        headers = {"_AMQ_ORIG_ADDRESS": "orders.0", "_AMQ_ORIG_MESSAGE_ID": str(dying.id), "reason": "max_deliveries"}
        copy = self._message(dying.head.forwarded("DLQ", headers), 0)
        journal.records.begin_group()
        journal.records.settled(1, [dying], "dead")
        journal.records.published(copy, [_DEAD_QUEUE], 0)
        journal.records.end_group()
        journal.records.settled(_DEAD_QUEUE, [copy], "purged")
        self.dead += 1
        self.rare += 1

    def _turn(self) -> None:
        self._journal.records.now_ms = self._now_ms
        self._journal.poll()
        self._journal.seal()
        self._journal.poll()

    def _close(self, segment: Segment) -> None:
        """What the broker's store does, at once instead of in threads."""
        index = segment.index
        if index is None or not write_index(self._disk, index):
            return
        path = self._disk.directory / segment.name
        survey = Survey(path.read_bytes(), index.size_bytes)
        survey.step(1 << 30)
        write_survey(path, survey.fields(), survey.places())
        segment.index = None


def _head(address: str) -> Head:
    headers = [("destination", address), ("persistent", "true")]
    return Head(encode_headers(headers), address, 4, True, False, "ANYCAST")


@contextmanager
def _unsynced() -> Iterator[None]:
    """Files of a measurement need not survive a crash: a disk's syncs would be most of what writing them takes."""
    true_syncs = os.fsync, os.fdatasync
    os.fsync = os.fdatasync = lambda _number: None  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync, os.fdatasync = true_syncs


class _AtOnce(Committer):
    """Everything in the caller's thread."""

    def __init__(self) -> None:
        self.busy = False
        self.failure = None
        self._done: Commit | None = None

    def submit(self, commit: Commit) -> None:
        self.run_now(commit)

    def finished(self) -> Commit | None:
        done, self._done = self._done, None
        return done

    def run_now(self, commit: Commit) -> None:
        write_commit(commit)
        self._done = commit

    def later(self, work: Callable[[], None]) -> None:
        work()

    def stop(self) -> None:
        """Nothing is under way."""
