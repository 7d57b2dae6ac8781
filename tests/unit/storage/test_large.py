"""Files of large bodies: when they are whole, who holds them, when they go, and what a start makes of them."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from artemis_py.message import LargeBody
from artemis_py.storage.bodies import SYNC_EVERY_BYTES
from artemis_py.storage.disk.disk import DiskError
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.names import body_name, is_start
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.retention import retention
from tests.kit.bodies import Bodies
from tests.kit.crash.opening import SimStore
from tests.kit.crash.prepared import QUEUE_ID, SETTINGS, begin, commit, flip, kept_ids, message
from tests.kit.disk import Fault, SimDisk
from tests.kit.files import age
from tests.kit.keeping import Keeping

# ---- coming in -----------------------------------------------------------------------------------


def test_a_body_is_there_when_all_of_it_is_synced_with_its_name() -> None:
    bodies = Bodies()
    upload = bodies.store.begin(durable=True)
    upload.append(b"one ")
    bodies.turn()
    assert not upload.may_go_on
    upload.append(b"two")
    upload.end()
    bodies.turn()
    assert upload.may_go_on
    bodies.disk.crash()
    assert [bodies.disk.read(name) for name in bodies.files] == [b"one two"]


def test_the_end_alone_is_enough() -> None:
    """All of a body can be written before its NUL comes."""
    bodies = Bodies()
    upload = bodies.store.begin(durable=True)
    upload.append(b"x" * 10)
    bodies.turn()
    upload.end()
    bodies.turn()
    assert upload.may_go_on


def test_a_transient_body_is_not_synced() -> None:
    bodies = Bodies()
    kept = [bodies.bring(b"x" * 10)]
    operations = bodies.disk.operations
    kept.append(bodies.bring(b"x" * 10, durable=False))
    assert bodies.disk.operations == operations + 2, "begin and write"


def test_a_long_body_is_synced_now_and_then() -> None:
    """So that others do not wait for one long sync."""
    bodies = Bodies()
    upload = bodies.store.begin(durable=True)
    upload.append(bytes(SYNC_EVERY_BYTES))
    bodies.turn()
    file = bodies.disk.files[bodies.files[0]]
    assert len(file.durable) == SYNC_EVERY_BYTES
    assert not upload.may_go_on


def test_a_body_without_room_is_given_up_and_its_file_goes() -> None:
    """Those beside it come in; what still comes of it is dropped, also when that is all of it."""
    bodies = Bodies()
    too_long, other = bodies.store.begin(durable=True), bodies.store.begin(durable=True)
    too_long.append(b"x" * 8)
    other.append(b"y" * 8)
    bodies.turn()
    long_name, _ = bodies.files
    bodies.disk.fault = Fault(0, "No space left on device", verbs=("write",), names=(long_name,))
    too_long.append(b"x" * 8)
    other.append(b"y")
    other.end()
    bodies.turn()
    assert bodies.store.failure is None
    assert "No space left on device" in (too_long.failure or "")
    assert [bodies.disk.read(name) for name in bodies.files] == [b"y" * 9]
    assert not too_long.may_go_on, "its sender is told at its end"
    too_long.append(b"x" * 8)
    assert bodies.store.body_writer.unwritten_bytes == 0
    too_long.end()
    assert too_long.may_go_on
    bodies.turn()
    assert (bodies.store.counts()["refused"], bodies.store.counts()["bodies"]) == (1, 2)
    del too_long
    bodies.turn()
    assert bodies.store.counts()["bodies"] == 1
    assert bodies.bring(b"z" * 8).size_bytes == 8


def test_a_start_without_room_for_its_mark_takes_no_body() -> None:
    """A number must not come again at the next start; the mark is tried again with the next body."""
    disk = SimDisk(random.Random(1))
    disk.fault = Fault(0, "No space left on device", verbs=("create",))
    bodies = Bodies(disk)
    upload = bodies.store.begin(durable=True)
    upload.append(b"x")
    upload.end()
    bodies.turn()
    assert "No space left on device" in (upload.failure or "")
    del upload
    bodies.turn()
    assert bodies.files == []
    disk.fault = None
    bodies.bring(b"y")
    assert any(is_start(name) for name in disk.names())


def test_counts() -> None:
    bodies = Bodies()
    body = bodies.bring(b"x" * 10)
    upload = bodies.store.begin(durable=True)
    upload.append(b"y" * 5)
    counts = bodies.store.counts()
    assert (counts["bodies"], counts["bytes"], counts["unwritten_bytes"]) == (2, 10 + 5, 5)
    del body, upload
    bodies.turn()
    bodies.turn()
    assert (bodies.store.counts()["bodies"], bodies.files) == (0, [])


# ---- holders -------------------------------------------------------------------------------------


def test_a_file_goes_with_the_last_holder() -> None:
    bodies = Bodies()
    body = bodies.bring(b"x" * 10)
    number = body.number
    bodies.store.hold(number, 10)
    del body
    bodies.turn()
    assert bodies.files == [body_name(number, durable=True)]
    again = LargeBody(number, 10, bodies.store)
    bodies.store.release(number)
    bodies.turn()
    assert (len(bodies.files), len(again)) == (1, 10)
    del again
    bodies.turn()
    assert bodies.files == []


def test_a_file_goes_when_the_log_of_that_turn_is_durable() -> None:
    bodies = Bodies()
    body = bodies.bring(b"x" * 10)
    del body
    bodies.turn(last_lsn=7, durable_lsn=5)
    bodies.turn(last_lsn=9, durable_lsn=6)
    assert len(bodies.files) == 1
    bodies.turn(last_lsn=9, durable_lsn=7)
    assert bodies.files == []


def test_a_closed_store_deletes_nothing() -> None:
    bodies = Bodies()
    body = bodies.bring(b"x" * 10)
    bodies.store.close()
    del body
    assert len(bodies.files) == 1


# ---- going out -----------------------------------------------------------------------------------


def test_pieces() -> None:
    bodies = Bodies()
    body = bodies.bring(b"0123456789")
    bodies.store.read(body, 2, 3, "me")
    bodies.store.read(body, 8, 5, "you")
    assert bodies.store.take_fetched() == []
    bodies.reader.stop()
    first, second = bodies.store.take_fetched()
    assert (first.owner, first.data, first.failure) == ("me", b"234", None)
    assert (second.owner, second.data) == ("you", None)
    assert second.failure == f"{bodies.files[0]} ends at byte 10"


@pytest.mark.parametrize("size_bytes", [3, 4, 10, 100])
def test_no_byte_of_a_body_can_be_wrong_unnoticed(size_bytes: int) -> None:
    """The last part is held back: nobody has the whole of a body that is not as it was written."""
    bodies = Bodies()
    data = b"0123456789"
    body = bodies.bring(data)
    assert bodies.read(body, size_bytes)[0] == data
    for offset in range(len(data)):
        for bit in range(8):
            flip(bodies.disk, bodies.files[0], offset, 1 << bit)
            _, last = bodies.read(body, size_bytes)
            assert last.data is None
            assert last.offset + last.size_bytes == len(data)
            assert last.failure == f"{bodies.files[0]} is DAMAGED: its checksum does not match"
            flip(bodies.disk, bodies.files[0], offset, 1 << bit)


def test_a_body_without_a_checksum_is_read() -> None:
    """Older records have none."""
    bodies = Bodies()
    body = bodies.bring(b"0123456789")
    body.checksum = -1
    flip(bodies.disk, bodies.files[0], 3)
    assert bodies.read(body, 4)[1].data == b"89"


def test_a_file_that_is_gone_is_told() -> None:
    bodies = Bodies()
    body = bodies.bring(b"0123456789")
    bodies.disk.delete(bodies.files[0])
    piece = bodies.store.read(body, 0, 10, "me")
    bodies.reader.stop()
    assert piece.failure is not None
    assert "No such file" in piece.failure


# ---- numbers and starts --------------------------------------------------------------------------


def test_no_number_comes_twice() -> None:
    """Also when nothing but the memory of a start is left."""
    disk = SimDisk(random.Random(1))
    seen: set[int] = set()
    for _ in range(3):
        bodies = Bodies(disk)
        for _ in range(2):
            body = bodies.bring(b"x" * 10)
            assert body.number not in seen
            seen.add(body.number)
        del body
        bodies.turn()
        assert bodies.files == []
        assert len(disk.names()) == 1, "the last start is remembered, others are not"


def test_no_number_comes_twice_after_a_start_without_room_for_its_mark() -> None:
    """The mark of the start before had gone, although there was no other."""
    disk = SimDisk(random.Random(1))
    bodies = Bodies(disk)
    body = bodies.bring(b"x")
    number = body.number
    del body
    bodies.turn()
    bodies = Bodies(disk)
    disk.fault = Fault(0, "No space left on device", verbs=("create",))
    upload = bodies.store.begin(durable=True)
    upload.append(b"x")
    upload.end()
    bodies.turn()
    assert upload.failure
    del upload
    bodies.turn()
    disk.fault = None
    assert Bodies(disk).bring(b"y").number > number


def test_a_start_without_bodies_writes_nothing() -> None:
    bodies = Bodies()
    bodies.turn()
    assert bodies.disk.operations == 0


def test_a_record_refers_to_its_body() -> None:
    kept = Kept(message(5, LargeBody(77, 1 << 33)), 3, [QUEUE_ID])
    payload = codec.encode_message(kept)
    body = codec.decode_message(payload).message.body
    assert isinstance(body, LargeBody)
    assert (body.number, body.size_bytes, body.checksum) == (77, 1 << 33, -1), "as older brokers wrote it"
    with pytest.raises(CodecError, match="too short"):
        codec.decode_message(payload[:-1])
    kept.message.body = LargeBody(77, 1 << 33, None, 0xFEDCBA98)
    payload = codec.encode_message(kept)
    body = codec.decode_message(payload).message.body
    assert isinstance(body, LargeBody)
    assert (body.number, body.size_bytes, body.checksum) == (77, 1 << 33, 0xFEDCBA98)
    with pytest.raises(CodecError, match="too short"):
        codec.decode_message(payload[:-1])


def restart(disk: SimDisk) -> tuple[list[int], list[str], Bodies]:
    """What a start finds: messages on the queue, what is told, and the store."""
    broker = SimStore(disk, SETTINGS)
    bodies = Bodies(disk, broker)
    commit(broker.files.journal, broker.committer)
    bodies.turn()
    return kept_ids(broker.recovered), broker.files.findings.bodies, bodies


def disk_with_messages() -> tuple[SimDisk, list[int]]:
    """Messages 1 and 2 with large bodies, the second with a copy 3 of it; and a body that no message has."""
    bodies = Bodies()
    _, journal, committer = begin(disk=bodies.disk)
    one, two, nobody = (bodies.bring(b"x" * 10) for _ in range(3))
    for number, body in ((1, one), (2, two), (3, two)):
        journal.records.published(message(number, body), [QUEUE_ID], 0)
    commit(journal, committer)
    bodies.store.close()
    return bodies.disk, [one.number, two.number, nobody.number]


def test_a_start_takes_over_what_lives_and_removes_the_rest() -> None:
    disk, (one, two, _) = disk_with_messages()
    messages, told, bodies = restart(disk)
    assert (messages, told) == ([1, 2, 3], [])
    assert bodies.files == [body_name(number, durable=True) for number in (one, two)]


def test_a_start_keeps_what_pages_hold() -> None:
    disk, (_, _, nobody) = disk_with_messages()
    bodies = Bodies(disk)
    held = LargeBody(nobody, 10)
    bodies.store.adopt(held)
    bodies.store.remove_unused()
    bodies.turn()
    assert bodies.files == [body_name(nobody, durable=True)]


@pytest.mark.parametrize("fault", ["is missing", "is shorter than 10 bytes"])
def test_a_message_without_its_body_is_told_and_taken_from_its_queues(fault: str) -> None:
    disk, (one, two, _) = disk_with_messages()
    name = body_name(two, durable=True)
    if fault == "is missing":
        disk.delete(name)
    else:
        del disk.files[name].data[9:]
    messages, told, bodies = restart(disk)
    assert messages == [1]
    assert [line[: line.index(" to ")] for line in told] == [
        "the body of message 2",
        "the body of message 3",
    ]
    assert all(f"(file {two:016x}) {fault}" in line for line in told)
    assert bodies.files == [body_name(one, durable=True)]
    assert (f"quarantined-{name}" in disk.names()) == (fault != "is missing")
    assert restart(disk)[:2] == ([1], []), "and it stays so"


# ---- retention -----------------------------------------------------------------------------------


def test_a_retained_body_stays_with_the_file_that_speaks_of_it(tmp_path: Path) -> None:
    kept = Keeping(tmp_path, period_ms=10_000)
    start_ms = kept.now_ms
    kept.retire_body(1)
    kept.now_ms = start_ms + 9000
    kept.retire_segment(kept.begin_segment(start_ms - 1000), start_ms + 9000)
    kept.retire_segment(kept.begin_segment(start_ms + 9000), start_ms + 9500)
    kept.now_ms = start_ms + 18_000
    kept.log.purge()
    assert kept.kept_bodies == [1], "older than the period, but the file with its record is not"
    kept.now_ms = start_ms + 19_100
    kept.log.purge()
    assert kept.kept_bodies == []


def test_a_body_that_somebody_removed_ends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker ended when its message was settled. Without the directory it still does."""
    kept = Keeping(tmp_path)
    kept.bodies.retire(body_name(1, durable=True), 0)
    assert f"{body_name(1, durable=True)} was removed by someone else" in capsys.readouterr().err
    (tmp_path / "large").rmdir()
    with pytest.raises(DiskError):
        kept.bodies.retire(body_name(1, durable=True), 0)


def test_retained_bodies_count_for_the_storage_limit(tmp_path: Path) -> None:
    kept = Keeping(tmp_path, bytes_max=3500)
    start_ms = kept.now_ms
    for number in (1, 2):
        kept.now_ms += 1000
        kept.retire_body(number)
        kept.retire_segment(kept.begin_segment(kept.now_ms - 500), kept.now_ms)
    assert kept.kept_bodies == [2], "the first file went, and the body that only it spoke of"
    assert len(list(kept.folder.glob("*.log"))) == 1
    kept.retire_body(3)
    kept.retire_body(4)
    kept.retire_body(5)
    kept.log.purge()
    assert (len(kept.kept_bodies), list(kept.folder.glob("*.log"))) == (3, [])
    assert kept.bodies.start_min == 1
    assert kept.now_ms > start_ms


def test_one_more_body_costs_no_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Keeping(tmp_path, bytes_max=3500)
    kept.retire_body(1)

    with monkeypatch.context() as no_listing:
        no_listing.setattr(
            Path,
            "iterdir",
            Mock(side_effect=AssertionError("a directory that only retention changed was listed again")),
        )
        for number in (2, 3, 4, 5):
            kept.now_ms += 1000
            kept.retire_body(number)
        assert kept.bodies.size_bytes == 5000
        kept.log.purge()
        assert kept.bodies.size_bytes == 3000
        kept.bodies.purge_before(kept.now_ms)
        assert kept.bodies.size_bytes == 1000
    assert kept.kept_bodies == [5]


@pytest.mark.interpreted
def test_nobody_waits_while_a_body_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To another file system that takes its time, and what is durable must not wait for it."""
    kept = Keeping(tmp_path)
    kept.retire_body(1)
    moving, go_on = threading.Event(), threading.Event()
    move = retention.move

    def move_slowly(source: Path, target: Path) -> None:
        move(source, target)
        moving.set()
        assert go_on.wait(120)

    monkeypatch.setattr(retention, "move", move_slowly)
    writer = threading.Thread(target=kept.retire_body, args=(2,))
    writer.start()
    assert moving.wait(120)
    asker = threading.Thread(target=kept.log.purge, daemon=True)
    asker.start()
    asker.join(120)
    assert not asker.is_alive()
    go_on.set()
    writer.join(120)
    assert kept.kept_bodies == [1, 2]
    assert kept.bodies.size_bytes == 2000, "once, although the other thread saw it first"


def test_a_body_that_others_removed_does_not_count(tmp_path: Path) -> None:
    kept = Keeping(tmp_path)
    kept.retire_body(1)
    kept.retire_body(2)
    folder = kept.folder / "large"
    next(folder.iterdir()).unlink()
    age(folder, -1)
    assert kept.bodies.size_bytes == 1000
    kept.retire_body(3)
    assert kept.bodies.size_bytes == 2000


def test_a_clock_that_goes_back_keeps_bodies_in_order(tmp_path: Path) -> None:
    kept = Keeping(tmp_path)
    kept.retire_body(1)
    kept.now_ms -= 60_000
    kept.retire_body(2)
    kept.bodies.purge_before(kept.now_ms + 30_000)
    assert kept.kept_bodies == [1]


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
def test_a_body_that_moves_after_the_clock_was_set_back_stays_with_its_record(tmp_path: Path, restarts: bool) -> None:
    """Its segment was begun before that, by a later time than that of the move."""
    kept = Keeping(tmp_path)
    segment = kept.begin_segment(kept.now_ms)
    kept.now_ms -= 3_600_000
    if restarts:
        kept.start()
    kept.retire_body(1)
    kept.retire_segment(segment, kept.now_ms)
    assert kept.kept_bodies == [1]
    kept.begin_segment(kept.now_ms)
    kept.retire_body(2)
    kept.log.purge()
    assert kept.kept_bodies == [1, 2]


def test_bodies_stay_as_long_as_their_records_in_any_order_of_events(tmp_path: Path, rng: random.Random) -> None:
    """The clock jumps both ways; segments begin, are retained and go; bodies move; brokers start again."""
    kept = Keeping(tmp_path, bytes_max=1 << 40)
    of_segment: dict[int, int] = {}
    in_journal = [kept.begin_segment(kept.now_ms)]
    in_use: list[int] = []
    weights = {
        "bring": 3,
        "let go": 3,
        "retire": 2,
        "remove": 1,
        "set the clock": 2,
        "begin": 2,
        "purge": 1,
        "start": 1,
    }
    for _ in range(800):
        match rng.choices([*weights], [*weights.values()])[0]:
            case "bring":
                in_use.append(len(of_segment) + 1)
                of_segment[in_use[-1]] = in_journal[-1]
            case "let go" if in_use:
                kept.retire_body(in_use.pop(rng.randrange(len(in_use))))
            case "retire" if len(in_journal) > 1:
                kept.retire_segment(in_journal.pop(0), kept.now_ms)
            case "remove" if len(kept.log.files) > 1:
                kept.log.give_up_oldest()
            case "set the clock":
                kept.now_ms += rng.choice([-3_600_000, -5000, -1, 0, 1, 5000, 3_600_000])
            case "begin":
                in_journal.append(kept.begin_segment(kept.now_ms))
            case "purge":
                kept.log.purge()
            case "start":
                kept.start()
        first = kept.log.files[0].file.number if kept.log.files else in_journal[0]
        needed = {body for body, segment in of_segment.items() if segment >= first} - set(in_use)
        assert needed <= set(kept.kept_bodies)
    kept.now_ms += 400 * 3_600_000
    for _ in range(3):  # what was moved before the last of them are begun goes with the others
        in_journal.append(kept.begin_segment(kept.now_ms))
    while len(in_journal) > 1:
        kept.retire_segment(in_journal.pop(0), kept.now_ms)
    while len(kept.log.files) > 1:
        kept.log.give_up_oldest()
    assert kept.kept_bodies == []


def test_numbers_go_on_behind_retained_ones(tmp_path: Path) -> None:
    kept = Keeping(tmp_path)
    kept.retire_body(5 << 32)
    assert kept.bodies.start_min == 6
    assert Bodies(start_min=kept.bodies.start_min).store.begin(durable=True).body.number >> 32 == 6


def test_only_whole_durable_bodies_are_retained() -> None:
    retired: list[tuple[str, int]] = []
    bodies = Bodies(retire=lambda name, lsn: retired.append((name, lsn)))
    whole, transient = bodies.bring(b"x" * 10), bodies.bring(b"x" * 10, durable=False)
    upload = bodies.store.begin(durable=True)
    upload.append(b"x")
    bodies.turn()
    name = body_name(whole.number, durable=True)
    del whole, transient, upload
    bodies.turn(last_lsn=7, durable_lsn=7)
    assert retired == [(name, 7)]
    assert bodies.files == [name]
