"""What Artemis' rules say about permissions, as naively as can be: a table, read from the top for each question.

It shares no code with the broker. It knows which addresses and queues exist because it looks, and answers with the
permissions that a frame needs, in the order in which they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

ANYCAST, MULTICAST = "ANYCAST", "MULTICAST"
OWN = "temporary-?"
"""Stands for the name of a queue that the broker chooses."""

IN_FULL = " in full"
"""Behind a permission: the client named the queue as ``address::queue``."""

Need = tuple[str, str, str | None]
"""A permission, an address, a queue."""


@dataclass(frozen=True)
class Rule:
    """One security-setting: for each permission the roles that have it."""

    match: str
    roles: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Table:
    """All of them, in the order of the file, and who stands for whom: (outside, inside)."""

    rules: tuple[Rule, ...]
    mappings: tuple[tuple[str, str], ...]

    def allows(self, roles: frozenset[str], need: Need) -> bool:
        """May somebody with these roles do this?"""
        permission, address, queue = need
        is_full, permission = permission.endswith(IN_FULL), permission.removesuffix(IN_FULL)
        held = roles | {inside for outside, inside in self.mappings if outside in roles}
        rule = None if queue is None else self._written(f"{address}::{queue}")
        for one in self.rules if rule is None else ():
            if covers(one.match.split("."), address.split(".")) and (
                rule is None or one.match == rule.match or is_narrower(one.match, rule.match)
            ):
                rule = one
        if rule is not None and held & rule.roles.get(permission, frozenset()):
            return True
        if queue is None or is_full or permission not in ("consume", "browse"):
            return False
        older = self._written(f"{address}.{queue}")
        return older is not None and bool(held & older.roles.get(permission, frozenset()))

    def _written(self, match: str) -> Rule | None:
        """The last rule with just this match, which must have no wildcards."""
        same = [rule for rule in self.rules if rule.match == match and not set("*#") & set(match)]
        return same[-1] if same else None


def covers(match: Sequence[str], address: Sequence[str]) -> bool:
    """Does a match, word by word, cover an address?"""
    if not match:
        return not address
    if match[0] == "#":
        return True
    return bool(address) and match[0] in ("*", address[0]) and covers(match[1:], address[1:])


def is_narrower(one: str, other: str) -> bool:
    """Is one match more specific than another, when both cover the same address?"""
    if not set("*#") & set(one) or not set("*#") & set(other):
        return not set("*#") & set(one)
    if ("#" in one) != ("#" in other):
        return "#" in other
    if "#" in one and len(one) != len(other):
        return len(one) > len(other)
    for mine, its in zip(one.split("."), other.split("."), strict=False):
        if (mine == "*") != (its == "*"):
            return its == "*"
    return len(one) < len(other)


@dataclass(frozen=True)
class Existing:
    """What exists: addresses with their routing types, queues with address and routing type."""

    addresses: Mapping[str, frozenset[str]]
    queues: Mapping[str, tuple[str, str]]
    creates_addresses: bool
    creates_queues: bool

    def anycast(self, address: str) -> list[str]:
        """The anycast queues of an address."""
        return sorted(name for name, (where, kind) in self.queues.items() if where == address and kind == ANYCAST)

    def _address(self, address: str) -> Iterator[Need]:
        if address not in self.addresses and self.creates_addresses:
            yield "createAddress", address, None

    def send(self, address: str, queue: str | None, kind: str | None) -> Iterator[Need]:
        """What SEND needs; ``kind`` is the routing type that the sender names."""
        if queue is not None:
            yield from self._in_full(address, queue)
            yield "send", address or self.home_of(queue), queue
            return
        yield from self._address(address)
        types = self.addresses.get(address, frozenset({MULTICAST}))
        to_queue = kind == ANYCAST or (kind is None and ANYCAST in types)
        if to_queue and not self.anycast(address) and self.creates_queues and address not in self.queues:
            yield "createDurableQueue", address, address
        yield "send", address, None

    def home_of(self, queue: str) -> str:
        """The address of a queue, whose name it would be for a new one."""
        return self.queues[queue][0] if queue in self.queues else queue

    def _in_full(self, address: str, queue: str) -> Iterator[Need]:
        name = address or self.home_of(queue)
        yield from self._address(name)
        if queue not in self.queues and self.creates_queues:
            yield "createDurableQueue", name, queue

    def subscribe(self, address: str, queue: str | None, kind: str | None, durable: str, verb: str) -> Iterator[Need]:
        """What SUBSCRIBE needs; ``durable`` is the queue of a durable subscription, or empty."""
        if queue is not None:
            yield from self._in_full(address, queue)
            yield verb + IN_FULL, address or self.home_of(queue), queue
            return
        types = self.addresses.get(address, frozenset({MULTICAST}))
        if (kind or (ANYCAST if ANYCAST in types else MULTICAST)) == MULTICAST:
            yield from self._address(address)
            if not durable:
                yield "createNonDurableQueue", address, OWN
            elif durable not in self.queues:
                yield "createDurableQueue", address, durable
            yield verb, address, durable or OWN
            return
        yield from self._address(address)
        there = self.anycast(address)
        if len(there) == 1 or address in there:
            yield verb, address, address if address in there else there[0]
            return
        if not there and self.creates_queues and address not in self.queues:
            yield "createDurableQueue", address, address
        yield verb, address, address


_SPELLED = {
    "send": "SEND", "consume": "CONSUME", "browse": "BROWSE", "createAddress": "CREATE_ADDRESS",
    "createDurableQueue": "CREATE_DURABLE_QUEUE", "deleteDurableQueue": "DELETE_DURABLE_QUEUE",
    "createNonDurableQueue": "CREATE_NON_DURABLE_QUEUE", "deleteNonDurableQueue": "DELETE_NON_DURABLE_QUEUE",
}  # fmt: skip


def words(user: str, need: Need) -> str:
    """The text of a denial, as Artemis words it."""
    permission, address, queue = need
    permission = permission.removesuffix(IN_FULL)
    code, place = ("AMQ229032", "") if queue is None else ("AMQ229213", f"for queue {queue} ")
    return f"{code}: User: {user} does not have permission='{_SPELLED[permission]}' {place}on address {address}"


def without_own_names(text: str) -> str:
    """A text with ``OWN`` in the place of names that the broker chose."""
    return re.sub(r"temporary-[0-9A-Za-z-]+", OWN, text)
