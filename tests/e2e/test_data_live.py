"""``artemis-py data exp --url``: what a running broker has, while it goes on, and when it or the command is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.data_command import (
    BINARY,
    LARGE,
    data,
    lines,
    noted_by,
    send_many_things,
    stocked,
    whole_messages,
)
from tests.kit.client import connected
from tests.kit.forks import program, run_text
from tests.kit.meanwhile import meanwhile
from tests.kit.process import WAIT_S
from tests.kit.proxy import Proxy
from tests.kit.secured import USERS, secured_broker

pytestmark = pytest.mark.e2e
FIRST_REQUESTS = 3
"""So many requests come before the first page of messages: what the broker is, and which queues it has."""
_ONLY_EDITORS = """\
<security-setting match="mops.queue.locked.browse"><permission type="view" roles="editors"/></security-setting>"""


def by_queue(path: Path) -> Counter[str]:
    """The addresses, the queues, and what each queue needs of messages."""
    found = Counter(f"{kind} {value}" for kind in ("address", "queue") for value in lines(path, kind))
    for message in whole_messages(path):
        for name in message.pop("queues"):
            own = {key: message.get(key, {}).get(name) for key in ("attempts", "due")}
            found[str(sorted({**message, **own, "queue": name}.items()))] += 1
    return found


def test_it_has_the_lines_that_a_stopped_broker_has(tmp_path: Path) -> None:
    with stocked(tmp_path) as broker:
        with connected(broker.port) as client:
            send_many_things(client)
        told = data("exp", "--url", broker.url, "--output", tmp_path / "live.jsonl")
        assert (told.returncode, told.stdout) == (0, ""), told.stderr
        assert broker.stop() == 0
    assert (tmp_path / "live.jsonl").stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in tmp_path.glob("live*")) == ["live.jsonl"]
    assert data("exp", tmp_path / "old" / "broker.xml", "--output", tmp_path / "stopped.jsonl").returncode == 0
    (transient,) = [one for one in lines(tmp_path / "live.jsonl", "message") if not one["persistent"]]
    assert transient["text"].startswith("transient")
    live, stopped = by_queue(tmp_path / "live.jsonl"), by_queue(tmp_path / "stopped.jsonl")
    assert not [line[:300] for line in stopped - live], [line[:300] for line in live - stopped]
    (more,) = [line for line in live - stopped if not line.startswith("address ")]  # declared ones are not remembered
    assert transient["text"] in more
    (end,) = lines(tmp_path / "live.jsonl", "end")
    assert end["messages"] == len(lines(tmp_path / "live.jsonl", "message")) == 28
    assert end["body_bytes"] > len(LARGE) + len(BINARY)


def test_another_broker_gets_the_same_messages(tmp_path: Path) -> None:
    with stocked(tmp_path, "old", -1) as broker, connected(broker.port) as client:
        send_many_things(client)
        told = data("exp", "--url", broker.url, "--output", tmp_path / "out.jsonl")
        assert told.returncode == 0, told.stderr
        there = client.take("/queue/orders", 23)
    with stocked(tmp_path, "new", -1) as broker:
        told = data("imp", tmp_path / "out.jsonl", "--url", broker.url)
        assert told.returncode == 0, told.stderr
        with connected(broker.port) as client:
            here = client.take("/queue/orders", 23)
            (today,) = client.take("/queue/later", 1)
            assert [one.body for one in client.take("/queue/news::news.a", 1)] == [b"second"]
            assert [one.body for one in client.take("/queue/news::news.b", 2)] == ["für zwei".encode(), b"second"]
    names = ("priority", "color", "kind", "persistent", "expires", "content-length")
    shown = [[(one.body, [one.header(name) for name in names]) for one in some] for some in (there, here)]
    assert shown[0] == shown[1]
    assert today.body == b"today"


# ---- while others work -----------------------------------------------------------------------------


@pytest.mark.parametrize("in_memory", [-1, 500], ids=["memory", "pages"])
def test_what_stays_is_in_it_once_whatever_others_do(tmp_path: Path, in_memory: int) -> None:
    """A consumer takes messages from the front and settles some; others come."""
    with stocked(tmp_path, "old", in_memory) as broker:
        with connected(broker.port) as client:
            client.publish("/queue/orders", range(8_001))
        with connected(broker.port) as client, connected(broker.port) as sender:
            client.subscribe("/queue/orders", id="worker", ack="client-individual")
            settled: set[int] = set()

            def work() -> None:
                taken = client.message()
                client.acknowledge(taken)
                settled.add(int(taken.body))
                sender.send("SEND", {"destination": "/queue/orders", "persistent": "true"}, b"99999")

            with meanwhile(work):
                told = data("exp", "--url", broker.url, "--output", tmp_path / "out.jsonl")
        assert told.returncode == 0, told.stderr
    found = Counter(int(one["text"]) for one in lines(tmp_path / "out.jsonl", "message"))
    found.pop(99999, None)
    assert set(found.values()) == {1}
    assert settled, "nothing was settled meanwhile"
    assert set(range(8001)) - set(found) <= settled


ROUNDS = 8
"""Then nothing comes back any more; after ten attempts it would be dead."""


def test_what_comes_back_meanwhile_is_in_it_once(tmp_path: Path) -> None:
    """Clients take what the export has not reached, and leave."""
    with stocked(tmp_path, "old", -1) as broker:
        with connected(broker.port) as client:
            client.publish("/queue/orders", range(10_001))
        rounds: list[int] = []

        def work() -> None:
            with connected(broker.port) as client:
                client.subscribe("/queue/orders", id="worker", ack="client-individual")
                client.message()
            rounds.append(1)

        with meanwhile(work, ROUNDS):
            told = data("exp", "--url", broker.url, "--output", tmp_path / "out.jsonl")
        assert told.returncode in (0, 1), told.stderr
    assert rounds
    found = Counter(int(one["text"]) for one in lines(tmp_path / "out.jsonl", "message"))
    assert set(found.values()) == {1}
    if told.returncode == 0:
        assert set(found) == set(range(10_001))
    else:
        assert "UNSURE queue orders: messages came back to it all the time" in told.stderr


# ---- kills -----------------------------------------------------------------------------------------


@contextmanager
def _exporting(gate: Proxy, path: Path, requests: int) -> Iterator[subprocess.Popen[str]]:
    """An export that has made so many requests more, and waits for the answer to the next one."""
    gate.free.release(requests)
    with program("data", "exp", "--url", gate.url, "--output", path) as process:
        assert gate.waiting.acquire(timeout=WAIT_S)
        yield process


def test_an_export_that_is_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with stocked(tmp_path, "old", 5000) as broker, closing(Proxy(broker.ports["http"], gate=True)) as gate:
        with connected(broker.port) as client:
            client.publish("/queue/orders", range(12_001))
        with connected(broker.port) as client:
            client.publish("/queue/later", range(11))
        counts = []
        for _ in range(3):
            with _exporting(gate, path, FIRST_REQUESTS + 3) as process:
                process.send_signal(signal.SIGKILL)
            with Path(f"{path}.part").open("ab") as file:
                file.write(b'{"message":{"id":1,"addr')  # as if it had been killed while it wrote a page
            counts.append(noted_by(path, "progress")["messages"])
        assert 0 < counts[0] < counts[1] < counts[2] < 12_000
        told = data("exp", "--url", broker.url, "--output", path)
        assert f"{path}.progress is about the export from {gate.url}; remove both" in told.stderr
        gate.free.release(100)
        told = data("exp", "--url", gate.url, "--output", path)
        assert told.returncode == 0, told.stderr
        assert f"continued after {counts[2]:,} messages" in told.stderr
    _has_each_once(path, 12_001)
    assert sorted(one.name for one in tmp_path.glob("out*")) == ["out.jsonl"]


def test_only_one_export_writes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with stocked(tmp_path, "old", -1) as broker, closing(Proxy(broker.ports["http"], gate=True)) as gate:
        with connected(broker.port) as client:
            client.publish("/queue/orders", range(3_001))
        with _exporting(gate, path, FIRST_REQUESTS + 1) as process:
            told = data("exp", "--url", gate.url, "--output", path)
            assert told.stderr == f"artemis-py: {path}.part is being written by another export\n"
            gate.free.release(100)
            assert process.wait(WAIT_S) == 0
    _has_each_once(path, 3001)


def _has_each_once(path: Path, count: int) -> None:
    orders = [int(one["text"]) for one in lines(path, "message") if one["queues"] == ["orders"]]
    assert Counter(orders) == Counter(range(count))
    (end,) = lines(path, "end")
    assert end["messages"] == len(lines(path, "message"))


def test_a_broker_that_is_killed_and_started_meanwhile(tmp_path: Path) -> None:
    """Its places mean nothing to the next run: the queue is looked at again, and each message is there once."""
    path = tmp_path / "out.jsonl"
    with closing(Proxy(0, gate=True)) as gate:
        with stocked(tmp_path, "old", 5000) as broker:
            gate.broker_port = broker.ports["http"]
            with connected(broker.port) as client:
                client.publish("/queue/orders", range(12_001))
            with _exporting(gate, path, FIRST_REQUESTS + 3) as process:
                broker.kill()
                gate.free.release(1)
                _, errors = process.communicate(timeout=WAIT_S)
        assert process.returncode == 1
        assert errors.rstrip().endswith("; run the same command again to continue")
        before = noted_by(path, "progress")["messages"]
        assert 0 < before < 12_000
        with stocked(tmp_path, "old", 5000) as broker:
            gate.broker_port = broker.ports["http"]
            gate.free.release(100)
            told = data("exp", "--url", gate.url, "--output", path)
            assert told.returncode == 0, told.stderr
            assert f"continued after {before:,} messages" in told.stderr
    _has_each_once(path, 12_001)


# ---- what cannot be done ---------------------------------------------------------------------------


def test_what_somebody_may_not_see_is_named(tmp_path: Path) -> None:
    with secured_broker(tmp_path, permissions=_ONLY_EDITORS) as broker:
        with connected(broker.port, login="ann", passcode=USERS["ann"]) as client:
            for name in ("jobs", "locked"):
                client.ask("SEND", {"destination": name, "persistent": "true"}, name.encode())
        password = tmp_path / "password"
        password.write_text(USERS["bob"], "utf-8")
        password.chmod(0o600)
        login = ("--url", broker.url, "--user", "bob", "--password-file", password)
        told = data("exp", *login, "--output", tmp_path / "out.jsonl")
        assert told.returncode == 1
        assert "MISSING queue locked: you may not browse it" in told.stderr
        assert [one["text"] for one in lines(tmp_path / "out.jsonl", "message")] == ["jobs"]
        password.write_text(USERS["eve"], "utf-8")
        told = data(
            "exp", "--url", broker.url, "--user", "eve", "--password-file", password, "--output", tmp_path / "x"
        )
        assert told.returncode == 1
        assert "does not have permission" in told.stderr
    assert not list(tmp_path.glob("x*"))


def test_what_makes_no_sense(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with stocked(tmp_path) as broker:
        with connected(broker.port) as client:
            client.publish("/queue/orders", range(4))
        told = data("exp", tmp_path / "old" / "broker.xml", "--url", broker.url)
        assert "is for a stopped broker, and --url and --context for a running one" in told.stderr
        told = data("exp", "--url", broker.url, "--queue", "nix", "--output", path)
        assert told.stderr == f"artemis-py: there is no durable queue nix on {broker.url.removeprefix('http://')}\n"
        assert list(tmp_path.glob("out*")) == []
        told = data("exp", "--url", broker.url, "--queue", "later")
        assert [line for line in told.stdout.splitlines() if "message" in json.loads(line)] == []
        named = run_text(
            ["data", "exp", "--queue", "orders"],
            environment={**os.environ, "ARTEMIS_PY_URL": broker.url}, folder=tmp_path, timeout=120,
        )  # fmt: skip
        kept = [json.loads(line) for line in named.stdout.splitlines()]
        assert Counter(next(iter(line)) for line in kept) == {
            "export": 1, "address": 1, "queue": 1, "message": 4, "end": 1,
        }  # fmt: skip
        assert [line["queue"]["name"] for line in kept if "queue" in line] == ["orders"]
        path.touch()
        told = data("exp", "--url", broker.url, "--output", path)
        assert told.stderr == f"artemis-py: {path} is there already; name another file, or remove it\n"


def test_a_queue_that_is_deleted_meanwhile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with stocked(tmp_path, "old", -1) as broker, closing(Proxy(broker.ports["http"], gate=True)) as gate:
        with connected(broker.port) as client:
            client.publish("/queue/gone", range(3_001))
        with _exporting(gate, path, FIRST_REQUESTS + 2) as process:
            run_text(["queue", "delete", "gone", "--yes", "--url", broker.url], timeout=WAIT_S, check=True)
            gate.free.release(100)
            _, errors = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, errors
        assert "queue gone was deleted meanwhile" in errors


@pytest.mark.parametrize("in_memory", [-1, 50], ids=["memory", "pages"])
def test_a_browse_goes_on_from_a_cursor(tmp_path: Path, in_memory: int) -> None:
    with stocked(tmp_path, "old", in_memory) as broker:
        with connected(broker.port) as client:
            client.publish("/queue/orders", range(1_000))
        found: list[Any] = []
        after = ""
        while after is not None:
            path = f"/api/queues/orders/messages?size=7&after={after}&fields=BodyPreview"
            page = broker.ask("GET", path).json
            found += [row["BodyPreview"] for row in page["data"]]
            after = page["next"]
        assert found == [str(number) for number in range(1000)]
