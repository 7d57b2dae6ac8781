"""The fields of a user in lists."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from artemis_py.management.lists.field import EPOCH_MS, FLAG, NUMBER, TEXT, Field, Kind, Row
from artemis_py.security.known_users import KnownUser


class Person(NamedTuple):
    """A user as a file declares it, and what the broker knows of it."""

    known: KnownUser
    is_changeable: bool
    """Is it in the files that the broker changes?"""
    last_login_ms: int
    connection_count: int


def _as_artemis(row: Row) -> dict[str, Any]:
    """A row as Artemis' bean has it."""
    return {"username": row["name"], "roles": [role for role in str(row["roles"]).split(",") if role]}


USERS: Final[Kind[Person]] = Kind(
    "user",
    "users",
    [
        Field("name", TEXT, "The user's name", lambda it: it.known.name, is_brief=True),
        Field("roles", TEXT, "Its roles, with commas between", lambda it: ",".join(it.known.roles), is_brief=True),
        Field(
            "login",
            TEXT,
            "How the password is stored: hash, plain text, masked, or unreadable (nobody can log in with it); or else"
            " certificate or guest",
            lambda it: it.known.login,
            is_brief=True,
        ),
        Field("connectionCount", NUMBER, "Clients of STOMP with this login", lambda it: it.connection_count, "", True),
        Field(
            "lastLogin",
            NUMBER,
            "When it was last let in since the start; 0: not yet",
            lambda it: it.last_login_ms,
            EPOCH_MS,
            is_brief=True,
        ),
        Field("changeable", FLAG, "Can operations change and remove it?", lambda it: it.is_changeable),
        Field("declaredAt", TEXT, "File and line that declare it", lambda it: str(it.known.origin), is_brief=True),
    ],
    as_artemis=_as_artemis,
)
