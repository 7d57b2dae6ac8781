"""Scenes of the operations on users."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from tests.e2e.management.scene import NOTHING, Scene
from tests.e2e.management.told import Told

USERS: Final = "# who may come in\nann = ENC(1024:aa:bb)\nbob = secret\n"
ROLES: Final = "# what they may do\namq = ann,bob\nview = bob\n"
SECRET: Final = "open sesame"


def write(told: Told) -> None:
    """Two users."""
    folder = told.broker.log.parent
    (folder / "artemis-users.properties").write_text(USERS, "latin-1")
    (folder / "artemis-roles.properties").write_text(ROLES, "latin-1")


def _listed(told: Told, answer: Any) -> None:
    rows = {row["name"]: row for row in answer["data"]}
    assert set(rows) == {"ann", "bob"}
    assert (rows["bob"]["roles"], rows["bob"]["login"], rows["bob"]["lastLogin"]) == ("amq,view", "plain text", 0)
    assert rows["ann"]["declaredAt"] == f"{told.broker.log.parent}/artemis-users.properties:2"
    assert rows["bob"].get("changeable", True) is True
    assert "secret" not in json.dumps(answer)


_OF_BEANS: Final = [{"username": "ann", "roles": ["amq"]}, {"username": "bob", "roles": ["amq", "view"]}]


def _wrote(told: Told, *, users: str, roles: Sequence[str]) -> None:
    """What is in both files, the first as a pattern: a password is a hash. What was there stays as it was. The log has
    who did it, and no password.
    """
    names = ("artemis-users.properties", "artemis-roles.properties")
    told_users, told_roles = ((told.broker.log.parent / name).read_text("latin-1") for name in names)
    assert re.fullmatch(users, told_users), told_users
    assert told_roles.splitlines() == ["# what they may do", *roles]
    line = next(line for line in told.broker.said.splitlines() if "AUD-1001" in line)
    assert ("password=****" in line) == (SECRET in told_users or "100000" in told_users)
    assert SECRET not in told.broker.said


_KEPT: Final = "# who may come in\nann = ENC\\(1024:aa:bb\\)\n"
_HASH: Final = "ENC\\(100000:.*\\)"
_NEW: Final = {"name": "eve", "password": SECRET, "role": "amq, view", "plaintext": "false"}
_CHANGED: Final = {"name": "bob", "password": SECRET, "role": "view", "plaintext": "true"}

USER_SCENES: Final = {
    "listUsers": Scene({}, _listed, before=write, by_bean=lambda _, answer: bool(json.loads(answer) == _OF_BEANS)),
    "addUser": Scene(
        _NEW,
        {"name": "eve", "roles": ["amq", "view"], "needsRestart": False},
        before=write,
        after=partial(
            _wrote, users=f"{_KEPT}bob = secret\neve = {_HASH}\n", roles=["amq = ann,bob,eve", "view = bob,eve"]
        ),
        by_bean=NOTHING,
    ),
    "resetUser": Scene(
        _CHANGED,
        {"passwordChanged": True, "rolesChanged": True},
        before=write,
        after=partial(_wrote, users=f"{_KEPT}bob = ({SECRET}|{_HASH})\n", roles=["amq = ann", "view = bob"]),
        by_bean=NOTHING,
    ),
    "removeUser": Scene(
        {"name": "bob"},
        {"removed": "bob"},
        before=write,
        after=partial(_wrote, users=_KEPT, roles=["amq = ann"]),
        by_bean=NOTHING,
    ),
}
