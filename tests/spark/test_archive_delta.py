"""The steps of an archive of Delta tables, killed before and after every change: nothing is lost, nothing is there
twice; in a directory and in an object store.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from artemis_py.errors import PipelineError
from artemis_py.spark.jobs import delta
from artemis_py.spark.jobs.archive import archive_at
from artemis_py.spark.jobs.archive_delta import DeltaArchive, ObjectFiles, Written
from artemis_py.spark.jobs.archive_store import Files
from artemis_py.spark.jobs.delta import DeltaPlace, File
from artemis_py.spark.jobs.source import JobError
from tests.kit.process import for_the_module
from tests.spark.mortal import Killed, Life
from tests.spark.object_store import object_store

TABLES = ("messages", "events")
END = 30
STEPS = (12, END)
SCHEMA = pa.schema({"offset": pa.int64(), "broker": pa.string(), "address": pa.string(), "hour": pa.string()})
PARTITIONS = ("address", "hour")
ADDRESSES = ("orders", "a/b c%20'ü", None)
"""One that is no name of a directory, and none."""


def rows_of(*batches: pa.RecordBatch) -> Any:
    """As much of a DataFrame as ``DeltaPlace.write`` asks of one: its one task runs here."""
    return SimpleNamespace(
        mapInArrow=lambda task, _schema: rows_of(*task(iter(batches))),
        collect=lambda: [tuple(row.values()) for batch in batches for row in batch.to_pylist()],
    )


def written(place: DeltaPlace, after: int | None, up_to: int) -> Written:
    """The rows of a log, whose addresses take turns."""
    place.create(SCHEMA, PARTITIONS, {})
    lsns = sorted(range((after or 0) + 1, up_to + 1), key=lambda lsn: lsn % len(ADDRESSES))
    rows = [
        {"offset": lsn, "broker": "b", "address": ADDRESSES[lsn % len(ADDRESSES)], "hour": "2026-01-31T10"}
        for lsn in lsns
    ]
    batches = [pa.RecordBatch.from_pylist(rows[at : at + 8], SCHEMA) for at in range(0, len(rows), 8)]
    return Written(after, place.write(rows_of(*batches), PARTITIONS))


def seen(place: DeltaPlace) -> list[int]:
    """The lsns that a reader of the table sees."""
    if not place.exists():
        return []
    system = place.files_system()
    found = []
    for one in place.files():
        with system.open_input_file(one.path) as stream:
            rows = parquet.ParquetFile(stream).read(["offset"], use_threads=False)
        lsns = rows.column(0).to_pylist()
        assert {ADDRESSES[lsn % len(ADDRESSES)] for lsn in lsns} == {one.partition["address"]}
        assert len(lsns) == one.rows
        found += lsns
    return sorted(found)


def run(place: str, storage: dict[str, str], told: list[int]) -> None:
    """A whole run of the job."""
    with DeltaArchive(place, storage) as archive:
        for end in STEPS:
            if end > archive.archived_lsn("b"):
                after = {table: archive.done("b", table) for table in TABLES}
                parts = {table: written(archive.table(table), after[table], end) for table in TABLES}
                archive.add_files("b", end, parts, {"id": "x"})
                told.append(end)


def test_killed_anywhere_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _number: None)  # a killed process loses nothing that it wrote
    life = Life(monkeypatch, (Files, "write"), (Files, "remove"), (DeltaPlace, "commit"))
    killed = 0
    while True:
        root = str(tmp_path / str(killed))
        told: list[int] = []
        places = {table: DeltaPlace(f"{root}/{table}") for table in TABLES}
        life.left = killed
        try:
            run(root, {}, told)
            break
        except Killed:
            for table, place in places.items():
                lsns = seen(place)
                assert lsns == [*range(1, len(lsns) + 1)], f"{table}, killed before change {killed}"
                assert len(lsns) >= max(told, default=0), f"{table}, killed before change {killed}"
        life.left = -1
        run(root, {}, told)
        assert [seen(place) for place in places.values()] == [[*range(1, END + 1)]] * 2, killed
        assert not Path(root, "_archive", "move.json").exists()
        killed += 1
    assert killed == 11


store = for_the_module(lambda _: object_store())


def test_in_an_object_store(store: dict[str, str]) -> None:
    place = "s3://bucket/archive"
    run(place, store, [])
    assert [seen(DeltaPlace(f"{place}/{table}", store)) for table in TABLES] == [[*range(1, END + 1)]] * 2
    with DeltaArchive(place, store) as archive:
        assert (archive.archived_lsn("b"), archive.known()) == (END, {"b": "x"})
        assert archive.compact(None, TABLES, 1_800_000_000_000, print) == 6  # type: ignore[arg-type]
        assert archive.size_bytes(TABLES) > 0
    assert [seen(DeltaPlace(f"{place}/{table}", store)) for table in TABLES] == [[*range(1, END + 1)]] * 2


def test_a_store_that_does_not_answer_is_named(store: dict[str, str]) -> None:
    """Whoever asks it, also a task of Spark."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    away = {**store, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "max_retries": "0"}
    table, files = DeltaPlace("s3://bucket/away/messages", away), ObjectFiles(DeltaPlace("s3://bucket/away", away))
    rows = rows_of(pa.RecordBatch.from_pylist([{"offset": 1, "broker": "b", "address": "a", "hour": "h"}], SCHEMA))
    asked: list[Callable[[], Any]] = [
        table.exists, table.open, lambda: table.write(rows, PARTITIONS),
        lambda: files.read(Path("x")), lambda: files.write(Path("x"), {}), lambda: files.remove(Path("x")),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(JobError, match=rf"\As3://bucket/away.*: .*:{port}/.*\. Look whether the store answers"):
            ask()


def test_a_store_that_ends_after_a_table_was_opened_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """deltalake reads more of a table's log when it is asked for more."""
    with object_store() as options:
        table = DeltaPlace("s3://bucket/gone/messages", {**options, "max_retries": "0"})
        table.create(SCHEMA, PARTITIONS, {})
        opened = table.open()
    monkeypatch.setattr(DeltaPlace, "exists", lambda _table: True)
    monkeypatch.setattr(DeltaPlace, "open", lambda _table: opened)
    asked: list[Callable[[], Any]] = [
        lambda: table.transaction_version("b"), lambda: table.compact("hour", "h"), table.vacuum,
        lambda: table.commit([File("x.parquet", 1, 1, {"address": "a", "hour": "h"})], "b", 1, {}),
        lambda: table.create(pa.schema([*SCHEMA, pa.field("more", pa.string())]), PARTITIONS, {}),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(JobError, match=r"\As3://bucket/gone.*: .*\. Look whether the store answers"):
            ask()


def test_two_jobs_in_an_object_store(store: dict[str, str]) -> None:
    """There are no locks there: whoever commits first has the step."""
    with DeltaArchive("s3://bucket/two", store) as one, DeltaArchive("s3://bucket/two", store) as other:
        parts = [{table: written(job.table(table), None, 12) for table in TABLES} for job in (one, other)]
        one.add_files("b", 12, parts[0], {"id": "x"})
        with pytest.raises(JobError, match="another job archives into s3://bucket/two, too: messages is at lsn 12"):
            other.add_files("b", 30, parts[1], {"id": "x"})
    run("s3://bucket/two", store, [])
    assert [seen(DeltaPlace(f"s3://bucket/two/{table}", store)) for table in TABLES] == [[*range(1, END + 1)]] * 2


def test_all_of_it_is_synced_before_the_archive_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    true_write = Files.write

    def write(files: Files, path: Path, value: object) -> None:
        if path.name == "state.json":
            found = [one for one in (tmp_path / "messages").rglob("*") if one.is_file()]
            assert [one for one in found if one.stat().st_ino not in synced] == []
        true_write(files, path, value)

    monkeypatch.setattr(os, "fsync", lambda number: synced.add(os.fstat(number).st_ino))
    monkeypatch.setattr(Files, "write", write)
    place = DeltaPlace(str(tmp_path / "messages"))
    place.create(SCHEMA, PARTITIONS, {"delta.checkpointInterval": "3"})
    with DeltaArchive(str(tmp_path), {}) as archive:
        for end in range(1, 6):
            part = written(place, archive.done("b", "messages"), end)
            archive.add_files("b", end, {"messages": part}, {"id": "x"})
    assert list((tmp_path / "messages" / "_delta_log").glob("*.checkpoint.parquet"))


def test_a_column_that_an_older_archive_lacks(tmp_path: Path) -> None:
    place = DeltaPlace(str(tmp_path))
    place.create(SCHEMA, PARTITIONS, {})
    place.create(SCHEMA.append(pa.field("colour", pa.string())), PARTITIONS, {})
    assert [one.name for one in place.open().schema().fields] == [*SCHEMA.names, "colour"]


def test_an_archive_has_one_format(tmp_path: Path) -> None:
    with archive_at(tmp_path / "delta", "delta", {}), archive_at(tmp_path / "parquet", None, {}):
        pass
    assert json.loads((tmp_path / "delta" / "_archive" / "state.json").read_text())["format"] == "delta-1"
    assert isinstance(archive_at(tmp_path / "delta", None, {}), DeltaArchive)
    with pytest.raises(JobError, match=r"delta is an archive as delta; leave out --table-format"):
        archive_at(tmp_path / "delta", "parquet", {})
    with pytest.raises(JobError, match=r"is an archive as parquet; leave out --table-format"):
        archive_at(tmp_path / "parquet", "delta", {})
    with pytest.raises(JobError, match=r"is in an object store, where an archive needs Delta tables"):
        archive_at("s3://bucket/x", "parquet", {})


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "find_spec", lambda _name: None)
    with pytest.raises(PipelineError, match=r"deltalake missing: .*'\.\[spark,delta\]'"):
        archive_at(tmp_path, "delta", {})


def test_what_deltalake_says_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(JobError) as raised:
        DeltaPlace(str(tmp_path / "nothing")).open()
    assert str(raised.value).startswith(f"{tmp_path}/nothing: ")
    assert not {"\n", "\x1b"} & set(str(raised.value))
