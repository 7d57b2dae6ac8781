"""A Spark application of its own, to be killed: a queue into Parquet, exactly once, held where the test wants it.

``python -m tests.spark.queue_driver FOLDER OPTIONS`` runs until it is ended; the options are JSON. With a third
argument, ``connect``, it is a client of Spark Connect, takes what is there, and ends; with ``numbered`` its sink
knows batches by their numbers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from artemis_py.spark import register, session
from artemis_py.spark.runtime.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter


def stop_at(folder: Path, here: Container[bytes]) -> None:
    """Stop if what the file ``hold`` says is here, as long as the file is there, and say so in ``held``."""
    wanted = (folder / "hold").read_bytes() if (folder / "hold").exists() else b""
    if wanted in here:
        (folder / "held.new").write_text(str(os.getpid()))
        (folder / "held.new").rename(folder / "held")
        while (folder / "hold").exists():
            time.sleep(0.02)  # the test lets it go on or kills it, and has the deadline


def holding(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Tasks stop at the message whose body is in ``hold``."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            stop_at(folder, [value.as_py().strip() for value in rows["value"]])
            yield rows

    return pass_on


def numbered(folder: Path) -> Callable[[DataFrame, int], None]:
    """A sink for ``foreachBatch``: a batch that runs again takes the place of the one with its number in ``out``. Each
    run of a batch is a line in ``runs`` besides. The query stops when the output of the batch in ``hold`` is written.
    """

    def write(frame: DataFrame, number: int) -> None:
        text = json.dumps([int(bytes(row.value)) for row in frame.select("value").collect()])
        (folder / "out").mkdir(exist_ok=True)
        (folder / "out" / f".{number}").write_text(text)
        (folder / "out" / f".{number}").rename(folder / "out" / f"{number}")
        with (folder / "runs").open("a") as runs:
            runs.write(f"[{number}, {text}]\n")
        stop_at(folder, [b"batch %d" % number])

    return write


def query(spark: SparkSession, folder: Path, options: dict[str, str]) -> DataStreamWriter:
    """The query, whoever runs it; its checkpoint is in the folder."""
    jobs = spark.readStream.format("artemis").options(**options).load().select("offset", "value")
    held = jobs.mapInArrow(holding(folder), "offset long, value binary")
    writer = held.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


def numbered_query(spark: SparkSession, folder: Path, options: dict[str, str]) -> DataStreamWriter:
    """The same into a sink that knows batches by their numbers."""
    jobs = spark.readStream.format("artemis").options(**options).load().select("offset", "value")
    return jobs.writeStream.foreachBatch(numbered(folder)).option("checkpointLocation", str(folder / "checkpoint"))


def main(folder: Path, options: dict[str, str], write: Callable[..., DataStreamWriter] = query) -> None:
    """Run it without an end."""
    settings: dict[str, Any] = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
    }
    write(session("killed", **settings), folder, options).start().awaitTermination()


def connect(folder: Path, options: dict[str, str]) -> None:
    """Take what is there."""
    ensure_java()
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    register(spark)
    query(spark, folder, options).trigger(availableNow=True).start().awaitTermination()
    assert "connect" in type(spark).__module__


if __name__ == "__main__":
    given = Path(sys.argv[1]), json.loads(sys.argv[2])
    if sys.argv[3:] == ["connect"]:
        connect(*given)
    else:
        main(*given, numbered_query if sys.argv[3:] == ["numbered"] else query)
