"""What damage costs is told by the names of queues: of each message that is lost, or that nothing tells of which."""

from __future__ import annotations

import random
from unittest.mock import Mock

import pytest

from artemis_py.storage.format.names import segment_name
from artemis_py.storage.format.records import RECORD_HEADER_BYTES
from artemis_py.storage.format.segment_index import index_name
from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery import examination
from artemis_py.storage.recovery.accept_journal import LossError, recover
from artemis_py.storage.recovery.damage_report import damage_lines
from artemis_py.storage.recovery.examination import UNKNOWN, QueueNames
from tests.kit.crash.damaged import Made, found_in, published_by
from tests.kit.crash.prepared import QUEUE, commit, flip, message, open_journal, overwrite, prepare, records
from tests.kit.disk import SimDisk
from tests.sim.test_every_byte import MASKS

QUEUES = {1: ("orders", "shop"), 2: ("invoices", "shop"), 3: ("letters", "post")}


@pytest.fixture(scope="module")
def made() -> Made:
    """Queues of one address and of another, a message on each and on two, a transaction, an acknowledgement."""
    made = Made()
    disk = SimDisk(random.Random(1))
    journal, committer, _ = open_journal(disk, JournalSettings(file_bytes=900, compact_files_min=0, files_min=0))
    for number, (name, address) in QUEUES.items():
        journal.records.address_changed({"name": address, "routing_types": ["MULTICAST"], "auto_created": False})
        journal.records.queue_changed({**QUEUE, "id": number, "name": name, "address": address})
    sent = [([1], "shop"), ([2], "shop"), ([1, 2], "shop"), ([3], "post")] * 2
    for number, (queue_ids, address) in enumerate(sent, 1):
        if number in {3, 5}:
            journal.records.begin_group(transactional=True)
        journal.records.published(message(number, address=address), list(queue_ids), 0)
        made.alive |= {(queue_id, number) for queue_id in queue_ids}
        if number in {4, 6}:
            journal.records.end_group()
        if number % 2 == 0:
            commit(journal, committer)
    journal.records.settled(1, [message(1)], "acked")
    made.alive.remove((1, 1))
    commit(journal, committer)
    journal.records.published(message(99, address="post"), [3], 0)
    made.alive.add((3, 99))
    commit(journal, committer)
    journal.finish()
    committer.stop()
    made.files = {name: bytes(disk.read(name)) for name in disk.names()}
    return made


def test_every_byte_of_a_message_that_is_wrong_leaves_its_queues_known(made: Made, rng: random.Random) -> None:
    """Whatever byte it is: something is left that tells."""
    named = 0
    for name in made.segments:
        for record in records(made.disk(), name):
            for offset in range(record.offset, record.end):
                for mask in (rng.choice(MASKS),):
                    disk = made.disk()
                    flip(disk, name, offset, mask)
                    recovered = recover(disk)
                    lost = {QUEUES[queue_id][0] for queue_id, _ in made.alive - found_in(recovered)}
                    told = "\n".join(damage_lines(recovered, "journal"))
                    where = f"{name} at byte {offset}, bits {mask:#x}: {lost} are lost, told is: {told}"
                    assert lost <= {queue for queue, _ in QUEUES.values() if queue in told}, where
                    named += bool(lost)
    assert named > 300


def test_an_acknowledgement_that_is_lost_is_told_by_its_queue(made: Made) -> None:
    for name in made.segments:
        for record in records(made.disk(), name):
            if record.type_code == 3:
                disk = made.disk()
                flip(disk, name, record.offset + RECORD_HEADER_BYTES + 9)
                assert "events of messages of orders" in "\n".join(damage_lines(recover(disk), "journal"))
                return
    raise AssertionError("no acknowledgement")


def test_every_byte_in_every_way_of_a_transaction(made: Made) -> None:
    """Also where its type or its length is what is wrong."""
    name, record = next(
        (name, one) for name in made.segments for one in records(made.disk(), name) if len(published_by(one)) > 2
    )
    for offset in range(record.offset, record.offset + 2 * RECORD_HEADER_BYTES):
        for mask in MASKS:
            disk = made.disk()
            flip(disk, name, offset, mask)
            told = "\n".join(damage_lines(recover(disk), "journal"))
            assert {queue for queue, _ in QUEUES.values() if queue in told} == {"orders", "invoices", "letters"}, offset


def test_where_nothing_is_left_that_is_said(made: Made) -> None:
    name = made.segments[1]
    hit = next(one for one in records(made.disk(), name) if published_by(one))
    disk = made.disk()
    overwrite(disk, name, hit.offset, bytes(hit.end - hit.offset))
    assert UNKNOWN in "\n".join(damage_lines(recover(disk), "journal"))


def test_a_file_that_is_missing_is_told_with_the_queues_of_its_messages(made: Made) -> None:
    """As its index tells, which stands in a file of its own."""
    for name in made.segments[:-1]:
        disk = made.disk()
        addresses = {QUEUES[queue][1] for one in records(made.disk(), name) for queue, _ in published_by(one)}
        del disk.files[name]
        with pytest.raises(LossError) as caught:
            recover(disk)
        (reason,) = caught.value.examined.reasons
        assert {address for queue, address in QUEUES.values() if queue in reason} == addresses
        del disk.files[index_name(name)]
        with pytest.raises(LossError) as caught:
            recover(disk)
        assert caught.value.examined.reasons == [f"{name} is missing: its messages were {UNKNOWN}"]
    assert made.segments[0] == segment_name(1)


def test_names_are_looked_up_once_however_many_places_are_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start on a hundred thousand queues took half a second for each damaged record."""
    made = Mock(side_effect=QueueNames)
    monkeypatch.setattr(examination, "QueueNames", made)
    disk = prepare(*[1] * 30)
    for record in records(disk, segment_name(1))[5:55:4]:
        flip(disk, segment_name(1), record.offset + 20)
    found = examination.examine(disk)
    assert len(found.damages) > 10
    assert made.call_count <= 2, "once for each reading of the files"
