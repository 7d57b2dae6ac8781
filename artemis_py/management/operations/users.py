"""Users that the files of the configuration name: their fields, and the operations that list and change them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Final, NamedTuple

from artemis_py.errors import BadRequestError, BrokerError
from artemis_py.management.listing import EPOCH_MS, FLAG, LOOKS_PER_STEP, NUMBER, TEXT, Field, Kind, Row
from artemis_py.management.managed import Arguments, Managed, Steps, Users
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows
from artemis_py.security.user_files import KnownUser


class ListedUser(NamedTuple):
    """A user as a file declares it, and what the broker knows of it."""

    known: KnownUser
    is_changeable: bool
    """Is it in the files that the broker changes?"""
    last_login_ms: int
    connection_count: int


def _as_artemis(row: Row) -> dict[str, Any]:
    """A row as Artemis' bean returns it."""
    return {"username": row["name"], "roles": [role for role in str(row["roles"]).split(",") if role]}


USERS: Final[Kind[ListedUser]] = Kind(
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


_ONLY: Final = Argument("name", TEXT, "only the user of this name", "")
_NAME: Final = Argument("name", TEXT, "the user's name")
_PLAIN: Final = Argument("plaintext", FLAG, "keep the password readable in the file, not as a hash", False)
_LENGTH_MAX: Final = 1_024


def _users(managed: Managed) -> Users:
    if managed.users is None:
        raise BrokerError("this broker was not started from a file, so no files name users")
    return managed.users


def _list(managed: Managed, arguments: Arguments) -> Steps:
    users = _users(managed)
    known = yield from users.known()
    counts: Counter[str] = Counter()
    clients = managed.clients()
    for start in range(0, len(clients), LOOKS_PER_STEP):
        counts.update(client.user or "" for client in clients[start : start + LOOKS_PER_STEP])
        yield None
    rows: list[ListedUser] = []
    for number, one in enumerate(known, 1):
        if arguments["name"] in ("", one.name):
            rows.append(ListedUser(one, users.is_changeable(one), users.last_login_ms(one.name), counts[one.name]))
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from select_rows(USERS, rows, arguments))


def _add(managed: Managed, arguments: Arguments) -> Steps:
    _check(arguments)
    roles = _roles(arguments["role"])
    done = yield from _users(managed).add(
        arguments["name"], arguments["password"], roles, is_plain=arguments["plaintext"]
    )
    return {"name": arguments["name"], "roles": roles, **done}


def _reset(managed: Managed, arguments: Arguments) -> Steps:
    _check(arguments)
    password, role = arguments["password"], arguments["role"]
    if password is None and role is None:
        raise BadRequestError("nothing to change: give a password, or role, or both")
    roles = None if role is None else _roles(role)
    done = yield from _users(managed).reset(arguments["name"], password, roles, is_plain=arguments["plaintext"])
    return {
        "name": arguments["name"],
        "passwordChanged": password is not None,
        "rolesChanged": roles is not None,
        **done,
    }


def _remove(managed: Managed, arguments: Arguments) -> Steps:
    done = yield from _users(managed).remove(arguments["name"])
    return {"removed": arguments["name"], **done}


def _check(arguments: Arguments) -> None:
    for what in ("name", "password", "role"):
        if len(arguments[what] or "") > _LENGTH_MAX:
            raise BadRequestError(f"{what} has {len(arguments[what])} characters, the limit is {_LENGTH_MAX}")
        if not _is_text(arguments[what] or ""):
            raise BadRequestError(f"{what} has half a character (a lone surrogate), which no file can have")
    if arguments["password"] == "":
        raise BadRequestError("an empty password is refused")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _roles(text: str) -> list[str]:
    return [role.strip() for role in text.split(",") if role.strip()]


_LIST: Final = listing(
    "listUsers",
    "/api/users",
    "user ls",
    USERS,
    "The users that files of the configuration name, one row for each place that names one; not those that a directory"
    " or a token names.",
    _list,
)

USER_OPERATIONS: Final = (
    replace(
        _LIST,
        arguments=(_ONLY, *_LIST.arguments),
        mbean=("String listUser(String username=name) -> data",),
    ),
    Operation(
        name="addUser",
        right=EDIT,
        method="POST",
        path="/api/users",
        command="user create",
        sentence="Add a user to the users file and the roles file of the broker, which need not exist.",
        result="name and roles; file: the users file; needsRestart: whether it counts only after a restart",
        arguments=(
            _NAME,
            Argument("password", TEXT, "the password", is_secret=True),
            Argument("role", TEXT, "the user's roles, with commas between; without any, the user may do nothing", ""),
            _PLAIN,
        ),
        work=_add,
        mbean=("void addUser(String username=name, String password, String roles=role, boolean plaintext)",),
    ),
    Operation(
        name="resetUser",
        right=EDIT,
        method="PATCH",
        path="/api/users/{name}",
        command="user update",
        sentence="Change the password or the roles of a user, or both. A client that is connected stays.",
        result="name; passwordChanged and rolesChanged; file: the users file; needsRestart",
        arguments=(
            _NAME,
            Argument("password", TEXT, "the new password; else it stays", None, is_secret=True),
            Argument("role", TEXT, "all roles of the user, with commas between; else they stay", None),
            _PLAIN,
        ),
        work=_reset,
        mbean=(
            "void resetUser(String username=name, String password, String roles=role, boolean plaintext)",
            "void resetUser(String username=name, String password, String roles=role)",
        ),
    ),
    Operation(
        name="removeUser",
        right=EDIT,
        method="DELETE",
        path="/api/users/{name}",
        command="user delete",
        sentence="Remove a user and its roles from the files. A client that is connected stays until its connection is"
        " closed.",
        result="removed: the name; file: the users file; needsRestart",
        destroys="the login of {name}",
        arguments=(_NAME,),
        work=_remove,
        mbean=("void removeUser(String username=name)",),
    ),
)
