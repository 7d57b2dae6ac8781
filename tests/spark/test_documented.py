"""What docs/spark.md, docs/pipeline.md and docs/spark-sql.md show, run as written on the broker.xml of the project."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import artemis_py.spark
from tests.kit.client import connected
from tests.kit.process import BrokerProcess, eventually
from tests.spark.brokers import bodies, drained, url_of
from tests.spark.streams import Streams, await_progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 120.0
PASSWORD = "chosen for the first user"
ADMIN = {"login": "admin", "passcode": PASSWORD}


def blocks(document: str, heading: str, language: str) -> list[str]:
    """The code of one language below a heading, up to the next heading of any depth."""
    text = "\n" + (ROOT / document).read_text("utf-8")
    section = re.split(r"^#+ ", text.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


class Reader:
    """Somebody who copies what the documents show, with a broker and a place of their own."""

    def __init__(self, streams: Streams, broker: BrokerProcess) -> None:
        self.spark = streams.spark
        self.broker = broker
        self._queries = streams.queries
        self._folder = streams.folder
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        url = f"http://127.0.0.1:{broker.ports['http']}"
        self._places = {
            # Spark is there already, so its environment cannot say who logs in; options say the same.
            '.format("artemis")': f'.format("artemis").options(user="admin", passwordFile="{secret}")',
            '(spark, "http://localhost:8161"': f'(spark, dict(url="{url}", user="admin", passwordFile="{secret}")',
            '"spark.artemis.views": "http://localhost:8161"': '"spark.artemis.views": '
            + repr(json.dumps({"url": url, "user": "admin", "passwordFile": str(secret)})),
            "(url '": f"(user 'admin', passwordFile '{secret}', url '",
            "'ann', passwordFile '/run/secrets/ann'": f"'admin', passwordFile '{secret}'",
            "http://localhost:8161": url,
            "tcp://localhost:61613": url_of(broker),
            "tcp://one:61613,tcp://two:61613": url_of(broker),
        }

    def run(self, code: str, **names: Any) -> dict[str, Any]:
        """The code's names; a query that it starts is under ``query``."""
        code = self.own(code).replace("artemis_py.spark.await_end(query)", "")
        found: dict[str, Any] = {"spark": self.spark, **names}
        exec(f"query = {code}" if code.startswith("(") else code, found)
        if ".start()" in code:
            self._queries.append(found["query"])
        return found

    def own(self, code: str) -> str:
        """The code with the reader's places."""
        code = re.sub(r'"/(data|tmp)/', f'"{self._folder}/', code)
        for shown, own in self._places.items():
            code = code.replace(shown, own)
        return code

    def sql(self, statement: str) -> DataFrame:
        return self.spark.sql(self.own(statement))

    def send(self, address: str, first: int, count: int) -> None:
        with connected(self.broker.port, **ADMIN) as client:
            client.publish(f"/queue/{address}", range(first, first + count))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The one that comes with the broker, with the two lines that docs/spark.md shows, and a queue to consume."""
    folder = tmp_path_factory.mktemp("documented")
    [lines] = blocks("docs/spark.md", "# Spark in five minutes", "xml")
    text = (ROOT / "broker.xml").read_text("utf-8").replace("<persistence-enabled>false</persistence-enabled>", lines)
    assert lines in text
    [queue] = blocks("docs/pipeline.md", "### Consume a queue", "xml")
    text = text.replace("<addresses>", f"<addresses>\n{queue}", 1)
    (folder / "broker.xml").write_text(re.sub(r"\$\{(STOMP|HTTP)_PORT:\d+\}", "0", text), "utf-8")
    environment = {**os.environ, "ARTEMIS_PY_NEW_PASSWORD": PASSWORD}
    process = BrokerProcess(["run", "broker.xml"], folder / "broker.log", folder=folder, environment=environment)
    try:
        process.await_state("ready")
        yield process
        assert process.stop() == 0, process.said
    finally:
        process.kill()


@pytest.fixture
def reader(streams: Streams, broker: BrokerProcess) -> Reader:
    return Reader(streams, broker)


def test_five_minutes(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    table, stream = blocks("docs/spark.md", "# Spark in five minutes", "python")
    hello = next(code for code in blocks("README.md", "## Five minutes", "python") if "two coffees" in code)
    hello = hello.replace("61613", str(reader.broker.port))
    environment = {**os.environ, "ARTEMIS_PY_USER": "admin", "ARTEMIS_PY_PASSWORD": PASSWORD}
    command = [sys.executable, "-c", hello]
    subprocess.run(command, env=environment, capture_output=True, timeout=WAIT_S, check=True)
    reader.run(table)
    assert re.search(r"\|\s*orders\|\s*1\|", capsys.readouterr().out)
    await_progress(reader.run(stream)["query"])
    reader.send("orders", 7, 5)
    assert bodies(drained(reader.broker, "orders.copy", 5, **ADMIN)) == ["7", "8", "9", "10", "11"]


@pytest.mark.slow
@pytest.mark.takes_turns("the sessions of others")
def test_ctrl_c_ends_the_stream_of_five_minutes(reader: Reader, tmp_path: Path) -> None:
    table, stream = blocks("docs/spark.md", "# Spark in five minutes", "python")
    begin = table.partition("orders = ")[0]
    code = reader.own(f"{begin}\n{stream}").replace('session("orders")', 'session("orders", steps_back=False)')
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (tmp_path / "said").open("wb") as said:
        program = subprocess.Popen(command, env=environment, stderr=said, start_new_session=True)
    try:
        done = tmp_path / "orders-copy" / "commits" / "0"
        until = lambda: (reader.send("orders", 0, 1), program.poll(), done.exists())[1:]  # noqa: E731
        eventually("a batch", until, lambda seen: seen != (None, False), 3 * WAIT_S)
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(3 * WAIT_S) == 0
    finally:
        program.kill()
    assert "Traceback" not in (tmp_path / "said").read_text()


def test_reading_and_streaming_and_lag(reader: Reader, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [install] = blocks("docs/pipeline.md", "## Install", "python")
    assert reader.run(install)["spark"].sparkContext is reader.spark.sparkContext
    [read] = blocks("docs/pipeline.md", "## Read", "python")
    before = reader.run(read)["orders"].count()
    [stream] = blocks("docs/pipeline.md", "### Streams", "python")
    query = reader.run(stream)["query"]
    await_progress(query)
    [lag] = blocks("docs/pipeline.md", "#### Lag", "python")
    reader.run(lag, query=query, artemis_py=artemis_py)
    assert re.fullmatch(r"artemis_py 0 0 False 0\n", capsys.readouterr().out)
    reader.send("orders", 100, 3)
    eventually("rows", lambda: sum(one.numInputRows for one in query.recentProgress), lambda count: count == 3, WAIT_S)
    rows = reader.spark.read.parquet(str(tmp_path / "orders")).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == [b"100", b"101", b"102"]
    assert reader.run(read)["orders"].count() == before + 3


def test_consuming_a_queue(reader: Reader, tmp_path: Path) -> None:
    [stream] = blocks("docs/pipeline.md", "### Consume a queue", "python")
    reader.send("jobs", 0, 3)
    query = reader.run(stream)["query"]
    eventually("gone", lambda: reader.broker.count("jobs"), lambda left: not left, WAIT_S)
    rows = reader.spark.read.parquet(str(tmp_path / "jobs")).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == [b"0", b"1", b"2"]
    await_progress(query)
    [lag] = blocks("docs/pipeline.md", "#### Lag", "python")
    reader.run(lag, query=query, artemis_py=artemis_py)


def test_sql_and_views(reader: Reader, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    reader.send("orders", 200, 3)
    statements, inserted = blocks("docs/spark-sql.md", "## Tables", "sql")
    [views] = blocks("docs/spark-sql.md", "## Tables", "python")
    [read] = blocks("docs/pipeline.md", "## Read", "python")
    count = reader.run(read)["orders"].count()
    try:
        *made, counted, all_of_it = [reader.sql(one) for one in statements.split(";") if one.strip()]
        assert (len(made), counted.collect()[0][0], all_of_it.count()) == (2, count, count)
        for one in filter(str.strip, inserted.split(";")):
            reader.sql(one)
        assert reader.sql("SELECT count(*) FROM outbox").collect()[0][0] == count + 1
        count = reader.run(read)["orders"].count()
        assert reader.run(views, artemis_py=artemis_py)["names"]["orders"] == "artemis.orders"
        assert re.search(rf"\|\s*{count}\|", capsys.readouterr().out)
        bodies_as_columns, settings = blocks("docs/spark-sql.md", "## Bodies as columns", "python")
        order = reader.run(bodies_as_columns, artemis_py=artemis_py)["order"]
        assert re.search(r"the body is no JS", capsys.readouterr().out)
        (tmp_path / "schemas").mkdir()
        (tmp_path / "schemas" / "orders.json").write_text(json.dumps(order), "utf-8")
        reader.run(settings, artemis_py=artemis_py)
        assert re.search(r"\|\s*NULL\|", capsys.readouterr().out)  # no body here is an order
        [latency] = blocks("docs/spark-sql.md", "## Latency, throughput and depth", "python")
        reader.run(latency)
        assert re.search(r"\|\s*orders\|", capsys.readouterr().out)
    finally:
        for setting in ("spark.artemis.views", "spark.artemis.bodies"):
            reader.spark.conf.unset(setting)
        for one in (
            "VIEW IF EXISTS recent",
            "TABLE IF EXISTS orders",
            "TABLE IF EXISTS outbox",
            "DATABASE IF EXISTS artemis CASCADE",
        ):
            reader.sql(f"DROP {one}")


def test_writing(reader: Reader, tmp_path: Path) -> None:
    batch, stream = blocks("docs/pipeline.md", "## Write", "python")
    before = int(reader.broker.metric("artemis_messages_added", queue="orders"))
    reader.run(batch, df=reader.spark.createDataFrame([("v", "k", 1)], "value string, key string, more int"))
    assert reader.broker.metric("artemis_messages_added", queue="orders") == before + 1
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("a\nb\n")
    lines = reader.spark.readStream.format("text").load(str(tmp_path / "in"))
    reader.run(stream, stream=lines)["query"].processAllAvailable()
    assert sorted(bodies(drained(reader.broker, "alerts", 2, **ADMIN))) == ["a", "b"]


def test_every_test_that_the_document_names_is_there() -> None:
    text = (ROOT / "tests" / "spark" / "guarantees.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    sources = [path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py")]
    found = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert len(named) > 15
    assert named - found == set()


@pytest.mark.slow
@pytest.mark.takes_turns("the sessions of others")
def test_ctrl_c_in_a_batch_prints_no_traces(tmp_path: Path) -> None:
    """The tasks of the batch are interrupted; what fails later is logged again."""
    code = f"""
import time
from pathlib import Path
import artemis_py.spark

spark = artemis_py.spark.session(steps_back=False)

def slow(batches):
    Path({str(tmp_path / "task")!r}).touch()
    time.sleep(600)
    yield from batches

stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
rows = stream.mapInArrow(slow, stream.schema)
artemis_py.spark.await_end(rows.writeStream.format("noop").option("checkpointLocation", {str(tmp_path)!r}).start())
spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getLogger("end").error("said again")
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (tmp_path / "said").open("wb") as said:
        program = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=said, start_new_session=True)
    try:
        until = lambda: ((tmp_path / "task").exists(), program.poll())  # noqa: E731
        eventually("a task", until, lambda seen: seen != (False, None), 3 * WAIT_S)
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(3 * WAIT_S) == 0
    finally:
        program.kill()
    told = [line for line in (tmp_path / "said").read_text().splitlines() if "ERROR" in line or "\tat " in line]
    assert [line.rpartition(": ")[2] for line in told] == ["said again"]
