"""Reads ``address-settings``, ``addresses``, the old ``queues``, and ``diverts`` into a draft."""

from __future__ import annotations

from typing import Final

from artemis_py.config.draft import NamedDraft, QueueDraft, Values
from artemis_py.config.read.element import Reading
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.declarations import ANYCAST, MULTICAST, DivertConfig, QueueConfig
from artemis_py.config.tables.fields import TEXT, Setting, names_of, settings_of
from artemis_py.config.tables.structured_elements import PARTS
from artemis_py.config.xml.source import Element, local_name

_ROUTING_TYPES: Final = {"anycast": ANYCAST, "multicast": MULTICAST}
_PREFETCH: Final = ("prefetch_page_messages", "prefetch_page_bytes")


def read_address_settings(reading: Reading, parent: Element) -> None:
    """Read every ``address-setting``. Of two with the same match the first counts; the other is ignored entirely."""
    for element in parent.iterchildren("{*}address-setting"):
        match = element.get("match")
        if match is None:
            continue
        origin = reading.origin(element)
        entry = NamedDraft(str(match).partition("::")[0], origin)
        _read_entry(reading, element, entry.written)
        first = reading.draft.entries.setdefault(entry.name, entry)
        if first is not entry:
            reading.problems.warning(
                "declared-twice",
                origin,
                f"a second address-setting for the match {entry.name!r} is ignored; the one at {first.origin} counts",
            )


def _read_entry(reading: Reading, element: Element, written: Values) -> None:
    rows = names_of(AddressSettings)
    for child in element:
        row = rows.get(local_name(child))
        if row is not None:
            reading.element(row, child, written)
    drop_unset(written)


def drop_unset(written: Values) -> None:
    """Remove values that Artemis treats as "not set": they do not stop inheritance."""
    for attribute in _PREFETCH:
        if written.values.get(attribute, 1) <= 0:
            written.remove(attribute)
    if written.values.get("page_size_bytes", 1) < 0:
        written.remove("page_size_bytes")
    for attribute in ("dead_letter_address", "expiry_address"):
        if written.values.get(attribute) == "":
            written.values[attribute] = None


def read_addresses(reading: Reading, parent: Element) -> None:
    """Read every ``address`` with its queues."""
    for element in parent.iterchildren("{*}address"):
        name = reading.required_name(element)
        if name is None:
            continue
        origin = reading.origin(element)
        if name in reading.draft.addresses:
            reading.problems.warning(
                "declared-twice", origin, f"address {name!r} is declared again; both declarations are merged"
            )
        address = reading.draft.address(name, origin)
        if len(element) == 0 and element.text is None:
            reading.problems.error(
                origin, f"address {name!r} has no routing type", allowed="<anycast/> or <multicast/> or both inside"
            )
        for kind in element:
            routing_type = _ROUTING_TYPES.get(local_name(kind))
            if routing_type is None:
                continue
            if routing_type not in address.routing_types:
                address.routing_types.append(routing_type)
            for queue in kind.iterchildren("{*}queue"):
                _read_queue(reading, queue, name, routing_type)


def _read_queue(reading: Reading, element: Element, address: str, routing_type: str) -> None:
    """Read one ``queue``. If its name is already taken, the queue is ignored with a warning, as in Artemis."""
    full_name = reading.required_name(element)
    if full_name is None:
        return
    origin = reading.origin(element)
    queue = QueueDraft(full_name.rpartition("::")[2], address, routing_type, origin)
    rows = settings_of(QueueConfig)
    for name, text in element.attrib.items():
        row = rows.get(str(name))
        if row is not None and row.name not in ("durable", "filter", "user"):
            reading.attribute(row, element, str(text), queue.written)
    for child in element:
        row = rows.get(local_name(child))
        if row is not None and row.name in ("durable", "filter", "user"):
            _read_child(reading, row, child, queue.written)
    if not reading.draft.add_queue(queue):
        other = reading.draft.queues[queue.name]
        reading.problems.warning(
            "declared-twice",
            origin,
            f"queue {queue.name!r} is ignored: address {other.address!r} already has a queue of that name at "
            f"{other.origin}",
        )


def _read_child(reading: Reading, row: Setting, child: Element, written: Values) -> None:
    if row.name == "filter":
        text = child.get("string")
        if text is not None:
            _read_filter(reading, row, child, str(text), written)
    else:
        reading.element(row, child, written)


def _read_filter(reading: Reading, row: Setting, element: Element, text: str, written: Values) -> None:
    """Read a selector; a blank text means none."""
    if row.kind == TEXT and text.strip():
        reading.attribute(row, element, text, written)


def read_old_queues(reading: Reading, parent: Element) -> None:
    """Read the deprecated element ``queues``: every queue is multicast, on the address named inside or of its own
    name.
    """
    reading.problems.warning(
        "old-form",
        reading.origin(parent),
        "the element queues is deprecated, and its queues are multicast; write addresses instead",
    )
    for element in parent.iterchildren("{*}queue"):
        inside = element.find("{*}address")
        name = element.get("name")
        address = (inside.text or "").strip() if inside is not None else name
        if not address:
            continue
        draft = reading.draft.address(address, reading.origin(element))
        if MULTICAST not in draft.routing_types:
            draft.routing_types.append(MULTICAST)
        _read_queue(reading, element, address, MULTICAST)


def read_diverts(reading: Reading, parent: Element) -> None:
    """Read every ``divert``; two with the same name are an error."""
    rows = settings_of(DivertConfig)
    for element in parent.iterchildren("{*}divert"):
        name = reading.required_name(element)
        if name is None:
            continue
        origin = reading.origin(element)
        divert = NamedDraft(name, origin)
        for child in element:
            child_name = local_name(child)
            part = PARTS.get(f"diverts/divert/{child_name}")
            row = rows.get(child_name)
            if row is not None:
                _read_child(reading, row, child, divert.written)
            elif part is not None:
                reading.ignore_part(part, child)
        first = reading.draft.diverts.setdefault(name, divert)
        if first is not divert:
            reading.problems.error(origin, f"two diverts are named {name!r}; the other one is at {first.origin}")
