"""Makes the addresses and queues that an export has and a broker lacks. What is there is left as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from artemis_py.cli.data.destinations import Kept, KeptAddress, KeptQueue
from artemis_py.cli.data.manager import Manager
from artemis_py.core.addresses.retroactive import is_internal

_ROUTING_TYPES: Final = ("ANYCAST", "MULTICAST")
"""Those of an address that had none when it was exported: it may get any."""


@final
class Maker:
    """What is made with a manager. ``unsettled`` are resources (``queue.NAME``, ``address.NAME``) that an import before
    this one made, perhaps, and did not pause or disable yet; ``note`` writes them down. Methods raise ArtemisError when
    the broker does not answer.
    """

    def __init__(self, manager: Manager, unsettled: list[str], note: Callable[[], None]) -> None:
        self._manager = manager
        self._unsettled = unsettled
        self._note = note
        self.made = 0
        """So many queues."""
        self.refused: dict[str, str] = {}
        """Queues that could not be made, with the broker's reason."""
        self.problems: list[str] = []
        """What else the broker refused, a line each."""
        self._to_disable: list[str] = []

    def make(self, kept: Kept) -> None:
        """Make what is missing, and pause what was paused."""
        addresses = [one for one in kept.addresses.values() if one.name not in self._manager.addresses]
        queues = self._missing(list(kept.queues.values()))
        new = [f"address.{one.name}" for one in addresses if one.is_paused]
        new += [f"queue.{one.name}" for one in queues if one.is_paused or one.is_disabled]
        known = set(self._unsettled)
        self._unsettled += [resource for resource in new if resource not in known]
        if new:
            self._note()
        failed = self._make_addresses(addresses)
        self._make_queues([one for one in queues if one.name not in self.refused], kept.addresses, failed)
        self._settle(kept)
        for name in sorted(failed.keys() - {queue.address for queue in kept.queues.values()}):
            self.problems.append(f"address {name} could not be made: {failed[name]}")

    def _missing(self, queues: list[KeptQueue]) -> list[KeptQueue]:
        there = self._manager.queues
        for queue in queues:
            place = there.get(queue.name)
            if place is not None and place != queue.address:
                self.refused[queue.name] = f"there it is on address {place}, not on {queue.address}"
        return [one for one in queues if there.get(one.name) != one.address]

    def _make_addresses(self, missing: list[KeptAddress]) -> dict[str, str]:
        """Returns those that could not be made, with the broker's reason."""
        failed: dict[str, str] = {}
        for one in missing:
            if one.is_auto_created or is_internal(one.name):
                continue
            types = ",".join(one.routing_types or _ROUTING_TYPES)
            why = self._manager.make("address", {"address": one.name, "routing-types": types})
            if why:
                failed[one.name] = why
            elif one.is_paused:
                self._change(f"address.{one.name}", "pause")  # before a queue delivers anything
        return failed

    def _make_queues(
        self, queues: list[KeptQueue], addresses: Mapping[str, KeptAddress], failed: Mapping[str, str]
    ) -> None:
        for queue in queues:
            if is_internal(queue.address):
                why = "it is a broker's own, which makes it where the address-settings ask for it"
            elif queue.address in failed:
                why = f"its address {queue.address} could not be made: {failed[queue.address]}"
            else:
                creates_address = addresses[queue.address].is_auto_created
                given = {**queue.configuration, "auto-create-address": creates_address, "ignore-if-exists": True}
                why = self._manager.make("queue", given)
            if why:
                self.refused[queue.name] = why
            else:
                self.made += 1

    def _settle(self, kept: Kept) -> None:
        """Pause what an import that was killed has made, and addresses that the broker made for a queue."""
        for resource in self._unsettled:
            kind, _, name = resource.partition(".")
            queue = kept.queues.get(name)
            if kind == "address" and name in kept.addresses:
                self._change(resource, "pause")
            elif kind == "queue" and queue is not None and name not in self.refused:
                if queue.is_paused:
                    self._change(resource, "pause")
                if queue.is_disabled:
                    self._to_disable.append(resource)

    def _change(self, resource: str, word: str) -> None:
        why = self._manager.change(resource, word)
        if why:
            kind, _, name = resource.partition(".")
            self.problems.append(f"{kind} {name}: {word} was refused: {why}")

    def finish(self) -> None:
        """Everything is there: let the queues that were disabled take no more messages."""
        for resource in self._to_disable:
            self._change(resource, "disable")
        self._unsettled.clear()
