"""A sink whose tasks fail at a chosen step, the first time they are tried. It travels to Spark's workers."""

from __future__ import annotations

import os
import signal
from typing import Final

from pyspark import TaskContext
from pyspark.sql.types import StructType

from artemis_py.spark.source import ArtemisDataSource
from artemis_py.spark.write.options import sink_options
from artemis_py.spark.write.send_frames import send_plan
from artemis_py.spark.write.sink import BatchWriter, StreamWriter
from artemis_py.spark.write.transactions import Confirmed, Transaction, TransactionSender

STEPS: Final = {
    "before BEGIN": b"BEGIN",
    "after BEGIN": b"SEND",
    "after some SENDs": b"row-0015",
    "before COMMIT": b"COMMIT",
    "after COMMIT": b"",
}
"""Where a transaction's bytes end for an attempt that fails; "after RECEIPT" is one more step."""


class FaultySender(TransactionSender):
    """Fails where the beginning of the transactions' id says: ``step.kind.…``."""

    _step = ""
    _kind = ""

    def send(self, transaction: Transaction) -> None:
        """Remember what is to happen."""
        task = TaskContext.get()
        assert task is not None
        if task.attemptNumber() == 0:
            self._step, self._kind = transaction.commit_id.split(".")[:2]
        super().send(transaction)

    def _write(self, data: bytes) -> None:
        if self._step not in STEPS:
            super()._write(data)
            return
        end = data.find(STEPS[self._step]) if STEPS[self._step] else len(data)
        assert end >= 0, data
        super()._write(data[:end])
        self._fail()

    def finish(self) -> Confirmed:
        """Everything is published, and the driver never hears of it."""
        confirmed = super().finish()
        if self._step == "after RECEIPT":
            self._fail()
        return confirmed

    def _fail(self) -> None:
        if self._kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError(f"this attempt fails {self._step}, as the test wants it")


class FaultyBatchWriter(BatchWriter):
    """``df.write`` with failures."""

    sender_class = FaultySender


class FaultyStreamWriter(StreamWriter):
    """``df.writeStream`` with failures."""

    sender_class = FaultySender


class FaultySource(ArtemisDataSource):
    """``format("artemis_faulty")``."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(…)``."""
        return "artemis_faulty"

    def writer(self, schema: StructType, overwrite: bool) -> FaultyBatchWriter:
        """As the real one."""
        return FaultyBatchWriter(send_plan(schema, sink_options(self.options)))

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyStreamWriter:
        """As the real one."""
        return FaultyStreamWriter(send_plan(schema, sink_options(self.options)))
