"""A broker's log over HTTP: what it lists is what is there, at any moment; and cursors that hold it."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from artemis_py.cli.main import main
from artemis_py.storage.format import codec, records
from artemis_py.storage.format.log_events import Published
from artemis_py.storage.format.reader import LogReader
from artemis_py.storage.format.records import inner_records
from artemis_py.storage.format.scan import log_files, whole_records
from artemis_py.storage.format.segment_index import decode_index, index_name, index_of
from tests.e2e.log_reader import CORE, LITTLE, PERSISTENT, bytes_of, logged, send
from tests.kit.client import connected
from tests.kit.forks import program
from tests.kit.meanwhile import meanwhile
from tests.kit.process import HTTP, LOOPBACK, STOMP, WAIT_S, BrokerProcess, eventually

pytestmark = pytest.mark.e2e


def index_part(listed: dict[str, Any]) -> dict[str, Any]:
    """Of a listed segment what its index says from the first, without what a survey adds when it is closed."""
    added = ("name", "is_current", "ids", "counts", "copies", "places")
    return {key: value for key, value in listed.items() if key not in added}


def test_a_reader_that_follows_a_busy_log_gets_every_record_once(tmp_path: Path) -> None:
    """Only what is durable, by ranges, while segments are closed, retained and removed from the journal."""
    sent: list[bytes] = []
    with logged(tmp_path) as broker, connected(broker.port) as client:
        for name in "abc":
            client.subscribe(f"/queue/{name}", id=name, ack="auto")

        def pass_one() -> None:
            sent.append(b"%08d" % len(sent) + bytes(300))
            client.ask("SEND", {"destination": f"/queue/{'abc'[len(sent) % 3]}", **PERSISTENT}, sent[-1])
            client.message()

        read: dict[int, bytes] = {}
        lsn = 0
        walked = 0
        with meanwhile(pass_one):
            while walked < 12 or len(sent) < 1500:
                log = broker.api(f"/log?after_lsn={lsn}")
                for segment in log["segments"]:
                    number = segment["segment"]
                    have = read.get(number, b"")
                    if segment["bytes"] > len(have):
                        read[number] = have + bytes_of(broker, number, len(have), segment["bytes"])
                    assert index_of(read[number], is_last=True).fields() == index_part(segment)
                    walked += not segment["is_current"]
                    lsn = max(lsn, segment["last_lsn"])
                assert lsn <= log["durable_lsn"]
        for segment in broker.api("/log")["segments"]:
            number = segment["segment"]
            have = read.get(number, b"")
            if segment["bytes"] > len(have):
                read[number] = have + bytes_of(broker, number, len(have))
        assert sorted(read) == list(range(1, len(read) + 1))
    bodies = [
        codec.decode_message(record.payload).message.body
        for number in sorted(read)
        for record in flat(read[number])
        if record.type_code == records.MESSAGE
    ]
    assert bodies == sent
    directories = [tmp_path / "kept", tmp_path / "journal"]
    assert [
        event.kept.message.body for event in LogReader(directories).events() if isinstance(event, Published)
    ] == bodies
    for file in log_files(directories):  # every segment was closed, the last one by the stop
        data = file.path.read_bytes()
        beside = file.path.with_name(index_name(file.path.name))
        assert index_part(decode_index(beside.read_bytes())) == index_of(data).fields()
        assert data.startswith(read[file.number][:1000])
        assert not any(data[index_of(data).size_bytes :])


def flat(data: bytes) -> Iterator[records.Record]:
    """All records of a segment, those inside groups too."""
    for record in whole_records("", data, []):
        yield record
        if record.type_code == records.GROUP:
            yield from inner_records(record.payload)


def test_a_segment_that_moves_and_goes_while_it_is_read(tmp_path: Path) -> None:
    with logged(tmp_path, kept=LITTLE) as broker:
        send(broker, 300)
        first = broker.api("/log")["segments"][0]
        assert first["name"] == "artemis-journal-000000000001.log"
        data = bytes_of(broker, 1, 0, 1000)
        with connected(broker.port) as client:
            client.take("/queue/q", 300)
            moved = broker.eventually(
                "it is retained", lambda: broker.api("/log")["segments"][0], lambda one: "Z.log" in one["name"]
            )
            assert index_part(moved) == index_part(first)
            data += bytes_of(broker, 1, 1000, first["bytes"])
            assert index_of(data).fields() == index_part(first)
            assert (tmp_path / "journal" / first["name"]).exists() is False
        send(broker, 600, "/queue/other")
        with connected(broker.port) as client:
            client.take("/queue/other", 600)
            gone = broker.eventually(
                "it is gone", lambda: broker.ask("GET", "/log/segments/1"), lambda one: one.status != 200
            )
        assert gone.answer == (410, b"segment 1 is no longer in the log: retention removed it\n")
        assert broker.api("/log")["first_lsn"] > first["last_lsn"]


def test_an_open_answer_ends_whole_although_the_file_goes(tmp_path: Path) -> None:
    with logged(tmp_path, kept=LITTLE) as broker:
        send(broker, 100)
        want = bytes_of(broker, 1)
        slow = socket.create_connection((LOOPBACK, broker.ports["http"]), timeout=WAIT_S)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /log/segments/1 HTTP/1.0\r\n\r\n")
        start = slow.recv(100)
        with connected(broker.port) as client:
            client.take("/queue/q", 100)
        send(broker, 700, "/queue/other")
        with connected(broker.port) as client:
            client.take("/queue/other", 700)
        broker.eventually(
            "it is gone", lambda: broker.ask("GET", "/log/segments/1").status, lambda status: status == 410
        )
        rest = b"".join(iter(lambda: slow.recv(65536), b""))
        assert (start + rest).partition(b"\r\n\r\n")[2] == want
        slow.close()


def test_large_bodies_are_read_by_number(tmp_path: Path) -> None:
    body = hashlib.sha256(b"large").digest() * 10_000
    with logged(tmp_path) as broker:
        send(broker, 1, body=body)
        (record,) = [one for one in flat(bytes_of(broker, 1)) if one.type_code == records.MESSAGE]
        large = codec.decode_message(record.payload).message.body
        assert not isinstance(large, bytes)
        path = f"/log/bodies/{large.number}"
        assert broker.ask("GET", path).answer == (200, body)
        assert broker.ask("GET", path, Range="bytes=32-63").answer == (206, body[32:64])
        with connected(broker.port) as client:
            client.subscribe("/queue/q", ack="auto")
            assert client.message().body == body
        broker.eventually(
            "it is retained", lambda: list((tmp_path / "kept" / "large").glob("*.body")), lambda found: len(found) == 1
        )
        assert broker.ask("GET", path).answer == (200, body)
        status, text = broker.ask("GET", f"/log/bodies/{large.number + 1}").answer
        assert (status, text) == (404, f"there is no body {large.number + 1}, or it was removed\n".encode())


def test_a_busy_broker_lets_readers_on_its_machine_wait(tmp_path: Path) -> None:
    """Four pieces of 1 MiB at 4 MiB/s: the fourth leaves three quarters of a second after the first at the earliest."""
    acceptors = {"stomp": STOMP, "http": f"{HTTP};busyLogBytesPerSecond=4194304"}
    with logged(tmp_path, acceptors=acceptors) as broker:
        body = bytes(4 << 20)
        send(broker, 1, body=body)
        (record,) = [one for one in flat(bytes_of(broker, 1)) if one.type_code == records.MESSAGE]
        large = codec.decode_message(record.payload).message.body
        assert not isinstance(large, bytes)

        def took_s() -> float:
            began_s = time.monotonic()
            assert broker.ask("GET", f"/log/bodies/{large.number}").answer == (200, body)
            return time.monotonic() - began_s

        # more messages than it can take, from another process
        words = f"perf stomp://{LOOPBACK}:{broker.port} --scenario 1 --seconds 60 --warmup 60".split()
        with program(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            broker.eventually("a reader waits", took_s, lambda seconds: seconds >= 0.75)
        broker.eventually("a reader need not wait", took_s, lambda seconds: seconds < 0.5)


# ---- crashes and starts --------------------------------------------------------------------------


def test_a_killed_broker_tells_the_same_log_again(tmp_path: Path) -> None:
    with logged(tmp_path) as broker:
        send(broker, 250)
        broker.api("/log/cursors/reader", "PUT", {"lsn": 7, "owner": "a query", "ttl_s": 1000})
        before = broker.api("/log")
        cursor = broker.api("/log/cursors/reader")
        broker.kill()
    last = tmp_path / "journal" / index_name(before["segments"][-1]["name"])
    assert not last.exists()
    (tmp_path / "journal" / index_name(before["segments"][1]["name"])).write_bytes(b'{"format":1,"seg')
    (tmp_path / "journal" / "artemis-journal-000000000099.index").write_bytes(b"{}")
    with logged(tmp_path) as broker:
        eventually("the indexes are made", last.exists, bool)
        after = broker.api("/log")
        assert after["id"] == before["id"]
        assert after["durable_lsn"] >= before["durable_lsn"]
        same = [index_part(one) for one in before["segments"]]
        assert [index_part(one) for one in after["segments"]][: len(same)] == same
        for segment in after["segments"]:
            assert index_of(bytes_of(broker, segment["segment"]), is_last=True).fields() == index_part(segment)
        still = broker.api("/log/cursors/reader")
        assert {key: still[key] for key in ("lsn", "owner", "ttl_s", "moved_ms")} == {
            key: cursor[key] for key in ("lsn", "owner", "ttl_s", "moved_ms")
        }
        assert not (tmp_path / "journal" / "artemis-journal-000000000099.index").exists()


def test_a_log_that_begins_anew_has_another_id(tmp_path: Path) -> None:
    ids = []
    for emptied in ((), ("journal",), ("kept",), ("journal", "kept")):
        for name in emptied:
            for path in (tmp_path / name).rglob("*"):
                if path.is_file():
                    path.unlink()
        with logged(tmp_path) as broker:
            ids.append(broker.api("/log")["id"])
    assert ids[0] == ids[1] == ids[2] != ids[3]


# ---- cursors -------------------------------------------------------------------------------------


def pass_through(broker: BrokerProcess, count: int) -> None:
    """Messages that are acknowledged at once, so that their segments are retained."""
    with connected(broker.port) as client:
        client.subscribe("/queue/q", ack="auto")
        for _ in range(count):
            client.ask("SEND", {"destination": "/queue/q", **PERSISTENT}, bytes(500))
            client.message()


def test_a_cursor_holds_what_retention_would_remove_until_it_lapses(tmp_path: Path) -> None:
    """storage-limit is two segments."""
    with logged(tmp_path, kept=LITTLE) as broker:
        broker.api("/log/cursors/slow", "PUT", {"lsn": 0, "owner": "me"})
        pass_through(broker, 700)
        log = broker.api("/log")
        assert log["first_lsn"] == 1
        assert len(log["segments"]) > 8
        cursor = broker.api("/log/cursors/slow")
        assert (cursor["holds"], cursor["is_overtaken"]) == (True, False)
        total = sum(segment["bytes"] for segment in log["segments"])
        assert 0.8 * total < cursor["lag_bytes"] < 1.3 * total
        assert broker.metric("artemis_log_cursor_lag_bytes", cursor="slow") == cursor["lag_bytes"]
        assert broker.metric("artemis_log_cursor_holds", cursor="slow") == 1
        third = log["segments"][2]
        broker.api("/log/cursors/slow", "PUT", {"lsn": third["last_lsn"], "owner": "me"})
        pass_through(broker, 200)
        assert (
            broker.eventually("the read ones go", lambda: broker.api("/log")["first_lsn"], lambda lsn: lsn > 1)
            == third["last_lsn"] + 1
        )
        broker.api("/log/cursors/slow", "PUT", {"lsn": third["last_lsn"], "ttl_s": 0.001})
        pass_through(broker, 200)
        broker.eventually("the rest goes", lambda: len(broker.api("/log")["segments"]), lambda count: count <= 6)
        cursor = broker.api("/log/cursors/slow")
        assert (cursor["holds"], cursor["is_overtaken"]) == (False, True)
        assert broker.metric("artemis_log_overrun_files") == 0


def test_a_full_disk_wins_over_a_cursor(tmp_path: Path) -> None:
    with logged(tmp_path, kept=LITTLE) as broker:
        broker.api("/log/cursors/slow", "PUT", {"lsn": 0, "owner": "me"})
        pass_through(broker, 700)
        held = len(log_files([tmp_path / "kept"]))
        assert held > 5
    with logged(tmp_path, kept=LITTLE, core=CORE.format(0)) as broker:
        left = broker.eventually("they go", lambda: len(log_files([tmp_path / "kept"])), lambda count: count <= 3)
        overrun = broker.metric("artemis_log_overrun_files")
        assert overrun - (held - left) in {0, 1}, "the start deletes the queue, which nobody uses, and its file follows"
        assert broker.metric("artemis_log_overrun_bytes") > (held - left) * 60_000
        told = "was removed from the retained log before these cursors had read it: slow"
        broker.eventually(
            "a line for each file",
            lambda: (broker.said.count(told), broker.metric("artemis_log_overrun_files")),
            lambda counts: counts[0] == counts[1],
        )
        assert broker.api("/log/cursors/slow")["is_overtaken"] is True


def test_cursors_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with logged(tmp_path) as broker:
        url = f"http://{LOOPBACK}:{broker.ports['http']}"
        send(broker, 3)
        broker.api("/log/cursors/one", "PUT", {"lsn": 2, "owner": "the owner"})
        assert main(["cursor", "ls", "--url", url]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("one ")]
        assert line.split()[:2] == ["one", "2"]
        assert line.rstrip().endswith("the owner")
        delete = ["cursor", "delete", "one", "--yes", "--url", url]
        assert main(delete) == 0
        assert main(delete) == 1
        captured = capsys.readouterr()
        assert captured.out.split() == ["removed", "one"]
        assert captured.err == f"artemis-py: {url.removeprefix('http://')}: there is no cursor 'one'\n"
    assert main(["cursor", "ls", "--url", url]) == 1
    assert "nothing listens there" in capsys.readouterr().err


# ---- what cannot be had --------------------------------------------------------------------------


def test_broken_requests(tmp_path: Path) -> None:
    with logged(tmp_path) as broker:
        send(broker, 3)
        size = broker.api("/log")["segments"][0]["bytes"]
        for path, method, status, text in (
            ("/log?after_lsn=x", "GET", 400, "after_lsn must be a number"),
            ("/log?after_lsn=-2", "GET", 400, "after_lsn must be a number"),
            ("/log/", "GET", 404, "no such path"),
            ("/log/segments", "GET", 404, "no such path"),
            ("/log/segments/x", "GET", 404, "is not a segment number"),
            ("/log/segments/-1", "GET", 404, "is not a segment number"),
            ("/log/segments/99", "GET", 404, "segment 99 does not exist yet"),
            ("/log/segments/" + "9" * 30, "GET", 404, "is not a segment number"),
            ("/log/segments/..%2F..%2Fbroker.xml", "GET", 404, "is not a segment number"),
            ("/log/bodies/..%2Fx", "GET", 404, "is not the number of a body"),
            ("/log/segments/1", "PUT", 405, "method not allowed; use GET, HEAD"),
            ("/log/cursors", "DELETE", 405, "method not allowed; use GET, HEAD"),
            ("/log/cursors/c", "POST", 405, "method not allowed; use GET, HEAD, PUT, DELETE"),
            ("/log/cursors/c", "GET", 404, "there is no cursor 'c'"),
            ("/log/cursors/c", "DELETE", 404, "there is no cursor 'c'"),
            ("/log/cursors/c", "PUT", 400, "the request body is not valid JSON"),
        ):
            got, body = broker.ask(method, path).answer
            assert (got, text in body.decode()) == (status, True), (path, method, got, body)
        for fields, status in (({"lsn": 10**9}, 409), ({"lsn": "1"}, 400), ({"lsn": 1, "x": 2}, 400), ([], 400)):
            assert broker.ask("PUT", "/log/cursors/c", fields).status == status
        assert broker.ask("PUT", "/log/cursors/a%20b", {"lsn": 1}).status == 400
        assert broker.ask("GET", "/log/segments/1", Range=f"bytes={size}-").answer == (
            416,
            f"there are only {size} bytes\n".encode(),
        )
        assert len(broker.ask("GET", "/log/segments/1", Range="bytes=zzz").body) == size
        assert broker.ask("HEAD", "/log/segments/1").answer == (200, b"")
        for rubbish in (
            b"PUT /log/cursors/c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n" + bytes(70000),
            b"\0" * 99,
        ):
            with socket.create_connection((LOOPBACK, broker.ports["http"]), timeout=WAIT_S) as broken:
                broken.sendall(rubbish)
                assert broken.recv(12) in (b"HTTP/1.1 413", b"HTTP/1.1 400")
        assert broker.api("/log/cursors") == {"cursors": []}


def test_without_retention_no_cursor_and_without_a_journal_no_log(tmp_path: Path) -> None:
    with logged(tmp_path, kept="") as broker:
        send(broker, 3)
        assert broker.api("/log")["segments"][0]["messages"] == 3
        status, text = broker.ask("PUT", "/log/cursors/c", {"lsn": 1}).answer
        assert (status, b"set journal-retention-directory" in text) == (409, True)
    with logged(tmp_path, kept="", persists=False) as broker:
        for path in ("/log", "/log/segments/1", "/log/cursors", "/log/cursors/c"):
            assert broker.ask("GET", path).answer == (404, b"this broker keeps no log: persistence-enabled is false\n")
