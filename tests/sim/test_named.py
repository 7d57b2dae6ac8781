"""Failures that worlds have found, each as the shortest story that shows it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from artemis_py.storage.disk.group_commit import Commit
from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import BATCH, FILE_HEADER_BYTES
from artemis_py.storage.journal.extent import NAMES
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.crash.check import nothing_half_done, survivors_match
from tests.kit.crash.damaged import Made
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.paging import paged_items
from tests.kit.crash.prepared import (
    QUEUE,
    QUEUE_ID,
    begin,
    commit,
    kept_ids,
    last_segment,
    message,
    open_journal,
    overwrite,
    publish,
    records,
)
from tests.kit.crash.projection import Projection
from tests.kit.crash.retained import Archive, Telling
from tests.kit.crash.world import CONFIGURATION, DUPLICATE_IDS_KEPT, PAGING, CrashWorld
from tests.kit.disk import PowerCut, SimDisk
from tests.kit.in_process import Client

SETTINGS = JournalSettings(file_bytes=65536, compact_files_min=0, duplicate_ids_kept=DUPLICATE_IDS_KEPT)

_COMMIT = (
    b"BEGIN\ntransaction:t\n\n\0"
    b"SEND\ndestination:/queue/work\npersistent:true\ntransaction:t\n\n1\0"
    b"SEND\ndestination:/queue/ring\npersistent:true\ntransaction:t\n\n2\0"
    b"COMMIT\ntransaction:t\n_AMQ_DUPL_ID:one\nreceipt:%d\n\n\0"
)


def _life(disk: SimDisk | None = None) -> Incarnation:
    store = SimStore(disk or SimDisk(random.Random(1)), SETTINGS)
    life = Incarnation(CONFIGURATION, store, Projection(DUPLICATE_IDS_KEPT), 1000)
    life.drain()
    return life


def _occupy(life: Incarnation) -> None:
    """Have an empty batch under way, so that what follows is not durable before ``drain``."""
    life.committer.submit(Commit([], life.journal.durable_lsn))


def _receipts(client: Client) -> list[str | None]:
    return [frame.header("receipt-id") for frame in client.collect() if frame.command == "RECEIPT"]


def _cut_each(life: Incarnation) -> None:
    """The last batch survives up to its first record, its second, ...: nothing may be half done after any of them."""
    disk = life.disk
    name = last_segment(disk)
    whole = disk.read(name)
    batch = [record for record in records(disk, name) if record.type_code == BATCH][-1]
    ends = [record.end for record in records(disk, name) if record.offset >= batch.offset]
    assert len(ends) > 1
    for end in ends:
        disk.files[name].data = bytearray(whole[:end] + bytes(len(whole) - end))
        found = survivors_match(life, recover(disk), DUPLICATE_IDS_KEPT)
        nothing_half_done(found, life.broker)


def test_a_deleted_file_that_comes_back_brings_back_nothing() -> None:
    """Unlinking is not synced: file 1 (a message) can be there again when file 2 (its acknowledgement) is gone."""
    for seed in range(20):
        disk, journal, committer = begin(
            JournalSettings(file_bytes=300, compact_files_min=0), SimDisk(random.Random(seed))
        )
        for number in range(1, 9):
            one = message(number)
            publish(journal, committer, one)
            journal.records.settled(QUEUE_ID, [one], "acked")
            commit(journal, committer)
        assert segment_name(1) not in disk.names()
        disk.crash()
        assert kept_ids(recover(disk)) == [], f"seed {seed}"


def test_a_duplicate_id_survives_only_with_its_message() -> None:
    """Else the sender, who got no receipt and sends again, is told "seen already", and the message is nowhere."""
    life = _life()
    client = life.client().greet("client-id:x")
    life.base, life.records.operations = life.projection(), []
    frame = b"SEND\ndestination:/queue/work\npersistent:true\n_AMQ_DUPL_ID:%d\n\nbody\0"
    life.together = True
    client.send(frame % 1 + frame % 2)
    life.together = False
    life.settle()
    durable_lsn = life.journal.durable_lsn
    life.drain()
    life.journal.durable_lsn = min(durable_lsn, life.records.operations[0][0] - 1)
    _cut_each(life)


@pytest.mark.parametrize("fate", ["dead", "expired"])
def test_a_message_dies_only_together_with_its_copy(fate: str) -> None:
    """Else a crash in the middle of a batch leaves a receipted message neither on its queue nor on the other one."""
    life = _life()
    client = life.client().greet("client-id:x")
    if fate == "dead":
        client.send(b"SEND\ndestination:/queue/ring\npersistent:true\n\nbody\0")
        client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/ring\nack:client-individual\n\n\0")
    else:
        expires_ms = life.loop.now_ms + 100
        client.send(b"SEND\ndestination:/queue/ring\npersistent:true\nexpires:%d\n\nbody\0" % expires_ms)
    life.drain()
    for attempt in range(2 if fate == "dead" else 0):
        _nack(client, attempt)
        life.drain()
    life.base, life.records.operations = life.projection().restarted(), []
    durable_lsn = life.journal.durable_lsn
    if fate == "dead":
        _nack(client, 2)
    else:
        life.advance(2000)
    life.drain()
    life.journal.durable_lsn = durable_lsn
    assert any(operation[0] == "group" for _, operation in life.records.operations)
    _cut_each(life)


def test_no_message_is_in_the_log_and_not_in_its_page() -> None:
    """A crash between the two left one in the retained log that nobody ever settled."""
    disk = SimDisk(random.Random(1))
    base = Projection(DUPLICATE_IDS_KEPT)
    life = Incarnation(PAGING, SimStore(disk, replace(SETTINGS, retains=True)), base, 1000)
    client = life.client().greet("client-id:x")
    frame = b"SEND\ndestination:/queue/work\npersistent:true\nfrom:x\n\nbody\0"
    client.send(5 * frame)
    life.drain()
    client.send(3 * frame)
    life.drain()
    queue_id = life.broker.queues["work"].id
    name = last_segment(disk)
    whole = disk.read(name)
    batch = [record for record in records(disk, name) if record.type_code == BATCH][-1]
    lost: set[int] = set()
    for record in records(disk, name):
        if record.offset >= batch.offset:
            disk.files[name].data = bytearray(whole[: record.end] + bytes(len(whole) - record.end))
            kept = recover(disk).index.recovered_state()
            there = {survivor.message.id for survivor in kept.messages[queue_id]}
            for stream in kept.streams:
                there |= {one.identity[0] for one in paged_items(stream, disk)[queue_id]}
            assert set(Telling().read(Archive().files(disk)).live[queue_id]) == there
            lost.add(8 - len(there))
    assert lost == {0, 3}


def _nack(client: Client, attempt: int) -> None:
    frames = [frame for frame in client.collect() if frame.command == "MESSAGE"]
    assert len(frames) == attempt + 1
    client.send(b"NACK\nid:%s\n\n\0" % (frames[-1].header("ack") or "").encode())


def test_a_receipt_waits_for_the_copy_that_a_divert_makes() -> None:
    """An exclusive divert stores only the copy: before that is durable, nothing is promised."""
    life = _life()
    client = life.client().greet("client-id:x")
    life.drain()
    _occupy(life)
    client.send(b"SEND\ndestination:/queue/via\npersistent:true\nreceipt:1\n\nbody\0")
    assert _receipts(client) == []
    life.drain()
    assert _receipts(client) == ["1"]


def test_a_commit_stores_although_its_queue_was_deleted_meanwhile() -> None:
    """An auto-created queue that nobody uses goes while a transaction holds a message for it: COMMIT makes it anew."""
    life = _life()
    client = life.client().greet("client-id:x")
    client.send(b"BEGIN\ntransaction:t\n\n\0")
    client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/auto.one\n\n\0")
    client.send(b"SEND\ndestination:/queue/auto.one\npersistent:true\ntransaction:t\n\nbody\0")
    client.send(b"UNSUBSCRIBE\nid:1\n\n\0")
    for _ in range(4):
        life.advance(1000)
    assert "auto.one" not in life.broker.queues, "nothing was deleted"
    client.send(b"COMMIT\ntransaction:t\nreceipt:1\n\n\0")
    life.drain()
    assert _receipts(client) == ["1"]
    kept = recover(life.disk).index.recovered_state().messages
    assert [one.message.body for found in kept.values() for one in found] == [b"body"]


def test_queue_numbers_are_not_given_again() -> None:
    """A message acknowledged in an open transaction outlives its queue in the journal; a queue that got the same number
    after a restart would find it.
    """
    life = _life()
    client = life.client().greet("client-id:x")
    client.send(b"SUBSCRIBE\nid:1\ndestination:/topic/news\nack:client\ndurable-subscription-name:d\n\n\0")
    client.send(b"SEND\ndestination:/topic/news\npersistent:true\n\nbody\0")
    life.drain()
    ack = next(frame.header("ack") for frame in client.collect() if frame.command == "MESSAGE")
    client.send(b"BEGIN\ntransaction:t\n\n\0ACK\nid:%s\ntransaction:t\n\n\0" % (ack or "").encode())
    client.send(b"UNSUBSCRIBE\nid:1\ndurable-subscription-name:d\n\n\0")
    life.drain()
    disk = life.disk
    for _ in range(2):
        disk.crash()
        life = _life(disk)
        client = life.client().greet("client-id:x")
        client.send(b"SUBSCRIBE\nid:1\ndestination:/topic/news\nack:client\ndurable-subscription-name:d\n\n\0")
        life.drain()
        assert [frame.command for frame in client.collect()] == []


def test_a_torn_first_write_of_a_file_is_no_damage() -> None:
    """The sector with the file header is lost and later ones are not: a crash explains that, and the next start is
    clean.
    """
    disk, journal, committer = begin()
    publish(journal, committer, message(1))
    name = last_segment(disk)
    for extent in NAMES:  # it is written when the first write is durable, and then the header is
        disk.delete(extent)
    disk.write(name, 0, bytes(FILE_HEADER_BYTES))
    disk.files[name].sync()
    assert all(damage.torn for damage in recover(disk).damages)
    journal, committer, _ = open_journal(disk)
    publish(journal, committer, message(2))
    assert recover(disk).damages == []


@pytest.mark.parametrize("seed", range(4))
def test_the_power_goes_while_a_torn_first_write_is_mended(seed: int) -> None:
    """A start that is broken off anywhere leaves what the next start takes for the same crash: the extent tells of no
    file before its header is there. Here the second file lost the sector with its header.
    """
    cut_after, is_over = 0, False
    while not is_over:
        cut_after += 1
        disk, journal, committer = begin(JournalSettings(file_bytes=300, compact_files_min=0), seed=seed)
        publish(journal, committer, message(1))
        known = {name: disk.read(name) for name in NAMES}
        publish(journal, committer, message(2))
        assert segment_name(2) == last_segment(disk)
        for name, data in known.items():
            overwrite(disk, name, 0, data)
        overwrite(disk, segment_name(2), 0, bytes(FILE_HEADER_BYTES))
        disk.cut_at = disk.operations + cut_after
        try:
            recover(disk)
            is_over = True
        except PowerCut:
            pass
        disk.crash()
        found = recover(disk)
        assert [str(damage) for damage in found.damages if not damage.torn] == [], f"cut at operation {cut_after}"
        assert kept_ids(found) == [1, 2]
    assert cut_after > 3


def test_rewritten_duplicate_ids_are_whole_or_absent() -> None:
    """Files that go hand their bindings to a newer one: a crash between "forget all ids" and the ids forgets none."""
    disk, journal, committer = begin(JournalSettings(file_bytes=300, compact_files_min=0))
    journal.records.duplicate_id("q", "one")
    journal.records.duplicate_id("q", "two")
    commit(journal, committer)
    rewritten = 0
    for number in range(1, 6):
        one = message(number)
        journal.records.published(one, [QUEUE_ID], 0)
        journal.records.settled(QUEUE_ID, [one], "acked")
        before = {name: disk.read(name) for name in disk.names()}
        commit(journal, committer)
        name = last_segment(disk)
        batch = disk.read(name)
        rewritten += b"two" in batch
        for record in records(disk, name):
            torn = Made({**before, name: batch[: record.end] + bytes(len(batch) - record.end)})
            assert recover(torn.disk()).index.duplicate_ids == {"q": ["one", "two"]}
    assert rewritten


def test_a_journal_with_more_bindings_than_a_file_comes_to_rest() -> None:
    """They did not count as living, so messages were moved out of their way, and they behind the messages, for ever."""
    settings = JournalSettings(file_bytes=4096, compact_files_min=2, compact_percentage=90)
    journal, committer, _ = open_journal(SimDisk(random.Random(1)), settings)

    def rests() -> bool:
        for _ in range(20):
            if not journal.has_pending:
                return True
            journal.poll()
            journal.seal()
            committer.stop()
        return False

    for number in range(1, 61):
        journal.records.queue_changed(QUEUE | {"id": number, "name": f"q{number}"})
    for number in range(1, 61):
        journal.records.published(message(number, bytes(200)), [QUEUE_ID], 0)
        assert rests()
    for number in range(1, 55):
        journal.records.settled(QUEUE_ID, [message(number)], "acked")
        assert rests()
    assert len(journal.segments) < 10, "what is empty goes all the same"


def test_a_repeated_message_is_confirmed_no_sooner_than_the_first() -> None:
    """The sender lost its connection and sends again; what it is told rests on the first record, not durable yet."""
    life = _life()
    clients = [life.client().greet(f"client-id:{name}") for name in "ab"]
    life.drain()
    _occupy(life)
    for number, client in enumerate(clients):
        frame = b"SEND\ndestination:/queue/work\npersistent:true\n_AMQ_DUPL_ID:1\nreceipt:%d\n\nbody\0"
        client.send(frame % number)
    assert [_receipts(client) for client in clients] == [[], []]
    life.drain()
    assert [_receipts(client) for client in clients] == [["0"], ["1"]]


def test_a_repeated_commit_is_confirmed_no_sooner_than_the_first() -> None:
    """A task that was started twice: the second must not report what a crash could still undo."""
    life = _life()
    clients = [life.client().greet(f"client-id:{name}") for name in "ab"]
    life.drain()
    _occupy(life)
    for number, client in enumerate(clients):
        client.send(_COMMIT % number)
    assert [_receipts(client) for client in clients] == [[], []]
    life.drain()
    assert [_receipts(client) for client in clients] == [["0"], ["1"]]


def test_a_commit_s_id_survives_only_with_its_messages() -> None:
    """And its messages only with the id, else the transaction is doubled when its client repeats it."""
    life = _life()
    client = life.client().greet("client-id:x")
    life.base, life.records.operations = life.projection(), []
    client.send(_COMMIT % 0)
    life.drain()
    disk = life.disk
    name = last_segment(disk)
    whole = disk.read(name)
    [batch] = [record for record in records(disk, name) if record.type_code == BATCH][-1:]
    seen: set[tuple[int, bool]] = set()
    for end in range(batch.offset, len(whole.rstrip(b"\0")) + 1):
        disk.files[name].data = bytearray(whole[:end] + bytes(len(whole) - end))
        found = recover(disk)
        seen.add((len(found.index.home), "one" in found.index.duplicate_ids.get("", [])))
    assert seen == {(0, False), (2, True)}


def test_a_durable_subscription_is_confirmed_when_it_is_durable() -> None:
    """Also to the second connection that uses it, for which nothing is written."""
    life = _life()
    clients = [life.client().greet("client-id:a") for _ in range(2)]
    life.drain()
    _occupy(life)
    subscribe = b"SUBSCRIBE\nid:1\ndestination:/topic/news\ndurable-subscription-name:d\nreceipt:1\n\n\0"
    clients[0].send(subscribe)
    clients[0].send(b"UNSUBSCRIBE\nid:1\n\n\0")
    clients[1].send(subscribe)
    assert [_receipts(client) for client in clients] == [[], []]
    life.drain()
    assert [_receipts(client) for client in clients] == [["1"], ["1"]]


def test_a_first_file_without_records_is_of_the_same_time() -> None:
    """The file before it ended in a BATCH, and went; the next one's header tells the last record, not the BATCH."""
    CrashWorld(3484672527, lives=4, steps=60, mixes=False).run()


@pytest.mark.parametrize("seed", [3, 33, 65, 69, 100, 148, 273])
def test_short_worlds_that_failed_once(seed: int) -> None:
    """They found what stands above."""
    CrashWorld(seed, mixes=False).run()
