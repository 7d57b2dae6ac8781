"""Permissions: random settings, role mappings, users and frames; the broker and a naive table agree on each frame.

And whatever is refused creates nothing, although connections share routes and users share what is remembered.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.permitted import Person, SecuredBroker, setting
from tests.model.permissions_model import OWN, Existing, Need, Rule, Table, without_own_names, words

pytestmark = pytest.mark.model

ADDRESSES = ("a", "b", "a.b", "a.c", "b.b", "a.b.c", "b.c")
QUEUES = ("a", "q", "r", "new", "a.b")
MATCHES = (
    "#", "a", "b", "a.b", "*", "a.#", "b.#", "*.b", "a.*", "*.#", "*.*", "a.b.#", "a.*.#", "a.*.c", "*.b.c", "a.b.q",
    "a.b::q", "a.b::r", "a.b::*", "a::a", "b.b::new", "b.b.b",
)  # fmt: skip
PERMISSIONS = (
    "send", "consume", "browse", "createAddress", "createDurableQueue", "deleteDurableQueue", "createNonDurableQueue",
    "deleteNonDurableQueue",
)  # fmt: skip
ROLES = ("one", "two", "three")
OUTSIDE = ("x", "y")
DECLARED = """<addresses>
  <address name="a"><anycast><queue name="a"/></anycast></address>
  <address name="a.b"><anycast><queue name="q"/></anycast></address>
  <address name="b"><multicast/></address>
  <address name="b.b"><anycast/><multicast/></address>
  <address name="b.c"><anycast><queue name="left"/><queue name="right"/></anycast></address>
</addresses>"""
PREFIXES = {"/queue/": "ANYCAST", "/topic/": "MULTICAST", "": None}
STEPS_MAX = 40 if os.environ.get("HYPOTHESIS_PROFILE") != "soak" else 60

some_roles = st.sampled_from([frozenset(), *(frozenset({role}) for role in ROLES), *[frozenset(ROLES)] * 3])
rules = st.builds(Rule, st.sampled_from(MATCHES), st.fixed_dictionaries(dict.fromkeys(PERMISSIONS, some_roles)))
tables = st.builds(
    Table,
    st.lists(rules, min_size=2, max_size=8).map(tuple),
    st.lists(st.tuples(st.sampled_from(OUTSIDE), st.sampled_from(ROLES)), max_size=3).map(tuple),
)
names = st.tuples(st.sampled_from(ADDRESSES), st.sampled_from((None, None, None, *QUEUES)))
places = st.one_of(names, st.tuples(st.just(""), st.sampled_from(QUEUES)))
prefixes = st.sampled_from(tuple(PREFIXES))
users = st.integers(0, 2)
sends = st.tuples(st.just("SEND"), users, places, prefixes, st.booleans())
subscribes = st.tuples(st.just("SUBSCRIBE"), users, places, prefixes, st.sampled_from(("", "", "durable", "browser")))
unsubscribes = st.tuples(st.just("UNSUBSCRIBE"), users, st.integers(0, 9), st.just(""), st.booleans())
frames = st.one_of(sends, subscribes, subscribes, unsubscribes, unsubscribes)


class World:
    """The broker and the table, and who is connected. Each user has two connections, which take turns."""

    def __init__(self, table: Table, held: list[frozenset[str]], *, addresses: bool, queues: bool, cached: int) -> None:
        self.table = table
        self.held = held
        self.creates = (addresses, queues)
        self.shop = SecuredBroker(
            *(setting(rule.match, **{name: ",".join(sorted(who)) for name, who in rule.roles.items()})
              for rule in table.rules),
            *(f'<role-mapping from="{outside}" to="{inside}"/>' for outside, inside in table.mappings),
            core=f"""{DECLARED}<authorization-cache-size>{cached}</authorization-cache-size>
            <address-settings><address-setting match="#">
            <auto-create-addresses>{str(addresses).lower()}</auto-create-addresses>
            <auto-create-queues>{str(queues).lower()}</auto-create-queues>
            </address-setting></address-settings>""",
        )  # fmt: skip
        self.people = [
            [self.shop.login(f"u{number}", *sorted(roles), name=f"u{number}.{turn}") for turn in (0, 1)]
            for number, roles in enumerate(held)
        ]
        self.open: list[dict[str, tuple[str, str, str]]] = [{} for _ in range(2 * len(held))]
        """By connection: subscriptions by id, each with address, queue and the durable one's name."""
        self.turn = 0
        self.denials = 0

    @property
    def existing(self) -> Existing:
        """What exists now."""
        broker = self.shop.broker
        return Existing(
            {name: frozenset(address.routing_types) for name, address in broker.addresses.items()},
            {name: (queue.address.name, queue.routing_type) for name, queue in broker.queues.items()},
            *self.creates,
        )

    def check(self, user: int, needs: list[Need], said: str | None, before: Existing) -> bool:
        """Is the answer the one that the table gives? Returns whether the frame was carried out."""
        missing = next((need for need in needs if not self.table.allows(self.held[user], need)), None)
        if missing is not None:
            self.denials += 1
            assert said is not None, f"carried out without {missing}"
            assert without_own_names(said) == words(f"u{user}", missing)
            assert self.existing == before, "something was created"
        else:
            assert said is None or not said.startswith("AMQ229"), f"{needs} are all there"
            new = set(self.existing.addresses) - set(before.addresses)
            assert new <= {address for permission, address, _ in needs if permission == "createAddress"}
            fresh = {without_own_names(name) for name in set(self.existing.queues) - set(before.queues)}
            assert fresh <= {queue for permission, _, queue in needs if permission.startswith("create")}
        return said is None

    def person(self, user: int) -> tuple[Person, int]:
        """One of the user's connections, and its number."""
        self.turn += 1
        return self.people[user][self.turn % 2], 2 * user + self.turn % 2

    def send(self, user: int, place: tuple[str, str | None], prefix: str, *, in_transaction: bool) -> None:
        """SEND."""
        address, queue = place
        person, _ = self.person(user)
        before = self.existing
        needs = list(before.send(address, queue, PREFIXES[prefix]))
        more: dict[str, str] = {}
        if in_transaction:
            assert person.frame("BEGIN", transaction="t") is None
            more["transaction"] = "t"
        self.check(user, needs, person.send(prefix + _full(place), **more), before)
        if in_transaction:
            assert person.frame("COMMIT", transaction="t") is None

    def subscribe(self, user: int, place: tuple[str, str | None], prefix: str, how: str) -> None:
        """SUBSCRIBE."""
        address, queue = place
        person, number = self.person(user)
        before = self.existing
        durable = f"u{user}-id.d" if how == "durable" else ""
        verb = "browse" if how == "browser" else "consume"
        needs = list(before.subscribe(address, queue, PREFIXES[prefix], durable, verb))
        more = {"durable_subscription_name": "d"} if durable else {"browser": "true"} if verb == "browse" else {}
        id = str(self.turn)
        said = person.subscribe(prefix + _full(place), id, **more)
        if self.check(user, needs, said, before):
            read = needs[-1]
            assert read[2] is not None
            self.open[number][id] = (read[1], read[2], durable if read[2] == durable else "")

    def unsubscribe(self, user: int, choice: int, *, deletes: bool) -> None:
        """UNSUBSCRIBE, by id; of a durable subscription perhaps with its name."""
        person, number = self.person(user)
        subscriptions = self.open[number]
        if not subscriptions:
            return
        id = sorted(subscriptions)[choice % len(subscriptions)]
        address, queue, durable = subscriptions[id]
        before = self.existing
        needs: list[Need] = [("deleteNonDurableQueue", address, OWN)] if queue == OWN else []
        more: dict[str, str] = {}
        if durable and deletes:
            needs.append(("deleteDurableQueue", address, durable))
            more["durable_subscription_name"] = "d"
        by_key = person.client.connection.session.subscriptions.by_key
        if self.check(user, needs, person.frame("UNSUBSCRIBE", id=id, **more), before) or id not in by_key:
            del subscriptions[id]


def _full(place: tuple[str, str | None]) -> str:
    address, queue = place
    return address if queue is None else f"{address}::{queue}"


@given(
    table=tables,
    held=st.lists(st.frozensets(st.sampled_from(ROLES + OUTSIDE), min_size=1), min_size=3, max_size=3),
    addresses=st.booleans(),
    queues=st.booleans(),
    cached=st.sampled_from((0, 1, 3, 1000)),
    steps=st.lists(frames, min_size=10, max_size=STEPS_MAX),
)
@settings(deadline=None)
def test_the_broker_decides_as_the_table(
    table: Table, held: list[frozenset[str]], addresses: bool, queues: bool, cached: int, steps: list[tuple[Any, ...]]
) -> None:
    world = World(table, held, addresses=addresses, queues=queues, cached=cached)
    for kind, user, place, prefix, how in steps:
        if kind == "SEND":
            world.send(user, place, prefix, in_transaction=how)
        elif kind == "SUBSCRIBE":
            world.subscribe(user, place, prefix, how)
        else:
            world.unsubscribe(user, place, deletes=how)
    assert world.shop.authorizer.checks.failure == world.denials
