"""Makes the addresses and queues that an export has and a broker lacks. What is there is left as it is."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
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
    the connection ends.
    """

    def __init__(self, manager: Manager, unsettled: list[str], note: Callable[[], Awaitable[None]]) -> None:
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

    async def make(self, kept: Kept) -> None:
        """Make what is missing, and pause what was paused."""
        addresses = await self._missing_addresses(list(kept.addresses.values()))
        queues = await self._missing_queues(list(kept.queues.values()))
        new = [f"address.{one.name}" for one in addresses if one.is_paused]
        new += [f"queue.{one.name}" for one in queues if one.is_paused or one.is_disabled]
        known = set(self._unsettled)
        self._unsettled += [resource for resource in new if resource not in known]
        if new:
            await self._note()
        failed = await self._make_addresses(addresses)
        await self._make_queues([one for one in queues if one.name not in self.refused], kept.addresses, failed)
        await self._settle(kept)
        for name in sorted(failed.keys() - {queue.address for queue in kept.queues.values()}):
            self.problems.append(f"address {name} could not be made: {failed[name]}")

    async def _missing_addresses(self, addresses: list[KeptAddress]) -> list[KeptAddress]:
        types = await self._manager.read_all("routingTypes", [f"address.{one.name}" for one in addresses])
        return [one for one, found in zip(addresses, types, strict=True) if found is None]

    async def _missing_queues(self, queues: list[KeptQueue]) -> list[KeptQueue]:
        places = await self._manager.read_all("address", [f"queue.{one.name}" for one in queues])
        for queue, place in zip(queues, places, strict=True):
            if place is not None and place != queue.address:
                self.refused[queue.name] = f"there it is on address {place}, not on {queue.address}"
        return [one for one, place in zip(queues, places, strict=True) if place != one.address]

    async def _make_addresses(self, missing: list[KeptAddress]) -> dict[str, str]:
        """Returns those that could not be made, with the broker's reason."""
        wanted = [one for one in missing if not one.is_auto_created and not is_internal(one.name)]
        creations = [("broker", (one.name, ",".join(one.routing_types or _ROUTING_TYPES))) for one in wanted]
        replies = await self._manager.ask_all("createAddress", creations)
        made = [one for one, (done, _) in zip(wanted, replies, strict=True) if done]
        to_pause = [f"address.{one.name}" for one in made if one.is_paused]  # before a queue delivers anything
        await self._all_also("pause", to_pause, True)
        return {one.name: str(why) for one, (done, why) in zip(wanted, replies, strict=True) if not done}

    async def _make_queues(
        self, queues: list[KeptQueue], addresses: Mapping[str, KeptAddress], failed: Mapping[str, str]
    ) -> None:
        wanted: list[KeptQueue] = []
        for queue in queues:
            if is_internal(queue.address):
                self.refused[queue.name] = "it is a broker's own, which makes it where the address-settings ask for it"
            elif queue.address in failed:
                self.refused[queue.name] = f"its address {queue.address} could not be made: {failed[queue.address]}"
            else:
                wanted.append(queue)
        creations = [("broker", (_creation(one, addresses[one.address]), True)) for one in wanted]
        replies = await self._manager.ask_all("createQueue", creations)
        for queue, (done, why) in zip(wanted, replies, strict=True):
            if done:
                self.made += 1
            else:
                self.refused[queue.name] = str(why)

    async def _settle(self, kept: Kept) -> None:
        """Pause what an import that was killed has made, and addresses that the broker made for a queue."""
        to_pause: list[str] = []
        for resource in self._unsettled:
            kind, _, name = resource.partition(".")
            queue = kept.queues.get(name)
            if kind == "queue" and queue is not None and name not in self.refused:
                if queue.is_paused:
                    to_pause.append(resource)
                if queue.is_disabled:
                    self._to_disable.append(resource)
        await self._all_also("pause", to_pause, True)
        unsure = [one for one in self._unsettled if one.startswith("address.") and one[8:] in kept.addresses]
        types = await self._manager.read_all("routingTypes", unsure)
        there = [one for one, found in zip(unsure, types, strict=True) if found is not None]
        await self._all_also("pause", there, True)

    async def _all_also(self, operation: str, resources: list[str], *arguments: object) -> None:
        replies = await self._manager.ask_all(operation, [(resource, arguments) for resource in resources])
        for resource, (done, value) in zip(resources, replies, strict=True):
            if not done:
                kind, _, name = resource.partition(".")
                self.problems.append(f"{kind} {name}: {operation} was refused: {value}")

    async def finish(self) -> None:
        """Everything is sent: let the queues that were disabled take no more messages, and end."""
        await self._all_also("disable", self._to_disable)
        self._unsettled.clear()
        await self._manager.end()


def _creation(queue: KeptQueue, address: KeptAddress) -> str:
    return json.dumps({**queue.configuration, "auto-create-address": address.is_auto_created})
