"""What prevents a divert, in a file or made by an operator: what can never work, and what may not be meant. And loops
of diverts, bridges, views, expiry and dead-letter addresses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from artemis_py.config.checks.addresses import Readers
from artemis_py.config.checks.bridges import returning
from artemis_py.config.draft import Draft
from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.settings import SettingsRepository
from artemis_py.config.tables.acceptor import AcceptorConfig
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.bridges import BridgeConfig
from artemis_py.config.tables.core_settings import INTERNAL_PREFIX
from artemis_py.config.tables.declarations import (
    ANYCAST,
    MULTICAST,
    NOWHERE,
    AddressConfig,
    DivertConfig,
    Origin,
    QueueConfig,
)
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
            return f"{name!r} is not an address that a divert can have: {why}"
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


# ---- loops -----------------------------------------------------------------------------------------------------------

EXPIRY: Final = "expiry_address"
DEAD: Final = "dead_letter_address"
PUBLISH: Final = "default_publish_target"


class Hop(NamedTuple):
    """One hop from an address to another. ``setting`` forwards the messages if no divert or bridge does; ``queue`` is
    the one that sets it itself. With ``fails``, a consumer must fail first.
    """

    source: str
    target: str
    setting: str = ""
    queue: QueueConfig | None = None
    divert: DivertConfig | None = None
    bridge: BridgeConfig | None = None
    fails: bool = False


def check_circles(
    draft: Draft,
    readers: Readers,
    diverts: Sequence[DivertConfig],
    bridges: Sequence[BridgeConfig],
    acceptors: Sequence[AcceptorConfig],
    settings: SettingsRepository,
) -> None:
    """Warn of each group of addresses that forms a loop. A loop in which a consumer must fail each time may be
    intended: if a setting for many addresses is part of it, it is only a note.
    """
    detours = [
        *(Hop(divert.address, target, divert=divert) for divert in diverts for target in divert.forwarding_addresses),
        *(Hop(source, target, bridge=bridge) for bridge, source, target in returning(bridges, acceptors, readers)),
    ]
    hops = _hops(readers, detours, settings)
    reported: set[str] = set()
    by_itself = {name: [hop for hop in out if not hop.fails] for name, out in hops.items()}
    for group in _groups(by_itself):
        reported.update(group)
        circle = _circle(by_itself, group)
        is_bridged = any(hop.bridge is not None for hop in circle)
        end = (
            "until they come back to the bridge" if is_bridged else "until the broker drops them after 16 hops at most"
        )
        _report(draft, settings, circle, end)
    for group in _groups(hops):
        if not reported & group:
            _report(draft, settings, _circle(hops, group), "for as long as consumers fail")


def _hops(readers: Readers, detours: Sequence[Hop], settings: SettingsRepository) -> dict[str, list[Hop]]:
    by_source: dict[str, list[Hop]] = {}
    for hop in detours:
        by_source.setdefault(hop.source, []).append(hop)
    found: dict[str, list[Hop]] = {}
    waiting = [*readers.names, *by_source, *(entry.match for entry in settings.entries)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            passed_on = readers.passed_on(name)
            if passed_on is not None:
                found[name] = [Hop(name, passed_on[1], PUBLISH, passed_on[0])] if passed_on[1] else []
            else:
                found[name] = [*by_source.get(name, ()), *_ends(name, readers.of(name), settings)]
            waiting.extend(hop.target for hop in found[name])
    return found


def _ends(name: str, queues: Sequence[QueueConfig], settings: SettingsRepository) -> Iterator[Hop]:
    """Where messages go that expire or fail on an address. A copy has no expiration except one set there; an expired
    message goes to its own address only once. For the expiry and dead-letter address of a view's messages the settings
    of the address count to which they were sent, for everything else those of its own.
    """
    merged = settings.settings_for(name)
    gives = max(merged.expiry_delay, merged.min_expiry_delay, merged.max_expiry_delay) >= 0 and not merged.no_expiry
    for queue in queues or (None,):
        policy = None if queue is None else queue.expiry_policy
        own = None if queue is None else queue.dead_letter_address
        attempts = None if queue is None else queue.max_delivery_attempts
        home = merged if queue is None or queue.address == name else settings.settings_for(queue.address)
        dead = merged.dead_letter_address if own is None else own
        if gives or _gives_expiry(queue, home):
            policy = home.default_expiry_policy if policy is None else policy
            expired, setting = merged.expiry_address, EXPIRY
            if not expired and policy == "ROUTE_TO_ALTERNATE":
                expired, setting = dead, DEAD
            if expired and expired != name and policy != "DELETE":
                yield Hop(name, expired, setting, queue)
        if dead and dead != name:
            if (home.max_delivery_attempts if attempts is None else attempts) > 0:
                yield Hop(name, dead, DEAD, queue, fails=True)
            if not queues and merged.send_to_dla_on_no_route:
                yield Hop(name, dead, DEAD, queue)


def _gives_expiry(queue: QueueConfig | None, merged: AddressSettings) -> bool:
    """Do messages that do not expire elsewhere expire on this queue, or on those that create themselves?"""
    longest = None if queue is None else queue.max_message_ttl
    usual = None if queue is None else queue.expiration
    if longest is None:
        longest = merged.default_max_message_ttl
    if usual is None:
        usual = merged.default_expiration
    return longest > 0 or usual > 0


def _groups(hops: Mapping[str, Sequence[Hop]]) -> list[set[str]]:
    """Groups of addresses in which each can reach all others (Tarjan), without recursion."""
    numbers: dict[str, int] = {}
    lows: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[set[str]] = []
    for root in hops:
        if root in numbers:
            continue
        path: list[tuple[str, Iterator[Hop]]] = [(root, iter(hops[root]))]
        numbers[root] = lows[root] = len(numbers)
        stack.append(root)
        on_stack.add(root)
        while path:
            name, rest = path[-1]
            target = next((hop.target for hop in rest), None)
            if target is None:
                path.pop()
                if path:
                    lows[path[-1][0]] = min(lows[path[-1][0]], lows[name])
                if lows[name] == numbers[name]:
                    groups.append(_cut(stack, on_stack, name))
            elif target not in numbers:
                numbers[target] = lows[target] = len(numbers)
                stack.append(target)
                on_stack.add(target)
                path.append((target, iter(hops[target])))
            elif target in on_stack:
                lows[name] = min(lows[name], numbers[target])
    return [group for group in groups if len(group) > 1 or _is_its_own(hops, *group)]


def _cut(stack: list[str], on_stack: set[str], name: str) -> set[str]:
    group: set[str] = set()
    while name not in group:
        group.add(stack.pop())
    on_stack -= group
    return group


def _is_its_own(hops: Mapping[str, Sequence[Hop]], name: str) -> bool:
    return any(hop.target == name for hop in hops[name])


def _circle(hops: Mapping[str, Sequence[Hop]], group: set[str]) -> list[Hop]:
    """The shortest path from the first address of a group back to it."""
    start = min(group)
    came: dict[str, Hop] = {}
    waiting = deque([start])
    while start not in came:
        for hop in hops[waiting.popleft()]:
            if hop.target in group and hop.target not in came:
                came[hop.target] = hop
                waiting.append(hop.target)
    way = [came[start]]
    while way[-1].source != start:
        way.append(came[way[-1].source])
    return way[::-1]


def _report(draft: Draft, settings: SettingsRepository, circle: list[Hop], end: str) -> None:
    places = [_place(settings, hop) for hop in circle]
    way = ", ".join(
        f"from {hop.source!r} to {hop.target!r} by {what} ({origin})"
        for hop, (what, origin, _) in zip(circle, places, strict=True)
    )
    text = f"messages go in a loop {end}: {way}"
    if any(hop.fails for hop in circle) and not all(exact for _, _, exact in places):
        draft.problems.note("circle", places[0][1], text)
    else:
        draft.problems.warning("circle", places[0][1], text)


def _place(settings: SettingsRepository, hop: Hop) -> tuple[str, Origin, bool]:
    """What forwards the messages, where it is written, and whether it is written for this address alone."""
    if hop.divert is not None:
        return f"divert {hop.divert.name!r}", hop.divert.origin, True
    if hop.bridge is not None:
        return f"bridge {hop.bridge.name!r}", hop.bridge.origin, True
    name = hop.setting.replace("_", "-")
    queue = hop.queue
    if queue is not None and hop.setting == DEAD and queue.dead_letter_address is not None:
        return name, queue.origin_of(DEAD), True
    if queue is not None and hop.setting == PUBLISH:
        place = PUBLISH if queue.default_publish_target is not None else "underlying_address"
        return name, queue.origin_of(place), True
    traced = settings.trace(hop.source)[hop.setting]
    return name, traced.origin or NOWHERE, traced.match == hop.source
