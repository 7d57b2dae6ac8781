"""A Spark application of its own, to be killed: text files, a file for each batch, to an address.

``python -m tests.spark.stream_driver FOLDER URL ADDRESS`` runs until it is ended.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artemis_py.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter


def put(folder: Path, name: str, lines: Iterable[str]) -> None:
    """One more file, there at once."""
    (folder / "in").mkdir(exist_ok=True)
    hidden = folder / "in" / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    hidden.rename(folder / "in" / f"{name}.txt")


def query(
    spark: SparkSession, folder: Path, url: str, address: str, format: str = "artemis", **options: str
) -> DataStreamWriter:
    """The query, whoever runs it; its checkpoint is in the folder."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(folder / "in"))
    writer = lines.repartition(2).writeStream.format(format).option("checkpointLocation", str(folder / "checkpoint"))
    own = {"rowsPerTransaction": "50", "routingType": "ANYCAST", "timeout": "60 s"}
    return writer.options(url=url, address=address, **{**own, **options})


def main(folder: Path, url: str, address: str) -> None:
    """Run it without an end."""
    settings: dict[str, Any] = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
    }
    spark = session("killed", **settings)
    query(spark, folder, url, address).trigger(processingTime="0 seconds").start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
