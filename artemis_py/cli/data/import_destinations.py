"""Makes the addresses and queues that an export has and a broker lacks. What is there is left as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, final
from urllib.parse import quote

from artemis_py.cli.broker_http import BrokerHttp, RefusedError
from artemis_py.core.addresses.retroactive import is_internal
from artemis_py.errors import ArtemisError
from artemis_py.management.export_format import ExportError

# ---- what an export has ----------------------------------------------------------------------------------------------
#
# Addresses and queues as the lines of an export have them, and what management makes them of.


@dataclass(frozen=True, slots=True)
class KeptAddress:
    """An address. ``is_auto_created``: the broker made it for its queues, and will delete it after them."""

    name: str
    routing_types: tuple[str, ...]
    is_auto_created: bool = False
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class KeptQueue:
    """A queue. ``configuration`` is what Artemis' ``createQueue`` takes, without what it says of the address. It is
    enabled: a disabled queue takes no messages, so it is to be disabled (``is_disabled``) when it has them.
    """

    name: str
    address: str
    routing_type: str
    configuration: dict[str, Any]
    is_paused: bool = False
    is_disabled: bool = False


@dataclass(slots=True)
class Kept:
    """What lines have told and nobody has made yet, in their order."""

    addresses: dict[str, KeptAddress] = field(default_factory=dict)
    queues: dict[str, KeptQueue] = field(default_factory=dict)

    def take(self, kind: str, value: Any, place: str) -> None:
        """A line. Raises ExportError with its ``place``."""
        try:
            if kind == "address":
                address = _address(value)
                self.addresses[address.name] = address
            else:
                queue = _queue(value)
                self.queues[queue.name] = queue
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ExportError(f"{place}: this {kind} is incomplete or wrong: {error!r}") from None

    def only(self, names: Collection[str]) -> Kept:
        """The queues of these names with their addresses; all there is if none is named. An address has the routing
        types of its queues, too: one that broker.xml declared has no line in the export of a stopped broker.
        """
        queues = {name: queue for name, queue in self.queues.items() if not names or name in names}
        used: dict[str, set[str]] = {}
        for queue in queues.values():
            used.setdefault(queue.address, set()).add(queue.routing_type)
        addresses = {name: address for name, address in self.addresses.items() if not names or name in used}
        for name, types in used.items():
            address = addresses.get(name, KeptAddress(name, ()))
            addresses[name] = replace(address, routing_types=tuple(sorted(types.union(address.routing_types))))
        return Kept(addresses, queues)


def _address(value: Any) -> KeptAddress:
    return KeptAddress(
        _text(value["name"]),
        tuple(map(_text, _list(value["routing_types"]))),
        bool(value.get("auto_created", False)),
        bool(value.get("paused", False)),
    )


def _queue(value: Any) -> KeptQueue:
    name, routing_type = _text(value["name"]), _text(value["routing_type"])
    address = _text(value.get("address", name))
    attributes = dict(value.get("attributes", {}))
    is_disabled = attributes.pop("enabled", True) is False
    configuration: dict[str, Any] = {"name": name, "address": address, "routing-type": routing_type, "durable": True}
    configuration |= {attribute.replace("_", "-"): one for attribute, one in attributes.items()}
    given = [
        ("filter-string", value.get("filter")),
        ("ring-size", value.get("ring_size")),
        ("auto-created", True if value.get("auto_created", False) else None),
        *zip(
            ("auto-delete", "auto-delete-delay", "auto-delete-message-count"),
            value.get("auto_delete", ()),
            strict=False,
        ),
    ]
    configuration |= {key: one for key, one in given if one is not None}
    return KeptQueue(name, address, routing_type, configuration, bool(value.get("paused", False)), is_disabled)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is not a text")
    return value


def _list(value: object) -> Iterable[object]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


_ROUTING_TYPES: Final = ("ANYCAST", "MULTICAST")
"""Those of an address that had none when it was exported: it may get any."""


@final
class Maker:
    """What is made with a manager. ``unsettled`` are resources (``queue.NAME``, ``address.NAME``) that an import before
    this one made, perhaps, and did not pause or disable yet; ``note`` writes them down. Methods raise ArtemisError when
    the broker does not answer.
    """

    def __init__(self, manager: Manager, unsettled: list[str], note: Callable[[], None]) -> None:
        self._manager = manager
        self._unsettled = unsettled
        self._note = note
        self.made = 0
        """So many queues."""
        self.refused: dict[str, str] = {}
        """Queues that could not be made, with the broker's reason."""
        self.problems: list[str] = []
        """What else the broker refused, a line each."""
        self._to_disable: list[str] = []

    def make(self, kept: Kept) -> None:
        """Make what is missing, and pause what was paused."""
        addresses = [one for one in kept.addresses.values() if one.name not in self._manager.addresses]
        queues = self._missing(list(kept.queues.values()))
        new = [f"address.{one.name}" for one in addresses if one.is_paused]
        new += [f"queue.{one.name}" for one in queues if one.is_paused or one.is_disabled]
        known = set(self._unsettled)
        self._unsettled += [resource for resource in new if resource not in known]
        if new:
            self._note()
        failed = self._make_addresses(addresses)
        self._make_queues([one for one in queues if one.name not in self.refused], kept.addresses, failed)
        self._settle(kept)
        for name in sorted(failed.keys() - {queue.address for queue in kept.queues.values()}):
            self.problems.append(f"address {name} could not be made: {failed[name]}")

    def _missing(self, queues: list[KeptQueue]) -> list[KeptQueue]:
        there = self._manager.queues
        for queue in queues:
            place = there.get(queue.name)
            if place is not None and place != queue.address:
                self.refused[queue.name] = f"there it is on address {place}, not on {queue.address}"
        return [one for one in queues if there.get(one.name) != one.address]

    def _make_addresses(self, missing: list[KeptAddress]) -> dict[str, str]:
        """Returns those that could not be made, with the broker's reason."""
        failed: dict[str, str] = {}
        for one in missing:
            if one.is_auto_created or is_internal(one.name):
                continue
            types = ",".join(one.routing_types or _ROUTING_TYPES)
            why = self._manager.make("address", {"address": one.name, "routing-types": types})
            if why:
                failed[one.name] = why
            elif one.is_paused:
                self._change(f"address.{one.name}", "pause")  # before a queue delivers anything
        return failed

    def _make_queues(
        self, queues: list[KeptQueue], addresses: Mapping[str, KeptAddress], failed: Mapping[str, str]
    ) -> None:
        for queue in queues:
            if is_internal(queue.address):
                why = "it is a broker's own, which makes it where the address-settings ask for it"
            elif queue.address in failed:
                why = f"its address {queue.address} could not be made: {failed[queue.address]}"
            else:
                creates_address = addresses[queue.address].is_auto_created
                given = {**queue.configuration, "auto-create-address": creates_address, "ignore-if-exists": True}
                why = self._manager.make("queue", given)
            if why:
                self.refused[queue.name] = why
            else:
                self.made += 1

    def _settle(self, kept: Kept) -> None:
        """Pause what an import that was killed has made, and addresses that the broker made for a queue."""
        for resource in self._unsettled:
            kind, _, name = resource.partition(".")
            queue = kept.queues.get(name)
            if kind == "address" and name in kept.addresses:
                self._change(resource, "pause")
            elif kind == "queue" and queue is not None and name not in self.refused:
                if queue.is_paused:
                    self._change(resource, "pause")
                if queue.is_disabled:
                    self._to_disable.append(resource)

    def _change(self, resource: str, word: str) -> None:
        why = self._manager.change(resource, word)
        if why:
            kind, _, name = resource.partition(".")
            self.problems.append(f"{kind} {name}: {word} was refused: {why}")

    def finish(self) -> None:
        """Everything is there: let the queues that were disabled take no more messages."""
        for resource in self._to_disable:
            self._change(resource, "disable")
        self._unsettled.clear()


# ---- the broker ------------------------------------------------------------------------------------------------------
#
# Asks a broker over HTTP what it has, and has it make the rest.


_PATHS: Final = {"queue": "/api/queues", "address": "/api/addresses"}


class UnmanageableError(ArtemisError):
    """The user may not even see what there is."""


@final
class Manager:
    """What changes something returns why it was not done; empty: it was. Raises UnmanageableError, and ArtemisError if
    the broker does not answer.
    """

    def __init__(self, broker: BrokerHttp) -> None:
        self._broker = broker
        try:
            self.addresses = {row["name"] for row in self._rows("/api/addresses?fields=name&page=-1&size=-1")}
            """Those that are there."""
            rows = self._rows("/api/queues?fields=name,address&page=-1&size=-1")
        except RefusedError as error:
            raise UnmanageableError(error.said) from None
        self.queues = {row["name"]: row["address"] for row in rows}
        """Those that are there, with their addresses."""

    def _rows(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._broker.ask(path))["data"]
        return found

    def make(self, kind: str, arguments: Mapping[str, object]) -> str:
        """Make a ``queue`` or an ``address`` with the arguments of the operation that creates one."""
        return self._asked(_PATHS[kind], arguments)

    def change(self, resource: str, word: str) -> str:
        """Carry out an operation such as ``pause`` on a resource: ``queue.NAME`` or ``address.NAME``."""
        kind, _, name = resource.partition(".")
        return self._asked(f"{_PATHS[kind]}/{quote(name, safe='')}/{word}", None)

    def _asked(self, path: str, arguments: Mapping[str, object] | None) -> str:
        try:
            self._broker.ask(path, "POST", None if arguments is None else json.dumps(arguments).encode())
        except RefusedError as error:
            return error.said
        return ""
