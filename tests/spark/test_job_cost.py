"""How much of a log jobs read: segments that cannot answer are made unreadable, and nobody notices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from artemis_py.message import Account, Head, Message, encode_headers
from artemis_py.spark.jobs.source import LogTables
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.codec import Kept
from artemis_py.storage.format.scan import log_file
from tests.spark.made_log import START_MS, MadeLog, survey
from tests.spark.traffic_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("pushing")

SEGMENTS = 30
DEAD = 725
"""Published in segment 15, given up in segment 20."""


def dead_copy(log: MadeLog) -> bytes:
    """A dead message and its copy in one group, as a broker writes them."""
    log.messages += 1
    sent = [("destination", "orders"), ("persistent", "true")]
    copied = {
        "_AMQ_ORIG_ADDRESS": "orders", "_AMQ_ORIG_QUEUE": "q", "_AMQ_ORIG_MESSAGE_ID": str(DEAD),
        "reason": "max_deliveries",
    }  # fmt: skip
    head = Head(encode_headers(sent), "orders", persistent=True, routing_type="ANYCAST").forwarded("DLQ", copied)
    copy = Message(head, b'{"id": 1}', log.messages, START_MS, 0, Account(), 0)
    settled = log.record(records.SETTLED, codec.encode_settled(3, "dead", [DEAD]))
    published = log.record(records.MESSAGE, codec.encode_message(Kept(copy, log.lsn, [])))
    return log.record(records.GROUP, settled + published)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    log = MadeLog(folder)
    for number in range(1, SEGMENTS + 1):
        log.segment(START_MS + number, 50)
        if number == 20:
            log.batch(START_MS + 20, lambda: dead_copy(log))
    log.close()
    survey(folder)
    return folder


def only(folder: Path, copy: Path, *readable: int) -> LogTables:
    """The log with these segments alone readable."""
    for path in folder.iterdir():
        file = log_file(path)
        data = path.read_bytes()
        if file is not None and file.number not in readable:
            data = data[:64] + b"\xff" * (len(data) - 64)
        (copy / path.name).write_bytes(data)
    return LogTables({"journal": str(copy), "broker": "b"})


def test_the_life_of_a_message_is_looked_for_where_it_is_spoken_of(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    from artemis_py.spark.jobs.trace import trace

    found = rows_of(trace(spark, only(folder, tmp_path, 15, 20), str(DEAD)).table("events"))
    assert [(row["messageId"], row["what"]) for row in found] == [
        (DEAD, "arrived"), (DEAD, "dead"), (20 * 50 + 1, "copied")
    ]  # fmt: skip


def test_a_message_that_went_nowhere(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    from artemis_py.spark.jobs.trace import trace

    found = rows_of(trace(spark, only(folder, tmp_path, 3), "140").table("events"))
    assert [(row["what"], row["queue"]) for row in found] == [("arrived", ""), ("there", "q")]


def test_dead_letters_are_read_where_there_are_any(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    from artemis_py.spark.jobs.dead_letters import dead_letters

    result = dead_letters(spark, only(folder, tmp_path, 15, 20))
    [group] = rows_of(result.table("groups"))
    assert (group["messages"], group["shape"], group["originalQueue"]) == (1, "JSON object: id", "q")
    [example] = rows_of(result.table("examples"))
    assert (example["messageId"], example["preview"]) == (str(20 * 50 + 1), '{"id": 1}')
    shown = result.frames["dead_letters"].schema.simpleString()
    assert "preview" not in shown, "bodies are looked at for their shape, and shown for the examples"


def test_what_begins_with_a_text(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """LIKE with a text at the beginning reaches the reader."""
    source = only(folder, tmp_path, 20)
    rows = source.table(spark, "messages", ("address", "messageId")).where("address like 'DL%'").collect()
    assert [(row.address, row.messageId) for row in rows] == [("DLQ", 20 * 50 + 1)]
