"""A streaming query whose JVM, Python and workers are killed with SIGKILL, and started again: every row once."""

from __future__ import annotations

import random
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kit.process import BrokerProcess, eventually, kill_group
from tests.spark.brokers import bodies, crashing_broker, drained, url_of
from tests.spark.drivers import lines_query, put
from tests.spark.kills import driver
from tests.spark.proxies import cutting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 600


def files_in(folder: Path, count: int, start: int = 0) -> list[str]:
    """Puts files there, one for each batch; returns their lines."""
    batches = [[f"{number}-{line}" for line in range(LINES)] for number in range(start, start + count)]
    for number, lines in enumerate(batches, start):
        put(folder, f"f{number:03}", lines)
    return [line for lines in batches for line in lines]


def killed_at(folder: Path, broker: BrokerProcess, address: str, word: bytes, nth: int, *, from_broker: bool) -> None:
    """Starts the application and kills it when a word passes between it and the broker for the nth time."""
    ended: list[subprocess.Popen[bytes]] = []
    with (
        cutting(broker.port, word, nth=nth, from_broker=from_broker, at_cut=lambda: kill_group(ended[0])) as proxy,
        driver("lines", folder, {"url": f"tcp://127.0.0.1:{proxy.port}", "address": address}) as running,
    ):
        ended.append(running)
        eventually("the cut", lambda: proxy.has_cut, bool, 120)
        running.wait(30)


@pytest.mark.timeout(180)
@pytest.mark.takes_turns("the killed drivers")
def test_killed_in_a_batch(spark: SparkSession, sink_broker: BrokerProcess, tmp_path: Path, place: str) -> None:
    """Some transactions of the batch are committed, one is open, one is committed and not confirmed."""
    lines = files_in(tmp_path, 3)
    killed_at(tmp_path, sink_broker, place, b"RECEIPT", 17, from_broker=True)
    committed = len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*")))
    assert committed == 1, "the kill was to fall into the second batch"
    given = {"url": url_of(sink_broker), "address": place}
    again = lines_query(spark, tmp_path, given).trigger(availableNow=True).start()  # publishes what is left
    assert again.awaitTermination(90)
    assert sorted(bodies(drained(sink_broker, place, len(lines)))) == sorted(lines)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_again_and_again(spark: SparkSession, tmp_path: Path, place: str, rng: random.Random) -> None:
    """In batches at words drawn by the seed, and between batches; now and then the broker is killed, too."""
    lines: list[str] = []
    with crashing_broker(tmp_path) as crashing:
        given = {"url": url_of(crashing.process), "address": place}
        for round_number in range(8):
            lines += files_in(tmp_path, 3, 3 * round_number)
            if round_number % 4 == 3:
                commits, batches = tmp_path / "checkpoint" / "commits", 3 * round_number + 3
                with driver("lines", tmp_path, given) as between:
                    done = partial(eventually, "all batches", lambda: len([*commits.glob("[0-9]*")]))  # noqa: B023
                    done(batches.__eq__, 60)
                    kill_group(between)
            else:
                word, from_broker = rng.choice(
                    [(b"BEGIN", False), (b"SEND", False), (b"COMMIT", False), (b"RECEIPT", True)]
                )
                nth = rng.randrange(1, 12 * (50 if word == b"SEND" else 1))
                killed_at(tmp_path, crashing.process, place, word, nth, from_broker=from_broker)
            if rng.random() < 0.5:
                crashing.start_again()
        again = lines_query(spark, tmp_path, given).trigger(availableNow=True).start()
        assert again.awaitTermination(90)
        assert sorted(bodies(drained(crashing.process, place, len(lines)))) == sorted(lines)
