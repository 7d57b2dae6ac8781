"""By this Spark finds ``format("artemis")`` by itself: it imports every top-level module whose name begins with
``pyspark_`` and takes its ``DefaultSource``. In an installed package it stands at the top, where Python looks for it
(``pyproject.toml``).
"""

from __future__ import annotations

from artemis_py.spark.source import ArtemisDataSource as DefaultSource

__all__ = ["DefaultSource"]
