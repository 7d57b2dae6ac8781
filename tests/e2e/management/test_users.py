"""Users of a running broker: who sees and changes them, from when on that counts, and that no password is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote as escaped

import pytest

from tests.e2e.management.test_denied import status_of
from tests.kit import http
from tests.kit.client import StompSocket
from tests.kit.process import BrokerProcess
from tests.kit.secured import USERS, basic, secured_broker

pytestmark = pytest.mark.e2e


SECRET = "open sesame"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker where users log in."""
    with secured_broker(tmp_path) as broker:
        yield broker


def ask(
    broker: BrokerProcess, user: str, method: str, path: str, sent: object = None, password: str | None = None
) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    reply = http.ask(broker.ports["http"], method, path, sent, Authorization=basic(user, password))
    text = reply.body.decode()
    return reply.status, json.loads(text) if text.startswith("{") else text


def users_of(broker: BrokerProcess) -> dict[str, dict[str, Any]]:
    """What bob, who may look, is told of each."""
    return {row["name"]: row for row in ask(broker, "bob", "GET", "/api/users")[1]["data"]}


def test_who_is_there_and_who_was(tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker, StompSocket(broker.port) as client:
        client.connect(login="eve", passcode=USERS["eve"])
        found = users_of(broker)
        assert {name: (row["roles"], row["connectionCount"], row["lastLogin"] > 0) for name, row in found.items()} == {
            "ann": ("editors,workers", 0, False),
            "bob": ("viewers,workers", 0, True),
            "eve": ("workers", 1, True),
        }
        assert status_of(broker, "GET", "/api/users", "eve") == 403
        with (tmp_path / "artemis-users.properties").open("a") as users:
            users.write("zoe=z\n")
        assert set(users_of(broker)) == {"ann", "bob", "eve", "zoe"}


def test_a_change_counts_at_once(secured: BrokerProcess) -> None:
    """Also where the broker remembers a login that was right, or wrong."""
    assert ask(secured, "zoe", "GET", "/api/users", password=SECRET)[0] == 401
    new = {"name": "zoe", "password": SECRET, "role": "viewers"}
    assert ask(secured, "ann", "POST", "/api/users", new)[0] == 200
    assert ask(secured, "zoe", "GET", "/api/users", password=SECRET)[0] == 200
    status, answer = ask(secured, "ann", "PATCH", "/api/users/zoe", {"password": "another"})
    assert (status, answer["passwordChanged"], answer["rolesChanged"]) == (200, True, False)
    assert ask(secured, "zoe", "GET", "/api/users", password=SECRET)[0] == 401
    assert ask(secured, "zoe", "GET", "/api/users", password="another")[0] == 200
    assert ask(secured, "ann", "PATCH", "/api/users/zoe?role=workers")[0] == 200
    assert ask(secured, "zoe", "GET", "/api/users", password="another")[0] == 403
    assert ask(secured, "ann", "DELETE", "/api/users/zoe")[0] == 200
    assert ask(secured, "zoe", "GET", "/api/users", password="another")[0] == 401


def test_who_may_not_change_users_cannot(secured: BrokerProcess) -> None:
    """Looking at them is another right. A management message is refused where it needs the permission, too."""
    before = users_of(secured)
    new = {"name": "zoe", "password": SECRET}
    assert ask(secured, "bob", "POST", "/api/users", new)[0] == 403
    assert ask(secured, "bob", "DELETE", "/api/users/eve")[0] == 403
    assert ask(secured, "bob", "PATCH", "/api/users/bob?role=editors")[0] == 403
    bean = 'org.apache.activemq.artemis:broker="secured"'
    call = {"type": "exec", "mbean": bean, "operation": "addUser", "arguments": ["zoe", SECRET, "editors", False]}
    answer = ask(secured, "bob", "POST", "/console/jolokia", call)[1]
    assert answer["status"] == 403
    assert answer["request"]["arguments"] == ["zoe", "****", "editors", False]
    assert {name: row["roles"] for name, row in users_of(secured).items()} == {
        name: row["roles"] for name, row in before.items()
    }
    assert SECRET not in secured.said


def test_no_password_is_told(secured: BrokerProcess) -> None:
    """Neither in an answer nor in the log, however wrong the request is."""
    bean = 'org.apache.activemq.artemis:broker="secured"'
    requests: list[tuple[str, str, object]] = [
        ("POST", "/api/users?name=zoe&password=open+sesame", None),
        ("POST", "/api/users", {"name": "zoe", "password": [SECRET, SECRET]}),
        ("POST", "/api/users", {"name": "zoe", "password": {"open sesame": 1}}),
        ("POST", "/api/users", {"name": "a,b", "password": SECRET}),
        ("POST", "/api/users", {"name": "eve", "password": SECRET}),
        ("PATCH", "/api/users/nobody", {"password": SECRET}),
    ]
    for operation, *given in (
        ("addUser", "zoe", SECRET),
        ("addUser", "eve", SECRET, "amq", True),
        ("addUser", "eve", {"open sesame": 1}, "", False),
        ("resetUser(java.lang.String,java.lang.String,java.lang.String)", "nobody", SECRET, "amq"),
        ("resetUser", "nobody", SECRET, "amq"),
    ):
        call = {"type": "exec", "mbean": bean, "operation": operation, "arguments": given}
        requests.append(("POST", "/console/jolokia", call))
    path = f"/console/jolokia/exec/{escaped(bean, safe='')}/addUser/zoe/open%20sesame/editors/true"
    heard = ["{} {}".format(*ask(secured, "ann", *request)) for request in [*requests, ("GET", path, None)]]
    assert [text[:3] for text in heard[:6]] == ["400", "400", "400", "409", "409", "404"]
    assert "has no place in a URL" in heard[0]
    assert "has no place in a URL; use POST" in heard[-1]
    assert "zoe" not in users_of(secured)
    assert [text for text in [*heard, secured.said] if "sesame" in text] == []
    assert "password=****" in secured.said


def test_a_file_that_cannot_be_written_changes_nothing(secured: BrokerProcess, tmp_path: Path) -> None:
    assert set(users_of(secured)) == set(USERS)
    assert ask(secured, "ann", "GET", "/api/users")[0] == 200
    (tmp_path / "artemis-roles.properties").write_text("amq = \\u12")
    status, answer = ask(secured, "ann", "POST", "/api/users", {"name": "zoe", "password": SECRET})
    assert (status, "artemis-roles.properties: line 1" in answer["error"]) == (409, True)
    assert "zoe" not in (tmp_path / "artemis-users.properties").read_text()
