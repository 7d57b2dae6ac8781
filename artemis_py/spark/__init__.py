"""The data pipeline: the broker's log as Spark tables and streams, and rows as messages. Importing this starts no Java,
and no module of the broker imports it.
"""

from __future__ import annotations

from artemis_py.spark.session import register, session

__all__ = ["register", "session"]
