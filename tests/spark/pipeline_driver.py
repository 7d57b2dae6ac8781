"""A Spark application of its own, to be killed: the log by url and by directory into Parquet, and back to an address.

``python -m tests.spark.pipeline_driver FOLDER LOG-URL STOMP-URL`` runs until it is ended; with ``--to-the-end`` until
everything that is there is delivered.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from artemis_py.spark import session
from tests.kit.process import eventually
from tests.spark.drivers import QUICK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADDRESSES: Final = ("orders", "left", "right", "again")
COPIED: Final = "orders"
COPIES: Final = "copies"
QUERIES: Final = ("url", "directory")
BATCH_S: Final = 600.0
"""A busy machine starts workers slowly; who waits for the driver gives up earlier."""


def deliver(folder: Path, name: str, stomp_url: str, frame: DataFrame, batch_id: int) -> None:
    """A sink that may be given a batch twice: each has a directory of its own, which is written anew. What came over
    the url to one address is published again, under an id of the batch.
    """
    frame.persist()
    if name == "url":
        copies = frame.where(frame["address"] == COPIED).select("value", "headers").coalesce(1)
        options = {"url": stomp_url, "address": COPIES, "publishId": f"copies-{batch_id}", "timeout": "60 s"}
        copies.write.format("artemis").mode("append").options(**options, routingType="ANYCAST").save()
    frame.coalesce(1).write.mode("overwrite").parquet(str(folder / "out" / name / f"batch={batch_id}"))
    frame.unpersist()


def main() -> None:
    """Runs the queries, which read the same messages; ends with the first of them that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("log_url")
    parser.add_argument("stomp_url")
    parser.add_argument("--to-the-end", action="store_true")
    parser.add_argument("--query", action="append", choices=QUERIES, help="this one, and not all")
    args = parser.parse_args()
    settings = {**QUICK, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = session("killed pipeline", steps_back=False, **settings)
    spark.sparkContext.setLogLevel("ERROR")
    common = {"startingOffsets": "earliest", "subscribe": ",".join(ADDRESSES), "brokerTimeoutSeconds": "60"}
    sources: dict[str, dict[str, Any]] = {
        "url": {"url": args.log_url, "includeHeaders": "true", "cursor": "copies", "minPartitions": "3"},
        "directory": {"journal": str(args.folder / "broker"), "includeHeaders": "true"},
    }
    for name in args.query or QUERIES:  # one after the other: a busy machine starts workers slowly
        log = spark.readStream.format("artemis").options(**common, **sources[name]).load()
        writer = log.writeStream.foreachBatch(partial(deliver, args.folder, name, args.stomp_url))
        writer = writer.queryName(name).option("checkpointLocation", str(args.folder / "checkpoints" / name))
        if args.to_the_end:
            writer.trigger(availableNow=True).start().awaitTermination()
        else:
            query = writer.trigger(processingTime="300 milliseconds").start()
            eventually("its first batch", lambda: not query.isActive or query.lastProgress, bool, BATCH_S)  # noqa: B023
    if not args.to_the_end:
        spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
