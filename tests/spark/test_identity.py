"""A log is known by its id: its broker may get another name, and two brokers may have one. By directory and by url,
batch and stream. No JVM: the readers that Spark calls are called here.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark import lag
from artemis_py.spark.read.options import read_options
from artemis_py.spark.stream.reader import FROM, LOG, LOST, LogStreamReader
from artemis_py.storage.log_id import known_id, log_id
from tests.spark.live import live_broker, send_many
from tests.spark.made_log import START_MS, MadeLog
from tests.spark.readers import rows_read

Offset = dict[str, Any]
Rows = list[tuple[str, int]]


class Named:
    """Brokers' folders, of which each may be started under any name; read by directory or by url."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind

    def send(self, folder: str, name: str, first: int, count: int) -> None:
        """Publish to the broker on this folder under this name, and kill it."""
        with live_broker(self.folder / folder, name=name) as broker, broker.client() as client:
            send_many(client, "orders", first, count)

    def log_id(self, folder: str) -> str:
        """What the log on this folder is known by."""
        found = known_id([self.folder / folder / "journal", self.folder / folder / "kept"])
        assert found is not None
        return found

    @contextmanager
    def source(self, **named: str) -> Iterator[dict[str, str]]:
        """Where the logs of these folders, under these names, are to be read."""
        with ExitStack() as stack:
            if self.kind == "journal":
                for path in self.folder.glob("**/artemis-journal-*.log"):
                    os.utime(path, (0, 0))
                yield {"journal": ",".join(f"{name}={self.folder / folder}" for folder, name in named.items())}
                return
            brokers = [stack.enter_context(live_broker(self.folder / one, name=named[one])) for one in named]
            yield {"url": ",".join(broker.url for broker in brokers)}


@pytest.fixture(params=["journal", "url"])
def brokers(request: pytest.FixtureRequest, tmp_path: Path) -> Named:
    return Named(tmp_path, request.param)


def stream_reader(source: dict[str, str], **options: str) -> LogStreamReader:
    given = {**source, "columns": "broker,value", "startingOffsets": "earliest", **options}
    return LogStreamReader(read_options(given, streaming=True))


def rows_of(reader: LogStreamReader, start: Offset, end: Offset) -> Rows:
    shares = reader.partitions(start, json.loads(json.dumps(end)))
    found = [row for share in shares for batch in reader.read(share) for row in batch.to_pylist()]
    return sorted((row["broker"], int(row["value"])) for row in found)


def stream(source: dict[str, str], start: Offset | None, **options: str) -> tuple[Offset, Rows]:
    """One batch of a query that is new or goes on, and the offset that its checkpoint keeps."""
    reader = stream_reader(source, **options)
    start = reader.initialOffset() if start is None else start
    end = reader.latestOffset(json.loads(json.dumps(start)), ReadAllAvailable())
    return end, [] if end == start else rows_of(reader, start, end)


def batch(source: dict[str, str], **options: str) -> Rows:
    rows = rows_read({**source, "columns": "broker,value", **options})
    return sorted((row["broker"], int(row["value"])) for row in rows)


def of(name: str, *numbers: int) -> Rows:
    return [(name, number) for number in numbers]


def test_a_broker_with_another_name_goes_on(brokers: Named, caplog: pytest.LogCaptureFixture) -> None:
    brokers.send("a", "old", 0, 3)
    with brokers.source(a="old") as source:
        offset, seen = stream(source, None)
    assert seen == of("old", 0, 1, 2)
    brokers.send("a", "new", 3, 2)
    with brokers.source(a="new") as source, caplog.at_level(logging.WARNING):
        again = stream_reader(source)
        assert rows_of(again, again.initialOffset(), offset) == seen, "a batch that was planned under the old name"
        again.commit(offset)
        reader = stream_reader(source)
        reader.prepareForTriggerAvailableNow()
        end = reader.latestOffset(offset, ReadAllAvailable())
        assert rows_of(reader, offset, end) == of("old", 3, 4)
        told = lag({"sources": [{"endOffset": end, "latestOffset": reader.reportLatestOffset()}]})
        assert (list(told), told["old"].offsets, told["old"].is_away) == (["old"], 0, False)
        assert batch(source) == of("new", *range(5))
    assert [key for key in end if not key.startswith("#")] == list(end[LOG]) == list(end[FROM]) == ["old"]
    assert caplog.text.count("broker old is now called new") == 2, "once for each run of the query"


def test_a_broker_that_is_renamed_while_a_query_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with live_broker(tmp_path, name="old") as broker:
        with broker.client() as client:
            send_many(client, "orders", 0, 2)
        reader = stream_reader({"url": broker.url}, cursor="c")
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert rows_of(reader, start, end) == of("old", 0, 1)
        broker.kill()
        broker.start_again("new")
        with broker.client() as client:
            send_many(client, "orders", 2, 2)
        with caplog.at_level(logging.WARNING):
            more = reader.latestOffset(end, ReadAllAvailable())
            assert rows_of(reader, end, more) == of("old", 2, 3)
            reader.commit(more)
    assert caplog.text.count("broker old is now called new") == 1


def test_two_brokers_of_one_name(brokers: Named) -> None:
    brokers.send("a", "same", 0, 2)
    brokers.send("b", "same", 100, 2)
    second = f"same@{brokers.log_id('b')[:8]}"
    # Directories with one name before them would be one log, so there is none, and their logs say it.
    first, then = [{"journal": f"{brokers.folder}/{text}"} for text in ("[ab]", f"b*,{brokers.folder}/a*")]
    with brokers.source(a="same", b="same") as found:
        source = first if brokers.kind == "journal" else found
        seen = of("same", 0, 1) + of(second, 100, 101)
        assert batch(source) == seen
        offset, streamed = stream(source, None)
        assert streamed == seen
        begun = json.dumps({second: offset[second]})
        assert batch(source, startingOffsets=begun) == of("same", 0, 1)
        assert stream(source, None, startingOffsets=begun)[1] == of("same", 0, 1)
    brokers.send("a", "same", 2, 1)
    brokers.send("b", "same", 102, 1)
    with brokers.source(b="same", a="same") as found:
        source = then if brokers.kind == "journal" else found
        assert stream(source, offset)[1] == of("same", 2) + of(second, 102), "whichever comes first"
        alone = {name: text.split(",")[0] for name, text in source.items()}
        with pytest.raises(PipelineError, match=r"of broker same \(log id \w+\), but .* keepRemovedBrokers=true"):
            stream(alone, offset)
        assert stream(alone, offset, keepRemovedBrokers="true")[1] == of(second, 102)


# ---- logs that are made ----------------------------------------------------------------------------------------------


def made(folder: Path, first: int = 0, *, has_id: bool = True) -> MadeLog:
    """Two messages."""
    log = MadeLog(folder)
    log.messages = first
    more(log)
    if has_id:
        log_id([folder])
    return log


def more(log: MadeLog) -> None:
    """Two messages more."""
    log.segment(START_MS)
    log.publish(START_MS, 2)
    log.close()


def journal(**named: MadeLog) -> dict[str, str]:
    return {"journal": ",".join(f"{name}={log.folder}" for name, log in named.items())}


def test_brokers_that_change_their_names(tmp_path: Path) -> None:
    east, west = made(tmp_path / "e"), made(tmp_path / "w", 100)
    offset, _ = stream(journal(east=east, west=west), None)
    more(east)
    more(west)
    assert stream(journal(west=east, east=west), offset)[1] == of("east", 3, 4) + of("west", 103, 104)


def test_a_new_log_under_the_name_that_another_one_had(tmp_path: Path) -> None:
    old, new = made(tmp_path / "old"), made(tmp_path / "new", 100)
    offset, _ = stream(journal(east=old), None)
    key = f"east@{known_id([new.folder])[:8]}"  # type: ignore[index]
    assert stream(journal(east=new, other=old), offset)[1] == of(key, 101, 102)
    with pytest.raises(PipelineError, match="is not the one that this query has read"):
        stream(journal(east=new), offset, keepRemovedBrokers="true")


def test_one_log_under_two_names_is_not_read_twice(brokers: Named) -> None:
    brokers.send("a", "same", 0, 2)
    with brokers.source(a="same") as source:
        twice = {name: f"{text},{text.replace('same=', 'other=')}" for name, text in source.items()}
        for read in (batch, lambda one: stream(one, None)):
            with pytest.raises(PipelineError, match=r"are one log, or copies of one: .*name only one of them"):
                read(twice)


def test_a_log_without_an_id_is_known_by_its_name(tmp_path: Path) -> None:
    log, other = made(tmp_path / "a", has_id=False), made(tmp_path / "b", 100)
    offset, seen = stream(journal(old=log), None)
    more(log)
    assert seen == of("old", 1, 2)
    assert stream(journal(old=log), offset)[1] == of("old", 3, 4)
    with pytest.raises(PipelineError, match=r"old \(a log without an id\).*journal='old=/directory'") as told:
        stream(journal(new=log, other=other), offset)
    assert "keepRemovedBrokers" not in str(told.value)
    made(tmp_path / "c" / "log", has_id=False)
    made(tmp_path / "d" / "log", has_id=False)
    both = {"journal": f"{tmp_path}/[cd]/log"}
    with pytest.raises(PipelineError, match=r"two logs are of a broker named log, and have no file log-id"):
        batch(both)


def test_only_a_log_that_is_certainly_missing_may_be_left_out(tmp_path: Path) -> None:
    """A copy without the file log-id may be the missing log."""
    log, other = made(tmp_path / "a"), made(tmp_path / "b", 100)
    offset, _ = stream(journal(old=log), None)
    with pytest.raises(PipelineError, match="keepRemovedBrokers=true"):
        stream(journal(other=other), offset)
    (log.folder / "log-id").unlink()
    with pytest.raises(PipelineError, match="cannot be recognised without an id") as told:
        stream(journal(new=log), offset)
    assert "keepRemovedBrokers" not in str(told.value)


def test_checkpoints_of_older_versions(tmp_path: Path) -> None:
    """They have no marks, or marks without an id."""
    log = made(tmp_path)
    offset, _ = stream(journal(old=log), None)
    more(log)
    first = {"old": offset["old"]}
    without_id = {**offset, LOG: {"old": {**offset[LOG]["old"], "id": None}}, LOST: {"old": 7}}
    for start in (first, without_id):
        end, seen = stream(journal(old=log), start)
        assert seen == of("old", 3, 4)
        assert end[LOG]["old"]["id"] == known_id([tmp_path])
    assert end[LOST] == {"old": 7}
