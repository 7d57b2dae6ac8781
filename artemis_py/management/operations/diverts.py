"""Diverts: their fields, and the operations that list, create, update and destroy them."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Final, NamedTuple

from artemis_py.config.settings import DivertConfig
from artemis_py.config.tables.declarations import DIVERT_ROUTING_TYPES
from artemis_py.core.addresses.address import Divert
from artemis_py.core.broker import Broker
from artemis_py.errors import BadRequestError
from artemis_py.management.listing import FLAG, LOOKS_PER_STEP, TEXT, Field, Kind
from artemis_py.management.managed import Arguments, Managed, Steps, at_once
from artemis_py.management.operation import EDIT, Argument, Operation, listing, select_rows


class DivertOnAddress(NamedTuple):
    """A divert on its address."""

    divert: Divert
    address: str


DIVERTS: Final[Kind[DivertOnAddress]] = Kind(
    "divert",
    "diverts",
    [
        Field("name", TEXT, "The divert's name", lambda it: it.divert.name, is_brief=True),
        Field("address", TEXT, "The address whose messages it diverts", lambda it: it.address, is_brief=True),
        Field(
            "forwardingAddress",
            TEXT,
            "Where they go, with commas between",
            lambda it: ",".join(it.divert.forwarding_addresses),
            is_brief=True,
        ),
        Field("routingName", TEXT, "Its name in routing", lambda it: it.divert.routing_name),
        Field(
            "exclusive",
            FLAG,
            "Do the messages go nowhere else?",
            lambda it: it.divert.exclusive,
            is_brief=True,
        ),
        Field(
            "filter",
            TEXT,
            "Which messages it diverts; null: all",
            lambda it: None if it.divert.selector is None else it.divert.selector.text,
            is_brief=True,
        ),
        Field("routingType", TEXT, "STRIP, PASS, ANYCAST or MULTICAST", lambda it: it.divert.routing_type),
        Field(
            "declaredAt",
            TEXT,
            "File and line that declare it; null: an operator made it, or it is the broker's own",
            lambda it: None if it.divert.origin is None else str(it.divert.origin),
        ),
    ],
)


_TRANSFORMER: Final = "transformer-configuration"


def _list(managed: Managed, arguments: Arguments) -> Steps:
    rows: list[DivertOnAddress] = []
    for number, address in enumerate(list(managed.broker.addresses.values()), 1):
        diverts = address.diverts if address.retention is None else [*address.diverts, address.retention]
        rows += [DivertOnAddress(divert, address.name) for divert in diverts]
        if number % LOOKS_PER_STEP == 0:
            yield None
    return (yield from select_rows(DIVERTS, rows, arguments))


def _create(managed: Managed, arguments: Arguments) -> Steps:
    config = DivertConfig(name=arguments["name"], address=arguments["address"], **_values(arguments))
    managed.broker.diverts.create(config)
    return at_once(_row(managed.broker, config.name))


def _update(managed: Managed, arguments: Arguments) -> Steps:
    managed.broker.diverts.update(arguments["name"], _values(arguments))
    return at_once(_row(managed.broker, arguments["name"]))


def _destroy(managed: Managed, arguments: Arguments) -> Steps:
    managed.broker.diverts.destroy(arguments["name"])
    return at_once({"destroyed": 1})


def _values(arguments: Arguments) -> dict[str, Any]:
    """The attributes to set. Raises BadRequestError."""
    if arguments[_TRANSFORMER]:
        raise BadRequestError("a transformer is a Java class, and cannot run here; create the divert without one")
    values: dict[str, Any] = {}
    if arguments["forwarding-address"] is not None:
        values["forwarding_addresses"] = tuple(text.strip() for text in arguments["forwarding-address"].split(","))
    if arguments["filter-string"] is not None:
        values["filter"] = arguments["filter-string"].strip() or None
    if arguments["routing-type"] is not None:
        values["routing_type"] = arguments["routing-type"].upper()
        if values["routing_type"] not in DIVERT_ROUTING_TYPES:
            raise BadRequestError(f"routing-type is one of {', '.join(DIVERT_ROUTING_TYPES)}")
    for argument in ("routing-name", "exclusive"):
        if arguments[argument] is not None:
            values[argument.replace("-", "_")] = arguments[argument]
    return values


def _row(broker: Broker, name: str) -> dict[str, Any]:
    address = broker.addresses[broker.diverts.in_force[name].address]
    divert = next(each for each in address.diverts if each.name == name)
    return {
        **DIVERTS.row(DivertOnAddress(divert, address.name)),
        "warning": "; ".join(broker.diverts.doubts_of(name)) or None,
    }


_RESULT: Final = "the fields of the divert; warning: what may not be intended"
_ALSO: Final = (Field("warning", TEXT, "What it does that may not be meant", itemgetter("warning")),)
_NAME: Final = Argument("name", TEXT, "the name of the divert")
_FORWARDING: Final = "the address that gets them; several have commas between"
_ATTRIBUTES: Final = (
    Argument("filter-string", TEXT, "a selector that messages must match; empty: all are diverted", None),
    Argument(
        "routing-type",
        TEXT,
        "routing type of what is forwarded: STRIP (none), PASS (the message's own), ANYCAST or MULTICAST; STRIP where "
        "nothing is said",
        None,
    ),
    Argument("exclusive", FLAG, "forward only, and give nothing to the queues of the address", None),
    Argument("routing-name", TEXT, "its name in routing; else its name", None),
    Argument(_TRANSFORMER, TEXT, "a Java class that changes messages: must be empty, since none can run here", None),
)
_POSITIONS: Final = (
    "String name, String routingName, String address, String forwardingAddress, boolean exclusive, "
    f"String filterString, String transformerClassName={_TRANSFORMER}"
)
_CHANGED: Final = (
    f"String name, String forwardingAddress, String filterString, String transformerClassName={_TRANSFORMER}"
)

DIVERT_OPERATIONS: Final = (
    listing("listDiverts", "/api/diverts", "divert ls", DIVERTS, "Diverts.", _list),
    Operation(
        name="createDivert",
        right=EDIT,
        method="POST",
        path="/api/diverts",
        command="divert create",
        sentence="Create a divert, which copies or moves what is sent to an address to others. The address is created "
        "if there is none. The divert survives restarts and reloads, unless broker.xml declares one of this name.",
        result=_RESULT,
        also=_ALSO,
        arguments=(
            _NAME,
            Argument("address", TEXT, "the address whose messages it diverts"),
            Argument("forwarding-address", TEXT, _FORWARDING),
            *_ATTRIBUTES,
        ),
        shows=DIVERTS,
        work=_create,
        mbean=(
            "void createDivert(String divertConfiguration={})",
            f"void createDivert({_POSITIONS})",
            f"void createDivert({_POSITIONS}, String routingType)",
            f"void createDivert({_POSITIONS}, String transformerPropertiesAsJSON=_, String routingType)",
            f"void createDivert({_POSITIONS}, Map transformerProperties=_, String routingType)",
        ),
    ),
    Operation(
        name="updateDivert",
        right=EDIT,
        method="PATCH",
        path="/api/diverts/{name}",
        command="divert update",
        sentence="Change a divert, for what is sent from now on. If broker.xml declares it, a restart or a reload "
        "sets it back to the file.",
        result=_RESULT,
        also=_ALSO,
        arguments=(_NAME, Argument("forwarding-address", TEXT, _FORWARDING, None), *_ATTRIBUTES),
        shows=DIVERTS,
        work=_update,
        mbean=(
            "void updateDivert(String divertConfiguration={})",
            f"void updateDivert({_CHANGED}, Map transformerProperties=_, String routingType)",
        ),
    ),
    Operation(
        name="destroyDivert",
        right=EDIT,
        method="DELETE",
        path="/api/diverts/{name}",
        command="divert destroy",
        sentence="Destroy a divert. What it has forwarded stays where it is. A restart or a reload creates it again "
        "if broker.xml declares it.",
        result="destroyed: 1",
        destroys="divert {name}",
        arguments=(_NAME,),
        work=_destroy,
        mbean=("void destroyDivert(String name)",),
    ),
)
