"""Scenes of the operations on users."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.e2e.management.scene import Scene
from tests.e2e.management.told import Told

USERS: Final = "# who may come in\nann = ENC(1024:aa:bb)\nbob = secret\n"
ROLES: Final = "# what they may do\namq = ann,bob\nview = bob\n"


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


USER_SCENES: Final = {
    "listUsers": Scene({}, _listed, before=write, by_bean=_listed_by_bean),
}
