"""Operations on the connections of clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from artemis_py.errors import NotFoundError
from artemis_py.management.lists.connections import CONNECTIONS
from artemis_py.management.lists.field import NUMBER
from artemis_py.management.lists.selection import select
from artemis_py.management.managed import Given, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation
from artemis_py.management.operations.listing import listing, wanted

CONNECTION: Final = Argument("connection", NUMBER, "the number of the connection")


def _list(managed: Managed, given: Given) -> Steps:
    which = wanted(CONNECTIONS, given)
    if which.sort is None:
        which = replace(which, sort="connectionID")  # the order in which they came
    return (yield from select(CONNECTIONS, managed.clients(), which))


def _close(managed: Managed, given: Given) -> Steps:
    number = given["connection"]
    if not managed.close(number):
        raise NotFoundError(f"there is no connection {number}")
    return at_once({"closed": number})


CONNECTION_OPERATIONS: Final = (
    listing(
        "listConnections", "/api/connections", "connection ls", CONNECTIONS, "Clients of STOMP, one row each.", _list
    ),
    Operation(
        name="closeConnectionWithID",
        right=EDIT,
        method="DELETE",
        path="/api/connections/{connection}",
        command="connection close",
        sentence="Close a client's connection with an ERROR. What it holds goes back to its queues.",
        result="closed: the number of the connection",
        destroys="connection {connection}, and transactions that are open on it",
        arguments=(CONNECTION,),
        work=_close,
        mbean=("boolean closeConnectionWithID(String ID=connection)",),
    ),
)
