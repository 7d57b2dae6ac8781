"""What routing asks of the registry of addresses."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr, trait

from artemis_py.core.address import Address, Plan
from artemis_py.core.agenda import Agenda
from artemis_py.core.budget import Budget
from artemis_py.core.pages.stream import PageStream
from artemis_py.core.wildcard_addresses import WildcardAddresses
from artemis_py.records import RecordLog


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class Bindings(ABC):
    """What the router asks of the registry of addresses."""

    log: RecordLog
    budget: Budget
    agenda: Agenda

    wildcards: WildcardAddresses

    @abstractmethod
    def plan_for(self, address: Address) -> Plan:
        """Where messages to the address go now: queues bound to the address itself and to wildcard addresses that match
        it, and diverts.
        """

    @abstractmethod
    def open_stream(self, address: Address) -> PageStream:
        """Pages for an address that never had any."""

    @abstractmethod
    def obtain_resources(self, source: Address, target: str, *, dead: bool) -> None:
        """Make the queue for what is dead (or has expired) of an address, where its settings ask for one."""

    @abstractmethod
    def note_looped(self, address: Address, target: str) -> None:
        """A copy of a message of the address was not sent to ``target``: it went in a circle."""
