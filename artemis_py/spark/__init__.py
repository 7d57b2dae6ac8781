"""The data pipeline: reads the broker's log as Spark tables and streams, and publishes rows as messages. Importing this
starts no Java, and no module of the broker imports it.
"""

from __future__ import annotations

from artemis_py.spark.catalog import views
from artemis_py.spark.runtime.sessions import register, session
from artemis_py.spark.stream.lagging import lag
from artemis_py.spark.summed import pages, queues

__all__ = ["lag", "pages", "queues", "register", "session", "views"]
