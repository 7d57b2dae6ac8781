"""``artemis-py data``: everything that a stopped broker has is on the queues of another one afterwards, once."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from artemis_py.cli.data.import_messages import MESSAGES_PER_REQUEST
from tests.e2e.data_command import (
    ADDRESSES,
    BINARY,
    END,
    FIRST,
    LARGE,
    a_broker,
    a_line,
    data,
    lines,
    noted_by,
    send_many_things,
    stocked,
)
from tests.kit.client import StompSocket, connected
from tests.kit.forks import program
from tests.kit.process import WAIT_S, eventually

pytestmark = pytest.mark.e2e


def exported(folder: Path, fill: Callable[[StompSocket], None], in_memory: int = 5) -> Path:
    """What a broker that was filled and stopped has."""
    with stocked(folder, "old", in_memory) as broker:
        with connected(broker.port) as client:
            fill(client)
        assert broker.stop() == 0
    told = data("exp", folder / "old" / "broker.xml", "--output", folder / "out.jsonl")
    assert told.returncode == 0, told.stderr
    return folder / "out.jsonl"


def test_everything_arrives_once(tmp_path: Path) -> None:
    path = exported(tmp_path, send_many_things)
    assert path.stat().st_mode & 0o777 == 0o600
    (end,) = lines(path, "end")
    assert end["messages"] == len(lines(path, "message")) == 26
    assert {queue["name"] for queue in lines(path, "queue")} == {"orders", "later", "news.a", "news.b"}
    (tried,) = [one for one in lines(path, "message") if "attempts" in one]
    assert (tried["attempts"], tried["queues"]) == ({"news.a": 1}, ["news.a", "news.b"])
    with stocked(tmp_path, "new", -1) as broker:
        told = data("imp", path, "--url", broker.url)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout == f"imported 26 messages into 27 places on queues of {broker.url}, and made 0 queues\n"
        with connected(broker.port) as client:
            orders = client.take("/queue/orders", 22)
            assert [one.body for one in orders[:2]] == [BINARY, LARGE], "of the default priority, 4"
            assert orders[1].header("kind") == "large"
            by_priority = sorted(range(20), key=lambda number: (-(number % 3), number))
            assert [int(one.body) for one in orders[2:]] == by_priority
            assert {one.header("color") for one in orders[2:]} == {"green\\cblue"}
            assert [one.body for one in client.take("/queue/news::news.a", 1)] == [b"second"]
            assert [one.body for one in client.take("/queue/news::news.b", 2)] == ["für zwei".encode(), b"second"]
            (today,) = client.take("/queue/later", 1)
            assert today.body == b"today"
            (expires,) = [one["expires"] for one in lines(path, "message") if "expires" in one]
            assert int(today.header("expires") or 0) == round(datetime.fromisoformat(expires).timestamp() * 1000)
        told = data("imp", path, "--url", broker.url, "--json")  # a second time: each is known
        assert told.returncode == 0
        known = {"url": broker.url, "queuesMade": 0, "messagesBefore": 0, "notes": []}
        counts = {"orders": 0, "news.a": 0, "news.b": 0, "later": 1}
        again = {"messages": 26, "places": 0, "knownPlaces": 27, "messageCounts": counts}
        assert json.loads(told.stdout) == {**known, **again}
        assert broker.stop() == 0
    file = tmp_path / "new" / "broker.xml"
    told = data("exp", file)
    left = [json.loads(line) for line in told.stdout.splitlines()]
    (waits,) = [line["message"] for line in left if "message" in line]
    assert (waits["text"], list(waits["due"])) == ("tomorrow", ["later"])
    assert told.stderr == "exported 1 message (8 bytes of bodies)\n"
    told = data("exp", file, "--json", "--output", tmp_path / "left")
    assert told.stderr == ""
    result: dict[str, object] = {"messages": 1, "bodyBytes": 8, "messagesBefore": 0, "notes": []}
    assert json.loads(told.stdout) == {"output": str(tmp_path / "left"), **result}
    assert "add --output FILE" in data("exp", file, "--json").stderr


_five_thousand = partial(StompSocket.publish, destination="/queue/orders", bodies=range(5001))


def test_an_import_that_is_killed_goes_on(tmp_path: Path) -> None:
    """Each message is there once, however often it was killed."""
    path = exported(tmp_path, _five_thousand, -1)
    whole = path.rename(tmp_path / "whole.jsonl")
    os.mkfifo(path)
    with stocked(tmp_path, "new", -1) as broker:
        for line_count in (1200, 2400, 3600):  # it gets so many lines through a pipe, and waits for more
            with program("data", "imp", path, "--url", broker.url) as process, path.open("wb") as feed:
                with whole.open("rb") as file:
                    feed.writelines(islice(file, line_count))
                feed.flush()
                enough = line_count - MESSAGES_PER_REQUEST
                broker.eventually("noted", lambda: noted_by(path)["lines"], lambda lines: lines > enough)  # noqa: B023
                assert process.poll() is None, "it waits for more"
                process.send_signal(signal.SIGKILL)
        path.unlink()
        whole.rename(path)
        told = data("imp", path, "--url", broker.url)
        assert told.returncode == 0, told.stderr
        assert re.match(r"continued after line \d+: [\d,]+ messages were imported before\n", told.stdout)
        assert not Path(f"{path}.imported").exists()
        with connected(broker.port) as client:
            assert [one.body for one in client.take("/queue/orders", 5001)] == [b"%d" % n for n in range(5001)]
            client.subscribe("/queue/orders", id="more")
            client.ask("SEND", {"destination": "/queue/orders"}, b"end")
            assert client.message().body == b"end", "there is none twice"


def test_only_some_queues(tmp_path: Path) -> None:
    exported(tmp_path, send_many_things)
    place = tmp_path / "old"
    told = data("exp", place / "broker.xml", "--queue", "news.b", "--queue", "later")
    kept = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["message"]["queues"] for line in kept if "message" in line] == [["news.b"]] * 2 + [["later"]] * 2
    assert sorted(line["queue"]["name"] for line in kept if "queue" in line) == ["later", "news.b"]
    told = data("exp", place / "broker.xml", "--queue", "nix")
    assert (told.returncode, told.stderr) == (1, f"artemis-py: there is no queue nix in {place}/journal\n")


def test_what_cannot_be_done(tmp_path: Path) -> None:
    with a_broker(tmp_path, "old", ADDRESSES) as broker:
        told = data("exp", tmp_path / "old" / "broker.xml")
        assert told.returncode == 1
        assert "artemis-py: " in told.stderr
        assert "is in use by" in told.stderr or "another" in told.stderr
        bad = tmp_path / "bad.jsonl"
        for content, said in (
            ("", "bad.jsonl is empty"),
            ("hello\n", "bad.jsonl:1: this is not a line of an export: "),
            ('{"message":{}}\n', "bad.jsonl:1: an export begins with a line that says so"),
            ('{"export":{"format":9,"id":"x"}}\n', "bad.jsonl:1: this export has format 9, and this version reads 1"),
            (
                '{"export":{"format":1,"id":"x"}}\n{"message":{"id":1}}\n',
                "bad.jsonl:2: this message is incomplete or wrong: KeyError('address')",
            ),
            (FIRST, "bad.jsonl is incomplete: it ends at line 1"),
            (
                FIRST + a_line(address="orders", queues=["orders"], piece_bytes=9) + END,
                "bad.jsonl:2: 9 bytes of this message's body are missing",
            ),
            (
                FIRST + a_line(address="locked", queues=["none"], text="x") + END,
                "MISSING queue none: there is no queue none; 1 message of it was not imported",
            ),
        ):
            bad.write_text(content, "utf-8")
            told = data("imp", bad, "--url", broker.url)
            assert told.returncode == 1, content
            assert said in told.stderr
            assert "Traceback" not in told.stderr
        assert broker.stop() == 0
    told = data("imp", bad, "--url", "http://127.0.0.1:1")
    assert "127.0.0.1:1: nothing listens there (--url" in told.stderr


def test_a_bar_on_a_terminal(tmp_path: Path) -> None:
    exported(tmp_path, _five_thousand, -1)
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "artemis_py", "data", "exp", str(tmp_path / "old" / "broker.xml")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=child) as process:
        os.close(child)
        seen = b""
        try:
            while part := os.read(parent, 65536):
                seen += part
        except OSError:  # the end of a terminal
            pass
        assert process.wait(WAIT_S) == 0
    os.close(parent)
    assert b"of 5,001 messages" in seen
    eventually("told", lambda: seen, lambda text: b"exported 5,001 messages" in text)
