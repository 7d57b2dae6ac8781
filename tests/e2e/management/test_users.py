"""Users of a running broker: who sees and changes them, from when on that counts, and that no password is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote as escaped

import pytest

from tests.kit.client import StompSocket
from tests.kit.process import BrokerProcess, for_each_test
from tests.kit.secured import USERS, basic, secured_broker

pytestmark = pytest.mark.e2e


SECRET = "open sesame"


secured = for_each_test(secured_broker)
"""A broker where users log in."""


def users_of(broker: BrokerProcess) -> dict[str, dict[str, Any]]:
    """What bob, who may look, is told of each."""
    return {row["name"]: row for row in broker.ask("GET", "/api/users", Authorization=basic("bob")).json["data"]}


def test_who_is_there_and_who_was(tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker, StompSocket(broker.port) as client:
        client.connect(login="eve", passcode=USERS["eve"])
        found = users_of(broker)
        assert {name: (row["roles"], row["connectionCount"], row["lastLogin"] > 0) for name, row in found.items()} == {
            "ann": ("editors,workers", 0, False),
            "bob": ("viewers,workers", 0, True),
            "eve": ("workers", 1, True),
        }
        assert broker.ask("GET", "/api/users", Authorization=basic("eve")).status == 403
        with (tmp_path / "artemis-users.properties").open("a") as users:
            users.write("zoe=z\n")
        assert set(users_of(broker)) == {"ann", "bob", "eve", "zoe"}


def test_a_change_counts_at_once(secured: BrokerProcess) -> None:
    """Also where the broker remembers a login that was right, or wrong."""
    assert secured.ask("GET", "/api/users", Authorization=basic("zoe", SECRET)).status == 401
    new = {"name": "zoe", "password": SECRET, "role": "viewers"}
    assert secured.ask("POST", "/api/users", new, Authorization=basic("ann")).status == 200
    assert secured.ask("GET", "/api/users", Authorization=basic("zoe", SECRET)).status == 200
    reply = secured.ask("PATCH", "/api/users/zoe", {"password": "another"}, Authorization=basic("ann"))
    assert (reply.status, reply.json["passwordChanged"], reply.json["rolesChanged"]) == (200, True, False)
    assert secured.ask("GET", "/api/users", Authorization=basic("zoe", SECRET)).status == 401
    assert secured.ask("GET", "/api/users", Authorization=basic("zoe", "another")).status == 200
    assert secured.ask("PATCH", "/api/users/zoe?role=workers", Authorization=basic("ann")).status == 200
    assert secured.ask("GET", "/api/users", Authorization=basic("zoe", "another")).status == 403
    assert secured.ask("DELETE", "/api/users/zoe", Authorization=basic("ann")).status == 200
    assert secured.ask("GET", "/api/users", Authorization=basic("zoe", "another")).status == 401


def test_who_may_not_change_users_cannot(secured: BrokerProcess) -> None:
    """Looking at them is another right. A management message is refused where it needs the permission, too."""
    before = users_of(secured)
    new = {"name": "zoe", "password": SECRET}
    assert secured.ask("POST", "/api/users", new, Authorization=basic("bob")).status == 403
    assert secured.ask("DELETE", "/api/users/eve", Authorization=basic("bob")).status == 403
    assert secured.ask("PATCH", "/api/users/bob?role=editors", Authorization=basic("bob")).status == 403
    bean = 'org.apache.activemq.artemis:broker="secured"'
    call = {"type": "exec", "mbean": bean, "operation": "addUser", "arguments": ["zoe", SECRET, "editors", False]}
    answer = secured.ask("POST", "/console/jolokia", call, Authorization=basic("bob")).json
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
    replies = [secured.ask(*request, Authorization=basic("ann")) for request in [*requests, ("GET", path, None)]]
    heard = [f"{reply.status} {reply.body.decode()}" for reply in replies]
    assert [text[:3] for text in heard[:6]] == ["400", "400", "400", "409", "409", "404"]
    assert "has no place in a URL" in heard[0]
    assert "has no place in a URL; use POST" in heard[-1]
    assert "zoe" not in users_of(secured)
    assert [text for text in [*heard, secured.said] if "sesame" in text] == []
    assert "password=****" in secured.said


def test_a_file_that_cannot_be_written_changes_nothing(secured: BrokerProcess, tmp_path: Path) -> None:
    assert set(users_of(secured)) == set(USERS)
    assert secured.ask("GET", "/api/users", Authorization=basic("ann")).status == 200
    (tmp_path / "artemis-roles.properties").write_text("amq = \\u12")
    reply = secured.ask("POST", "/api/users", {"name": "zoe", "password": SECRET}, Authorization=basic("ann"))
    assert (reply.status, "artemis-roles.properties: line 1" in reply.error) == (409, True)
    assert "zoe" not in (tmp_path / "artemis-users.properties").read_text()
