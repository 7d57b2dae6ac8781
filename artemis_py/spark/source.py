"""The data source ``artemis``: the class known to Spark, which makes readers and writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from artemis_py.errors import PipelineError
from artemis_py.spark.workers import let_readers_go

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )
    from pyspark.sql.types import StructType


class ArtemisDataSource(DataSource):
    """``spark.read``, ``readStream``, ``df.write`` and ``writeStream`` with ``format("artemis")``.

    Spark creates it in several processes for each query, so it opens no connections.
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``format(…)``."""
        return "artemis"

    def schema(self) -> StructType:
        """The columns that the options select. Raises PipelineError for invalid options."""
        from artemis_py.spark.catalog import declared, remembering
        from artemis_py.spark.read.options import shown_columns
        from artemis_py.spark.tables.schema import spark_schema

        let_readers_go()
        of_table = declared(self.options)
        schema = spark_schema(*shown_columns(self.options if of_table is None else of_table))
        return schema if of_table is None else remembering(schema, of_table)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The batch source. Raises PipelineError for invalid options."""
        from artemis_py.spark.read.batch import reader
        from artemis_py.spark.read.options import read_options

        options = read_options(self._given(schema))
        if options.archive is None:
            return reader(options)
        from artemis_py.spark.jobs.archive_reader import ArchiveReader

        return ArchiveReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The source of a streaming query. Raises PipelineError for invalid options."""
        from artemis_py.spark.consume.reader import QueueStreamReader
        from artemis_py.spark.read.options import read_options
        from artemis_py.spark.stream.reader import LogStreamReader

        options = read_options(self._given(schema), streaming=True)
        return LogStreamReader(options) if options.queue is None else QueueStreamReader(options)

    def _given(self, asked: StructType) -> dict[str, str]:
        """The options, with those of the table where one of a catalog is read. Raises PipelineError where a user named
        other columns.
        """
        from artemis_py.spark.catalog import FIXED, OF_TABLE, is_place_in, remembered
        from artemis_py.spark.read.options import shown_columns
        from artemis_py.spark.tables.schema import spark_schema

        let_readers_go()
        given = {**remembered(asked), **self.options}
        if asked.simpleString() != spark_schema(*shown_columns(given)).simpleString():
            raise PipelineError(FIXED if is_place_in(given) else OF_TABLE)
        return given

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """The batch sink. Raises PipelineError for invalid options and columns."""
        from artemis_py.spark.catalog import check_insert
        from artemis_py.spark.write.sink import batch_writer

        check_insert(schema, self.options)
        return batch_writer(schema, self.options, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """The sink of a streaming query. Raises PipelineError for invalid options and columns."""
        from artemis_py.spark.write.sink import stream_writer

        return stream_writer(schema, self.options)
