"""Scenes of the operations on users."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from tests.e2e.management.scene import NOTHING, Scene, Step, holds, right
from tests.e2e.management.told import Told

USERS: Final = "# who may come in\nann = ENC(1024:aa:bb)\nbob = secret\n"
ROLES: Final = "# what they may do\namq = ann,bob\nview = bob\n"
SECRET: Final = "open sesame"


def folder(told: Told) -> Path:
    """Where the broker's files are."""
    return told.broker.log.parent


def write(told: Told) -> None:
    """Two users."""
    (folder(told) / "artemis-users.properties").write_text(USERS, "latin-1")
    (folder(told) / "artemis-roles.properties").write_text(ROLES, "latin-1")


def _listed(told: Told, answer: Any) -> None:
    rows = {row["name"]: row for row in answer["data"]}
    assert set(rows) == {"ann", "bob"}
    assert (rows["bob"]["roles"], rows["bob"]["login"], rows["bob"]["lastLogin"]) == ("amq,view", "plain text", 0)
    assert rows["ann"]["declaredAt"] == f"{folder(told)}/artemis-users.properties:2"
    assert rows["bob"].get("changeable", True) is True
    assert "secret" not in json.dumps(answer)


_OF_BEANS: Final = [{"username": "ann", "roles": ["amq"]}, {"username": "bob", "roles": ["amq", "view"]}]


def _wrote(users: str, *roles: str) -> Step:
    """What is in both files, the first as a pattern: a password is a hash. What was there stays as it was. The log has
    who did it, and no password.
    """

    def check(told: Told) -> None:
        names = ("artemis-users.properties", "artemis-roles.properties")
        told_users, told_roles = ((folder(told) / name).read_text("latin-1") for name in names)
        assert re.fullmatch(users, told_users), told_users
        assert told_roles.splitlines() == ["# what they may do", *roles]
        line = next(line for line in told.broker.said.splitlines() if "AUD-1001" in line)
        assert ("password=****" in line) == (SECRET in told_users or "100000" in told_users)
        assert SECRET not in told.broker.said

    return check


_KEPT: Final = "# who may come in\nann = ENC\\(1024:aa:bb\\)\n"
_HASH: Final = "ENC\\(100000:.*\\)"
_NEW: Final = {"name": "eve", "password": SECRET, "role": "amq, view", "plaintext": "false"}
_CHANGED: Final = {"name": "bob", "password": SECRET, "role": "view", "plaintext": "true"}

USER_SCENES: Final = {
    "listUsers": Scene({}, _listed, before=write, by_bean=right(lambda answer: bool(json.loads(answer) == _OF_BEANS))),
    "addUser": Scene(
        _NEW,
        holds(name="eve", roles=["amq", "view"], needsRestart=False),
        before=write,
        after=_wrote(f"{_KEPT}bob = secret\neve = {_HASH}\n", "amq = ann,bob,eve", "view = bob,eve"),
        by_bean=NOTHING,
    ),
    "resetUser": Scene(
        _CHANGED,
        holds(passwordChanged=True, rolesChanged=True),
        before=write,
        after=_wrote(f"{_KEPT}bob = ({SECRET}|{_HASH})\n", "amq = ann", "view = bob"),
        by_bean=NOTHING,
    ),
    "removeUser": Scene(
        {"name": "bob"}, holds(removed="bob"), before=write, after=_wrote(_KEPT, "amq = ann"), by_bean=NOTHING
    ),
}
