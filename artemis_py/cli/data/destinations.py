"""Addresses and queues as the lines of an export have them, and what management makes them of."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from artemis_py.management.export_format import ExportError


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
            raise ExportError(f"{place}: this {kind} lacks something or has it wrong: {error!r}") from None

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
        raise TypeError(f"{value!r} is no text")
    return value


def _list(value: object) -> Iterable[object]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value
