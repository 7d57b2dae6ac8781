"""Scenes of the operations on users."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.e2e.management.scene import NOTHING, Scene, holds
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


def _listed_by_bean(_told: Told, answer: str) -> None:
    assert json.loads(answer) == [
        {"username": "ann", "roles": ["amq"]},
        {"username": "bob", "roles": ["amq", "view"]},
    ]


def _files(told: Told) -> tuple[list[str], list[str]]:
    """The lines of both files."""
    names = ("artemis-users.properties", "artemis-roles.properties")
    users, roles = ((folder(told) / name).read_text("latin-1").splitlines() for name in names)
    return users, roles


def _added(told: Told) -> None:
    """What was there stays as it was, and the password is a hash."""
    users, roles = _files(told)
    assert users[:3] == USERS.splitlines()
    assert users[3].startswith("eve = ENC(100000:")
    assert roles == ["# what they may do", "amq = ann,bob,eve", "view = bob,eve"]
    _is_not_told(told)


def _reset(told: Told) -> None:
    users, roles = _files(told)
    assert users[:2] == ["# who may come in", "ann = ENC(1024:aa:bb)"]
    assert users[2] == f"bob = {SECRET}" or users[2].startswith("bob = ENC(100000:")
    assert roles == ["# what they may do", "amq = ann", "view = bob"]
    _is_not_told(told)


def _removed(told: Told) -> None:
    assert _files(told) == (["# who may come in", "ann = ENC(1024:aa:bb)"], ["# what they may do", "amq = ann"])


def _is_not_told(told: Told) -> None:
    """The log has who did it, and no password."""
    line = next(line for line in told.broker.said.splitlines() if "AUD-1001" in line)
    assert "password=****" in line
    assert SECRET not in told.broker.said


_NEW: Final = {"name": "eve", "password": SECRET, "role": "amq, view", "plaintext": "false"}
_CHANGED: Final = {"name": "bob", "password": SECRET, "role": "view", "plaintext": "true"}

USER_SCENES: Final = {
    "listUsers": Scene({}, _listed, before=write, by_bean=_listed_by_bean),
    "addUser": Scene(
        _NEW, holds(name="eve", roles=["amq", "view"], needsRestart=False), before=write, after=_added, by_bean=NOTHING
    ),
    "resetUser": Scene(
        _CHANGED, holds(passwordChanged=True, rolesChanged=True), before=write, after=_reset, by_bean=NOTHING
    ),
    "removeUser": Scene({"name": "bob"}, holds(removed="bob"), before=write, after=_removed, by_bean=NOTHING),
}
