"""The job ``archive``, which goes on until it is killed with SIGKILL, as are its broker, its Java and its workers."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import dataset
from pyarrow.parquet import ParquetFile

from artemis_py.spark.jobs.delta import DeltaPlace
from tests.kit.process import start_module
from tests.spark.live import LiveBroker
from tests.spark.pipeline_kills import Driver, PipelineRun, acknowledged
from tests.spark.pipeline_ledger import delivered

_QUICK: Final = (
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory=1g",
    "spark.sql.shuffle.partitions=2",
)


class ArchiveDriver(Driver):
    """The command. At the start of each life it also compacts what is there."""

    UNIT = "records"

    def __init__(self, folder: Path, url: str, layout: str) -> None:
        self._layout = layout
        super().__init__(folder, (url, ""), ["archive"])

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        self.lives += 1
        self._begun = self._seen = self.commits()
        goes_on = [] if "--to-the-end" in more else ["--follow", "--every", "300ms"]
        conf = [text for setting in _QUICK for text in ("--conf", setting)]
        place = [str(self.folder / "archive"), "--table-format", self._layout, "--compact-before", "2999-01-01"]
        command = ["pipeline", "archive", *place, "--url", self.urls[0], *goes_on, *conf, "--master", "local[2,3]"]
        return start_module("artemis_py", *command, log=self.folder / f"driver{self.lives}.log")

    def commits(self) -> dict[str, int]:
        """Up to which lsn it is."""
        try:
            state = json.loads((self.folder / "archive" / "_archive" / "state.json").read_text("utf-8"))
        except FileNotFoundError:
            return {"archive": 0}
        return {"archive": state["brokers"].get("e2e", 0)}


class ArchiveRun(PipelineRun):
    """So many kills, then a run to the end of the log, then the judgement: by the ledger, and by the log."""

    def __init__(self, folder: Path, broker: LiveBroker, seed: int, layout: str) -> None:
        self._layout = layout
        super().__init__(folder, broker, seed, ArchiveDriver(folder, broker.url, layout))

    def _judge(self) -> None:
        columns = ["address", "value", "headers", "offset", "messageId", "transaction"]
        self.rows["archive"] = rows = delivered(self.archived("messages", columns))
        for ask in (self.ledger.problems, self.ledger.transaction_problems, self.ledger.order_problems):
            self.problems += ask(rows)
        events = self.archived("events", ["event", "messageId", "offset"])
        self.acked = Counter(row["messageId"] for row in events if row["event"] == "acked")
        self.problems += self.ledger.acknowledgement_problems(rows, self.acked)
        if self.acked != acknowledged({"url": self.broker.url}):
            self.problems.append("the archive has other acknowledgements than the log")

    def archived(self, table: str, columns: list[str]) -> list[dict[str, Any]]:
        """Rows of the archive, as any program reads them."""
        where = self.folder / "archive" / table
        if self._layout == "parquet":
            rows: list[dict[str, Any]] = dataset.dataset(where, partitioning="hive").to_table(columns).to_pylist()
            return rows
        return [row for batch in _of_delta(where, columns) for row in batch.to_pylist()]


def _of_delta(where: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    for one in DeltaPlace(str(where)).files():
        inside = [name for name in columns if name not in one.partition]
        for batch in ParquetFile(where / one.path).iter_batches(columns=inside, use_threads=False):
            address = pa.repeat(one.partition["address"], batch.num_rows)
            yield batch.append_column("address", address) if "address" in columns else batch
