"""Message groups: the rule that names them, who has which, and what waits for its owner."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple, final
from zlib import crc32

from artemis_py.config.tables.address_settings import SHARED_GROUPS
from artemis_py.config.tables.queue_settings import QueueSettings
from artemis_py.core.budget import Budget
from artemis_py.core.consumer import Consumer
from artemis_py.core.memory import GROUP_BYTES, GROUPS, Holdings
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import Cursor, Order, Place
from artemis_py.core.queue.distribution import Distribution
from artemis_py.core.tasks import Agenda, Task
from artemis_py.message import Head, HeaderName, Message

# ---- rule ------------------------------------------------------------------------------------------------------------
#
# Message groups: which group a message belongs to, and which message closes it.


_USUAL_NAMES: Final = ("JMSXGroupID", "JMSXGroupId", "_AMQ_GROUP_ID")
_USUAL_MARKS: Final = (b"JMSXGroupI", b"_AMQ_GROUP_ID")
_SEQUENCE_NAMES: Final = ("_AMQ_GROUP_SEQUENCE", "JMSXGroupSeq")
_LAST: Final = "-1"
_RULES_MAX: Final = 1024


@final
@dataclass(frozen=True, slots=True)
class GroupRule:
    """How a queue groups messages (the ``group-…`` attributes).

    ``names`` are the headers that may name the group. ``fallback`` is the group of messages that name none; None when
    they are in no group. ``buckets``: the number of buckets that groups are spread over; -1 keeps each group apart.
    """

    names: tuple[HeaderName, ...]
    marks: tuple[bytes, ...]
    """Every header block that names a group contains at least one of these."""
    letter: int = -1
    """A byte that each mark contains, to look for first: a capital, if there is one, as they are rare; -1: none."""
    shared: bool = False
    fallback: str | None = None
    buckets: int = -1
    rebalances: bool = False
    pauses: bool = False
    first_key: str | None = None
    sequence_names: tuple[HeaderName, ...] = tuple(HeaderName(name) for name in _SEQUENCE_NAMES)

    @staticmethod
    def of(own: QueueSettings) -> GroupRule | None:
        """The rule of a queue; None when nothing is grouped."""
        if own.why_no_groups:
            return None
        shared = own.group_type == SHARED_GROUPS
        return _rule(
            own.group_key,
            shared,
            own.fallback_group if shared else None,
            -1 if shared else own.group_buckets,
            own.group_rebalance and not shared,
            own.group_rebalance_pause_dispatch,
            own.group_first_key,
        )

    def group_of(self, message: Message) -> str | None:
        """The group of a message; None when it is in none. With buckets, the bucket's number stands for the group."""
        head = message.head
        for name in self.names:
            group = head.first(name)
            if group is not None:
                return self.key_of(group)
        return self.fallback

    def key_of(self, name: str) -> str:
        """What stands for the group of this name: the name, or the number of its bucket."""
        return name if self.buckets <= 0 else str(crc32(name.encode()) % self.buckets)

    def may_name_group(self, blocks: bytes) -> bool:
        """May a message with these header blocks name a group? False is certain. This is asked of every batch that
        comes to a plain queue.
        """
        if self.fallback is not None:
            return True
        if self.letter >= 0 and self.letter not in blocks:  # a tenth of a search for bytes
            return False
        for mark in self.marks:  # noqa: SIM110 - a generator would be a call for each mark
            if blocks.find(mark) >= 0:  # "in" would first fail to take it as a number, which costs more
                return True
        return False

    def closes(self, message: Message) -> bool:
        """Does this message close its group (Artemis: group sequence -1)?"""
        return any(message.head.first(name) == _LAST for name in self.sequence_names)


@lru_cache(maxsize=_RULES_MAX)
def _rule(
    key: str | None,
    shared: bool,
    fallback: str | None,
    buckets: int,
    rebalances: bool,
    pauses: bool,
    first_key: str | None,
) -> GroupRule:
    """A rule. Queues that group alike share one."""
    names = tuple(HeaderName(name) for name in (_USUAL_NAMES if key is None else (key,)))
    marks = _USUAL_MARKS if key is None else tuple(name.line for name in names)
    common = set(marks[0]).intersection(*marks[1:])
    return GroupRule(
        names=names,
        marks=marks,
        letter=min([byte for byte in common if chr(byte).isalnum()], default=-1),
        shared=shared,
        fallback=fallback,
        buckets=buckets,
        rebalances=rebalances,
        pauses=pauses,
        first_key=first_key,
    )


# ---- table -----------------------------------------------------------------------------------------------------------
#
# The groups that a queue must remember, by name, and what they cost in memory.


@final
class Group:
    """One group: the consumer that owns it, and which of its entries are parked."""

    __slots__ = ("aside", "held", "key", "owner", "parked")

    def __init__(self, key: str) -> None:
        self.key = key
        self.owner: Consumer | None = None
        self.held = 0
        """Shared groups only: how many messages the owner holds unsettled."""
        self.aside = 0
        """How many messages wait for another attempt. While one does, the group delivers nothing."""
        self.parked: dict[int, list[Place]] = {}
        """Places of parked entries: a heap for each view, by the view's number."""

    @property
    def is_idle(self) -> bool:
        """Is there nothing to remember about this group?"""
        return self.owner is None and not self.held and not self.aside and not self.parked


@final
class GroupTable:
    """Groups by name. A group is made when there is something to remember of it, and dropped when there is not.

    The account of ``Holdings`` moves with the table, under ``GROUPS``.
    """

    __slots__ = ("_holdings", "_size_bytes", "groups")

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._size_bytes = 0
        self.groups: dict[str, Group] = {}

    def of(self, key: str) -> Group:
        """The group with this name; a new one if there is none yet."""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key)
            self._count(GROUP_BYTES + len(key))
        return group

    def admits(self, consumer: Consumer, key: str | None) -> bool:
        """May the consumer get a message of this group now? ``key`` None is a message of no group."""
        group = None if key is None else self.groups.get(key)
        if group is None:
            return True
        return not group.aside and (group.owner is None or group.owner is consumer)

    def forget_idle(self, group: Group) -> None:
        """Drop the group if it is idle."""
        if group.is_idle and self.groups.pop(group.key, None) is not None:
            self._count(-GROUP_BYTES - len(group.key))

    def clear(self) -> dict[str, Group]:
        """Drop every group. Returns them, because to free them may take long."""
        self._count(-self._size_bytes)
        groups, self.groups = self.groups, {}
        return groups

    def _count(self, size_bytes: int) -> None:
        self._size_bytes += size_bytes
        self._holdings.move(GROUPS, size_bytes)


# ---- parking ---------------------------------------------------------------------------------------------------------
#
# Parked entries: those that a view has passed while another consumer owned their group. A parked entry stays in the
# queue's order, so rings, expiry and browsers need to know nothing of groups. Only its place is noted, in a heap of
# its group. The first place of each group is *offered*: to the group's owner, or to all consumers of the view when
# the group has no owner. So a busy consumer holds up its own groups and no others, and a dispatch costs the same with
# one parked entry and with a million.


_SLACK: Final = 1024
"""How many more parked places than ready entries are kept before those of entries that are gone are removed."""

Offer = tuple[Place, str | None]
"""The place of a parked entry, and the name of its group; None: it is in no group."""


@final
class View:
    """One way through the queue, shared by consumers with the same selector: a cursor, and entries behind it that have
    become free.
    """

    __slots__ = ("cursor", "free", "number", "own", "readers")

    def __init__(self, number: int, cursor: Cursor) -> None:
        self.number = number
        self.cursor = cursor
        self.readers: set[int] = set()
        """Ids of the consumers that are shown this view."""
        self.free: list[Offer] = []
        """Offers to every reader, as a heap: groups that nobody owns, and entries of no group."""
        self.own: dict[int, list[Offer]] = {}
        """Offers to the owners of groups, by the owner's id, each a heap."""


class Parked(NamedTuple):
    """A parked entry that a consumer may have, and where it is offered."""

    place: Place
    entry: Entry
    group: Group | None
    view: View
    offers: list[Offer]


@final
class Parking:
    """The views of one queue, and all entries that are parked in them."""

    __slots__ = ("_next_number", "_order", "_table", "_views", "count")

    def __init__(self, table: GroupTable, order: Order) -> None:
        self._table = table
        self._order = order
        self._views: dict[int, View] = {}
        self._next_number = 0
        self.count = 0
        """About how many entries are parked. Some may have left the queue since, by expiry for example."""

    def open(self, cursor: Cursor) -> View:
        """A new view with this cursor."""
        cursor.reads_pages = False
        view = View(self._next_number, cursor)
        self._next_number += 1
        self._views[view.number] = view
        return view

    def close(self, view: View) -> None:
        """The view has no readers left. Groups drop their places in it when they are offered next."""
        del self._views[view.number]

    # ---- in --------------------------------------------------------------------------------------

    def park(self, view: View, key: str | None, place: Place) -> None:
        """Park the entry at ``place``, of the group with this name."""
        if self.count > 2 * len(self._views) * self._order.count + len(self._table.groups) + _SLACK:
            self._tidy()
        self.count += 1
        if key is None:
            heappush(view.free, (place, None))
            return
        group = self._table.of(key)
        places = group.parked.get(view.number)
        if places is None:
            places = group.parked[view.number] = []
        heappush(places, place)
        if places[0] == place:
            self._offer(view, group)

    def _tidy(self) -> None:
        """Remove the places of entries that are gone. A ring or expiry may take more from a blocked group than is ready
        on the queue.
        """
        for view in self._views.values():
            view.own.clear()
            view.free = [offer for offer in view.free if offer[1] is None and self._order.standing_at(offer[0])]
            heapify(view.free)
        self.count = sum([len(view.free) for view in self._views.values()])
        for group in list(self._table.groups.values()):
            for number, places in list(group.parked.items()):
                standing = [place for place in places if self._order.standing_at(place) is not None]
                if standing and number in self._views:
                    heapify(standing)
                    group.parked[number] = standing
                    self.count += len(standing)
                else:
                    del group.parked[number]
            self.offer_again(group)
            self._table.forget_idle(group)

    # ---- offers ----------------------------------------------------------------------------------

    def offer_again(self, group: Group) -> None:
        """The group has another owner, or none, or is no longer blocked: offer its first entry in each view."""
        for number in list(group.parked):
            view = self._views.get(number)
            if view is None:
                self.count -= len(group.parked.pop(number))
            else:
                self._offer(view, group)

    def _offer(self, view: View, group: Group) -> None:
        """Offer the group's first entry in this view to whoever may have it."""
        places = group.parked.get(view.number)
        if not places or group.aside:
            return
        owner = group.owner
        if owner is None:
            heappush(view.free, (places[0], group.key))
        elif owner.id in view.readers:
            heappush(view.own.setdefault(owner.id, []), (places[0], group.key))

    # ---- out -------------------------------------------------------------------------------------

    def first_for(self, view: View, consumer: Consumer) -> Parked | None:
        """The first parked entry that this reader of the view may have. It stays parked."""
        own = view.own.get(consumer.id)
        mine = None if not own else self._first_of(view, own, consumer)
        free = None if not view.free else self._first_of(view, view.free, None)
        if mine is None or (free is not None and free.place < mine.place):
            return free
        return mine

    def _first_of(self, view: View, offers: list[Offer], owner: Consumer | None) -> Parked | None:
        """The first offer that still holds. Those before it are removed."""
        while offers:
            place, key = offers[0]
            group = None if key is None else self._table.groups.get(key)
            if key is not None and not self._holds(view, place, group, owner):
                heappop(offers)
                continue
            entry = self._order.standing_at(place)
            if entry is not None:
                return Parked(place, entry, group, view, offers)
            self._remove_first(view, offers, group)
        return None

    def _holds(self, view: View, place: Place, group: Group | None, owner: Consumer | None) -> bool:
        if group is None or group.aside or group.owner is not owner:
            return False
        places = group.parked.get(view.number)
        return places is not None and len(places) > 0 and places[0] == place

    def take(self, parked: Parked) -> Entry:
        """The entry that was found with ``first_for`` is parked no longer."""
        self._remove_first(parked.view, parked.offers, parked.group)
        return parked.entry

    def _remove_first(self, view: View, offers: list[Offer], group: Group | None) -> None:
        """Remove the first offer, and offer the next entry of its group."""
        heappop(offers)
        self.count -= 1
        if group is not None:
            places = group.parked[view.number]
            heappop(places)
            if places:
                self._offer(view, group)
            else:
                del group.parked[view.number]
                self._table.forget_idle(group)


# ---- owners ----------------------------------------------------------------------------------------------------------
#
# Which consumer owns which group, and when a group changes hands. A group goes to the consumer that gets its first
# message. It stays with that consumer until the consumer leaves, until a message closes the group, or until groups
# are rebalanced. A shared group (``SHARED_GROUPS``) stays only until all of its messages that the consumer holds are
# settled.


@final
class GroupOwners:
    """The owners of one queue's groups. It moves no entry; a group that changes hands has its parked entries offered
    again.
    """

    __slots__ = ("_leaving", "_parking", "_pins", "_rule", "_table", "freed", "pausing")

    def __init__(self, rule: GroupRule, table: GroupTable, parking: Parking) -> None:
        self._rule = rule
        self._table = table
        self._parking = parking
        self._pins: dict[int, set[str]] = {}
        """Names of the groups that a consumer owns, by the consumer's id."""
        self._leaving: list[tuple[int, set[str]]] = []
        """The same for those that are to be freed."""
        self.freed = False
        """A group lost its owner, or was unblocked, since the queue last asked. Consumers that found nothing may find
        something now.
        """
        self.pausing = False
        """Groups were rebalanced, and dispatch pauses until what was sent before is settled."""

    # ---- messages --------------------------------------------------------------------------------

    def take(self, consumer: Consumer, message: Message) -> None:
        """The consumer gets this message, and with it the message's group. A message that closes its group takes the
        group away instead.
        """
        key = self._rule.group_of(message)
        if key is None:
            return
        if self._rule.shared:
            group = self._table.of(key)
            group.held += 1
            if group.owner is None:
                self._pins.setdefault(consumer.id, set()).add(key)
            self._give(group, consumer)
        elif self._rule.closes(message):
            known = self._table.groups.get(key)
            if known is not None and known.owner is not None:
                self._pins[known.owner.id].discard(key)
                self._free(known)
        else:
            group = self._table.of(key)
            if group.owner is None:
                self._pins.setdefault(consumer.id, set()).add(key)
                if self._rule.first_key is not None:
                    consumer.firsts.add(message.id)
            self._give(group, consumer)

    def settle(self, messages: list[Message]) -> None:
        """A consumer settled these messages, or returned them. A shared group loses its owner with the last one."""
        if not self._rule.shared:
            return
        for message in messages:
            key = self._rule.group_of(message)
            group = None if key is None else self._table.groups.get(key)
            if group is not None and group.held:
                group.held -= 1
                if not group.held:
                    if group.owner is not None and group.owner.id in self._pins:
                        self._pins[group.owner.id].discard(group.key)
                    self._free(group)

    def put_aside(self, message: Message) -> None:
        """A message waits for another attempt. Its group is blocked until then."""
        key = self._rule.group_of(message)
        if key is not None:
            self._table.of(key).aside += 1

    def leave_aside(self, message: Message) -> None:
        """Such a message is ready again, or gone."""
        key = self._rule.group_of(message)
        group = None if key is None else self._table.groups.get(key)
        if group is not None and group.aside:
            group.aside -= 1
            if not group.aside:
                self._now_free(group)

    # ---- consumers -------------------------------------------------------------------------------

    def offer_again(self, consumer: Consumer) -> None:
        """The consumer reads another view from now on: offer it there what is parked of its groups."""
        for key in self._pins.get(consumer.id, ()):
            group = self._table.groups.get(key)
            if group is not None and group.owner is consumer:
                self._parking.offer_again(group)

    def release(self, consumer: Consumer) -> None:
        """The consumer left, and what it held is back: its groups are to be freed. Shared ones lose their owner with
        the last message, which may wait for the end of a transaction.
        """
        keys = self._pins.pop(consumer.id, None)
        if keys and not self._rule.shared:
            self._leaving.append((consumer.id, keys))

    def rebalance(self, *, held: bool) -> None:
        """A consumer came, so groups are handed out anew (``group-rebalance``): all are to be freed. ``held``: some
        messages are not settled.
        """
        pins, self._pins = self._pins, {}
        self._leaving += [(owner_id, keys) for owner_id, keys in pins.items() if keys]
        self.pausing = self._rule.pauses and held

    @property
    def is_freeing(self) -> bool:
        """Are there groups to be freed? Nothing may be dispatched before."""
        return bool(self._leaving)

    def free_some(self, count_max: int) -> int:
        """Free at most so many groups. Returns how many were looked at."""
        count = 0
        while self._leaving and count < count_max:
            owner_id, keys = self._leaving[-1]
            while keys and count < count_max:
                count += 1
                group = self._table.groups.get(keys.pop())
                if group is not None and group.owner is not None and group.owner.id == owner_id:
                    self._free(group)
            if not keys:
                self._leaving.pop()
        return count

    def reset(self, key: str) -> bool:
        """Take a group that is not shared away from its consumer. Returns whether one had it."""
        group = self._table.groups.get(key)
        if group is None or group.owner is None:
            return False
        self._pins.get(group.owner.id, set()).discard(key)
        self._free(group)
        return True

    def reset_some(self, count_max: int) -> int:
        """The same for at most so many groups. Returns how many; 0: no group has an owner."""
        count = 0
        for keys in self._pins.values():
            while keys and count < count_max:
                self._free(self._table.groups[keys.pop()])
                count += 1
        return count

    # ---- owners ----------------------------------------------------------------------------------

    def _give(self, group: Group, consumer: Consumer) -> None:
        if group.owner is not consumer:
            group.owner = consumer
            if group.parked:
                self._parking.offer_again(group)

    def _free(self, group: Group) -> None:
        group.owner = None
        self._now_free(group)

    def _now_free(self, group: Group) -> None:
        self.freed = True
        if group.parked:
            self._parking.offer_again(group)
        self._table.forget_idle(group)


# ---- views -----------------------------------------------------------------------------------------------------------
#
# What consumers of a queue with groups are shown: the next entry that each of them may have. Consumers that take any
# message share one view. Consumers that choose alike (by selector or no-local) share another. The view's cursor
# passes each entry once. An entry that its reader may not have is parked. It is offered again, in the order of the
# queue, to the owner of its group, or to every reader when the group has no owner. So the next entry for a consumer
# is the least of three: the first one parked for it, the first one parked for everybody, and the cursor's.


@final
class GroupViews:
    """Which view each consumer reads, and what is next in it."""

    __slots__ = ("_by_cursor", "_common", "_order", "_parking", "_rule", "_table", "_view_of", "passes_left")

    def __init__(self, rule: GroupRule, table: GroupTable, parking: Parking, order: Order) -> None:
        self._rule = rule
        self._table = table
        self._parking = parking
        self._order = order
        self.passes_left = 0
        """How many more entries ``next_for`` may pass before it gives up for this turn."""
        self._view_of: dict[int, View] = {}
        """By the consumer's id."""
        self._by_cursor: dict[Cursor, View] = {}
        """Views of consumers that choose. Those that want the same have one cursor, so one view."""
        self._common = parking.open(order.open_cursor())

    def attach(self, consumer: Consumer) -> None:
        """A consumer that takes messages attached. One that chooses has its cursor already."""
        cursor = consumer.cursor
        view = self._common
        if cursor is not None:
            known = self._by_cursor.get(cursor)
            view = self._by_cursor[cursor] = self._parking.open(cursor) if known is None else known
        view.readers.add(consumer.id)
        self._view_of[consumer.id] = view

    def serves(self, consumer: Consumer) -> bool:
        """Does the consumer read a view? A browser does not."""
        return consumer.id in self._view_of

    def detach(self, consumer: Consumer) -> None:
        """The consumer left. The queue closes the cursor of a consumer that chooses."""
        view = self._view_of.pop(consumer.id, None)
        if view is None:
            return
        view.own.pop(consumer.id, None)
        view.readers.discard(consumer.id)
        if view is not self._common and not view.readers:
            self._parking.close(view)
            del self._by_cursor[view.cursor]

    def close(self) -> None:
        """The queue needs no views any more."""
        self._order.close_cursor(self._common.cursor)

    def next_for(self, consumer: Consumer) -> Entry | None:
        """The next entry that the consumer may have; it stays in the order.

        None when there is none, or when ``passes_left`` is used up.
        """
        view = self._view_of[consumer.id]
        order, rule, table, parking = self._order, self._rule, self._table, self._parking
        while self.passes_left > 0:
            parked = parking.first_for(view, consumer)
            found = view.cursor.advance()
            if found is None:
                return None if parked is None else parking.take(parked)
            message = found.message
            if not consumer.wants(message):
                self.passes_left -= 1 + consumer.take_asked()
                continue
            group = rule.group_of(message)
            if parked is None:
                if table.admits(consumer, group):
                    return found
                parking.park(view, group, order.place_of(message, found.sequence))
                self.passes_left -= 1
                continue
            place = order.place_of(message, found.sequence)
            if place < parked.place and table.admits(consumer, group):
                return found
            parking.park(view, group, place)
            if parked.place < place:
                return parking.take(parked)
            self.passes_left -= 1
        return None


# ---- groups ----------------------------------------------------------------------------------------------------------
#
# The groups of one queue, composed: which there are, who owns them, what is parked, and what consumers are shown.


@final
class QueueGroups:
    """The parts that a queue with groups has. They decide which consumer may have which entry; the queue moves it."""

    __slots__ = ("owners", "parking", "rule", "table", "views")

    def __init__(self, rule: GroupRule, order: Order, holdings: Holdings) -> None:
        self.rule = rule
        self.table = GroupTable(holdings)
        self.parking = Parking(self.table, order)
        self.owners = GroupOwners(rule, self.table, self.parking)
        self.views = GroupViews(rule, self.table, self.parking, order)

    def detach(self, consumer: Consumer) -> None:
        """A consumer left, and what it held is back. Its groups are to be freed (``owners.free_some``)."""
        self.owners.release(consumer)
        self.views.detach(consumer)

    def close(self) -> dict[str, Group]:
        """The queue needs no groups any more. Returns them, because to free them may take long."""
        self.views.close()
        return self.table.clear()


# ---- deferred freeing ------------------------------------------------------------------------------------------------
#
# Forgets many objects a few at a time: Python would free them all in one go, 30 ms for 100,000.


_SLICE: Final = 1000
_PER_UNIT: Final = 4


@final
class DeferredFreeing(Task):
    """Empties a dict that nobody uses any more."""

    def __init__(self, things: dict[Any, Any]) -> None:
        self._things = things

    def work(self, budget: Budget, now_ms: int) -> bool:
        things = self._things
        while len(things) > _SLICE:
            for _ in range(_SLICE):
                things.popitem()
            budget.spend(_SLICE // _PER_UNIT)
            if budget.is_spent:
                return False
        return True


def free_later(things: dict[Any, Any], agenda: Agenda) -> None:
    """Have a dict that nobody uses any more forgotten in later turns, if it has much."""
    if len(things) > _SLICE:
        agenda.add(DeferredFreeing(things))


# ---- grouping --------------------------------------------------------------------------------------------------------
#
# When a queue begins to look at message groups, and what they make it wait for. A queue has no groups
# (:mod:`artemis_py.core.queue.groups`) until the first message that names one. It drops them when it is empty and
# has no consumers.


_LOOKS_AT: Final = 1000
"""How many header blocks are searched at once: a restart may bring millions."""


@final
class Grouping:
    """The groups of one queue, once it has any.

    ``rule`` says how messages are grouped; None when they are not. ``groups`` is None until a message names a group.
    """

    __slots__ = ("_agenda", "_distribution", "_holdings", "_order", "groups", "rule")

    def __init__(
        self, rule: GroupRule | None, order: Order, distribution: Distribution, holdings: Holdings, agenda: Agenda
    ) -> None:
        self._agenda = agenda
        self.rule = rule
        self.groups: QueueGroups | None = None
        self._order = order
        self._distribution = distribution
        self._holdings = holdings

    # ---- messages --------------------------------------------------------------------------------

    def look_for(self, messages: list[Message]) -> None:
        """Messages arrived. If one of them names a group, this becomes a queue with groups. Until then, groups cost one
        search in each header block that differs from the one before.
        """
        rule = self.rule
        if rule is None or self.groups is not None:
            return
        if len(messages) == 1:
            if rule.may_name_group(messages[0].head.block):
                self.begin()
            return
        blocks: list[bytes] = []
        last_head: Head | None = None
        for message in messages:
            head = message.head
            if head is not last_head:
                last_head = head
                blocks.append(head.block)
        for start in range(0, len(blocks), _LOOKS_AT):
            if rule.may_name_group(b"".join(blocks[start : start + _LOOKS_AT])):
                self.begin()
                return

    def begin(self) -> None:
        """Look at groups from now on, if the queue has a rule for them."""
        rule = self.rule
        if rule is None or self.groups is not None:
            return
        groups = self.groups = QueueGroups(rule, self._order, self._holdings)
        for consumer in self._distribution.consumers:
            if consumer.destructive:
                groups.views.attach(consumer)

    def keeps_place(self, entry: Entry) -> bool:
        """Does an entry that is put aside go back to its own place when it is due, and not to the head?"""
        if not entry.attempts or self.groups is None:
            return False
        return self.groups.rule.group_of(entry.message) is not None

    def put_aside(self, entry: Entry) -> None:
        """An entry was put aside. If it waits for another attempt, its group waits with it."""
        if self.groups is not None and entry.attempts:
            self.groups.owners.put_aside(entry.message)

    def leave_aside(self, entry: Entry) -> None:
        """An entry that was put aside is ready again, or gone."""
        if self.groups is not None and entry.attempts:
            self.groups.owners.leave_aside(entry.message)

    def settle(self, messages: list[Message]) -> None:
        """A consumer settled these messages, or returned them."""
        if self.groups is not None:
            self.groups.owners.settle(messages)

    @property
    def parked_count(self) -> int:
        """How many ready entries wait for their group, at most."""
        return 0 if self.groups is None else min(self.groups.parking.count, self._order.count)

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, *, held: bool) -> bool:
        """A consumer attached. ``held``: some messages are not settled. After a rebalance there are groups to be freed.

        Returns True when dispatch must pause for a rebalance.
        """
        groups = self.groups
        if groups is None or not consumer.destructive:
            return False
        groups.views.attach(consumer)
        if groups.rule.rebalances:
            groups.owners.rebalance(held=held)
            return groups.owners.pausing
        return False

    def detach(self, consumer: Consumer) -> None:
        """A consumer left, and what it held is back. Its groups are to be freed (``free_some``)."""
        if self.groups is not None:
            self.groups.detach(consumer)

    @property
    def is_freeing(self) -> bool:
        """Are there groups to be freed? Nothing may be dispatched before."""
        return self.groups is not None and self.groups.owners.is_freeing

    def free_some(self, count_max: int) -> int:
        """Free at most so many of them. Returns how many were looked at."""
        return 0 if self.groups is None else self.groups.owners.free_some(count_max)

    def take_out(self, consumer: Consumer) -> None:
        """The consumer is about to choose other messages. It keeps its groups; ``put_in`` must follow."""
        if self.groups is not None:
            self.groups.views.detach(consumer)

    def put_in(self, consumer: Consumer) -> None:
        """The consumer chooses other messages now."""
        if self.groups is not None and consumer.destructive:
            self.groups.views.attach(consumer)
            self.groups.owners.offer_again(consumer)

    def forget(self) -> None:
        """The queue is empty and has no consumers, so no group has anything to remember."""
        if self.groups is not None:
            free_later(self.groups.close(), self._agenda)
            self.groups = None

    def regroup(self, rule: GroupRule | None) -> None:
        """Group by another rule from now on (None: not at all), while no consumer holds a message. No group has an
        owner then.
        """
        self.forget()
        self.rule = rule
        if self._order.count:
            self.begin()

    def reset(self, group: str) -> bool:
        """Take a group, by its name, away from its consumer. Returns whether one had it."""
        groups = self.groups
        return groups is not None and groups.owners.reset(groups.rule.key_of(group))

    def reset_some(self, count_max: int) -> int:
        """Take groups away from their consumers, at most so many. Returns how many they were; 0: no group has one."""
        return 0 if self.groups is None else self.groups.owners.reset_some(count_max)

    def serves(self, consumer: Consumer) -> bool:
        """Is the consumer shown entries by group? A browser is not."""
        return self.groups is not None and self.groups.views.serves(consumer)

    def must_wait(self, *, held: bool) -> bool:
        """A dispatch begins. Must it wait until what was sent before a rebalance is settled?"""
        groups = self.groups
        if groups is None:
            return False
        owners = groups.owners
        if owners.pausing and held:
            return True
        owners.pausing = False
        return False

    def takes_freed(self) -> bool:
        """Has a group become free since this was last asked? Consumers that found nothing may find something then."""
        groups = self.groups
        if groups is None or not groups.owners.freed:
            return False
        groups.owners.freed = False
        return True
