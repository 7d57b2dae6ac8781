"""``artemis-py data imp`` makes what is missing: a broker that had nothing has all queues of another one."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.data_command import END, FIRST, a_broker, a_line, an_export, data, noted_by
from tests.kit.client import connected
from tests.kit.forks import program, run_text
from tests.kit.process import WAIT_S, BrokerProcess, eventually
from tests.kit.secured import USERS, secured_broker

pytestmark = pytest.mark.e2e

DECLARED = """
      <address name="jobs">
        <anycast>
          <queue name="jobs" max-consumers="3" exclusive="true"/>
          <queue name="jobs.red"><filter string="color = 'red'"/></queue>
        </anycast>
      </address>
      <address name="prices"><multicast><queue name="prices.last" last-value-key="symbol"/></multicast></address>
      <address name="groups"><anycast>
        <queue name="groups" group-buckets="8" group-rebalance="true"/>
      </anycast></address>
      <address name="leased"><anycast>
        <queue name="leased" lease-period="60000" max-backlog="100" max-per-subscription-backlog="5"/>
      </anycast></address>
      <address name="sorted"><anycast><queue name="sorted" queue-type="sorted" sort-key="rank"/></anycast></address>
      <address name="both"><anycast><queue name="both.any"/></anycast><multicast><queue name="both.multi"/></multicast>
      </address>
"""
CREATED: list[dict[str, Any]] = [
    {"name": "ring", "routing-type": "ANYCAST", "ring-size": 3},
    {"name": "deep", "routing-type": "ANYCAST", "overflow-policy": "REJECT", "max-depth-messages": 50},
    {"name": "brief", "address": "stocks", "routing-type": "MULTICAST", "filter-string": "price > 10",
     "auto-delete": True, "auto-delete-delay": 3_600_000},
    {"name": "odd / name: 1", "routing-type": "ANYCAST", "purge-on-no-consumers": False},
    {"name": "stopped", "routing-type": "ANYCAST"},
    {"name": "closed", "routing-type": "ANYCAST"},
]  # fmt: skip
DURABLE = {"durable-subscription-name": "news", "selector": "kind = 'big'"}
OF_ITS_LIFE = frozenset({"id", "persistentSize", "firstMessageAge", "declaredAt", "messagesAdded", "messagesReplaced"})
"""What a queue is by where it came from, and what it has seen."""


def shape_of(broker: BrokerProcess) -> tuple[dict[str, Any], dict[str, Any]]:
    """What queues must have in common with those that they were: attributes, state and depth; and their addresses."""
    queues, addresses = broker.rows("queues"), broker.rows("addresses")
    for row in queues.values():
        row["life"] = "created" if row["life"] == "declared" else row["life"]
        for name in OF_ITS_LIFE:
            del row[name]
    return queues, {name: (row["routingTypes"], row["paused"]) for name, row in addresses.items()}


def _fill(broker: BrokerProcess) -> None:
    """What operators and clients do of queues, and messages on all of them."""
    for one in CREATED:
        broker.api("/api/queues", "POST", {"auto-create-address": True, **one})
    broker.api("/api/addresses", "POST", {"address": "empty", "routing-types": "ANYCAST,MULTICAST"})
    broker.api("/api/addresses/empty/pause", "POST")
    broker.api("/api/queues/stopped/pause", "POST")
    with connected(broker.port, **{"client-id": "bob"}) as client:
        client.ask("SUBSCRIBE", {"destination": "/topic/both", "id": "1", **DURABLE})
    with connected(broker.port) as client:
        client.publish("/queue/jobs", range(3), color="red")
        client.publish("/topic/prices", range(4), symbol="a")
        client.publish("/topic/prices", range(2), symbol="b")
        client.publish("/queue/groups", range(3), JMSXGroupID="g")
        client.publish("/queue/leased", range(3))
        client.publish("/queue/sorted", range(3), rank=1)
        client.publish("/queue/both", range(2))
        client.publish("/topic/both", range(2), kind="big")
        client.publish("/topic/both", range(2), kind="small")
        client.publish("/queue/ring", range(9))
        client.publish("/queue/deep", range(5))
        client.publish("/topic/stocks", range(5), price=11)
        client.publish("/topic/stocks", range(5), price=9)
        client.publish("/queue/odd / name\\c 1", range(2))
        client.publish("/queue/stopped", range(2))
        client.publish("/queue/closed", range(2))
        client.publish("/queue/automatic", range(2))
    broker.api("/api/queues/closed/disable", "POST")


@pytest.mark.parametrize("is_stopped", [False, True], ids=["running", "stopped"])
def test_a_broker_that_has_nothing_gets_everything(tmp_path: Path, is_stopped: bool) -> None:
    with a_broker(tmp_path, "old", DECLARED, creates=True) as broker:
        _fill(broker)
        queues, addresses = before = shape_of(broker)
        if not is_stopped:
            path = an_export(tmp_path, broker)
    if is_stopped:
        path = tmp_path / "out.jsonl"
        assert data("exp", tmp_path / "old" / "broker.xml", "--output", path).returncode == 0
    assert len(queues) == 16
    assert queues["closed"]["enabled"] is False
    assert queues["stopped"]["paused"] is True
    assert queues["automatic"]["life"] == "auto-created"
    assert addresses["empty"][1] is True
    with a_broker(tmp_path, "new") as broker:
        told = data("imp", path, "--url", broker.url)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.endswith(f"on queues of {broker.url}, and made 16 queues\n")
        assert shape_of(broker) == before
        told = data("imp", path, "--url", broker.url)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout.endswith("and made 0 queues\n")
        assert shape_of(broker) == before
    with a_broker(tmp_path, "new") as broker:
        assert shape_of(broker) == before
        with connected(broker.port) as client:
            assert [one.header("symbol") for one in client.take("/queue/prices::prices.last", 2)] == ["a", "b"]
            assert [one.body for one in client.take("/queue/ring", 3)] == [b"6", b"7", b"8"]
        with connected(broker.port, **{"client-id": "bob"}) as client:
            client.subscribe("/topic/both", id="1", ack="auto", **DURABLE)
            assert [client.message().body for _ in range(2)] == [b"0", b"1"], "he has what came while he was away"


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    with a_broker(tmp_path, "old", DECLARED, creates=True) as broker:
        _fill(broker)
        path = an_export(tmp_path, broker)
    mine = """
      <address name="jobs"><anycast><queue name="jobs" max-consumers="7"/></anycast></address>
      <address name="elsewhere"><anycast><queue name="leased"/></anycast></address>
    """
    with a_broker(tmp_path, "new", mine) as broker:
        told = data("imp", path, "--url", broker.url, "--queue", "jobs", "--queue", "leased", "--queue", "ring")
        assert told.returncode == 1
        assert told.stdout == (f"imported 5 messages into 5 places on queues of {broker.url}, and made 1 queue\n"), (
            told.stderr
        )
        assert told.stderr == (
            "MISSING queue leased: there it is on address elsewhere, not on leased; 3 messages of it were not imported "
            "(later: --queue leased)\n"
        )
        found = broker.rows("queues")
        assert {name: row["maxConsumers"] for name, row in found.items()} == {"jobs": 7, "leased": -1, "ring": -1}
        assert (found["ring"]["ringSize"], found["ring"]["messageCount"]) == (3, 3)
        assert set(broker.rows("addresses")) == {"jobs", "elsewhere", "leased", "ring"}


def test_a_queue_that_the_broker_refuses(tmp_path: Path) -> None:
    """Its messages are counted, also over a kill, and can come later."""
    path = tmp_path / "out.jsonl"
    queues = [
        {"name": "good", "address": "good", "routing_type": "ANYCAST"},
        {"name": "bad", "address": "bad", "routing_type": "ANYCAST", "filter": "color = = 'red'"},
        {"name": "own", "address": "$.artemis.internal.x.address.retro", "routing_type": "ANYCAST"},
        {"name": "new", "address": "new", "routing_type": "ANYCAST", "attributes": {"of_later_versions": 1}},
    ]
    made = "".join(json.dumps({"queue": one}) + "\n" for one in queues)
    one = a_line(id=2, address="bad", queues=["bad", "good"], text="x")
    path.write_text(FIRST + made + a_line(address="good", queues=["good"], text="x") + one + END, "utf-8")
    with a_broker(tmp_path, "new") as broker:
        told = data("imp", path, "--url", broker.url)
        assert told.returncode == 1
        assert "and made 1 queue\n" in told.stdout
        bad, new, own = told.stderr.splitlines()
        assert bad.startswith("MISSING queue bad: ")
        assert "filter" in bad
        assert bad.endswith("; 1 message of it was not imported (later: --queue bad)")
        assert "of-later-versions" in new
        assert own.startswith("MISSING queue own: it is a broker's own")
        assert broker.rows("queues")["good"]["messageCount"] == 2
        broker.api("/api/queues", "POST", {"name": "bad", "routing-type": "ANYCAST", "auto-create-address": True})
        told = data("imp", path, "--url", broker.url, "--queue", "bad")
        assert told.returncode == 0, told.stderr
        assert broker.rows("queues")["bad"]["messageCount"] == 1


def test_an_import_that_is_killed_after_it_made_queues(tmp_path: Path) -> None:
    """It goes on, makes what is missing still, tells what it left out before, and disables a queue in the end."""
    first = [
        {"name": "good", "address": "good", "routing_type": "ANYCAST", "attributes": {"enabled": False}},
        {"name": "still", "address": "still", "routing_type": "ANYCAST", "paused": True},
        {"name": "bad", "address": "bad", "routing_type": "ANYCAST", "filter": "color = = 'red'"},
    ]
    head = FIRST + "".join(json.dumps({"queue": one}) + "\n" for one in first)

    messages = [a_line(id=number, address="x", queues=["good", "bad"], text=str(number)) for number in range(1000)]
    path = tmp_path / "out.jsonl"
    notes = Path(f"{path}.imported")
    os.mkfifo(path)
    with a_broker(tmp_path, "new") as broker:
        with program("data", "imp", path, "--url", broker.url) as process, path.open("w") as feed:
            feed.write(head + messages[0])
            feed.flush()
            eventually("made", lambda: broker.rows("queues"), lambda seen: seen.get("still", {}).get("paused") is True)
            process.send_signal(signal.SIGKILL)
        assert (noted_by(path)["lines"], noted_by(path)["unsettled"]) == (0, ["queue.good", "queue.still"])
        with program("data", "imp", path, "--url", broker.url) as process, path.open("w") as feed:
            feed.write(head + "".join(messages[:600]))
            feed.flush()
            eventually("noted", lambda: noted_by(path), lambda noted: noted["lines"] > 500)
            process.send_signal(signal.SIGKILL)
        noted = noted_by(path)
        assert (noted["unsettled"], noted["left_out"]["bad"]) == (["queue.good", "queue.still"], noted["messages"])
        path.unlink()
        path.write_text(head + "".join(messages) + END, "utf-8")
        found = broker.rows("queues")
        assert (found["good"]["enabled"], found["still"]["paused"]) == (True, True)
        broker.api("/api/queues/still/resume", "POST")  # as if it had been killed before it paused the queue
        told = data("imp", path, "--url", broker.url, "--queue", "good")
        assert "is about an import with other --queue" in told.stderr
        broker.api("/api/queues", "POST", {"name": "bad", "routing-type": "ANYCAST", "auto-create-address": True})
        told = data("imp", path, "--url", broker.url)
        assert told.returncode == 1
        missing = noted["left_out"]["bad"]
        assert told.stderr.startswith("MISSING queue bad: filter of queue 'bad' is not a valid selector: ")
        assert told.stderr.endswith(f"; {missing} messages of it were not imported (later: --queue bad)\n")
        found = broker.rows("queues")
        assert (found["good"]["messageCount"], found["good"]["enabled"]) == (1000, False)
        assert found["still"]["paused"] is True
        assert found["bad"]["messageCount"] == 1000 - missing
        broker.eventually(
            "no queue of replies", lambda: set(broker.rows("queues")), lambda seen: seen == {"good", "bad", "still"}
        )
        assert not notes.exists()


def test_what_lies_on_other_addresses(tmp_path: Path) -> None:
    """Queues of wildcard addresses, and views, get their messages alone."""
    addresses = """
      <address name="news.#"><multicast><queue name="all"/></multicast></address>
      <address name="news.a"><multicast/></address>
      <address name="view"><anycast><queue name="view" underlying-address="news.a"/></anycast></address>
    """
    with a_broker(tmp_path, "old", addresses) as broker:
        with connected(broker.port) as client:
            client.publish("/topic/news.a", range(3))
        path = an_export(tmp_path, broker)
    with a_broker(tmp_path, "new") as broker:
        told = data("imp", path, "--url", broker.url)
        assert (told.returncode, told.stderr) == (0, "")
        assert told.stdout == f"imported 6 messages into 6 places on queues of {broker.url}, and made 2 queues\n"
        assert {name: row["messageCount"] for name, row in broker.rows("queues").items()} == {"all": 3, "view": 3}
        with connected(broker.port) as client:
            client.publish("/topic/news.a", range(1))
        assert {name: row["messageCount"] for name, row in broker.rows("queues").items()} == {"all": 4, "view": 4}
    with a_broker(tmp_path, "new") as broker, connected(broker.port) as client:
        for name in ("news.#::all", "view::view"):
            assert [one.body for one in client.take(f"/queue/{name}", 4)] == [b"0", b"1", b"2", b"0"]


# ---- where one may not make anything -----------------------------------------------------------------


def test_a_user_who_may_not_look(tmp_path: Path) -> None:
    """One warning; queues that are there get their messages, and the others are named."""
    path = tmp_path / "out.jsonl"
    queue = {"queue": {"name": "fresh", "address": "fresh", "routing_type": "ANYCAST"}}
    messages = a_line(address="fresh", queues=["fresh"], text="x") + a_line(address="jobs", queues=["jobs"], text="y")
    path.write_text(FIRST + json.dumps(queue) + "\n" + messages + END, "utf-8")
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text(USERS["eve"], "utf-8")
    may_import = (
        '<security-setting match="mops.broker.importMessages"><permission type="edit" roles="workers"/>'
        "</security-setting>"
    )
    with secured_broker(tmp_path, permissions=may_import) as broker:
        with connected(broker.port, login="ann", passcode=USERS["ann"]) as client:
            client.publish("jobs", range(1))
        login = ("--url", broker.url, "--user", "eve", "--password-file", password)
        told = data("imp", path, *login)
        assert told.returncode == 1
        warning, missing = told.stderr.splitlines()
        assert warning.startswith("no queues are created: AMQ229032: User: eve does not have permission='VIEW'")
        assert missing == (
            "MISSING queue fresh: there is no queue fresh; 1 message of it was not imported (later: --queue fresh)"
        )
        assert told.stdout == f"imported 1 message into 1 place on queues of {broker.url}\n"


def test_a_user_who_may_not_make_queues(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    queue = {"queue": {"name": "fresh", "address": "fresh", "routing_type": "ANYCAST"}}
    path.write_text(FIRST + json.dumps(queue) + "\n" + a_line(address="fresh", queues=["fresh"], text="x") + END)
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text(USERS["bob"], "utf-8")
    with secured_broker(tmp_path) as broker:
        told = data("imp", path, "--url", broker.url, "--user", "bob", "--password-file", password)
        assert told.returncode == 1
        assert told.stderr.startswith("MISSING queue fresh: its address fresh could not be made: ")
        assert "createAddress" in told.stderr
        assert "1 message of it was not imported" in told.stderr


# ---- words -----------------------------------------------------------------------------------------


def test_the_words_of_other_commands(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(FIRST + END, "utf-8")
    told = data("imp", path, "--stomp", "stomp://127.0.0.1:1")
    assert told.returncode == 2
    assert "it goes to the HTTP acceptor of a broker, which says what is on its queues; write --url URL" in told.stderr
    assert "--stomp" not in data("imp", "--help").stdout
    config = tmp_path / "config" / "artemis-py"
    config.mkdir(parents=True)
    with secured_broker(tmp_path) as broker:
        password = config / "password"
        password.touch(0o600)
        password.write_text(USERS["ann"], "utf-8")
        (config / "contexts.toml").write_text(
            f'[here]\nurl = "{broker.url}"\nuser = "ann"\npassword-file = "password"\n', "utf-8"
        )
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}
        for words, variables in (
            (["--context", "here"], {}),
            ([], {"ARTEMIS_PY_CONTEXT": "here"}),
            ([], {"ARTEMIS_PY_URL": broker.url, "ARTEMIS_PY_USER": "ann", "ARTEMIS_PY_PASSWORD": USERS["ann"]}),
        ):
            done = run_text(
                ["data", "imp", str(path), *words], environment={**environment, **variables}, timeout=WAIT_S
            )
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout == f"imported 0 messages into 0 places on queues of {broker.url}\n"


def test_a_destination_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with a_broker(tmp_path, "new") as broker:
        for line, said in (
            (
                {"queue": {"name": "x"}},
                "out.jsonl:2: this queue is incomplete or wrong: KeyError('routing_type')",
            ),
            (
                {"address": {"name": "x", "routing_types": "ANYCAST"}},
                "out.jsonl:2: this address is incomplete or wrong",
            ),
            ({"queue": 3}, "out.jsonl:2: this queue is incomplete or wrong"),
        ):
            path.write_text(FIRST + json.dumps(line) + "\n" + END, "utf-8")
            told = data("imp", path, "--url", broker.url)
            assert told.returncode == 1
            assert said in told.stderr
            assert "Traceback" not in told.stderr
