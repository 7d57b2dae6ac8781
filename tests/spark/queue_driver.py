"""A Spark application of its own, to be killed: a queue into Parquet, exactly once, held where the test wants it.

``python -m tests.spark.queue_driver FOLDER OPTIONS`` runs until it is ended; the options are JSON. With a third
argument, ``connect``, it is a client of Spark Connect, takes what is there, and ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from artemis_py.spark import register, session
from artemis_py.spark.runtime.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter


def holding(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Tasks stop at the message whose body is in the file ``hold``, as long as it is there, and say so in ``held``."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            wanted = (folder / "hold").read_bytes() if (folder / "hold").exists() else b""
            if wanted in [value.as_py().strip() for value in rows["value"]]:
                (folder / "held.new").write_text(str(os.getpid()))
                (folder / "held.new").rename(folder / "held")
                while (folder / "hold").exists():
                    time.sleep(0.02)
            yield rows

    return pass_on


def query(spark: SparkSession, folder: Path, options: dict[str, str]) -> DataStreamWriter:
    """The query, whoever runs it; its checkpoint is in the folder."""
    jobs = spark.readStream.format("artemis").options(**options).load().select("offset", "value")
    held = jobs.mapInArrow(holding(folder), "offset long, value binary")
    writer = held.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


def main(folder: Path, options: dict[str, str]) -> None:
    """Run it without an end."""
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
    }
    query(session("killed", **settings), folder, options).start().awaitTermination()


def connect(folder: Path, options: dict[str, str]) -> None:
    """Take what is there."""
    ensure_java()
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    register(spark)
    query(spark, folder, options).trigger(availableNow=True).start().awaitTermination()
    assert "connect" in type(spark).__module__


if __name__ == "__main__":
    (connect if sys.argv[3:] else main)(Path(sys.argv[1]), json.loads(sys.argv[2]))
