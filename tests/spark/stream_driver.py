"""A Spark application of its own, to be killed: text files, a file for each batch, to an address.

``python -m tests.spark.stream_driver FOLDER URL ADDRESS [once]`` runs until it is ended, or, ``once``, until every
file is published.
"""

from __future__ import annotations

import sys
from pathlib import Path

from artemis_py.spark import session


def main(folder: Path, url: str, address: str, *, once: bool) -> None:
    """Run the query."""
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
    }
    spark = session("killed", **settings)
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(folder / "in"))
    writer = lines.repartition(2).writeStream.format("artemis").option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.options(url=url, address=address, rowsPerTransaction="50", routingType="ANYCAST", timeout="60 s")
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")
    writer.start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], once="once" in sys.argv[4:])
