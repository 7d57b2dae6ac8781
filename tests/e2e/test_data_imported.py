"""``artemis-py data imp``: a message is on the queues on which it was, as it was, and on no other; or it is named."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.data_command import END, FIRST, a_broker, a_line, an_export, data, lines, whole_messages
from tests.kit.client import connected
from tests.kit.forks import program
from tests.kit.process import HTTP, WAIT_S, BrokerProcess, anycast
from tests.kit.proxy import Proxy
from tests.kit.secured import USERS, secured_broker

pytestmark = pytest.mark.e2e

OLD = """
      <address name="orders"><anycast><queue name="orders"/></anycast></address>
      <address name="news"><multicast>
        <queue name="news.big"><filter string="kind = 'big'"/></queue><queue name="news.all"/>
      </multicast></address>
      <address name="ring"><anycast><queue name="ring" ring-size="3"/></anycast></address>
      <address name="later"><anycast><queue name="later"/></anycast></address>
      <address name="seen"><anycast><queue name="seen"/></anycast></address>
      <address name="shares.#"><multicast><queue name="shares"/></multicast></address>
      <address name="shares.a"><multicast/></address>
      <address name="view"><anycast><queue name="view" underlying-address="shares.a"/></anycast></address>
"""
ELSEWHERE = OLD.replace(
    '<queue name="orders"/>', '<queue name="orders"><filter string="color = \'red\'"/></queue><queue name="orders.2"/>'
).replace("kind = 'big'", "kind = 'small'")
DIVERTS = """
    <diverts>
      <divert name="d0"><address>orders</address><forwarding-address>taken</forwarding-address>
        <exclusive>true</exclusive></divert>
      <divert name="d1"><address>news</address><forwarding-address>orders</forwarding-address></divert>
      <divert name="d2"><address>shares.a</address><forwarding-address>taken</forwarding-address>
        <exclusive>true</exclusive></divert>
    </diverts>
"""
LARGE = os.urandom(1 << 20) * 3


TOMORROW = round((time.time() + 86_400) * 1000)
SENT: list[tuple[str, bytes, dict[str, object]]] = [
    ("orders", "Tür".encode(), {"color": "blue", "empty": "", "odd name": "a\\cb\\\\c"}),
    ("orders", b"abc", {"content-length": 3}),
    ("orders", bytes(range(256)), {"JMSXGroupID": "g", "priority": 7}),
    ("orders", b"", {}),
    ("orders", b"text of the old broker", {"_AMQ_DUPL_ID": "mine-1", "content-type": "text/plain"}),
    ("orders", LARGE, {"content-length": len(LARGE)}),
    ("orders", b"x" * 70_000, {}),
    ("orders", b"transient", {"persistent": "false"}),
    ("later", b"tomorrow", {"AMQ_SCHEDULED_TIME": TOMORROW}),
    ("later", b"expires", {"expires": TOMORROW, "priority": 0}),
    ("news", b"big", {"kind": "big"}),
    ("news", b"small", {"kind": "small"}),
    *(("ring", b"%d" % number, {}) for number in range(5)),
    ("shares.a", b"share", {}),
]


def _messages(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What each queue has, in order, without the numbers of messages."""
    found: dict[str, list[dict[str, Any]]] = {}
    for message in whole_messages(path):
        del message["id"]
        for name in message.pop("queues"):
            found.setdefault(name, []).append({**message, "due": message.get("due", {}).get(name)})
    return found


@pytest.mark.parametrize(
    ("in_memory", "is_restarted"), [(-1, False), (2, True)], ids=["memory, running", "pages, restarted"]
)
def test_what_comes_is_what_was_there(tmp_path: Path, in_memory: int, is_restarted: bool) -> None:
    """Whatever diverts, filters and a sender's duplicate ids would make of a SEND."""
    with a_broker(tmp_path, "old", OLD) as broker:
        with connected(broker.port) as client:
            for destination, body, headers in SENT:
                client.ask("SEND", {"destination": destination, "persistent": "true", **headers}, body)
        path = an_export(tmp_path, broker)
    pages = f"<max-size-messages>{in_memory}</max-size-messages>"
    with a_broker(tmp_path, "new", ELSEWHERE, core=DIVERTS, settings=pages) as broker:
        with connected(broker.port) as client:  # the id is known there: a SEND would be dropped
            client.publish("orders", range(1), _AMQ_DUPL_ID="mine-1")
        told = data("imp", path, "--url", broker.url)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout == f"imported 18 messages into 18 places on queues of {broker.url}, and made 0 queues\n"
        counts = {name: row["messageCount"] for name, row in broker.rows("queues").items()}
        told = data("imp", path, "--url", broker.url, "--json")
        assert (told.returncode, told.stderr) == (0, "")
        again = json.loads(told.stdout)
        assert (again["places"], again["knownPlaces"]) == (0, 18)
        assert {name: row["messageCount"] for name, row in broker.rows("queues").items()} == counts
        if not is_restarted:
            again = tmp_path / "new" / "out.jsonl"
            assert data("exp", "--url", broker.url, "--output", again).returncode == 0
    if is_restarted:
        with a_broker(tmp_path, "new", ELSEWHERE, core=DIVERTS, settings=pages) as broker:
            again = an_export(tmp_path / "new", broker)
    before, after = _messages(path), _messages(again)
    if is_restarted:
        before["orders"] = [one for one in before["orders"] if one["persistent"]]
    assert after.keys() == before.keys(), "no divert took one, or made a copy"
    for name, messages in before.items():
        assert after[name] == messages
    assert {one["sized"] for one in after["orders"] if "sized" in one} == {True}
    assert len([one for one in after["orders"] if "sized" not in one]) >= 1, "text stays text"


def _import(
    folder: Path, broker: BrokerProcess, *messages: str, first: str = FIRST, words: tuple[str, ...] = ()
) -> Any:
    path = folder / "in.jsonl"
    path.write_text(first + "".join(messages) + END, "utf-8")
    told = data("imp", path, "--url", broker.url, "--json", *words)
    return told.returncode, json.loads(told.stdout) if told.stdout else told.stderr


def _some(queue: str, count: int) -> list[str]:
    return [a_line(id=number, address=queue, queues=[queue], text=str(number)) for number in range(count)]


@pytest.mark.parametrize("policy", ["DROP", "FAIL", "BLOCK"])
def test_a_full_address_refuses_and_the_import_goes_on_later(tmp_path: Path, policy: str) -> None:
    limits = f"<max-size-messages>3</max-size-messages><address-full-policy>{policy}</address-full-policy>"
    with a_broker(tmp_path, "new", anycast("jobs"), settings=limits) as broker:
        code, said = _import(tmp_path, broker, *_some("jobs", 5))
        assert code == 1
        assert "2 for queue jobs: address jobs is full (max-messages); its policy is " + policy in said
        assert "run the same command again to continue" in said
        assert broker.rows("queues")["jobs"]["messageCount"] == 3
        broker.api("/api/queues/jobs/purge", "POST")
        code, told = _import(tmp_path, broker, *_some("jobs", 5))
        assert (code, told["messages"], told["places"]) == (0, 5, 5)
        with connected(broker.port) as client:
            client.subscribe("jobs", ack="auto")
            assert [client.message().body for _ in range(2)] == [b"3", b"4"]
        assert told["knownPlaces"] == 0


def test_places_are_counted_once_however_often_it_stops(tmp_path: Path) -> None:
    limits = "<max-size-messages>2</max-size-messages><address-full-policy>FAIL</address-full-policy>"
    with a_broker(tmp_path, "new", anycast("jobs"), settings=limits) as broker:
        for _ in range(2):
            code, _said = _import(tmp_path, broker, *_some("jobs", 5))
            assert code == 1
            broker.api("/api/queues/jobs/purge", "POST")
        code, told = _import(tmp_path, broker, *_some("jobs", 5))
        assert (code, told["messages"], told["places"], told["knownPlaces"]) == (0, 5, 5, 0)
        code, told = _import(tmp_path, broker, *_some("jobs", 5))
        assert (code, told["messages"], told["places"], told["knownPlaces"]) == (0, 5, 0, 5)


def test_a_queue_that_is_not_durable_there_is_named(tmp_path: Path) -> None:
    with a_broker(
        tmp_path, "new", anycast("jobs").replace("/></any", "><durable>false</durable></queue></any")
    ) as broker:
        code, told = _import(tmp_path, broker, *_some("jobs", 5))
        assert (code, told["messages"], told["places"]) == (1, 5, 5)
        assert told["notes"][0].startswith(
            "NOT DURABLE queue jobs: 5 persistent messages of it go when the broker stops"
        )


LOSSES: dict[str, tuple[str, str, int]] = {
    "missing": ("", "there is no queue missing", 0),
    "disabled": ('enabled="false"', "queue disabled is disabled", 0),
    "noring": ('ring-size="0"', "queue noring keeps no message (ring-size or max-depth is 0)", 0),
    "purged": ('purge-on-no-consumers="true"', "queue purged keeps no message without a consumer", 0),
    "ring": ('ring-size="2"', "REPLACED queue ring: 3 messages gave way when others came", 2),
    "depth": (
        'overflow-policy="RING" max-depth-messages="1"',
        "REPLACED queue depth: 4 messages gave way when others came",
        1,
    ),
    "last": ('last-value-key="color"', "REPLACED queue last: 4 messages gave way when others came", 1),
}
"""By the name of a queue: what it is, what is told of five messages for it, and how many of them stay."""


def test_what_does_not_stay_is_named(tmp_path: Path) -> None:
    addresses = "".join(anycast(name, attributes) for name, (attributes, _, _) in LOSSES.items() if attributes)
    messages = [
        a_line(id=5 * place + number, address=name, queues=[name], text="x", headers=[["color", "red"]])
        for place, name in enumerate(LOSSES)
        for number in range(5)
    ]
    with a_broker(tmp_path, "new", addresses) as broker:
        code, told = _import(tmp_path, broker, *messages)
        assert code == 1
        assert isinstance(told, dict), told
        assert told["messages"] == 15, "those for the last three queues"
        found = broker.rows("queues")
        for name, (attributes, note, left) in LOSSES.items():
            (said,) = [one for one in told["notes"] if f" queue {name}" in one]
            assert note in said
            if attributes:
                assert found[name]["messageCount"] == left == told["messageCounts"][name]
            assert f"it has {left} now" in said or not left
        code, told = _import(tmp_path, broker, *messages)  # what others replaced is not there the next time, either
        assert (code, told["knownPlaces"]) == (1, 15)
        for name, (_, _, left) in LOSSES.items():
            unsure = f"UNSURE queue {name}: 5 places got them in an earlier import, and it has {left} now"
            assert any(unsure in one for one in told["notes"]) == (left > 0)


def test_a_queue_that_rejects_is_named(tmp_path: Path) -> None:
    with a_broker(tmp_path, "new", anycast("jobs", 'overflow-policy="REJECT" max-depth-messages="3"')) as broker:
        code, said = _import(tmp_path, broker, *_some("jobs", 5))
        assert code == 1
        assert "2 for queue jobs: Queue jobs is full" in said
        assert broker.rows("queues")["jobs"]["messageCount"] == 3


def test_a_broker_that_is_killed_meanwhile_has_each_once(tmp_path: Path) -> None:
    """What was answered for survives, and the next run of the command brings the rest."""
    path = tmp_path / "in.jsonl"
    path.write_text(FIRST + "".join(_some("jobs", 2000)) + END, "utf-8")
    notes = Path(f"{path}.imported")
    with closing(Proxy(0, gate=True)) as gate:
        with a_broker(tmp_path, "new", anycast("jobs")) as broker:
            gate.broker_port = broker.ports["http"]
            gate.free.release(2)
            with program("data", "imp", path, "--url", gate.url) as process:
                assert gate.waiting.acquire(timeout=WAIT_S)  # two requests were answered, and the third is made
                broker.kill()
                gate.free.release(1)
                _, errors = process.communicate(timeout=WAIT_S)
            assert process.returncode == 1
            assert errors.startswith("artemis-py: ")
        noted = notes.read_text("utf-8")
        with a_broker(tmp_path, "new", anycast("jobs")) as broker:
            gate.broker_port = broker.ports["http"]
            assert broker.rows("queues")["jobs"]["messageCount"] == 1000
            notes.write_text(json.dumps({**json.loads(noted), "lines": 501}), "utf-8")  # as if no answer had come
            gate.free.release(100)
            told = data("imp", path, "--url", gate.url)
            assert told.returncode == 0, told.stderr
            assert "(500 places got them in an earlier import)" in told.stdout
            with connected(broker.port) as client:
                client.subscribe("jobs", ack="auto")
                assert [client.message().body for _ in range(2000)] == [b"%d" % number for number in range(2000)]
            assert broker.rows("queues")["jobs"]["messageCount"] == 0
    assert not notes.exists()


def test_only_who_has_the_right_may(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(FIRST + "".join(_some("jobs", 1)) + END, "utf-8")
    password = tmp_path / "password"
    password.touch(0o600)
    with secured_broker(tmp_path) as broker:
        for user, code in (("eve", 1), ("ann", 0)):
            password.write_text(USERS[user], "utf-8")
            told = data("imp", path, "--url", broker.url, "--user", user, "--password-file", password)
            assert told.returncode == code, told.stderr
            if code:
                assert "does not have permission='EDIT'" in told.stderr
                assert "importMessages" in told.stderr


def test_requests_that_make_no_sense(tmp_path: Path) -> None:
    """They are refused in words, and what came before them stands."""
    good = _some("jobs", 1)[0]
    with a_broker(tmp_path, "new", anycast("jobs")) as broker:
        for lines_, said in (
            ("", "is not a line of an export"),
            ("{}", "is not a line of an export"),
            (good, "line 1: the first line of an export says what it is"),
            (FIRST + good + '{"message":{"id":2}}\n', "line 3: this message is incomplete or wrong"),
            (FIRST + good.replace('"headers": []', '"headers": [["a", "\\u0000"]]'), "a header has a NUL"),
            (FIRST + good.replace('"headers": []', '"headers": [["a", "\\ud800"]]'), "a part of a character"),
            (FIRST + good.replace('"id": 0', '"id": 0, "priority": 12'), "a priority is 0 to 9"),
            (FIRST + good.replace('"text": "0"', '"piece_bytes": 9'), "9 bytes of this message's body are missing"),
            (FIRST + '{"piece":"AAAA"}\n', "a line of 'piece' has no place here"),
        ):
            reply = broker.ask("POST", "/api/import", lines_.encode())
            assert (reply.status, said in reply.error) == (400, True), reply.body
        assert broker.rows("queues")["jobs"]["messageCount"] == 1


def test_the_lines_of_an_export_are_what_http_takes(tmp_path: Path) -> None:
    """A whole file is one request, and the answer counts what is on the queues."""
    with a_broker(tmp_path, "old", anycast("jobs")) as broker:
        with connected(broker.port) as client:
            client.publish("jobs", range(2))
        path = an_export(tmp_path, broker)
        assert len(lines(path, "message")) == 2
        told = broker.ask("POST", "/api/import", path.read_bytes()).json
    share = {"placed": 2, "known": 0, "replaced": 0, "transient": 0, "refused": 0, "reason": None, "isFull": False}
    assert told == {"messages": 2, "came": 2, "queues": {"jobs": {**share, "messageCount": 4, "givesWay": False}}}


def test_bodies_are_as_large_as_the_acceptor_allows(tmp_path: Path) -> None:
    """A request has room for many of them; one that is larger is refused with the setting that says so."""
    with a_broker(tmp_path, "new", anycast("jobs"), http=f"{HTTP};maxBodyBytes=100000") as broker:
        body = "x" * 100_000
        lines_ = [line.replace('"text": "', f'"text": "{body[:-9]}') for line in _some("jobs", 60)]
        code, told = _import(tmp_path, broker, *lines_)
        assert (code, told["places"]) == (0, 60)
        code, said = _import(tmp_path, broker, a_line(address="jobs", queues=["jobs"], text=body + "x"))
        assert code == 1
        assert "this body has 100001 bytes, and maxBodyBytes is 100000" in said
