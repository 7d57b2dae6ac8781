"""A Spark application for a cluster: publishes rows by tasks on all workers, reads them back from the broker's log, and
says what it found.

``python -m tests.spark.cluster_driver MASTER STOMP-URL HTTP-URL ADDRESS``
"""

from __future__ import annotations

import os
import sys
from typing import Any

from artemis_py.spark import session

ROWS = 20_000


def main(master: str, stomp_url: str, http_url: str, address: str) -> None:
    """Write and read; print how many executors did, and how many rows, values and partitions came back."""
    settings: dict[str, Any] = {
        "spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    spark = session("cluster", master, **settings)
    executors = spark.sparkContext.parallelize(range(8), 8).map(lambda _: os.getppid()).distinct().count()
    print("settings", spark.conf.get("spark.sql.shuffle.partitions"), bool(spark.sparkContext.uiWebUrl))
    rows = spark.range(0, ROWS, 1, 8).selectExpr("cast(id as string) as value", "cast(id as string) as key")
    rows.write.format("artemis").mode("append").options(
        url=stomp_url, address=address, rowsPerTransaction="1000"
    ).save()
    print("executors", executors)
    found = spark.read.format("artemis").options(url=http_url, subscribe=address, partitionBytes="200000").load()
    found = found.selectExpr("value", "cast(cast(key as string) as bigint) as number")
    read = found.selectExpr("count(1) as rows", "count(distinct value) as distinct", "sum(number) as sum")
    print("read", *read.collect()[0], found.rdd.getNumPartitions() > 1)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
