"""Spark applications of their own, to be killed: a queue into Parquet, exactly once, held where the test wants it, and
text files, a file for each batch, to an address.

``python -m tests.spark.drivers QUERY FOLDER OPTIONS`` runs one of ``QUERIES`` until it is ended; the options are JSON.
``connect`` is a client of Spark Connect, takes what is on the queue, and ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Container, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from artemis_py.spark import register, session
from artemis_py.spark.runtime.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

QUICK: Final[dict[str, Any]] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
}
"""A JVM that starts fast and stays small."""


def stop_at(folder: Path, here: Container[bytes]) -> None:
    """Stop if what the file ``hold`` says is here, as long as the file is there, and say so in ``held``."""
    wanted = (folder / "hold").read_bytes() if (folder / "hold").exists() else b""
    if wanted in here:
        (folder / "held.new").write_text(str(os.getpid()))
        (folder / "held.new").rename(folder / "held")
        while (folder / "hold").exists():
            time.sleep(0.02)  # the test lets it go on or kills it, and has the deadline


def held(folder: Path, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tasks stop at the message whose body is in ``hold``."""
    for rows in batches:
        stop_at(folder, [value.as_py().strip() for value in rows["value"]])
        yield rows


def write_numbered(folder: Path, frame: DataFrame, number: int) -> None:
    """A batch that runs again takes the place of the one with its number in ``out``. Each run of a batch is a line in
    ``runs`` besides. The query stops when the output of the batch in ``hold`` is written.
    """
    text = json.dumps([int(bytes(row.value)) for row in frame.select("value").collect()])
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out" / f".{number}").write_text(text)
    (folder / "out" / f".{number}").rename(folder / "out" / f"{number}")
    with (folder / "runs").open("a") as runs:
        runs.write(f"[{number}, {text}]\n")
    stop_at(folder, [b"batch %d" % number])


def query(spark: SparkSession, folder: Path, options: dict[str, str]) -> DataStreamWriter:
    """A queue, or a log, into Parquet. Its checkpoint is in the folder, as that of the others."""
    jobs = spark.readStream.format("artemis").options(**options).load().select("offset", "value")
    writer = jobs.mapInArrow(partial(held, folder), "offset long, value binary").writeStream.format("parquet")
    return writer.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))


def numbered_query(spark: SparkSession, folder: Path, options: dict[str, str]) -> DataStreamWriter:
    """The same into a sink that knows batches by their numbers."""
    jobs = spark.readStream.format("artemis").options(**options).load().select("offset", "value")
    writer = jobs.writeStream.foreachBatch(partial(write_numbered, folder))
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


def put(folder: Path, name: str, lines: Iterable[str]) -> None:
    """One more text file, there at once."""
    (folder / "in").mkdir(exist_ok=True)
    hidden = folder / "in" / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    hidden.rename(folder / "in" / f"{name}.txt")


def lines_query(
    spark: SparkSession, folder: Path, options: dict[str, str], format: str = "artemis"
) -> DataStreamWriter:
    """Text files to an address."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(folder / "in"))
    writer = lines.repartition(2).writeStream.format(format).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.options(**{"rowsPerTransaction": "50", "routingType": "ANYCAST", "timeout": "60 s", **options})


QUERIES: Final = {"queue": query, "numbered": numbered_query, "lines": lines_query}


def main(name: str, folder: Path, options: dict[str, str]) -> None:
    """Run it without an end, or as a client of Spark Connect."""
    if name != "connect":
        QUERIES[name](session("killed", **QUICK), folder, options).start().awaitTermination()
        return
    ensure_java()
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    register(spark)
    query(spark, folder, options).trigger(availableNow=True).start().awaitTermination()
    assert "connect" in type(spark).__module__


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
