"""A disk that is full, fails, writes half, or cannot sync: no promise after it, and none before is broken."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from artemis_py.storage.journal.settings import JournalSettings
from artemis_py.storage.recovery.accept_journal import recover
from tests.kit.crash.incarnation import Incarnation
from tests.kit.crash.opening import SimStore
from tests.kit.crash.prepared import QUEUE_ID, begin, kept_ids, message, open_journal, publish
from tests.kit.crash.projection import Projection
from tests.kit.crash.world import CONFIGURATION, DUPLICATE_IDS_KEPT
from tests.kit.disk import Fault, SimDisk

FAULTS = {
    "full disk": Fault(0, "No space left on device", verbs=("write",)),
    "no room for a new file": Fault(0, "No space left on device", verbs=("create",)),
    "I/O error": Fault(0, "Input/output error", verbs=("write", "sync")),
    "short write": Fault(0, "No space left on device", short=True),
    "failing sync": Fault(0, "Input/output error", verbs=("sync",)),
}


@pytest.mark.parametrize("power_goes", [False, True], ids=["restarted", "power cut"])
@pytest.mark.parametrize("kind", list(FAULTS))
def test_at_each_operation_of_a_journal(kind: str, power_goes: bool) -> None:
    """The fault comes at the first operation, the second, ... until one comes too late to matter."""
    failed = 0
    for operation in range(1, 200):
        disk = SimDisk(random.Random(operation))
        disk.fault = replace(FAULTS[kind], at=operation)
        _, journal, committer = begin(JournalSettings(file_bytes=600, compact_files_min=0), disk)
        promised, written = 0, 0
        for number in range(1, 13):
            lsn = journal.records.published(message(number), [QUEUE_ID], 0)
            written = number
            journal.poll()
            journal.seal()
            committer.stop()
            journal.poll()
            if lsn > journal.durable_lsn:
                break
            promised = number
        if journal.failure is None:
            assert operation > 12, "the fault never came"
            break
        failed += 1
        durable_lsn = journal.durable_lsn
        assert FAULTS[kind].error in str(journal.failure)
        disk.restart()
        journal.records.published(message(50), [QUEUE_ID], 0)
        for _ in range(3):
            journal.seal()
            committer.stop()
            journal.poll()
        assert journal.durable_lsn == durable_lsn, "durable again after a failure"
        if power_goes:
            disk.crash()
        _, _, recovered = open_journal(disk)
        ids = kept_ids(recovered)
        assert ids in (list(range(1, promised + 1)), list(range(1, written + 1))), f"{kind} at operation {operation}"
        assert all(damage.torn for damage in recovered.damages)
    assert failed > 3


@pytest.mark.parametrize("kind", list(FAULTS))
def test_a_broker_gives_out_nothing_after_a_fault(kind: str) -> None:
    """Receipts and messages end with the disk; the failure is told once, to the one place that ends the broker."""
    disk = SimDisk(random.Random(1))
    settings = JournalSettings(file_bytes=4096, compact_files_min=0)
    life = Incarnation(CONFIGURATION, SimStore(disk, settings), Projection(DUPLICATE_IDS_KEPT), 1000)
    client = life.client()
    client.send(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
    client.send(b"SUBSCRIBE\nid:1\ndestination:/queue/work\nack:client\n\n\0")
    life.drain()
    client.collect().clear()
    disk.fault = replace(FAULTS[kind], at=disk.operations)
    for number in range(20):
        body = b"%d:%s" % (number, b"x" * 1000)
        client.send(b"SEND\ndestination:/queue/work\npersistent:true\nreceipt:%d\n\n%s\0" % (number, body))
        life.drain()
    frames = client.collect()
    assert life.failure is not None
    assert FAULTS[kind].error in str(life.failure)
    receipts = [frame.header("receipt-id") for frame in frames if frame.command == "RECEIPT"]
    bodies = [frame.body.partition(b":")[0].decode() for frame in frames if frame.command == "MESSAGE"]
    assert receipts == bodies
    assert len(receipts) < 20
    disk.restart()
    kept = recover(disk).index.recovered_state().messages
    recovered = [one.message.body for found in kept.values() for one in found]
    recovered_bodies = [body.partition(b":")[0].decode() for body in recovered if isinstance(body, bytes)]
    assert recovered_bodies[: len(receipts)] == receipts


def test_a_journal_recovers_on_a_disk_that_cannot_be_written() -> None:
    """Reading an undamaged journal writes nothing; a full disk does not keep a broker from starting."""
    disk, journal, committer = begin()
    publish(journal, committer, message(1))
    disk.fault = Fault(0, "Read-only file system", verbs=("create", "write", "sync", "rename", "delete"))
    assert kept_ids(recover(disk)) == [1]
