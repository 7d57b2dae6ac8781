"""Run by ``test_guest.py`` in a Python of its own, in a Spark that nobody prepared: what of the format works there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from artemis_py.spark.runtime.java import ensure_java


def main(kind: str, folder: str) -> None:
    """``kind``: classic or connect. ``folder`` has the log, and gets what was said."""
    ensure_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    builder = builder.remote("local[2]") if kind == "connect" else builder.master("local[2]")
    spark = builder.getOrCreate()
    log = f"{folder}/log"
    said: dict[str, Any] = {"found": spark.read.format("artemis").load(log).where("offset > 5").count()}
    import artemis_py.spark

    said["remote"] = type(spark).__module__
    said["session"] = artemis_py.spark.session() is spark
    said["registered"] = artemis_py.spark.register(spark)
    said["pushes"] = spark.conf.get("spark.sql.python.filterPushdown.enabled")
    said["counted"] = spark.read.format("artemis").load(log).where("offset > 5").count()
    said["views"] = artemis_py.spark.views(spark, log)
    said["selected"] = spark.sql("SELECT count(*) AS n FROM artemis.orders").first()["n"]  # type: ignore[index]
    many = spark.read.format("artemis").option("subscribe", "many").option("rowsPerBatch", "100")
    many.load(log).show(5)
    Path(f"{folder}/said").write_text(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
