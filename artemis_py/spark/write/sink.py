"""The sink: each task publishes its rows in transactions whose ids consist of query, batch, partition and position.

The broker commits an id once (``core/publish/duplicates.py``), so a repeated task publishes nothing twice. The id
belongs to no address: the rows of a partition go to many, in an order that a shuffle may change. A digest tells a
repetition from other rows under the same id.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from artemis_py.errors import PipelineError
from artemis_py.spark.write.options import sink_options
from artemis_py.spark.write.send_frames import FrameMaker, SendPlan, send_plan
from artemis_py.spark.write.transactions import Transaction, TransactionSender

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"
_LOG: Final = logging.getLogger("artemis_py.spark")


@dataclass(frozen=True)
class Published(WriterCommitMessage):
    """The report of a task to the driver. ``duplicates`` of its transactions had already been committed; ``nowhere``
    of its rows are on no queue.
    """

    rows: int
    transactions: int
    duplicates: int
    id_cache_size: int | None
    ids_persisted: bool
    nowhere: int = 0


class BatchWriter(DataSourceArrowWriter):
    """The writer of ``df.write``: created on the driver, with one id for all tasks and attempts, and sent to the
    tasks.
    """

    sender_class: ClassVar[type[TransactionSender]] = TransactionSender

    def __init__(self, plan: SendPlan) -> None:
        self._plan = plan
        self._publish_id = plan.options.publish_id or str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish one partition. Raises PipelineError."""
        task_id = f"{self._publish_id}:{_task().partitionId()}"
        return publish(iterator, self._plan, task_id, self.sender_class)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Every task has published."""
        warn_of_losses(messages)
        warn_of_ids(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """The writer of ``df.writeStream``: ids come from the query, whose checkpoint fixes its name, and from its
    batch.
    """

    sender_class: ClassVar[type[TransactionSender]] = TransactionSender

    def __init__(self, plan: SendPlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish one partition of a batch. Raises PipelineError."""
        task = _task()
        batch_id = task.getLocalProperty(_BATCH_ID)
        query_id = self._plan.options.publish_id or task.getLocalProperty(_QUERY_ID)
        if batch_id is None or query_id is None:
            raise PipelineError(
                "Spark does not say which query and batch this task belongs to; use pyspark 4.2 or later"
            )
        task_id = f"{query_id}:{batch_id}:{task.partitionId()}"
        return publish(iterator, self._plan, task_id, self.sender_class)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Every task of the batch has published."""
        warn_of_losses(messages)
        warn_of_ids(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """A task of the batch failed finally. What others published stays; the batch's next run skips it."""


def batch_writer(schema: StructType, options: Mapping[str, str], *, overwrite: bool) -> BatchWriter:
    """The writer of ``df.write``. Raises PipelineError for invalid options and columns, and for the mode
    ``overwrite``.
    """
    if overwrite:
        raise PipelineError('Sent messages cannot be overwritten; write with .mode("append")')
    return BatchWriter(send_plan(schema, sink_options(options)))


def stream_writer(schema: StructType, options: Mapping[str, str]) -> StreamWriter:
    """The writer of ``df.writeStream``, also in mode ``complete``: each output row of a batch is a message. Raises
    PipelineError for invalid options and columns.
    """
    return StreamWriter(send_plan(schema, sink_options(options)))


def publish(
    batches: Iterable[pa.RecordBatch],
    plan: SendPlan,
    task_id: str,
    sender_class: type[TransactionSender] = TransactionSender,
) -> Published:
    """Publish one partition's rows, each exactly once, even after repeated attempts with the same ``task_id``.

    Raises PipelineError for invalid rows, and if the broker refuses or does not answer in time.
    """
    options = plan.options
    sender = sender_class(options.endpoints, options.timeout_s, options.login, options.tls)
    row_count = 0
    try:
        for transaction, rows in _transactions(batches, plan, task_id):
            sender.send(transaction)
            row_count += rows
        confirmed = sender.finish()
    finally:
        sender.close()
    return Published(
        row_count,
        confirmed.transactions,
        confirmed.duplicates,
        confirmed.id_cache_size,
        confirmed.ids_persisted,
        confirmed.nowhere,
    )


def _transactions(batches: Iterable[pa.RecordBatch], plan: SendPlan, task_id: str) -> Iterator[tuple[Transaction, int]]:
    """The ends of transactions depend only on the rows, so that another attempt splits them in the same way."""
    for number, (chunk, is_last) in enumerate(_chunks(batches, plan)):
        is_whole = is_last and number == 0
        sends = b"".join(chunk)
        # A partition in one transaction may come in another order: it is the same set of rows. With several, what is in
        # each depends on the order. The broker must refuse a transaction that is not the one it knows under this id.
        digest = f"whole:{_digest(b''.join(sorted(chunk)))}" if is_whole else _digest(sends)
        yield Transaction(f"{task_id}:{number}", digest, sends), len(chunk)


def _digest(frames: bytes) -> str:
    return hashlib.blake2b(frames, digest_size=16).hexdigest()


def _chunks(batches: Iterable[pa.RecordBatch], plan: SendPlan) -> Iterator[tuple[list[bytes], bool]]:
    """Frames by transaction, and whether the partition ends there."""
    maker = FrameMaker(plan)
    rows_max = plan.options.transaction_rows_max
    bytes_max = plan.options.transaction_bytes_max
    chunk: list[bytes] = []
    size_bytes = 0
    for batch in batches:
        for frame in maker.frames(batch):
            if len(chunk) == rows_max or (chunk and size_bytes + len(frame) > bytes_max):
                yield chunk, False
                chunk, size_bytes = [], 0
            chunk.append(frame)
            size_bytes += len(frame)
    if chunk:
        yield chunk, True


def warn_of_losses(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Warn if rows are on no queue."""
    published = [message for message in messages if isinstance(message, Published)]
    nowhere = sum(message.nowhere for message in published)
    if nowhere:
        _LOG.warning(
            "%d of %d rows are on no queue: no queue of their addresses took them (a new address has none: give "
            "routingType ANYCAST, or create queues first), or a full address with policy DROP dropped them",
            nowhere, sum(message.rows for message in published),
        )  # fmt: skip


def warn_of_ids(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Warn if a batch has more transactions than the broker remembers: a repeated batch could then be published
    twice.
    """
    published = [message for message in messages if isinstance(message, Published) and message.transactions]
    count = sum(message.transactions for message in published)
    if not published:
        return
    sizes = [message.id_cache_size for message in published]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        _LOG.warning("The broker remembers no transaction ids, so a repeated task publishes its rows twice")
    elif 2 * count > min(known):
        _LOG.warning(
            "A batch was published in %d transactions, but the broker remembers only %d ids (id-cache-size) for all "
            "publishers, so a repeated batch could be published twice. Raise id-cache-size above twice the "
            "transactions of a batch, or raise rowsPerTransaction, or use fewer partitions",
            count, min(known),
        )  # fmt: skip
    if not all(message.ids_persisted for message in published):
        _LOG.warning(
            "The broker forgets transaction ids when it restarts (persist-id-cache is false), so a batch repeated "
            "across a restart could be published twice"
        )


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise PipelineError("The sink writes only inside Spark tasks")
    return task
