"""What prevents a divert, in a file or made by an operator: what can never work, and what may not be meant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from artemis_py.config.checks.receiving_queues import Readers
from artemis_py.config.draft import Draft
from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.merging import SettingsRepository
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.core_settings import INTERNAL_PREFIX
from artemis_py.config.tables.entities import ANYCAST, MULTICAST, AddressConfig, DivertConfig
from artemis_py.config.wildcards import WildcardIndex, is_wildcard

DOUBTFUL: Final = "doubtful-value"
LOSES: Final = "loses-messages"
_PREFIXES: Final = ("/queue/", "/topic/")
"""What clients write before the names of addresses."""


def why_never(divert: DivertConfig, management_address: str) -> str:
    """Why no message ever takes this divert, or arrives; empty: some may."""
    for name in (divert.address, *divert.forwarding_addresses):
        why = ""
        if "::" in name:
            why = "it names a queue"
        elif name.startswith(INTERNAL_PREFIX):
            why = "it is internal"
        elif name == management_address:
            why = "what is sent there is carried out, and not routed"
        if why:
            return f"{name!r} is no address that a divert can have: {why}"
    return ""


def doubts_of(
    divert: DivertConfig, syntax: WildcardSyntax, has_taker: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """What a divert does that may not be meant, each with its code. ``has_taker`` says whether something takes what is
    sent to an address.
    """
    name = f"divert {divert.name!r}"
    if is_wildcard(divert.address, syntax):
        text = (
            f"{name} begins at the pattern {divert.address!r}: it sees what is sent to that very name, and nothing that"
            " is sent to an address that it matches; make a divert for each of them"
        )
        yield DOUBTFUL, text
    for target in divert.forwarding_addresses:
        if is_wildcard(target, syntax):
            text = (
                f"{name} forwards to the pattern {target!r}: that goes to the queues of that very name, and to none of"
                " an address that it matches; name each of them, with commas between"
            )
            yield DOUBTFUL, text
        elif target.startswith(_PREFIXES):
            meant = target.split("/", 2)[2]
            text = f"{name} forwards to the address {target!r}, and not to {meant!r}: only clients write a prefix"
            yield DOUBTFUL, text
        elif target != divert.address and not has_taker(target):
            text = (
                f"{name} forwards to {target!r}, which has no queue: what is forwarded is lost unless a consumer has"
                " created one; declare a queue there, or the address as multicast"
            )
            yield LOSES, text


def makes_queue(divert: DivertConfig, settings: AddressSettings, routing_types: Collection[str]) -> bool:
    """Is a queue created for what is forwarded to an address without any, of these routing types?"""
    if not settings.auto_create_queues or divert.routing_type not in ("STRIP", "PASS", ANYCAST):
        return False
    return divert.routing_type != "STRIP" or ANYCAST in routing_types


def check_diverts(
    draft: Draft,
    diverts: Sequence[DivertConfig],
    addresses: Sequence[AddressConfig],
    settings: SettingsRepository,
    readers: Readers,
    syntax: WildcardSyntax,
    management_address: str,
) -> None:
    """Find diverts that can never work, and those that may not do what is meant."""
    declared = {address.name: address for address in addresses}
    begins = {divert.address for divert in diverts}
    patterns = WildcardIndex(syntax)
    for address in addresses:
        if address.queues and is_wildcard(address.name, syntax):
            patterns.add(address.name)
    for divert in diverts:

        def has_taker(name: str, divert: DivertConfig = divert) -> bool:
            merged, known = settings.settings_for(name), declared.get(name)
            if name in begins or readers.of(name) or patterns.matching(name):
                return True
            if known is not None and MULTICAST in known.routing_types:
                return True  # subscribers come and go
            if known is None and not merged.auto_create_addresses:
                return False
            types = (merged.default_address_routing_type,) if known is None else known.routing_types
            return makes_queue(divert, merged, types)

        never = why_never(divert, management_address)
        if never:
            draft.problems.error(divert.origin, f"divert {divert.name!r}: {never}")
            continue
        for code, text in doubts_of(divert, syntax, has_taker):
            draft.problems.warning(code, divert.origin, text)
