"""Operations on users: those that the files of the configuration name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from artemis_py.errors import BrokerError
from artemis_py.management.lists.field import TEXT
from artemis_py.management.lists.selection import LOOKS_PER_STEP
from artemis_py.management.lists.users import USERS, Person
from artemis_py.management.managed import Given, Managed, Steps, Users
from artemis_py.management.operation import Argument
from artemis_py.management.operations.listing import listing, selected

_NAME: Final = Argument("name", TEXT, "only the user of this name", "")


def _users(managed: Managed) -> Users:
    if managed.users is None:
        raise BrokerError("this broker was not started from a file, so no files name users")
    return managed.users


def _list(managed: Managed, given: Given) -> Steps:
    users = _users(managed)
    known = yield from users.known()
    counts: Counter[str] = Counter()
    clients = managed.clients()
    for start in range(0, len(clients), LOOKS_PER_STEP):
        counts.update(client.user or "" for client in clients[start : start + LOOKS_PER_STEP])
        yield None
    found: list[Person] = []
    for number, one in enumerate(known, 1):
        if given["name"] in ("", one.name):
            found.append(Person(one, users.is_changeable(one), users.last_login_ms(one.name), counts[one.name]))
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from selected(USERS, found, given))


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
        arguments=(_NAME, *_LIST.arguments),
        mbean=("String listUser(String username=name) -> data",),
    ),
)
