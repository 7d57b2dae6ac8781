"""The data source ``artemis``: one class that Spark knows, from which readers and writers come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType


class ArtemisDataSource(DataSource):
    """``spark.read``, ``readStream``, ``df.write`` and ``writeStream`` with ``format("artemis")``.

    Spark makes it anew in several processes for each query, so it connects to nothing.
    """

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(…)``."""
        return "artemis"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """The batch sink. Raises PipelineError for options and columns that make no message."""
        from artemis_py.spark.sink import batch_writer

        return batch_writer(schema, self.options, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """The sink of a streaming query. Raises PipelineError for options and columns that make no message."""
        from artemis_py.spark.sink import stream_writer

        return stream_writer(schema, self.options)
