"""Every job on the log of a real broker, through the command: its numbers are what the clients did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from artemis_py.cli.main import main
from tests.spark.brokers import drained
from tests.spark.story import RING, Story, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """One broker for all tests of this file."""
    with told(tmp_path_factory.mktemp("story")) as story:
        yield story


@pytest.fixture
def pipeline(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a job and returns its JSON."""

    def run(*arguments: str) -> dict[str, Any]:
        code = main(["pipeline", *arguments, "--format", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        assert err == ""
        value: dict[str, Any] = json.loads(out)
        return value

    return run


def by(rows: list[dict[str, Any]], *names: str) -> dict[Any, dict[str, Any]]:
    """Rows by the values of some columns."""
    return {tuple(row[name] for name in names) if len(names) > 1 else row[names[0]]: row for row in rows}


def test_throughput(pipeline: Any, story: Story) -> None:
    tables = pipeline("throughput", "--url", story.url)["tables"]
    published = {row["address"]: row["published"] for row in tables["addresses"]}
    assert published == {**story.ledger.published, "DLQ": 1, "EXPIRED": 3}
    orders = by(tables["queues"], "queue")["orders"]
    assert orders["delivered"] == sum(story.ledger.delivered.values())
    assert orders["acked"] == sum(story.ledger.acked.values())


def test_latency(pipeline: Any, story: Story) -> None:
    both = ("--journal", f"{story.folder / 'kept'},{story.folder / 'journal'}")
    orders = by(pipeline("latency", *both)["tables"]["queues"], "queue")["orders"]
    ledger = story.ledger
    assert orders["messages"] == ledger.published["orders"]
    assert orders["delivered"] == ledger.published["orders"]
    assert orders["acked"] == sum(ledger.acked.values())
    longest = max(most for _, most in ledger.holds_ms.values())
    assert 0 <= orders["total50"] <= longest + 2
    assert orders["wait50"] <= orders["total50"]


def test_fairness(pipeline: Any, story: Story) -> None:
    tables = pipeline("fairness", "--url", story.url)["tables"]
    ledger = story.ledger
    found = {row["consumer"].rpartition("/")[2]: row for row in tables["consumers"] if row["queue"] == "orders"}
    assert {name: row["delivered"] for name, row in found.items()} == ledger.delivered
    assert {name: row["acked"] for name, row in found.items()} == ledger.acked
    counts = list(ledger.delivered.values())
    queue = by(tables["queues"], "queue")["orders"]
    assert queue["jain"] == pytest.approx(sum(counts) ** 2 / (2 * sum(count**2 for count in counts)))


def test_losses(pipeline: Any, story: Story) -> None:
    value = pipeline("losses", "--url", story.url)
    found = by(value["tables"]["losses"], "cause", "address")
    anna, bert = story.ledger.origins["anna"], story.ledger.origins["bert"]
    assert {key: (row["messages"], row["lost"], row["origin"]) for key, row in found.items()} == {
        ("replaced", "ticks"): (7, 7, bert),
        ("refused", "narrow"): (4, 4, bert),
        ("expired", "offers"): (3, 0, anna),
        ("dead", "orders"): (1, 0, anna),
    }
    assert found["dead", "orders"]["keptIn"] == "DLQ"
    assert found["expired", "offers"]["keptIn"] == "EXPIRED"
    assert found["refused", "narrow"]["reason"].lower() == "drop"
    assert found["dead", "orders"]["user"] == "anna"


def test_dead_letters(pipeline: Any, story: Story) -> None:
    tables = pipeline("dead-letters", "--url", story.url)["tables"]
    found = by(tables["groups"], "originalQueue")
    assert found["orders"]["shape"] == "JSON object: id, total"
    assert found["orders"]["origin"] == story.ledger.origins["anna"]
    assert "kind" in found["orders"]["headerNames"].split(", ")
    assert found["offers"]["messages"] == 3
    assert story.ledger.poison["body"] in [row["preview"] for row in tables["examples"]]


def test_trace(pipeline: Any, story: Story) -> None:
    picture = pipeline("trace", story.ledger.poison["id"], "--url", story.url)["texts"]["story"]
    assert f"published by {story.ledger.origins['anna']}, user anna" in picture
    assert picture.count("delivered to") == 2
    assert "failed delivery 2 (nacked)" in picture
    assert "to DLQ" in picture


def test_capacity(pipeline: Any, story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "advice.xml"
    tables = pipeline("capacity", "--url", story.url, "--outage", "1m", "--xml", str(file))["tables"]
    found = by(tables["queues"], "queue")
    assert found["ticks"]["replaced"] == 7
    assert found["ticks"]["ring"] == RING + 7
    assert found["ticks"]["peakDepth"] in (RING, RING + 1)
    assert found["orders"]["peakDepth"] == 6
    assert main(["check", str(file)]) == 0, capsys.readouterr().out


def test_archive_and_jobs_on_it(
    pipeline: Any, story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(tmp_path / "archive")
    value = pipeline("archive", directory, "--url", story.url)
    [row] = value["tables"]["brokers"]
    every = sum(story.ledger.published.values()) + 4
    assert row["messages"] == every
    assert pipeline("archive", directory, "--url", story.url)["tables"]["brokers"][0]["messages"] == 0
    assert main(["cursors", "list", story.url]) == 0
    assert "archive" in capsys.readouterr().out
    live = pipeline("losses", "--url", story.url)["tables"]
    assert pipeline("losses", "--archive", directory)["tables"] == live


def test_replay(pipeline: Any, story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    select = ("--url", story.url, "--where", "reason is not null and originalQueue = 'orders'", "--address", "again")
    assert pipeline("replay", *select)["facts"]["messages"] == 1
    assert story.broker.metric("artemis_messages_added", queue="again") == 0
    assert main(["pipeline", "replay", *select, "--publish"]) == 1
    assert "--publish needs --target tcp://HOST:PORT" in capsys.readouterr().err
    value = pipeline("replay", *select, "--publish", "--target", story.stomp)
    assert value["facts"]["chunks"] == 1
    [message] = drained(story.broker, "again", 1)
    assert message.body.decode() == story.ledger.poison["body"]
    assert message.header("kind") == "{"
