"""A Spark application for a cluster: publishes rows by tasks on all workers and says on how many.

``python -m tests.spark.cluster_driver MASTER URL ADDRESS``
"""

from __future__ import annotations

import os
import sys

from artemis_py.spark import session


def main(master: str, url: str, address: str) -> None:
    """Write, and print the processes that did."""
    spark = session(
        "cluster", master,
        **{
            "spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
    )  # fmt: skip
    executors = spark.sparkContext.parallelize(range(8), 8).map(lambda _: os.getppid()).distinct().count()
    rows = spark.range(0, 20_000, 1, 8).selectExpr("cast(id as string) as value", "cast(id as string) as key")
    rows.write.format("artemis").mode("append").options(url=url, address=address, rowsPerTransaction="1000").save()
    print("executors", executors)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
