"""The worlds notice a MESSAGE that leaves before its record is on the medium."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from artemis_py.pending_output import PendingOutput
from artemis_py.stomp.session.subscribe import Subscription
from artemis_py.stomp.session.subscriptions import Subscriptions
from tests.kit.crash.deliveries import Medium, TooEarly
from tests.kit.crash.prepared import QUEUE_ID, commit, last_segment, message, open_journal, prepare, records
from tests.kit.crash.world import CrashWorld

WORLDS_MAX = 100


def _wait_for_the_last(self: Subscriptions, subscription: Subscription) -> None:
    """``write_messages`` with a mistake: the frames of an outbox wait for the record of its last message only."""
    consumer, out = subscription.consumer, self._state.out
    entries = consumer.handed + consumer.outbox
    kept = len(consumer.handed)
    consumer.handed, consumer.outbox = [], []
    subscription.writer.write(entries, out.parts(entries[-1].message.lsn))
    self._state.service.traffic.frames_out["MESSAGE"] += len(entries)
    subscription.queue.sent(consumer, entries[kept:])


@pytest.mark.interpreted
@pytest.mark.parametrize("mistake", ["an outbox waits for its last message", "one record too many"])
def test_worlds_find_a_message_that_leaves_too_early(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    if mistake == "one record too many":
        take = PendingOutput.take  # what waits for the next record leaves, too
        monkeypatch.setattr(PendingOutput, "take", lambda out, durable_lsn: take(out, durable_lsn + 1))
    else:
        monkeypatch.setattr(Subscriptions, "write_messages", _wait_for_the_last)
    first = rng.getrandbits(32)
    for seed in range(first, first + WORLDS_MAX):
        with suppress(AssertionError):  # a receipt was too early, which is not looked for here
            try:
                CrashWorld(seed, lives=6, steps=300, mixes=True).run()
            except TooEarly:
                return
    raise AssertionError("no world has found it")


def test_what_was_written_and_not_synced_is_not_on_the_medium() -> None:
    disk = prepare(1)
    journal, committer, _ = open_journal(disk)
    lsn = journal.records.published(message(2), [QUEUE_ID], 0)
    commit(journal, committer)
    name = last_segment(disk)
    file = disk.files[name]
    synced = file.durable.copy()
    assert Medium(disk).has(lsn)
    file.durable = synced[: records(disk, name)[-1].end - 1]  # its record was written and not synced to its end
    medium = Medium(disk)
    assert medium.has(lsn - 2), "the record before it; between them is a BATCH"
    assert not medium.has(lsn)
    file.durable = synced
    assert medium.has(lsn)
