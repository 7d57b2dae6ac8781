"""The job that docs/from-kafka.md ports from Kafka, run as written: windows, watermark, upsert, and back to a topic."""

from __future__ import annotations

import ast
import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kit.client import connected
from tests.kit.process import DAYS, BrokerProcess, for_the_module
from tests.spark.brokers import drained, journalled_broker
from tests.spark.streams import Streams
from tests.spark.test_documented import Reader, blocks

pytestmark = pytest.mark.e2e

[SHOWN] = blocks("docs/from-kafka.md", "## A whole job", "diff")
LINES = [line or " " for line in SHOWN.splitlines()]
"""Of the job, each with its mark before it."""


broker = for_the_module(partial(journalled_broker, kept=DAYS))


def sell(broker: BrokerProcess, *sales: tuple[str, int, str]) -> None:
    with connected(broker.port) as client:
        for shop, cents, at in sales:
            body = json.dumps({"shop": shop, "cents": cents, "at": f"2026-01-31T{at}Z"})
            client.ask("SEND", {"destination": "/queue/sales", "persistent": "true"}, body.encode())


def side(mark: str) -> str:
    """The job for Kafka (``-``), or here (``+``)."""
    return "\n".join(line[2:] for line in LINES if line[0] in f" {mark}")


def table(folder: Path) -> dict[tuple[str, str], tuple[int, int]]:
    with closing(sqlite3.connect(folder / "revenue.db")) as db:
        rows = db.execute("SELECT shop, substr(minute, 12, 5), cents, sales FROM revenue").fetchall()
    return {(shop, minute): (cents, sales) for shop, minute, cents, sales in rows}


def told(broker: BrokerProcess, count: int) -> list[tuple[str, str, int]]:
    """So many changes, and no more, from the queue: group, minute and cents."""
    messages = drained(broker, "revenue", count)
    rows: list[dict[str, Any]] = [json.loads(message.body) for message in messages]
    groups = [message.header("JMSXGroupID") or message.header("_AMQ_GROUP_ID") for message in messages]
    assert groups == [row["shop"] for row in rows]
    return sorted((row["shop"], row["minute"][11:16], row["cents"]) for row in rows)


@pytest.mark.timeout(300)
@pytest.mark.takes_turns("the long jobs")
def test_the_port_runs_as_written(streams: Streams, broker: BrokerProcess, tmp_path: Path) -> None:
    reader, ours = Reader(streams, broker), side("+")
    head, opening, tail = ours.rpartition("\n(\n")
    code = f"{head}\nquery = {opening.lstrip()}{tail}"
    sell(broker, ("north", 100, "10:00:05"), ("north", 50, "10:00:55"), ("south", 7, "10:01:00"))
    query = reader.run(code)["query"]
    query.processAllAvailable()
    assert table(tmp_path) == {("north", "10:00"): (150, 2), ("south", "10:01"): (7, 1)}
    assert told(broker, 2) == [("north", "10:00", 150), ("south", "10:01", 7)]
    sell(broker, ("north", 25, "10:00:30"), ("north", 1, "10:30:00"))
    query.processAllAvailable()
    assert table(tmp_path)["north", "10:00"] == (175, 3)
    assert told(broker, 2) == [("north", "10:00", 175), ("north", "10:30", 1)]
    sell(broker, ("south", 1000, "10:01:30"), ("south", 3, "10:29:00"))  # the first one is too late by now
    query.processAllAvailable()
    assert table(tmp_path)["south", "10:01"] == (7, 1)
    assert told(broker, 1) == [("south", "10:29", 3)]
    query.stop()

    last = max((tmp_path / "checkpoints" / "revenue" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    before = table(tmp_path)
    last.unlink()  # as after a crash behind the sink: the batch runs again
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    again = reader.run(code)["query"]
    sell(broker, ("west", 9, "10:31:00"))
    again.processAllAvailable()
    assert table(tmp_path) == {**before, ("west", "10:31"): (9, 1)}
    assert told(broker, 1) == [("west", "10:31", 9)]


def test_the_port_changes_where_it_reads_and_writes_alone() -> None:
    ast.parse(side("-"))
    changed = [line for line in LINES if line[0] in "+-"]
    words = {line[2:].strip().partition("(")[0] for line in changed}
    assert words == {".write.format", ".option", ".mode", "spark.readStream.format"}
    assert len(changed) < 15
