"""The archive's steps, killed before every single operation on files: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from artemis_py.spark.jobs import archive_store
from artemis_py.spark.jobs.archive_parquet import ParquetArchive
from artemis_py.spark.jobs.archive_store import Files
from artemis_py.spark.jobs.source import JobError
from tests.spark.mortal import Killed, Life

LOG = [(lsn, f"2026-01-0{1 + lsn // 40}", f"address{lsn % 2}") for lsn in range(1, 80)]
"""Rows of a log: lsn, date, address."""
STEPS = (50, 79)


def write_rows(after: int, up_to: int, staging: Path) -> None:
    """Rows of the log as Spark would lay them out; the files are JSON, which the store does not look into."""
    for lsn, date, address in LOG:
        if after < lsn <= up_to:
            folder = staging / "messages" / f"date={date}" / f"address={address}"
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / "part-0.parquet"
            lsns = json.loads(file.read_text()) if file.exists() else []
            file.write_text(json.dumps([*lsns, lsn]))
    staging.joinpath("messages").mkdir(exist_ok=True)
    (staging / "messages" / "_SUCCESS").write_text("")


def merge(into: Path, partitions: Sequence[Path]) -> None:
    """Puts the rows of each partition into one file."""
    for partition in partitions:
        lsns = [lsn for file in sorted(partition.glob("batch=*/*.parquet")) for lsn in json.loads(file.read_text())]
        (into / partition.name).mkdir(parents=True)
        (into / partition.name / "part-0.parquet").write_text(json.dumps(lsns))


def seen(root: Path) -> list[tuple[int, str, str]]:
    """What a reader of the directory sees: hidden names are passed over."""
    found = []
    for file in root.glob("messages/date=*/address=*/batch=*/*.parquet"):
        _, date, address, _, _ = file.relative_to(root).parts
        for lsn in json.loads(file.read_text()):
            found.append((lsn, date.removeprefix("date="), address.removeprefix("address=")))
    return sorted(found)


def run(root: Path, told: list[int]) -> None:
    """A whole run of the job: all steps, each told, then the compaction."""
    with ParquetArchive(root) as store:
        for end in STEPS:
            if end > store.archived_lsn("a b"):
                store.add_files("a b", end, partial(write_rows, store.archived_lsn("a b"), end))
                told.append(end)
        for partitions in store.small_partitions("messages").values():
            store.merge(partitions, merge)


def test_killed_anywhere_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _number: None)  # a killed process loses nothing that it wrote
    exchanged = archive_store._exchanged
    life = Life(monkeypatch, *((Files, name) for name in ("write", "move", "swap", "remove")))
    killed = 0
    # Where the system cannot exchange two directories in one step, it takes two: here every other time.
    monkeypatch.setattr(archive_store, "_exchanged", lambda one, other: killed % 2 == 0 and exchanged(one, other))
    while True:
        root = tmp_path / str(killed)
        told: list[int] = []
        life.left = killed
        try:
            run(root, told)
            break
        except Killed:
            rows = seen(root)
            assert len(rows) == len(set(rows)), f"twice, when killed before operation {killed}"
            assert set(rows) >= {row for row in LOG if row[0] <= max(told, default=0)}, killed
        life.left = -1
        again: list[int] = []
        run(root, again)
        assert seen(root) == sorted(LOG), f"killed before operation {killed}"
        assert told + again in (list(STEPS), sorted({*told, *again}))
        assert list((root / "_archive").glob("staging*")) == []
        assert not (root / "_archive" / "move.json").exists()
        killed += 1
    assert killed > 20
    assert seen(root) == sorted(LOG)


def test_killed_between_the_two_renames_of_a_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_store, "_exchanged", lambda _one, _other: False)
    renames = 0
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        nonlocal renames
        renames += "address=" in self.name and "staging" not in str(self)
        if renames == 1 and "staging" in str(self) and "messages" in str(target):
            renames += 1
            raise Killed
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(Killed):
        run(tmp_path, [])
    assert renames == 2
    run(tmp_path, [])
    assert seen(tmp_path) == sorted(LOG)


def test_compaction_leaves_one_batch_and_other_days_alone(tmp_path: Path) -> None:
    with ParquetArchive(tmp_path) as store:
        for end in (20, 60, 79):
            store.add_files("a", end, partial(write_rows, store.archived_lsn("a"), end))
        small = store.small_partitions("messages", before="2026-01-02")
        assert list(small) == ["2026-01-01"]
        store.merge(small["2026-01-01"], merge)
        assert store.small_partitions("messages", before="2026-01-02") == {}
        assert list(store.small_partitions("messages")) == ["2026-01-02"]
    assert len(list(tmp_path.glob("messages/date=2026-01-01/address=address0/batch=*"))) == 1
    assert seen(tmp_path) == sorted(LOG)


def test_files_are_synced_before_the_archive_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda number: synced.add(os.fstat(number).st_ino))
    unsynced: list[Path] = []
    true_write = Files.write

    def write(files: Files, path: Path, value: object) -> None:
        """Looks at what stands in staging when the step is decided."""
        if path.name == "move.json":
            [staging] = path.parent.glob("staging*")
            found = [staging, *staging.rglob("*")]
            assert len(found) >= 3
            unsynced.extend(each for each in found if each.stat().st_ino not in synced)
        true_write(files, path, value)

    monkeypatch.setattr(Files, "write", write)
    run(tmp_path, [])
    assert unsynced == []


def test_what_a_killed_process_still_writes_is_not_taken(tmp_path: Path) -> None:
    """Its Java may live a moment longer than its Python."""
    old: list[Path] = []

    def die(staging: Path) -> None:
        old.append(staging)
        raise Killed

    with pytest.raises(Killed), ParquetArchive(tmp_path) as killed:
        killed.add_files("a", 50, die)
    with ParquetArchive(tmp_path) as store:
        write_rows(0, 50, old[0])
        store.add_files("a", 50, partial(write_rows, 0, 50))
        write_rows(0, 50, old[0])
    assert seen(tmp_path) == [row for row in sorted(LOG) if row[0] <= 50]
    with ParquetArchive(tmp_path):
        assert not old[0].exists()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with ParquetArchive(tmp_path), pytest.raises(JobError, match="another archive job"):
        ParquetArchive(tmp_path).open()


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    Files().write(tmp_path / "_archive" / "state.json", {"format": 2, "brokers": {}})
    with pytest.raises(JobError, match="has format 2"):
        ParquetArchive(tmp_path).open()
