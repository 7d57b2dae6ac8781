"""The groups of one queue, composed: which there are, who owns them, what is parked, and what consumers are shown."""

from __future__ import annotations

from typing import final

from artemis_py.core.consumer import Consumer
from artemis_py.core.groups.owners import GroupOwners
from artemis_py.core.groups.parking import Parking
from artemis_py.core.groups.rule import GroupRule
from artemis_py.core.groups.table import Group, GroupTable
from artemis_py.core.groups.views import GroupViews
from artemis_py.core.holdings import Holdings
from artemis_py.core.order.order import Order


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
