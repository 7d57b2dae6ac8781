"""Operations on addresses."""

from __future__ import annotations

from typing import Final

from artemis_py.management.artemis.signature import ATTRIBUTES
from artemis_py.management.lists.addresses import ADDRESSES
from artemis_py.management.lists.field import TEXT
from artemis_py.management.managed import Given, Managed, Steps, at_once, found
from artemis_py.management.operation import VIEW, Argument, Operation
from artemis_py.management.operations.listing import listing, selected

ADDRESS: Final = Argument("address", TEXT, "the address")


def _list(managed: Managed, given: Given) -> Steps:
    return selected(ADDRESSES, list(managed.broker.addresses.values()), given)


def _show(managed: Managed, given: Given) -> Steps:
    return at_once(ADDRESSES.row(found(managed.broker.addresses, "address", given["address"])))


ADDRESS_OPERATIONS: Final = (
    listing("listAddresses", "/api/addresses", "address ls", ADDRESSES, "Addresses, one row each.", _list),
    Operation(
        name="getAttributes",
        on="address",
        right=VIEW,
        method="GET",
        path="/api/addresses/{address}",
        command="address show",
        sentence="All fields of one address.",
        result="the fields of an address",
        arguments=(ADDRESS,),
        shows=ADDRESSES,
        work=_show,
        is_watchable=True,
        mbean=(ATTRIBUTES,),
    ),
)
