"""A log is known by its id: its broker may get another name, and two brokers may have one. By directory and by url,
batch and stream. No JVM: the readers that Spark calls are called here.
"""

from __future__ import annotations

import json
import logging
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from artemis_py.errors import PipelineError
from artemis_py.spark import lag
from artemis_py.spark.stream.reader import FROM, LOG, LOST
from artemis_py.storage.log_id import known_id, log_id
from tests.spark import readers
from tests.spark.live import live_broker
from tests.spark.logs import Logs
from tests.spark.made_log import START_MS, MadeLog
from tests.spark.readers import Query, numbers_of, rows_read

stream = partial(readers.stream, columns="broker,value")


def batch(source: dict[str, str], **options: str) -> list[tuple[str, int]]:
    return numbers_of(rows_read({**source, "columns": "broker,value", **options}))


def of(name: str, *numbers: int) -> list[tuple[str, int]]:
    return [(name, number) for number in numbers]


def test_a_broker_with_another_name_goes_on(logs: Logs, caplog: pytest.LogCaptureFixture) -> None:
    logs.send(0, 3, "a", "old")
    with logs.source(a="old") as source:
        offset, seen = stream(source, None)
    assert seen == of("old", 0, 1, 2)
    logs.send(3, 2, "a", "new")
    with logs.source(a="new") as source, caplog.at_level(logging.WARNING):
        again = Query(**source, columns="broker,value")
        planned = again.reader.partitions(again.at, json.loads(json.dumps(offset)))
        assert again.read(planned) == seen, "a batch that was planned under the old name"
        again.reader.commit(offset)
        query = Query(offset, **source, columns="broker,value")
        query.reader.prepareForTriggerAvailableNow()
        assert query.trigger(ReadAllAvailable()) == of("old", 3, 4)
        told = lag(query.progress())
        assert (list(told), told["old"].offsets, told["old"].is_away) == (["old"], 0, False)
        assert batch(source) == of("new", *range(5))
    assert (
        [key for key in query.at if not key.startswith("#")] == ["old"] == list(query.at[LOG]) == list(query.at[FROM])
    )
    assert caplog.text.count("broker old is now called new") == 2, "once for each run of the query"


def test_a_broker_that_is_renamed_while_a_query_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with live_broker(tmp_path, name="old") as broker:
        broker.send(0, 2)
        query = Query(url=broker.url, cursor="c", columns="broker,value")
        assert query.trigger() == of("old", 0, 1)
        broker.start_again("new")
        broker.send(2, 2)
        with caplog.at_level(logging.WARNING):
            assert query.trigger() == of("old", 2, 3)
    assert caplog.text.count("broker old is now called new") == 1


def test_two_brokers_of_one_name(logs: Logs) -> None:
    logs.send(0, 2, "a", "same")
    logs.send(100, 2, "b", "same")
    found_id = known_id([logs.folder / "b" / "journal", logs.folder / "b" / "kept"])
    assert found_id is not None
    second = f"same@{found_id[:8]}"
    # Directories with one name before them would be one log, so there is none, and their logs say it.
    first, then = [{"journal": f"{logs.folder}/{text}"} for text in ("[ab]", f"b*,{logs.folder}/a*")]
    with logs.source(a="same", b="same") as found:
        source = first if logs.kind == "journal" else found
        seen = of("same", 0, 1) + of(second, 100, 101)
        assert batch(source) == seen
        offset, streamed = stream(source, None)
        assert streamed == seen
        begun = json.dumps({second: offset[second]})
        assert batch(source, startingOffsets=begun) == of("same", 0, 1)
        assert stream(source, None, startingOffsets=begun)[1] == of("same", 0, 1)
    logs.send(2, 1, "a", "same")
    logs.send(102, 1, "b", "same")
    with logs.source(b="same", a="same") as found:
        source = then if logs.kind == "journal" else found
        assert stream(source, offset)[1] == of("same", 2) + of(second, 102), "whichever comes first"
        alone = {name: text.split(",")[0] for name, text in source.items()}
        with pytest.raises(PipelineError, match=r"of broker same \(log id \w+\), but .* keepRemovedBrokers=true"):
            stream(alone, offset)
        assert stream(alone, offset, keepRemovedBrokers="true")[1] == of(second, 102)


# ---- logs that are made ----------------------------------------------------------------------------------------------


def made(folder: Path, first: int = 0, *, has_id: bool = True) -> MadeLog:
    """Two messages; the log begins so many ms later."""
    log = MadeLog(folder)
    log.messages = first
    more(log, START_MS + first)
    if has_id:
        log_id([folder])
    return log


def more(log: MadeLog, now_ms: int = START_MS) -> None:
    """Two messages more."""
    log.segment(now_ms, 2)
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


def test_one_log_under_two_names_is_not_read_twice(logs: Logs) -> None:
    logs.send(0, 2, "a", "same")
    with logs.source(a="same") as source:
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


def test_a_log_that_lost_its_id_is_not_read_again(tmp_path: Path) -> None:
    """A broker makes a new id where there is none, as in a copy without the file; its segments tell what it is."""
    log, other = made(tmp_path / "a"), made(tmp_path / "b", 100)
    offset, _ = stream(journal(old=log), None)
    known = known_id([log.folder])
    (log.folder / "log-id").unlink()
    log_id([log.folder])
    more(log)
    for name in ("new", "old"):
        with pytest.raises(PipelineError, match=f"If the file log-id was lost.* write {known} into") as told:
            stream(journal(**{name: log}), offset)
        assert "keepRemovedBrokers" not in str(told.value) or name == "old"
    (log.folder / "log-id").write_text(f"{known}\n")
    assert stream(journal(new=log), offset)[1] == of("old", 3, 4)
    log_id([other.folder])
    with pytest.raises(PipelineError, match="keepRemovedBrokers=true") as told:
        stream(journal(other=other), offset)
    assert "log-id" not in str(told.value)


def test_one_of_two_logs_that_is_replaced_repeats_no_rows_of_the_other(tmp_path: Path) -> None:
    """What the error advises, step by step."""
    log, other, new = made(tmp_path / "a"), made(tmp_path / "b", 100), made(tmp_path / "c", 200)
    offset, _ = stream(journal(east=log, west=other), None)
    more(other)
    said = r"of broker east is not the one.* in a query of its own.* keepRemovedBrokers=true"
    with pytest.raises(PipelineError, match=said):
        stream(journal(east=new, west=other), offset)
    assert stream(journal(west=other), offset, keepRemovedBrokers="true")[1] == of("west", 103, 104)
    assert stream(journal(east=new), None)[1] == of("east", 201, 202)


def test_a_broker_that_comes_later_begins_where_the_options_say(tmp_path: Path) -> None:
    """Also one that was down when the query began: its offsets are not in the checkpoint."""
    log, late = made(tmp_path / "a"), made(tmp_path / "b", 100)
    offset, _ = stream(journal(east=log), None)
    begin = stream(journal(west=late), None)[0]["west"]
    more(late)
    both = journal(east=log, west=late)
    named = json.dumps({"east": 1, "west": begin})
    end, seen = stream(both, offset, startingOffsets=named)
    assert seen == of("west", 103, 104)
    assert stream(both, end, startingOffsets=named)[1] == []
    assert stream(both, offset)[1] == of("west", *range(101, 105))
    with pytest.raises(PipelineError, match="startingOffsets names offset 99 of broker west, whose log ends"):
        stream(both, offset, startingOffsets=json.dumps({"west": 99}))
