"""Lets Spark find ``format("artemis")`` by itself. Spark imports every top-level module whose name begins with
``pyspark_`` and uses its ``DefaultSource``. An installed package has it at the top level (``pyproject.toml``).
"""

from __future__ import annotations

from artemis_py.spark.source import ArtemisDataSource as DefaultSource

__all__ = ["DefaultSource"]
