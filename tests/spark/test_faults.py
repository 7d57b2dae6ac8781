"""Each way in which a log can lose something unseen, by url and by directory, batch and stream: all of them are told.

One table of faults, and a test that no square of it is left out. No JVM: the readers that Spark calls are called here.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark.read.batch import RowReader
from artemis_py.spark.read.options import read_options
from artemis_py.spark.stream.reader import LogStreamReader
from tests.kit.process import eventually
from tests.spark.live import LiveBroker, live_broker, send_many

PLACES: Final = ("url", "directory")
MODES: Final = ("batch", "stream")
BODY_BYTES: Final = 4000
COUNT: Final = 40


@dataclass
class Scene:
    """A broker with a log of some segments, of which a batch is planned and a query has read everything."""

    broker: LiveBroker
    place: str
    mode: str
    backup: Path
    readers: list[Any] = field(default_factory=list)
    planned: list[Any] = field(default_factory=list)
    offset: dict[str, Any] = field(default_factory=dict)

    def options(self, **more: str) -> dict[str, str]:
        where = (
            {"url": self.broker.url} if self.place == "url" else {"journal": str(self.broker.folder), "broker": "e2e"}
        )
        return {**where, **more}

    def send(self, first: int, count: int) -> None:
        with self.broker.client() as client:
            send_many(client, "orders", first, count, BODY_BYTES)

    def send_more(self, count: int) -> int:
        """So many more messages, of which a reader knows; returns how many there were before."""
        reader = RowReader(read_options(self.options()))
        before = len(self._rows(reader, reader.partitions()))
        self.send(0, count)
        self.await_rows(before + count)
        return before

    def await_rows(self, count: int) -> None:
        """Waits until a reader has so many: in a directory the last batch counts when nothing came for a while."""

        def rows() -> int:
            reader = RowReader(read_options(self.options()))
            return len(self._rows(reader, reader.partitions()))

        eventually("rows", rows, lambda found: found >= count)

    def restart(self, first: int = 0, count: int = 0) -> None:
        """On what is on the disk by now; then come so many messages."""
        self.broker.start_again()
        if count:
            self.send(first, count)

    def segment(self, number: int) -> Path:
        """The file of one that others follow: each life of a broker begins a new one."""
        for life in range(number):
            self.broker.kill()
            self.restart(COUNT * (life + 1), COUNT // 2)
        [path] = self.broker.folder.glob(f"**/artemis-journal-{number:012}.log")
        return path

    def plan(self) -> None:
        """A batch whose tasks have not begun; a query that is stopped."""
        if self.mode == "batch":
            self.readers = [RowReader(read_options(self.options()))]
            self.planned = self.readers[0].partitions()
        else:
            reader = LogStreamReader(read_options(self.options(startingOffsets="earliest"), streaming=True))
            start = reader.initialOffset()
            self.offset = reader.latestOffset(start, ReadAllAvailable())
            assert len(self._rows(reader, reader.partitions(start, self.offset))) > 0

    def go_on(self) -> list[Any]:
        """The planned tasks run; the query goes on from its checkpoint."""
        if self.mode == "batch":
            return self._rows(self.readers[0], self.planned)
        reader = LogStreamReader(read_options(self.options(), streaming=True))
        end = reader.latestOffset(self.offset, ReadAllAvailable())
        return self._rows(reader, reader.partitions(self.offset, end))

    def read(self, **more: str) -> list[Any]:
        """Everything, by a new batch or the first batch of a new query."""
        if self.mode == "batch":
            whole = RowReader(read_options(self.options(**more)))
            return self._rows(whole, whole.partitions())
        given = self.options(startingOffsets="earliest", **more)
        reader = LogStreamReader(read_options(given, streaming=True))
        start = reader.initialOffset()
        return self._rows(reader, reader.partitions(start, reader.latestOffset(start, ReadAllAvailable())))

    @staticmethod
    def _rows(reader: Any, partitions: list[Any]) -> list[Any]:
        return [row for share in partitions for batch in reader.read(share) for row in batch.to_pylist()]


def refused(act: Callable[[], Any], said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        act()


def replaced(scene: Scene) -> None:
    """By the log of a new broker, which is longer."""
    scene.plan()
    scene.broker.kill()
    for path in scene.broker.folder.glob("*/"):
        shutil.rmtree(path)
    scene.restart(1000, 2 * COUNT)
    refused(scene.go_on, "is not the one that was planned|not the one that this query has read")


def restored(scene: Scene) -> None:
    """From an older copy, ids and all, and written on."""
    scene.broker.kill()
    shutil.copytree(scene.broker.folder, scene.backup)
    scene.restart(500, 30)
    scene.plan()
    scene.broker.kill()
    shutil.rmtree(scene.broker.folder)
    shutil.copytree(scene.backup, scene.broker.folder)
    scene.restart(1000, 2 * COUNT)
    refused(scene.go_on, "is not the one that was planned|not the one that this query has read")


def missing(scene: Scene) -> None:
    """A segment between others."""
    path = scene.segment(3)
    path.unlink()
    path.with_suffix(".index").unlink(missing_ok=True)
    refused(scene.read, "between segments 2 and 4 is missing|between segments 2 and 4")
    assert 0 < len(scene.read(failOnDataLoss="false")) < 3 * COUNT


def truncated(scene: Scene) -> None:
    """A segment whose end is cut off."""
    os.truncate(scene.segment(3), 40_000)
    refused(scene.read, "segment 3 at byte .*: DAMAGED")
    assert 0 < len(scene.read(failOnDataLoss="false")) < 3 * COUNT


def unknown(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """A name that is misspelt."""
    with caplog.at_level(logging.WARNING):
        assert scene.read(subscribe="ordres") == []
    assert "no log has the address 'ordres': did you mean 'orders'?" in caplog.messages


def shared(scene: Scene) -> None:
    """One cursor's name for two queries; cursors are a broker's, and move with a stream."""
    if scene.mode == "batch":
        refused(lambda: scene.read(cursor="c"), "cursor .*for spark.readStream")
        return
    given = read_options(scene.options(startingOffsets="earliest", cursor="c"), streaming=True)

    def step(reader: LogStreamReader, start: dict[str, Any]) -> dict[str, Any]:
        end: dict[str, Any] = reader.latestOffset(start, ReadAllAvailable())
        reader.partitions(start, end)
        reader.commit(end)
        return end

    one, other = LogStreamReader(given), LogStreamReader(given)
    start = one.initialOffset()
    if scene.place == "directory":
        refused(lambda: step(one, start), "only a running broker keeps cursors")
        return
    step(one, start)
    end = step(other, start)
    scene.send(2000, 5)
    refused(lambda: step(one, end), "cursor c of .* is moved by two queries")


FAULTS: Final[dict[str, Callable[..., None]]] = {
    "log replaced": replaced,
    "restored from an older backup": restored,
    "a segment missing in the middle": missing,
    "a segment truncated": truncated,
    "unknown subscribe": unknown,
    "one cursor for two": shared,
}
SQUARES: Final = list(product(FAULTS, PLACES, MODES))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path / "broker") as broker:
        yield broker


@pytest.mark.parametrize(("fault", "place", "mode"), SQUARES, ids=str)
def test_no_fault_is_silent(
    broker: LiveBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str, place: str, mode: str
) -> None:
    scene = Scene(broker, place, mode, tmp_path / "backup")
    scene.send(0, COUNT)
    scene.await_rows(COUNT)
    more = {"caplog": caplog} if fault == "unknown subscribe" else {}
    FAULTS[fault](scene, **more)


def test_without_a_fault_everything_is_read(broker: LiveBroker, tmp_path: Path) -> None:
    for place, mode in product(PLACES, MODES):
        scene = Scene(broker, place, mode, tmp_path / "backup")
        before = scene.send_more(10)
        scene.plan()
        scene.broker.kill()
        scene.restart(10, 5)
        scene.await_rows(before + 15)
        assert len(scene.go_on()) >= 5
