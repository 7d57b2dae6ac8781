"""Numbers of records as the core, the index and a restart know them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.reader import LogReader
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.crash.prepared import QUEUE_ID, begin, commit, message, open_journal, publish
from tests.kit.journal_story import Story


def test_when_a_broker_starts_all_that_was_written_is_durable() -> None:
    disk, journal, committer = begin()
    commit(journal, committer)
    for _ in range(2):
        journal, committer, _ = open_journal(disk)
        assert journal.records.last_lsn == journal.durable_lsn == journal.records.next_lsn - 1
        publish(journal, committer, message(journal.batches))


def test_a_restart_finds_scheduled_messages_where_they_fell_due() -> None:
    """A copy that compaction makes has the place of the running broker beside places that a restart works out."""
    disk, journal, committer = begin()
    for number in (1, 2, 3):
        journal.records.published(message(number), [QUEUE_ID], 5000)
    journal.records.fell_due(QUEUE_ID, [message(2), message(1)])
    journal.records.fell_due(QUEUE_ID, [message(3)])
    commit(journal, committer)
    recovered = recover(disk).index
    for number in (1, 2, 3):
        here, there = journal.index.find(number), recovered.find(number)
        assert here is not None
        assert there is not None
        assert here.detail(QUEUE_ID).order == there.detail(QUEUE_ID).order < 0


def test_the_sender_of_a_message_behind_a_transaction_is_known(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.turn(story.declare)
    story.turn(
        partial(story.together, partial(story.publish, 1, [1], b"", 1), partial(story.publish, 2, [1], b"", 1)),
        partial(story.publish, 3, [1], b"", 1),
        partial(story.publish, 4, [1], b"", 2),
        partial(story.together, partial(story.publish, 5, [1], b"", 2)),
        partial(story.publish, 6, [1], b"", 2),
    )
    sessions = [event.session for event in LogReader([tmp_path]).events() if isinstance(event, Published)]
    first, second = sessions[0], sessions[3]
    assert 0 < first < second
    assert sessions == [first, first, first, second, second, second]
