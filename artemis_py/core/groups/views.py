"""What consumers of a grouped queue are shown: the next entry that each of them may have.

Consumers that take anything share one view, those that choose the same (by selector or no-local) another. A view has a
cursor, which passes each entry once; what it passed while the group was with somebody else is parked under the group,
and is offered again, first place first, to whoever the group is with, or to all when it is with nobody.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, final

from artemis_py.core.groups.rule import Group, GroupRule
from artemis_py.core.holdings import GROUP_BYTES, GROUPS, Holdings
from artemis_py.core.order.order import Cursor, Order, Place
from artemis_py.core.queue.consumer import Consumer
from artemis_py.core.queue.entry import Entry
from artemis_py.message import Message

_SLACK: Final = 1024

Offer = tuple[Place, str | None]
"""A place, and the group of the entry there."""


@final
class View:
    """What one consumer, or all that take anything, may be given: by cursor, and what is parked."""

    __slots__ = ("cursor", "free", "number", "own", "reader_count")

    def __init__(self, number: int, cursor: Cursor) -> None:
        self.number = number
        self.cursor = cursor
        self.reader_count = 0
        """How many consumers are shown it."""
        self.free: list[Offer] = []
        """First parked places of groups that are with nobody, and parked entries of no group; a heap."""
        self.own: dict[int, list[Offer]] = {}
        """First parked places of groups by the consumer that they are with; heaps."""


class Parked(NamedTuple):
    """A parked entry that a consumer may have, and the heap of a view that offers it."""

    place: Place
    entry: Entry
    group: Group | None
    view: View
    offers: list[Offer]


@final
class GroupViews:
    """The groups of one queue. It decides and notes who has what; entries are moved by the queue.

    ``freed`` says that a group is with nobody since it was last looked at: then consumers that found nothing may find
    something.
    """

    __slots__ = (
        "_by_cursor", "_common", "_holdings", "_next_number", "_order", "_parked_count", "_pins", "_view_of", "_views",
        "freed", "groups", "passes_left", "pausing", "rule",
    )  # fmt: skip

    def __init__(self, rule: GroupRule, order: Order, holdings: Holdings) -> None:
        self.rule = rule
        self._holdings = holdings
        self.groups: dict[str, Group] = {}
        self.freed = False
        self.pausing = False
        """Groups were handed out anew, and what was sent before that must be settled first."""
        self.passes_left = 0
        """How many entries the next one that is looked for may lie behind."""
        self._order = order
        self._next_number = 0
        self._parked_count = 0
        self._pins: dict[int, set[str]] = {}
        """The groups that stay with a consumer, by its number."""
        self._views: dict[int, View] = {}
        self._view_of: dict[int, View] = {}
        self._by_cursor: dict[Cursor, View] = {}
        """Of consumers that choose. Those that want the same have one cursor, and one view."""
        self._common = self._open(order.open_cursor())

    def _open(self, cursor: Cursor) -> View:
        cursor.reads_pages = False
        view = View(self._next_number, cursor)
        self._next_number += 1
        self._views[view.number] = view
        return view

    @property
    def parked_count(self) -> int:
        """About how many entries are parked; some of them may be gone."""
        return self._parked_count

    @property
    def is_idle(self) -> bool:
        """Is there nothing to remember?"""
        return not self.groups

    # ---- consumers -------------------------------------------------------------------------------

    def attach(self, consumer: Consumer) -> None:
        """A consumer that takes away comes; one that chooses has a cursor already."""
        cursor = consumer.cursor
        view = self._common
        if cursor is not None:
            known = self._by_cursor.get(cursor)
            view = self._by_cursor[cursor] = self._open(cursor) if known is None else known
        view.reader_count += 1
        self._view_of[consumer.id] = view

    def serves(self, consumer: Consumer) -> bool:
        """Do groups concern this consumer?"""
        return consumer.id in self._view_of

    def detach(self, consumer: Consumer) -> None:
        """A consumer is gone, and what it had is back: so are its groups. The cursor of its own is closed by the
        queue.
        """
        view = self._view_of.pop(consumer.id, None)
        if view is None:
            return
        for key in self._pins.pop(consumer.id, ()):
            self._free(self.groups[key])
        view.own.pop(consumer.id, None)
        view.reader_count -= 1
        if view is not self._common and not view.reader_count:
            del self._views[view.number]
            del self._by_cursor[view.cursor]

    def rebalance(self, *, held: bool) -> None:
        """A consumer came: groups are handed out anew (``group-rebalance``). ``held``: something is not settled."""
        pins, self._pins = self._pins, {}
        for keys in pins.values():
            for key in keys:
                self._free(self.groups[key])
        self.pausing = self.rule.pauses and held

    def close(self) -> None:
        """The queue needs no groups any more."""
        self._order.close_cursor(self._common.cursor)
        self._holdings.move(GROUPS, -sum(GROUP_BYTES + len(key) for key in self.groups))
        self.groups.clear()

    # ---- what is next ----------------------------------------------------------------------------

    def next_for(self, consumer: Consumer) -> Entry | None:
        """The next entry that the consumer may have; it stays where it stands. None, too, when ``passes_left`` is used
        up.
        """
        view = self._view_of[consumer.id]
        order, rule = self._order, self.rule
        while self.passes_left > 0:
            parked = self._first_parked(view, consumer)
            found = view.cursor.advance()
            if found is None:
                return None if parked is None else self._unpark(parked)
            message = found.message
            if not consumer.wants(message):
                self.passes_left -= 1 + consumer.take_asked()
                continue
            group = rule.group_of(message)
            if parked is None:
                if self._may_have(consumer, group):
                    return found
                self._park(view, group, order.place_of(message, found.sequence))
                self.passes_left -= 1
                continue
            place = order.place_of(message, found.sequence)
            if place < parked.place and self._may_have(consumer, group):
                return found
            self._park(view, group, place)
            if parked.place < place:
                return self._unpark(parked)
            self.passes_left -= 1
        return None

    def _may_have(self, consumer: Consumer, key: str | None) -> bool:
        group = None if key is None else self.groups.get(key)
        if group is None:
            return True
        return not group.aside and (group.owner is None or group.owner is consumer)

    def _first_parked(self, view: View, consumer: Consumer) -> Parked | None:
        own = view.own.get(consumer.id)
        mine = None if not own else self._first_of(view, own, consumer)
        free = None if not view.free else self._first_of(view, view.free, None)
        if mine is None or (free is not None and free.place < mine.place):
            return free
        return mine

    def _first_of(self, view: View, offers: list[Offer], owner: Consumer | None) -> Parked | None:
        """The first offer that still holds; those before it are forgotten."""
        while offers:
            place, key = offers[0]
            group = None if key is None else self.groups.get(key)
            if key is not None and not self._holds(view, place, group, owner):
                heappop(offers)
                continue
            entry = self._order.standing_at(place)
            if entry is not None:
                return Parked(place, entry, group, view, offers)
            self._forget_first(view, offers, group)
        return None

    def _holds(self, view: View, place: Place, group: Group | None, owner: Consumer | None) -> bool:
        if group is None or group.aside or group.owner is not owner:
            return False
        places = group.parked.get(view.number)
        return places is not None and len(places) > 0 and places[0] == place

    def _forget_first(self, view: View, offers: list[Offer], group: Group | None) -> None:
        """The first offer is taken, or gone: the next of its group stands for it now."""
        heappop(offers)
        self._parked_count -= 1
        if group is not None:
            places = group.parked[view.number]
            heappop(places)
            if places:
                self._offer(view, group)
            else:
                del group.parked[view.number]
                self._forget_idle(group)

    def _unpark(self, parked: Parked) -> Entry:
        self._forget_first(parked.view, parked.offers, parked.group)
        return parked.entry

    # ---- parking ---------------------------------------------------------------------------------

    def _park(self, view: View, key: str | None, place: Place) -> None:
        if self._parked_count > 2 * len(self._views) * self._order.count + len(self.groups) + _SLACK:
            self._tidy()
        self._parked_count += 1
        if key is None:
            heappush(view.free, (place, None))
            return
        group = self._group(key)
        places = group.parked.get(view.number)
        if places is None:
            places = group.parked[view.number] = []
        heappush(places, place)
        if places[0] == place:
            self._offer(view, group)

    def _group(self, key: str) -> Group:
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key)
            self._holdings.move(GROUPS, GROUP_BYTES + len(key))
        return group

    def _offer(self, view: View, group: Group) -> None:
        """Offer the first parked entry of a group to whom it is for."""
        places = group.parked.get(view.number)
        if not places or group.aside:
            return
        owner = group.owner
        if owner is None:
            heappush(view.free, (places[0], group.key))
        elif self._view_of.get(owner.id) is view:
            heappush(view.own.setdefault(owner.id, []), (places[0], group.key))

    def _offer_everywhere(self, group: Group) -> None:
        for number in list(group.parked):
            view = self._views.get(number)
            if view is None:
                self._parked_count -= len(group.parked.pop(number))
            else:
                self._offer(view, group)

    def _tidy(self) -> None:
        """Forget what is parked and gone: a ring or an expiry may take more from a blocked group than stands on the
        queue.
        """
        for view in self._views.values():
            view.own.clear()
            view.free = [offer for offer in view.free if offer[1] is None and self._order.standing_at(offer[0])]
            heapify(view.free)
        self._parked_count = sum(len(view.free) for view in self._views.values())
        for group in list(self.groups.values()):
            for number, places in list(group.parked.items()):
                standing = [place for place in places if self._order.standing_at(place) is not None]
                if standing and number in self._views:
                    heapify(standing)
                    group.parked[number] = standing
                    self._parked_count += len(standing)
                else:
                    del group.parked[number]
            self._offer_everywhere(group)
            self._forget_idle(group)

    # ---- who has what ----------------------------------------------------------------------------

    def take(self, consumer: Consumer, message: Message) -> None:
        """The consumer gets the message: so it gets the group, or in a group that is closed by it, loses it."""
        key = self.rule.group_of(message)
        if key is None:
            return
        if self.rule.shared:
            group = self._group(key)
            group.held += 1
            self._give(group, consumer)
        elif self.rule.closes(message):
            known = self.groups.get(key)
            if known is not None and known.owner is not None:
                self._pins[known.owner.id].discard(key)
                self._free(known)
        else:
            group = self._group(key)
            if group.owner is None:
                self._pins.setdefault(consumer.id, set()).add(key)
                if self.rule.first_key is not None:
                    consumer.firsts.add(message.id)
            self._give(group, consumer)

    def _give(self, group: Group, consumer: Consumer) -> None:
        if group.owner is not consumer:
            group.owner = consumer
            if group.parked:
                self._offer_everywhere(group)

    def _free(self, group: Group) -> None:
        group.owner = None
        self._now_free(group)

    def _now_free(self, group: Group) -> None:
        self.freed = True
        if group.parked:
            self._offer_everywhere(group)
        self._forget_idle(group)

    def _forget_idle(self, group: Group) -> None:
        if group.is_idle and self.groups.pop(group.key, None) is not None:
            self._holdings.move(GROUPS, -GROUP_BYTES - len(group.key))

    def settle(self, messages: list[Message]) -> None:
        """A consumer is done with messages, or they are back: a shared group is with nobody when that was all of it."""
        if not self.rule.shared:
            return
        for message in messages:
            key = self.rule.group_of(message)
            group = None if key is None else self.groups.get(key)
            if group is not None and group.held:
                group.held -= 1
                if not group.held:
                    self._free(group)

    def put_aside(self, message: Message) -> None:
        """A message waits for another attempt, and its group for the message."""
        key = self.rule.group_of(message)
        if key is not None:
            self._group(key).aside += 1

    def leave_aside(self, message: Message) -> None:
        """Such a message is ready again, or gone."""
        key = self.rule.group_of(message)
        group = None if key is None else self.groups.get(key)
        if group is not None and group.aside:
            group.aside -= 1
            if not group.aside:
                self._now_free(group)
