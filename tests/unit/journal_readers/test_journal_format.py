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
from artemis_py.storage.format import records as layouts
from artemis_py.storage.format.codec import BatchHeader
from artemis_py.storage.format.log_events import Published, Settled
from artemis_py.storage.format.reader import events_of
from artemis_py.storage.format.records import (
    CAUSES,
    CHECKSUM,
    FILE_HEADER,
    HEADER,
    KINDS,
    LARGE_BODY,
    Field,
    FileHeader,
    Part,
    Text,
    decode_file_header,
    decode_record,
)
from artemis_py.storage.format.scan import Damage, log_files
from tests.kit.journal_story import Story
from tests.kit.sources import ROOT

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
    assert decode_file_header(example) == FileHeader(1, 7, 41, 1700000000000)
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
    batch = decode_record(example, 0x40)
    assert batch is not None
    assert (batch.lsn, codec.decode_batch(batch.payload)) == (43, BatchHeader(9, 1700000000123, 12, 3))


def test_the_places_named_beside_the_example_are_those_of_records(example: bytes) -> None:
    named = [int(place, 16) for place in re.findall(r"^\| (0x[0-9a-f]{4}) \|", PAGE, re.MULTILINE)]
    found = [0, *(place for place, *_ in records(example))]
    assert named[:-1] == found
    assert decode_record(example, named[-1]) is None


# ---- the table of records ------------------------------------------------------------------------


def rows_of(parts: tuple[Part | Text, ...]) -> str:
    """The rows of a table for the parts of a payload: where, how many bytes, name and meaning."""
    rows: list[str] = []
    at: int | None = 0
    for part in parts:
        where = "…" if at is None else str(at)
        if isinstance(part, Text):
            rows.append(f"| {where} | {part.size or 'rest'} | {part.name} | {part.meaning} |")
        elif part.times:
            fields = ", ".join(f"{one.name} ({_size(one)}): {one.meaning}" for one in part.layout.fields)
            times = "n" if part.times == "*" else part.times
            rows.append(f"| {where} | {part.layout.size_bytes} · {times} | | for each: {fields} |")
        else:
            for place, one in enumerate(part.layout.fields):
                here = "…" if at is None else str(at + part.layout.at(one.name))
                note = "; optional" if part.is_optional and not place else ""
                rows.append(f"| {here} | {_size(one)} | {one.name} | {one.meaning}{note} |")
        at = None if at is None or isinstance(part, Text) or part.times else at + part.layout.size_bytes
    return "\n".join(rows) + "\n"


def _size(one: Field) -> str:
    return f"{one.size_bytes}, signed" if one.code.islower() and one.code.isalpha() else str(one.size_bytes)


LAYOUTS = {
    "file header": rows_of((Part(FILE_HEADER),)),
    "header": rows_of((Part(HEADER), Text("payload", "length", "payload"))),
    "large body": rows_of((Part(LARGE_BODY), Part(CHECKSUM, is_optional=True))),
    **{kind.name: rows_of(kind.parts) for kind in KINDS if kind.parts},
}


def test_the_page_lists_every_kind_of_record() -> None:
    rows = "".join(f"| {kind.number} | {kind.name.upper()} | {kind.meaning} |\n" for kind in KINDS)
    assert f"| type | name | payload |\n|---|---|---|\n{rows}\n" in PAGE


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_page_has_the_layout_of(name: str) -> None:
    assert f"\n| at | bytes | name | meaning |\n|---|---|---|---|\n{LAYOUTS[name]}\n" in PAGE


def test_the_layouts_are_those_that_files_have_had_since_version_1() -> None:
    """What was written is never read in another way: only optional parts may follow at the end."""
    codes = {kind.name: [part.layout.struct.format for part in kind.parts if isinstance(part, Part)] for kind in KINDS}
    assert HEADER.struct.format == "<IIQB"
    assert {name: formats for name, formats in codes.items() if formats} == {
        "batch": ["<QQQQ"],
        "message": ["<QQQQBBBBHHI", "<IHQq"],
        "settled": ["<IBI", "<Q", "<Q"],
        "attempted": ["<IQHQ", "<QB"],
        "due": ["<II", "<Q", "<Q"],
        "delivered": ["<II", "<Q", "<Q"],
        "page-grew": ["<IIIQQBH", "<IIQ", "<QH"],
        "page-settled": ["<IIIBIQ", "<Q", "<Q", "<Q"],
        "page-purged": ["<IIIIQ", "<Q", "<BIQ"],
        "page-attempted": ["<IIIQQHQ", "<QB"],
        "page-dropped": ["<II"],
        "page-places": ["<IIIQIQ"],
        "paged": ["<Q"],
        "origin": ["<Q"],
        "depths": ["<IQQII"],
    }


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
        of_attempts = ("queue", "message_id", "attempts", "due_ms", "consumer", "cause")
        fields = dict(zip(of_attempts, struct.unpack("<IQHQQB", payload), strict=True))
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
        counts = ("queue", "count", "size_bytes", "delivering_count", "scheduled_count")
        return {"queues": [dict(zip(counts, each, strict=True)) for each in struct.iter_unpack("<IQQII", payload)]}
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
    assert tuple(REASONS[code] for code in sorted(REASONS)) == layouts.REASONS
    told = re.findall(r"(\d) (unknown|nacked|aborted|lost|lapsed)", PAGE)
    assert [name for _, name in sorted(set(told))] == ["unknown", *CAUSES[1:]]
