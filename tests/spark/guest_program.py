"""Run by ``test_guest.py`` in a Python of its own, in a Spark that nobody prepared: what of the format works there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
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
    said: dict[str, Any] = {}

    def count(frame: Any) -> int:
        return int(frame.where("offset > 5").count())

    def note(name: str, step: Callable[[], Any]) -> None:
        try:
            said[name] = step()
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"

    note("found", lambda: count(spark.read.format("artemis").load(log)))
    import artemis_py.spark

    said["remote"] = type(spark).__module__
    note("session", lambda: artemis_py.spark.session() is spark)
    note("registered", lambda: artemis_py.spark.register(spark))
    note("pushes", lambda: spark.conf.get("spark.sql.python.filterPushdown.enabled"))
    note("counted", lambda: count(spark.read.format("artemis").load(log)))
    note("views", lambda: artemis_py.spark.views(spark, log))
    note("selected", lambda: spark.sql("SELECT count(*) AS n FROM artemis.orders").first()["n"])  # type: ignore[index]
    many = spark.read.format("artemis").option("subscribe", "many").option("rowsPerBatch", "100")
    note("shown", lambda: many.load(log).show(5))
    Path(f"{folder}/said").write_text(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
