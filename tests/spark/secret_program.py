"""A Spark of its own that writes everything down it can, and logs in with every kind of secret: batches, streams, SQL,
errors. Usage: secret_program.py FOLDER HTTP-URL STOMP-URL. Secrets come in the environment.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

from pyspark.sql.functions import col, lit

from artemis_py.spark import session


def main(folder: pathlib.Path, http: str, stomp: str) -> None:
    folder.joinpath("events").mkdir()
    settings: dict[str, Any] = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.sql.debug.maxToStringFields": "1000",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
    }
    spark = session("secrets", master="local[2]", **settings)
    spark.sparkContext.setLogLevel("INFO")
    said: dict[str, Any] = {"errors": []}
    folder.joinpath("password").write_text(os.environ["FROM_FILE"] + "\n")
    by_file = {"user": "ann", "passwordFile": str(folder / "password")}
    logins: list[tuple[dict[str, str], dict[str, str]]] = [
        ({"user": "ann", "password": os.environ["FROM_OPTION"]},) * 2,
        ({"token": os.environ["FROM_TOKEN"]}, by_file),
        ({}, {}),
    ]
    for number, (to_read, to_write) in enumerate(logins):
        place = f"secret{number}"
        source = {"url": http, "subscribe": place, **to_read}
        sink = {"url": stomp, "address": place, **to_write}
        rows = spark.range(20).select(col("id").cast("string").alias("value"))
        rows.write.format("artemis").options(**sink).mode("append").save()
        read = spark.read.format("artemis").options(**source).load().where("offset > 0")
        for mode in ("extended", "formatted", "cost"):
            read.explain(mode)
        said[place] = read.count()
        if number == 2:
            break
        stream = spark.readStream.format("artemis").options(**source, startingOffsets="earliest").load()
        again = stream.select("value").writeStream.format("artemis").options(**sink)
        again = again.option("checkpointLocation", str(folder / f"checkpoint{number}")).trigger(availableNow=True)
        query = again.start()
        query.awaitTermination()
        query.explain(True)
        print(query.lastProgress, query.status)
        given = ", ".join(f"{name} '{text}'" for name, text in source.items())
        spark.sql(f"CREATE TEMPORARY VIEW view{number} USING artemis OPTIONS ({given})")
        spark.sql(f"DESCRIBE EXTENDED view{number}").show(truncate=False)
        counted = spark.sql(f"SELECT count(*) AS found FROM view{number}")
        counted.explain(True)
        said[f"view{number}"] = counted.collect()[0].found
        for wrong in ({"startingOffsets": '{"nobody": 1}'}, {"noSuchOption": "1"}):
            try:
                spark.read.format("artemis").options(**source, **wrong).load().count()
            except Exception as error:
                said["errors"].append(str(error))
        try:
            rows.withColumn("priority", lit(10)).write.format("artemis").options(**sink).mode("append").save()
        except Exception as error:
            said["errors"].append(str(error))
    spark.stop()
    folder.joinpath("said").write_text(json.dumps(said))


main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
