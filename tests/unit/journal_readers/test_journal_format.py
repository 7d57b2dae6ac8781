"""docs/journal-format.md is true: its example is read by the broker's reader and by one written from the page alone."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from artemis_py.cli import main as cli
from artemis_py.storage.format import codec
from artemis_py.storage.format.codec import Batch, FileHeader
from artemis_py.storage.format.log_events import Published, Settled
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.format.scan import Damage, log_files
from tests.tidy.sources import ROOT
from tests.unit.journal_readers.parts import Story

PAGE = (ROOT / "docs" / "journal-format.md").read_text("utf-8")


@pytest.fixture(scope="module")
def example() -> bytes:
    """The bytes of the example; the addresses in front of each line have to be right."""
    block = re.search(r"```hex\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    data = b""
    for line in block[1].splitlines():
        place, _, digits = line.partition("  ")
        assert int(place, 16) == len(data)
        data += bytes.fromhex(digits)
    return data


# ---- the broker's reader -------------------------------------------------------------------------


def test_the_broker_reads_the_example_as_the_page_says(example: bytes) -> None:
    assert codec.decode_file_header(example) == FileHeader(1, 7, 41, 1700000000000)
    damages: list[Damage] = []
    published, settled = events_of("example", example, damages)
    assert damages == []
    assert isinstance(published, Published)
    message = published.kept.message
    assert (published.lsn, published.time_ms, published.group) == (41, 1700000000123, 0)
    assert (message.id, message.timestamp_ms, message.expires_ms) == (12, 1700000000000, 0)
    assert (message.head.address, message.head.priority, message.head.routing_type) == ("orders", 4, "ANYCAST")
    assert (message.head.sized, message.head.size_bytes) == (True, 43)
    assert (message.body, published.kept.queue_ids, published.kept.lsn) == (b"hello", [3], 41)
    assert settled == Settled(42, 1700000000123, 0, 3, "acked", (12,))
    batch = codec.decode_record(example, 0x40)
    assert batch is not None
    assert (batch.lsn, codec.decode_batch(batch.payload)) == (43, Batch(9, 1700000000123, 12, 3))


def test_the_places_named_beside_the_example_are_those_of_records(example: bytes) -> None:
    named = [int(place, 16) for place in re.findall(r"^\| (0x[0-9a-f]{4}) \|", PAGE, re.MULTILINE)]
    found = [0, *(place for place, *_ in records(example))]
    assert named[:-1] == found
    assert codec.decode_record(example, named[-1]) is None


def test_every_type_of_record_is_on_the_page() -> None:
    rows = re.findall(r"^\| (\d+) \| ([A-Z-]+) \|", PAGE, re.MULTILINE)
    assert {int(number): name.lower() for number, name in rows} == codec.RECORD_NAMES


# ---- a reader from the page alone ----------------------------------------------------------------


def records(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Offset, lsn, type and payload of each record of a file that has no damage."""
    assert data[:8] == b"ARTEMISJ"
    assert zlib.crc32(data[:60]) == struct.unpack_from("<I", data, 60)[0]
    assert struct.unpack_from("<HH", data, 8) == (1, 1)
    yield from records_from(data, 64)


def records_from(data: bytes, offset: int) -> Iterator[tuple[int, int, int, bytes]]:
    """The same from an offset on."""
    while any(data[offset : offset + 17]):
        checksum, length, lsn, kind = struct.unpack_from("<IIQB", data, offset)
        end = offset + 17 + length
        assert zlib.crc32(data[offset + 4 : end]) == checksum
        yield offset, lsn, kind, data[offset + 17 : end]
        offset = end


def described(kind: int, payload: bytes) -> dict[str, Any]:
    """A payload in the words of ``journal dump``."""
    if kind == 1:
        names = ("number", "batch_time_ms", "message_id_max", "queue_id_max")
        return dict(zip(names, struct.unpack("<QQQQ", payload), strict=True))
    if kind == 2:
        return described_message(payload)
    if kind == 3:
        queue, reason, count = struct.unpack_from("<IBI", payload)
        ids = list(struct.unpack_from(f"<{count}Q", payload, 9))
        return {"queue": queue, "reason": REASONS[reason], "message_ids": ids, **behind(payload, 9 + 8 * count)}
    if kind == 4:
        names = ("queue", "message_id", "attempts", "due_ms", "consumer", "cause")
        fields = dict(zip(names, struct.unpack("<IQHQQB", payload), strict=True))
        return {**fields, "cause": (None, "nacked", "aborted", "lost")[fields["cause"]]}
    if kind in (5, 11):
        queue, count = struct.unpack_from("<II", payload)
        ids = list(struct.unpack_from(f"<{count}Q", payload, 8))
        return {"queue": queue, "message_ids": ids, **behind(payload, 8 + 8 * count)}
    if kind == 10:
        return {"payload_bytes": len(payload)}
    if kind == 23:
        return {"session": struct.unpack("<Q", payload)[0]}
    if kind == 26:
        names = ("queue", "count", "size_bytes", "delivering_count", "scheduled_count")
        return {"queues": [dict(zip(names, each, strict=True)) for each in struct.iter_unpack("<IQQII", payload)]}
    return {"fields": json.loads(payload)}


_TABLE = PAGE[PAGE.index("| reason | name |") : PAGE.index("### ATTEMPTED")]
REASONS = {int(code): name for code, name in re.findall(r"^\| (\d+) \| ([a-z]+) \|", _TABLE, re.MULTILINE)}


def behind(payload: bytes, end: int) -> dict[str, int | None]:
    """The consumer, where one is told."""
    return {"consumer": struct.unpack_from("<Q", payload, end)[0] if len(payload) > end else None}


def described_message(payload: bytes) -> dict[str, Any]:
    """The payload of a MESSAGE record."""
    fields = struct.unpack_from("<QQQQBBBBHHI", payload)
    number, timestamp, expires, published, priority, _sized, routing, _, queue_count, address_length, head_length = (
        fields
    )
    states = [struct.unpack_from("<IHQq", payload, 44 + 22 * place) for place in range(queue_count)]
    names = ("queue", "attempts", "due_ms", "order")
    address_at = 44 + 22 * queue_count
    head_at = address_at + address_length
    body_at = head_at + head_length
    lines = payload[head_at:body_at].decode().removesuffix("\n\n").split("\n")
    return {
        "message_id": number,
        "timestamp_ms": timestamp,
        "expires_ms": expires,
        "published": published,
        "priority": priority,
        "routing_type": (None, "ANYCAST", "MULTICAST")[routing],
        "queues": [dict(zip(names, state, strict=True)) for state in states],
        "address": payload[address_at:head_at].decode(),
        "headers": dict(line.split(":", 1) for line in lines),
        "body": payload[body_at:].decode(),
    }


def test_a_reader_from_the_page_alone_agrees_with_the_dump(
    tmp_path: Path, rng: Random, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(tmp_path / "journal")
    story.generate(rng, 80)
    story.turn(
        partial(story.publish, 10_000, [1], b"", 1), partial(story.fail, 1, 10_000, 1), partial(story.refuse, 2, 1)
    )
    story.turn(partial(story.together, partial(story.publish, 10_001, [1]), partial(story.publish, 10_002, [1])))
    assert cli.main(["journal", "dump", str(story.folder), "--json"]) == 0
    dumped = {line["lsn"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    seen: set[int] = set()
    for file in log_files([story.folder]):
        for _, lsn, kind, payload in records(file.path.read_bytes()):
            inside = records_from(payload, 0) if kind == 10 else ()
            for _, number, inner_kind, inner in [(0, lsn, kind, payload), *inside]:
                told = described(inner_kind, inner)
                copy = told.pop("published", number)
                line = dumped[number]
                assert {name: line[name] for name in told} == told
                assert line.get("copy_of_lsn") in (None, copy)
                seen.add(inner_kind)
    assert seen == {1, 2, 3, 4, 7, 10, 11, 21, 22, 23, 24, 26, 27}


def test_the_page_gives_every_reason_and_cause() -> None:
    assert tuple(REASONS[code] for code in sorted(REASONS)) == codec.REASONS
    told = re.findall(r"(\d) (unknown|nacked|aborted|lost|lapsed)", PAGE)
    assert [name for _, name in sorted(set(told))] == ["unknown", *codec.CAUSES[1:]]
