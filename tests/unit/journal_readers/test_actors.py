"""Who sent a message, and what a page lost: what readers of the log are told, also of groups and beside damage."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from artemis_py.message import Account, Head
from artemis_py.paged_messages import Page, PagedMessage, PageShare
from artemis_py.storage.format import records
from artemis_py.storage.format.log_events import Consumer, Published, Purged, Refused, Session
from artemis_py.storage.format.reader import LogReader
from artemis_py.storage.format.records import RECORD_HEADER_BYTES
from artemis_py.storage.format.scan import log_files, whole_records
from artemis_py.storage.journal.journal import LogActor
from tests.kit.files import flip
from tests.kit.journal_story import Story, message


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Three queues, and three clients with a consumer each."""
    made = Story(tmp_path / "journal")
    made.turn(made.declare)
    return made


def senders(story: Story) -> dict[int, str]:
    """Who sent each message, as a reader of the log finds it."""
    names = {0: "the broker"}
    found: dict[int, str] = {}
    for event in LogReader([story.folder]).events():
        if isinstance(event, Session):
            names[event.session] = event.client
        elif isinstance(event, Published):
            found[event.kept.message.id] = names[event.session]
    return found


Step = Callable[[], None]


def sent(story: Story, number: int, origin: int) -> Step:
    return partial(story.publish, number, [1], b"", origin)


def test_each_sender_is_told_and_the_broker_too(story: Story) -> None:
    story.turn(sent(story, 1, 1), sent(story, 2, 2), sent(story, 3, 2), sent(story, 4, 0), sent(story, 5, 1))
    story.turn(sent(story, 6, 1))
    names = ["host:1", "host:2", "host:2", "the broker", "host:1", "host:1"]
    assert senders(story) == dict(enumerate(names, 1))


def test_a_run_is_from_one_sender(story: Story) -> None:
    runs: list[Step] = []
    for origin in (1, 2, 0):
        messages = [message(10 * origin + place, origin=origin) for place in (1, 2, 3)]
        runs.append(partial(story.journal.records.published_run, messages, 1, 0))
    story.turn(*runs)
    assert senders(story) == {
        **dict.fromkeys((11, 12, 13), "host:1"),
        **dict.fromkeys((21, 22, 23), "host:2"),
        **dict.fromkeys((1, 2, 3), "the broker"),
    }


def test_a_group_knows_nobody_at_its_beginning_and_end(story: Story) -> None:
    group = partial(story.together, sent(story, 2, 0), sent(story, 3, 1), sent(story, 4, 2))
    story.turn(sent(story, 1, 1), group, sent(story, 5, 0), sent(story, 6, 2))
    assert senders(story) == dict(enumerate(["host:1", "the broker", "host:1", "host:2", "the broker", "host:2"], 1))


def test_a_group_of_one_copy_is_not_taken_for_its_neighbours(story: Story) -> None:
    """A group of one record is written as that record alone: it must not get the sender of the one before."""
    story.turn(sent(story, 1, 1), partial(story.together, sent(story, 2, 0)), sent(story, 3, 1))
    assert senders(story) == {1: "host:1", 2: "the broker", 3: "host:1"}


def test_a_group_of_nothing_changes_nothing(story: Story) -> None:
    story.turn(sent(story, 1, 1), partial(story.together), sent(story, 2, 0), sent(story, 3, 1))
    assert senders(story) == {1: "host:1", 2: "the broker", 3: "host:1"}


def test_what_is_damaged_may_have_named_another_sender(story: Story) -> None:
    story.turn(sent(story, 1, 1), sent(story, 2, 2))
    story.turn(sent(story, 3, 1))
    path = log_files([story.folder])[-1].path
    origins = [one for one in whole_records("", path.read_bytes(), []) if one.type_code == records.ORIGIN]
    flip(path, origins[1].offset + RECORD_HEADER_BYTES)
    assert senders(story) == {1: "host:1", 2: "the broker", 3: "host:1"}


def test_who_leaves_in_a_turn_is_still_named_in_it(story: Story) -> None:
    """A client whose SEND a full address refuses with an ERROR is gone before the turn is over."""
    story.turn(partial(story.journal.records.audit.session_closed, 2), partial(story.refuse, 2, 3))
    story.turn(partial(story.refuse, 2, 4))
    clients = {
        event.session: event.client for event in LogReader([story.folder]).events() if isinstance(event, Session)
    }
    refused = [event for event in LogReader([story.folder]).events() if isinstance(event, Refused)]
    assert [clients.get(event.session) for event in refused] == ["host:2", None]


def test_a_consumer_that_left_can_still_be_named(story: Story) -> None:
    """Its acknowledgement in a transaction counts at COMMIT, when it may have unsubscribed, and in another segment."""
    consumer = story.consumers[1]
    assert isinstance(consumer, LogActor)
    story.turn(sent(story, 1, 0), partial(story.deliver, 1, [1]))
    story.turn(partial(story.journal.records.audit.consumer_closed, consumer, failed=False))
    for number in range(100, 200):
        story.turn(sent(story, number, 0), partial(story.settle, 1, [number], "expired"))
    story.turn(partial(story.settle, 1, [1], "acked"))
    told = [event for event in LogReader([story.folder]).events() if isinstance(event, Consumer)]
    assert told[-1].consumer == consumer.id
    assert (told[-1].subscription, told[-1].closed) == ("sub-1", "left")
    assert told[-1].lsn > consumer.id


def test_without_retention_nothing_is_told(tmp_path: Path) -> None:
    story = Story(tmp_path / "journal", retains=False)
    story.turn(story.declare)
    assert set(story.consumers.values()) == {None}
    story.turn(sent(story, 1, 1), partial(story.together, sent(story, 2, 2)), story.count)
    kinds = {record.type_code for record in whole_records("", log_files([story.folder])[-1].path.read_bytes(), [])}
    assert kinds == {records.BATCH, records.QUEUE, records.MESSAGE}


def test_a_purged_page_tells_what_went_and_why(story: Story) -> None:
    head = Head(b"destination:a\n\n", "a", persistent=True)
    page = Page(1, 1, 1)
    messages = [PagedMessage(head, b"x" * place, place, 0, 0, Account(), page, place) for place in range(1, 6)]
    page.count = len(messages)
    page.durable[1] = PageShare(len(messages), sum(one.size_bytes for one in messages))
    journal = story.journal
    story.turn(
        lambda: journal.records.page_opened(page, "a"),
        lambda: journal.records.paged(page),
        lambda: journal.records.page_settled(1, messages[:1], "acked"),
        lambda: journal.records.page_purged(1, page, messages[1:2], "purged"),
    )
    purged = [event for event in LogReader([story.folder]).events() if isinstance(event, Purged)]
    gone = messages[2:]
    assert [(one.reason, one.count, one.size_bytes, one.kept_places) for one in purged] == [
        ("purged", 3, sum(one.size_bytes for one in gone), (2,))
    ]
