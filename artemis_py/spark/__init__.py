"""The data pipeline: reads the broker's log as Spark tables and streams, and publishes rows as messages. Importing this
starts no Java, and no module of the broker imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from artemis_py.spark.catalog import options_of, views
from artemis_py.spark.runtime.sessions import await_end, register, session
from artemis_py.spark.stream.lag import lag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["await_end", "lag", "pages", "queues", "register", "session", "views"]


def queues(spark: SparkSession, source: str | Mapping[str, str]) -> DataFrame:
    """The table ``queues`` with the same rows, computed in parallel: for queues so deep, or messages so old, that one
    task would take too long. ``source`` is the URL of a broker's HTTP acceptor, a directory, or options as for
    ``spark.read``.
    """
    from artemis_py.spark.read.aggregated_tables import added_up

    return added_up(spark, "queues", options_of(source))


def pages(spark: SparkSession, source: str | Mapping[str, str]) -> DataFrame:
    """The table ``pages`` in the same way."""
    from artemis_py.spark.read.aggregated_tables import added_up

    return added_up(spark, "pages", options_of(source))
