"""Makes the addresses and queues that an export has and a broker lacks. What is there is left as it is."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, final

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
        addresses = [one for one in kept.addresses.values() if not await self._is_there(one)]
        queues = [one for one in kept.queues.values() if not await self._is_on_its_address(one)]
        new = [f"address.{one.name}" for one in addresses if one.is_paused]
        new += [f"queue.{one.name}" for one in queues if one.is_paused or one.is_disabled]
        known = set(self._unsettled)
        self._unsettled += [resource for resource in new if resource not in known]
        if new:
            await self._note()
        failed: dict[str, str] = {}
        for address in addresses:
            if not address.is_auto_created and not is_internal(address.name):
                await self._make_address(address, failed)
        for queue in queues:
            if queue.name not in self.refused:
                await self._make_queue(queue, kept.addresses[queue.address], failed)
        await self._settle(kept)
        for name in sorted(failed.keys() - {queue.address for queue in kept.queues.values()}):
            self.problems.append(f"address {name} could not be made: {failed[name]}")

    async def _is_there(self, address: KeptAddress) -> bool:
        return await self._manager.read(f"address.{address.name}", "routingTypes") is not None

    async def _is_on_its_address(self, queue: KeptQueue) -> bool:
        place = await self._manager.read(f"queue.{queue.name}", "address")
        if place is not None and place != queue.address:
            self.refused[queue.name] = f"there it is on address {place}, not on {queue.address}"
        return bool(place == queue.address)

    async def _make_address(self, address: KeptAddress, failed: dict[str, str]) -> None:
        types = ",".join(address.routing_types or _ROUTING_TYPES)
        done, value = await self._manager.ask("broker", "createAddress", address.name, types)
        if not done:
            failed[address.name] = str(value)
        elif address.is_paused:
            await self._also(f"address.{address.name}", "pause", True)  # before a queue delivers anything

    async def _make_queue(self, queue: KeptQueue, address: KeptAddress, failed: Mapping[str, str]) -> None:
        if is_internal(queue.address):
            self.refused[queue.name] = "it is a broker's own, which makes it where the address-settings ask for it"
            return
        if queue.address in failed:
            self.refused[queue.name] = f"its address {queue.address} could not be made: {failed[queue.address]}"
            return
        configuration: dict[str, Any] = {**queue.configuration, "auto-create-address": address.is_auto_created}
        done, value = await self._manager.ask("broker", "createQueue", json.dumps(configuration), True)
        if not done:
            self.refused[queue.name] = str(value)
            return
        self.made += 1

    async def _settle(self, kept: Kept) -> None:
        """Pause what an import that was killed has made, and addresses that the broker made for a queue."""
        for resource in self._unsettled:
            kind, _, name = resource.partition(".")
            queue, address = kept.queues.get(name), kept.addresses.get(name)
            if kind == "queue" and queue is not None and name not in self.refused:
                if queue.is_paused:
                    await self._also(resource, "pause", True)
                if queue.is_disabled:
                    self._to_disable.append(resource)
            elif kind == "address" and address is not None and await self._is_there(address):
                await self._also(resource, "pause", True)

    async def _also(self, resource: str, operation: str, *arguments: object) -> None:
        done, value = await self._manager.ask(resource, operation, *arguments)
        if not done:
            kind, _, name = resource.partition(".")
            self.problems.append(f"{kind} {name}: {operation} was refused: {value}")

    async def finish(self) -> None:
        """Everything is sent: let the queues that were disabled take no more messages, and end."""
        for resource in self._to_disable:
            await self._also(resource, "disable")
        self._unsettled.clear()
        await self._manager.end()
