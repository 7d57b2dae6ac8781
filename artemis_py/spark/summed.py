"""Tables that sum up a log, computed by many tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def queues(spark: SparkSession, source: str | Mapping[str, str]) -> DataFrame:
    """The table ``queues`` with the same rows, computed in parallel: for queues so deep, or messages so old, that one
    task would take too long. ``source`` is the URL of a broker's HTTP acceptor, a directory, or options as for
    ``spark.read``.
    """
    from artemis_py.spark.catalog import options_of
    from artemis_py.spark.read.spans import added_up

    return added_up(spark, "queues", options_of(source))


def pages(spark: SparkSession, source: str | Mapping[str, str]) -> DataFrame:
    """The table ``pages`` in the same way."""
    from artemis_py.spark.catalog import options_of
    from artemis_py.spark.read.spans import added_up

    return added_up(spark, "pages", options_of(source))
