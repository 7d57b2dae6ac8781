"""Addresses: their fields, and the operations that list, show, create, update, delete, pause, block and purge them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from artemis_py.core.addresses import retroactive
from artemis_py.core.addresses.address import Address
from artemis_py.core.tasks import until_done
from artemis_py.errors import BrokerError
from artemis_py.management.listing import FLAG, NUMBER, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Managed, Steps, at_once, lookup
from artemis_py.management.operation import ATTRIBUTES, EDIT, VIEW, Argument, Operation, listing, select_rows
from artemis_py.management.operations.queues import without_consumers

ADDRESSES: Final[Kind[Address]] = Kind(
    "address",
    "addresses",
    [
        Field("name", TEXT, "The address", lambda it: it.name, is_brief=True),
        Field(
            "routingTypes",
            TEXT,
            "ANYCAST, MULTICAST, or both with a comma between",
            lambda it: ",".join(sorted(it.routing_types)),
            is_brief=True,
        ),
        Field("queueCount", NUMBER, "Its queues", lambda it: len(it.queues), is_brief=True),
        Field(
            "messageCount",
            NUMBER,
            "Messages of the address in memory, each once",
            lambda it: it.account.message_count,
            "messages",
            is_brief=True,
        ),
        Field("addressSize", NUMBER, "What they hold in memory", lambda it: it.size_bytes, "bytes", is_brief=True),
        Field(
            "addressLimitPercent",
            NUMBER,
            "How much of max-size-bytes or max-size-messages is used; 0 without either",
            lambda it: it.limit_percent,
            "percent",
            is_brief=True,
        ),
        Field("fullPolicy", TEXT, "What a full address does; null: nothing", lambda it: it.full_policy),
        Field("paging", FLAG, "Do arrivals go to pages?", lambda it: it.is_paging, is_brief=True),
        Field("numberOfPages", NUMBER, "Its page files", lambda it: it.number_of_pages, "pages"),
        Field(
            "routedMessageCount",
            NUMBER,
            "Messages sent here since the start that some queue took",
            lambda it: it.routed_message_count,
            "messages",
        ),
        Field(
            "unroutedMessageCount",
            NUMBER,
            "Messages sent here since the start that no queue took",
            lambda it: it.unrouted_message_count,
            "messages",
        ),
        Field(
            "droppedMessageCount",
            NUMBER,
            "Messages that the full address dropped since the start",
            lambda it: it.dropped_message_count,
            "messages",
        ),
        Field(
            "paused", FLAG, "Do none of its queues deliver until it is resumed?", lambda it: it.paused, is_brief=True
        ),
        Field("blocked", FLAG, "Must senders wait until it is unblocked?", lambda it: it.blocked),
        Field("maxSizeBytes", NUMBER, "max-size-bytes; -1: no limit", lambda it: it.bytes_max, "bytes"),
        Field("maxSizeMessages", NUMBER, "max-size-messages; -1: no limit", lambda it: it.messages_max, "messages"),
        Field("numberOfBytesPerPage", NUMBER, "page-size-bytes", lambda it: it.settings.page_size_bytes, "bytes"),
        Field(
            "currentDuplicateIdCacheSize",
            NUMBER,
            "Duplicate ids that it has seen and remembers",
            lambda it: 0 if it.duplicate_ids is None else len(it.duplicate_ids),
        ),
        Field(
            "retroactiveResource",
            FLAG,
            "Does it keep messages for queues that come later?",
            lambda it: it.retention is not None,
        ),
        Field("internal", FLAG, "Is it the broker's own?", lambda it: retroactive.is_internal(it.name)),
        Field(
            "declaredAt",
            TEXT,
            "File and line that declare it; null: nothing does",
            lambda it: None if it.origin is None else str(it.origin),
        ),
        Field("autoCreated", FLAG, "Did a client's use make it?", lambda it: it.auto_created),
        Field("temporary", FLAG, "Does it end with a connection?", lambda it: it.temporary),
    ],
)


ADDRESS: Final = Argument("address", TEXT, "the address")


def _list_addresses(managed: Managed, arguments: Arguments) -> Steps:
    return select_rows(ADDRESSES, list(managed.broker.addresses.values()), arguments)


def _show_address(managed: Managed, arguments: Arguments) -> Steps:
    return at_once(ADDRESSES.row(lookup(managed.broker.addresses, "address", arguments["address"])))


# ---- changes -------------------------------------------------------------------------------------


_QUEUES_PER_STEP: Final = 20
_NEW_QUEUES_MAX: Final = 1_000
"""So many queues may come while an address is deleted with those that it has."""


def _address_of(managed: Managed, arguments: Arguments) -> Address:
    return lookup(managed.broker.addresses, "address", arguments["address"])


def _create(managed: Managed, arguments: Arguments) -> Steps:
    changes = managed.broker.address_changes
    return at_once(ADDRESSES.row(changes.create(arguments["address"], arguments["routing-types"].split(","))))


def _update(managed: Managed, arguments: Arguments) -> Steps:
    address = _address_of(managed, arguments)
    managed.broker.address_changes.update(address, arguments["routing-types"].split(","))
    return at_once(ADDRESSES.row(address))


def _delete(managed: Managed, arguments: Arguments) -> Steps:
    address, changes = _address_of(managed, arguments), managed.broker.address_changes
    changes.check_deletion(address, is_forced=arguments["force"])
    removed = queues = 0
    queues_max = len(address.queues) + _NEW_QUEUES_MAX
    while address.queues:
        if queues >= queues_max:
            raise BrokerError(f"Clients go on to create queues on {address.name}; block it, and delete it again")
        queue = next(iter(address.queues.values()))
        yield from without_consumers(managed, queue)
        if queue.deleted or queue.consumer_count:
            continue
        count, work = managed.broker.queue_operations.delete(queue.name, managed.now_ms())
        removed += count
        queues += 1
        yield from until_done((work,))
        if queues % _QUEUES_PER_STEP == 0:
            yield None
    if not address.deleted:
        changes.delete(address)
    return {"removed": removed, "queues": queues}


def _purge(managed: Managed, arguments: Arguments) -> Steps:
    address, broker = _address_of(managed, arguments), managed.broker
    broker.address_changes.tell_purged(address)
    removed = held = 0
    for number, queue in enumerate(list(address.queues.values()), 1):
        if not queue.deleted:
            held += queue.message_count - queue.unheld_count
            count, work = broker.queue_operations.purge(queue.name, managed.now_ms())
            removed += count
            yield from until_done((work,))
        if number % _QUEUES_PER_STEP == 0:
            yield None
    return {"removed": removed, "inDelivery": held}


def _pause(managed: Managed, arguments: Arguments) -> Steps:
    return _changed(managed, arguments, managed.broker.address_changes.pause)


def _block(managed: Managed, arguments: Arguments) -> Steps:
    return _changed(managed, arguments, managed.broker.address_changes.block)


def _unblock(managed: Managed, arguments: Arguments) -> Steps:
    return _changed(managed, arguments, managed.broker.address_changes.unblock)


def _changed(managed: Managed, arguments: Arguments, change: Callable[[Address], None]) -> Steps:
    address = _address_of(managed, arguments)
    change(address)
    return at_once(ADDRESSES.row(address))


def _resume(managed: Managed, arguments: Arguments) -> Steps:
    address = _address_of(managed, arguments)
    for _ in managed.broker.address_changes.resume(address):
        yield None
    return ADDRESSES.row(address)


def _on_address(name: str, sentence: str, work: Callable[[Managed, Arguments], Steps], *mbean: str) -> Operation:
    """An operation on an address that answers with the address; ``mbean`` are its signatures."""
    return Operation(
        name=name,
        on="address",
        right=EDIT,
        method="POST",
        path=f"/api/addresses/{{address}}/{name}",
        command=f"address {name}",
        sentence=sentence,
        result="the fields of the address",
        arguments=(ADDRESS,),
        shows=ADDRESSES,
        mbean=mbean,
        work=work,
    )


_TYPES: Final = "ANYCAST, MULTICAST, or both with a comma between"

ADDRESS_OPERATIONS: Final = (
    listing("listAddresses", "/api/addresses", "address ls", ADDRESSES, "Addresses.", _list_addresses),
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
        work=_show_address,
        is_watchable=True,
        mbean=(ATTRIBUTES,),
    ),
    Operation(
        name="createAddress",
        right=EDIT,
        method="POST",
        path="/api/addresses",
        command="address create",
        sentence="Create an address. It survives a restart.",
        result="the fields of the address",
        arguments=(ADDRESS, Argument("routing-types", TEXT, _TYPES, "MULTICAST")),
        shows=ADDRESSES,
        mbean=("String createAddress(String name=address, String routingTypes)",),
        work=_create,
    ),
    Operation(
        name="updateAddress",
        right=EDIT,
        method="PATCH",
        path="/api/addresses/{address}",
        command="address update",
        sentence="Change the routing types of an address. A type that queues have cannot be removed. If broker.xml"
        " declares the address, a restart adds the types of the file.",
        result="the fields of the address",
        arguments=(ADDRESS, Argument("routing-types", TEXT, _TYPES)),
        shows=ADDRESSES,
        mbean=("String updateAddress(String name=address, String routingTypes)",),
        work=_update,
    ),
    Operation(
        name="deleteAddress",
        right=EDIT,
        method="DELETE",
        path="/api/addresses/{address}",
        command="address delete",
        sentence="Delete an address that has no queues. A restart creates it again if broker.xml declares it.",
        result="removed: how many messages its queues had; queues: how many these were",
        destroys="address {address} with {messages}",
        arguments=(
            ADDRESS,
            Argument(
                "force",
                FLAG,
                "delete its queues, too, and close the connections of their consumers",
                False,
                destroys="the connections of {consumers}",
            ),
        ),
        work=_delete,
        mbean=("void deleteAddress(String name=address)", "void deleteAddress(String name=address, boolean force)"),
    ),
    _on_address(
        "pause",
        "Let no queue of an address deliver until it is resumed, also after a restart. They still take messages.",
        _pause,
        "void pause()",
        "void pause(boolean persist=_)",
    ),
    _on_address(
        "resume",
        "Let the queues of a paused address deliver again, but those that are paused.",
        _resume,
        "void resume()",
    ),
    _on_address(
        "block",
        "Let senders to an address wait until it is unblocked. A restart unblocks it.",
        _block,
        "boolean block()",
    ),
    _on_address("unblock", "Let senders to a blocked address go on.", _unblock, "void unblock()"),
    Operation(
        name="purge",
        on="address",
        right=EDIT,
        method="POST",
        path="/api/addresses/{address}/purge",
        command="address purge",
        sentence="Remove all messages of all queues of an address that no consumer has.",
        result="removed: how many messages; inDelivery: how many stay because consumers have them",
        destroys="{messages} of address {address}",
        arguments=(ADDRESS,),
        mbean=("long purge() -> removed",),
        work=_purge,
    ),
)
