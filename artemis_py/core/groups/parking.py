"""Parked entries: those that a view has passed while another consumer owned their group.

A parked entry stays in the queue's order, so rings, expiry and browsers need to know nothing of groups. Only its place
is noted, in a heap of its group. The first place of each group is *offered*: to the group's owner, or to all consumers
of the view when the group has no owner. So a busy consumer holds up its own groups and no others, and a dispatch costs
the same with one parked entry and with a million.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, final

from artemis_py.core.consumer import Consumer
from artemis_py.core.groups.table import Group, GroupTable
from artemis_py.core.order.entry import Entry
from artemis_py.core.order.order import Cursor, Order, Place

_SLACK: Final = 1024
"""How many more parked places than ready entries are kept before those of entries that are gone are removed."""

Offer = tuple[Place, str | None]
"""The place of a parked entry, and the name of its group; None: it is in no group."""


@final
class View:
    """What consumers that want the same are shown: a cursor, and offers of what it has passed."""

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
