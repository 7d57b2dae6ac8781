"""Indexes of many segments: decoded once where they repeat each other, and the same as if each was; no JVM."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from artemis_py.spark.log import indexes
from artemis_py.spark.log.directory import DirectoryLog
from artemis_py.spark.log.indexes import Indexes, uncollected
from artemis_py.spark.log.log import Segment
from artemis_py.storage.format.records import CodecError
from artemis_py.storage.format.segment_index import decode_index, encode_index, index_name
from tests.spark.made_log import HOUR_MS, START_MS, MadeLog, day_of_segments, survey

ODD = ['"queues":[', '"blocks":[', '{"lsn":7,"id":1}', '\\"lsn\\":9', "ü€😀", "\n", '"segments":[']


def without_lsns(segment: Segment) -> Segment:
    """A record's lsn is all that is left out of an index."""
    lists: dict[str, Any] = {
        name: [{key: value for key, value in one.items() if key != "lsn"} for one in getattr(segment, name)]
        for name in ("queues", "sessions", "consumers")
    }
    return replace(segment, **lists)


def fields_of(number: int, names: list[str]) -> dict[str, Any]:
    """An index whose names look like parts of one."""
    told = [
        {"lsn": number * 100 + place, "id": place, "name": name, "address": name} for place, name in enumerate(names)
    ]
    return {
        "format": 1, "segment": number, "first_lsn": number * 100, "last_lsn": number * 100 + 99, "first_ms": 5,
        "last_ms": 6, "oldest_ms": None, "newest_ms": None, "bytes": 640, "records": 100, "messages": 3,
        "addresses": sorted(names), "queues": told, "sessions": [{"lsn": 1, "id": 9, "client": ODD[0], "user": ODD[2]}],
        "consumers": [], "blocks": [[64, number * 100, 5]],
    }  # fmt: skip


@pytest.fixture
def decode(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """What decodes texts."""
    spy = Mock(side_effect=indexes._object)
    monkeypatch.setattr(indexes, "_object", spy)
    return spy


def test_an_index_says_the_same_however_it_is_read(tmp_path: Path) -> None:
    reading = Indexes()
    for number in range(1, 8):
        fields = fields_of(number, ODD[number % 3 :])
        path = tmp_path / f"artemis-journal-{number:012}.log"
        path.with_name(index_name(path.name)).write_bytes(encode_index(fields))
        wanted = without_lsns(Segment.of({**fields, "name": path.name}))
        assert without_lsns(reading.beside(path)) == wanted


def test_a_listing_says_the_same_however_it_is_read() -> None:
    """As a broker writes it, and as JSON that was laid out by somebody else."""
    segments = [{**fields_of(number, ODD), "name": f"s{number}", "is_current": number == 3} for number in (1, 2, 3)]
    broken = {"segment": 4, "name": "s4", "is_current": False, "error": "no header"}
    head = {"broker": ODD[6], "id": "x", "durable_lsn": 399, "first_lsn": 100, "now_ms": 1}
    listing = {**head, "segments": [*segments, broken]}
    lines = b",\n".join(
        json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() for one in (*segments, broken)
    )
    begin = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode().removesuffix(b"}")
    answers = [begin + b',"segments":[\n' + lines + b"\n]}\n", json.dumps(listing, indent=1).encode()]
    for answer in answers:
        found = Indexes().listed(answer)
        assert found["segments"][3] == broken
        assert {name: found[name] for name in head} == head
        assert [without_lsns(Segment.of(one)) for one in found["segments"][:3]] == [
            without_lsns(Segment.of(one)) for one in segments
        ]
    empty = begin + b',"segments":[\n]}\n'
    assert Indexes().listed(empty) == {**head, "segments": []}


def test_what_segments_repeat_is_decoded_once(tmp_path: Path, decode: Mock) -> None:
    day_of_segments(tmp_path)
    survey(tmp_path)
    segments = DirectoryLog("b", [tmp_path]).listing().segments
    assert len(segments) == 96
    assert str(decode.call_args_list).count('"queues":[') <= 2
    assert len({id(one.queues) for one in segments}) <= 2
    assert len({id(one.addresses) for one in segments}) == 3


def test_an_index_that_did_not_change_is_not_read_again(
    tmp_path: Path, decode: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next query that is planned in this process; one that changed is, as after a survey."""
    log = day_of_segments(tmp_path)
    first = DirectoryLog("b", [tmp_path]).listing()
    decode.reset_mock()
    assert DirectoryLog("b", [tmp_path]).listing() == first
    assert not decode.called
    survey(tmp_path)
    assert all(one.places_bytes for one in DirectoryLog("b", [tmp_path]).listing().segments)
    decode.reset_mock()
    log.segment(START_MS + 100 * HOUR_MS)
    log.close()
    assert len(DirectoryLog("b", [tmp_path]).listing().segments) == 97
    assert decode.call_count <= 2
    monkeypatch.setattr(indexes, "_SEGMENTS_MAX", 50)
    reading = Indexes()
    paths = sorted(tmp_path.glob("*.log"))
    assert [reading.beside(path).number for path in paths] == [*range(1, 98)]
    assert len(reading._segments) <= 50


def test_what_was_decoded_is_not_kept_without_end(decode: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "_KNOWN_MAX", 2)
    reading = Indexes()
    for name in "abcabc":
        reading._decoded(json.dumps(fields_of(1, [name]), separators=(",", ":")).encode())
        assert len(reading._names) <= 2
    assert str(decode.call_args_list).count('"queues":[') == 6


@pytest.mark.parametrize("change", [lambda text: text[:-40], lambda text: text.replace(b'"bytes":', b'"bytez":', 1)])
def test_an_index_that_is_not_whole_is_made_anew(tmp_path: Path, change: Any) -> None:
    log = MadeLog(tmp_path)
    path = log.segment(START_MS, 5)
    log.close()
    wanted = Indexes().beside(path)
    beside = path.with_name(index_name(path.name))
    beside.write_bytes(change(beside.read_bytes()))
    with pytest.raises(CodecError):
        decode_index(beside.read_bytes())
    assert without_lsns(Indexes().beside(path)) == without_lsns(wanted)


def test_nobody_else_is_kept_from_collecting() -> None:
    assert gc.isenabled()
    seen: list[bool] = []
    with pytest.raises(IndexError), uncollected():
        seen[len(seen.append(gc.isenabled()) or seen)]
    assert (seen, gc.isenabled()) == ([False], True)
