"""Brokers, drivers, JVMs and workers killed with SIGKILL, and what a query delivered beside the producers' own ledger:
ids, checksums, headers, transactions, order, acknowledgements and depths; by url, by directory, and back to an address.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyarrow import dataset

from tests.spark.drivers import QUICK
from tests.spark.kills import (
    EVENTS,
    Application,
    KillRun,
    batches_done,
    killed_broker,
    rows_in_batches,
    sources_of,
)
from tests.spark.pipeline_driver import COPIED, QUERIES
from tests.spark.pipeline_ledger import COLUMNS, Delivered, PipelineLedger, Sent, delivered
from tests.spark.readers import rows_read

KILLS = 100
ARCHIVE_KILLS = 50
KINDS = ("broker", "application", "jvm", "worker")


def run_and_judge(folder: Path, seed: int, kinds: list[str]) -> str:
    """A run of these kills without a broken promise. Returns its summary."""
    with killed_broker(folder / "broker", seed, file_bytes="1M") as side:
        urls = side.live.url, f"tcp://127.0.0.1:{side.live.process.port}"
        command = ["tests.spark.pipeline_driver", str(folder), *urls]
        commits = partial(batches_done, folder, QUERIES)
        run = KillRun([side], Application(folder, command, [], ["--to-the-end"], commits), seed)
        run.run(kinds)
        for name in QUERIES:
            run.judge(name, rows_in_batches(folder / "out" / name))
        for name, source in sources_of(side).items():
            assert run.judge_acknowledgements(name, rows_read({**source, **EVENTS})), name
        copies = run.judge_copies()
        assert run.problems[:20] == [], run.summary()
        by_url, by_directory = ({(row.id, row.offset, row.message_id) for row in run.rows[name]} for name in QUERIES)
        assert by_directory == by_url
        assert copies == sum(row.address == COPIED for row in run.rows["url"])
        assert run.promised[COPIED] > 10 * len(kinds)
        return f"{run.summary()}; {copies:,} copies"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_part_of_a_pipeline_killed_once(tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    summary = run_and_judge(tmp_path, seed, ["broker", "worker", "jvm"])
    with capsys.disabled():
        print(f"\npipeline kill test: {summary}")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_kills_of_a_pipeline(tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = Random(seed).choices(KINDS, weights=(16, 1, 1, 6), k=KILLS)
    summary = run_and_judge(tmp_path, seed, kinds)
    with capsys.disabled():
        print(f"\nlong pipeline kill test: {summary}")


# ---- an archive ------------------------------------------------------------------------------------


def archived(folder: Path, layout: str, table: str, columns: list[str]) -> list[dict[str, Any]]:
    """Rows of the archive, as any program reads them."""
    if layout == "parquet":
        rows = dataset.dataset(folder / table, partitioning="hive").to_table(columns)
    else:
        told = QueryBuilder().register("t", DeltaTable(folder / table)).execute("SELECT * FROM t").read_all()
        rows = pa.table(told).select(columns)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("layout", ["delta", "parquet"])
def test_fifty_kills_of_an_archive(tmp_path: Path, seed: int, layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the command, which also compacts what is there at the start of each life."""
    kinds = Random(seed).choices(KINDS, weights=(14, 3, 2, 6), k=ARCHIVE_KILLS)
    place = tmp_path / "archive"

    def archived_lsn() -> dict[str, int]:
        try:
            state = json.loads((place / "_archive" / "state.json").read_text("utf-8"))
        except FileNotFoundError:
            return {"archive": 0}
        return {"archive": state["brokers"].get("broker", 0)}

    with killed_broker(tmp_path / "broker", seed, file_bytes="1M") as side:
        command = ["artemis_py", "pipeline", "archive", str(place), "--table-format", layout, "--url", side.live.url]
        command += ["--compact-before", "2999-01-01", "--master", "local[2,3]"]
        command += [
            text
            for one in (*(f"{name}={value}" for name, value in QUICK.items()), "spark.sql.shuffle.partitions=2")
            for text in ("--conf", one)
        ]
        follows = ["--follow", "--every", "300ms"]
        run = KillRun([side], Application(tmp_path, command, follows, [], archived_lsn), seed)
        run.run(kinds)
        run.judge("archive", delivered(archived(place, layout, "messages", COLUMNS)))
        acked = run.judge_acknowledgements("archive", archived(place, layout, "events", ["event", "messageId"]))
        with capsys.disabled():
            print(f"\nkilled archive, {layout}: {run.summary()}")
        assert run.problems[:20] == [], run.summary()
        assert acked == run.judge_acknowledgements("log", rows_read({"url": side.live.url, **EVENTS}))
        assert run.promised.total() > 10 * len(kinds)
        assert acked


# ---- the judge -----------------------------------------------------------------------------------


def sent(number: int, group: str = "", *, promised: bool = True) -> Sent:
    headers = {"x-id": f"p-{number}", "x-note": "n"}
    return Sent(f"p-{number}", "q", "p", number, crc32(b"%d" % number), headers, group, promised)


def row(
    number: int, transaction: str | None = None, *, offset: int = 0, body: bytes = b"", note: str = "n"
) -> Delivered:
    headers = {"x-id": f"p-{number}", "x-note": note, "destination": "/queue/q"}
    return Delivered(f"p-{number}", "q", body or b"%d" % number, headers, offset or number, 100 + number, transaction)


def ledger_of(*messages: Sent) -> PipelineLedger:
    return PipelineLedger({one.id: one for one in messages})


def test_what_agrees_is_no_problem() -> None:
    ledger = ledger_of(sent(1), sent(2, promised=False), sent(3, "t"), sent(4, "t"))
    rows = [row(1), row(3, "n/1"), row(4, "n/1")]
    assert ledger.problems(rows) + ledger.transaction_problems(rows) + ledger.order_problems(rows) == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(1)], "p-2 is lost: its receipt had come"),
        ([row(1), row(2), row(2)], "p-2 is there 2 times"),
        ([row(1), row(2), row(9)], "p-9 is there and was never sent"),
        ([row(1), row(2), row(3)], "p-3 is there and its transaction never happened"),
        ([row(1), row(2, body=b"x")], "p-2 has another body"),
        ([row(1), row(2, note="m")], "p-2 has the headers {'x-id': 'p-2', 'x-note': 'm'} and was sent with "),
    ],
)
def test_a_broken_promise_is_seen(rows: list[Delivered], said: str) -> None:
    ledger = ledger_of(sent(1), sent(2), sent(3, "t", promised=False))
    ledger.aborted.add("p-3")
    [problem] = ledger.problems(rows)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(1, "n/1")], "transaction t is torn: 1 of 2"),
        ([row(1, "n/1"), row(2, "n/2")], "transaction t has the names "),
        ([row(1), row(2)], "transaction t has no name"),
        ([row(3, "n/1")], "messages without a transaction are given one"),
        ([row(1, "n/1"), row(2, "n/1"), row(4, "n/1"), row(5, "n/1")], "n/1 names the transactions "),
    ],
)
def test_a_wrong_transaction_is_seen(rows: list[Delivered], said: str) -> None:
    ledger = ledger_of(sent(1, "t"), sent(2, "t"), sent(3), sent(4, "u"), sent(5, "u"))
    [problem] = ledger.transaction_problems(rows)
    assert problem.startswith(said)


def test_another_order_is_seen() -> None:
    assert ledger_of(sent(1), sent(2)).order_problems([row(1, offset=9), row(2)]) == ["p-1 comes after number 2"]


def test_wrong_depths_are_seen() -> None:
    ledger = ledger_of(sent(1), sent(2), sent(3, promised=False))
    ledger.acks_asked.add("p-1")
    assert ledger.depth_problems({"broker": {"q": 2}, "log": {"q": 2}}) == []
    ledger.acks_confirmed.add("p-1")
    assert ledger.depth_problems({"broker": {"q": 1}, "log": {"q": 1}}) == []
    assert ledger.depth_problems({"log": {"q": 3}}) == ["log says q holds 3; receipts allow 1 to 2"]
    assert ledger.depth_problems({"log": {}}) == ["log says q holds 0; receipts allow 1 to 2"]
    assert "differ" in ledger.depth_problems({"broker": {"q": 1}, "log": {"q": 2}})[0]


def test_wrong_acknowledgements_are_seen() -> None:
    ledger = ledger_of(sent(1), sent(2))
    ledger.acks_asked.add("p-1")
    rows = [row(1), row(2)]
    assert ledger.acknowledgement_problems(rows, Counter({101: 1})) == []
    assert ledger.acknowledgement_problems(rows, Counter()) == []
    ledger.acks_confirmed.add("p-1")
    assert ledger.acknowledgement_problems(rows, Counter()) == ["the acknowledgement of p-1 is lost"]
    assert ledger.acknowledgement_problems(rows, Counter({101: 2})) == ["p-1 is acknowledged 2 times"]
    assert "nobody asked" in ledger.acknowledgement_problems(rows, Counter({101: 1, 102: 1}))[0]
