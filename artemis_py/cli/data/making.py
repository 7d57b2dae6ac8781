"""Makes the addresses and queues that an export has and a broker lacks. What is there is left as it is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, final

from artemis_py.cli.data.destinations import Kept, KeptAddress, KeptQueue
from artemis_py.cli.data.manager import Manager
from artemis_py.core.addresses.retroactive import is_internal

_ROUTING_TYPES: Final = ("ANYCAST", "MULTICAST")
"""Those of an address that had none when it was exported: it may get any."""


@final
class Maker:
    """What is made with a manager. Methods raise ArtemisError when the connection ends."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.made = 0
        """So many queues."""
        self.refused: dict[str, str] = {}
        """Queues that could not be made, with the broker's reason."""
        self.problems: list[str] = []
        """What else the broker refused, a line each."""
        self.to_disable: list[str] = []
        """Queues that were made and are to be disabled when they have their messages."""

    async def make(self, kept: Kept) -> None:
        """Make what is missing, and pause what was paused."""
        failed: dict[str, str] = {}
        to_pause: list[str] = []
        for address in kept.addresses.values():
            if is_internal(address.name) or await self._is_there(address):
                continue
            reason = None if address.is_auto_created else await self._address(address)
            if reason is not None:
                failed[address.name] = reason
            elif address.is_paused:
                to_pause.append(address.name)
        for queue in kept.queues.values():
            await self._queue(queue, kept.addresses[queue.address], failed)
        used = {queue.address for queue in kept.queues.values()}
        for name in to_pause:
            if name in used or not kept.addresses[name].is_auto_created:
                await self._also(f"address.{name}", "pause", True)
        for name in sorted(failed.keys() - used):
            self.problems.append(f"address {name} could not be made: {failed[name]}")

    async def _is_there(self, address: KeptAddress) -> bool:
        return await self._manager.read(f"address.{address.name}", "routingTypes") is not None

    async def _address(self, address: KeptAddress) -> str | None:
        """Why an address could not be made; None: it is there now."""
        types = ",".join(address.routing_types or _ROUTING_TYPES)
        done, value = await self._manager.ask("broker", "createAddress", address.name, types)
        return None if done else str(value)

    async def _queue(self, queue: KeptQueue, address: KeptAddress, failed: Mapping[str, str]) -> None:
        resource = f"queue.{queue.name}"
        place = await self._manager.read(resource, "address")
        if place is not None:
            if place != queue.address:
                self.refused[queue.name] = f"there it is on address {place}, not on {queue.address}"
            return
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
        if queue.is_paused:
            await self._also(resource, "pause", True)
        if queue.is_disabled:
            self.to_disable.append(queue.name)

    async def _also(self, resource: str, operation: str, *arguments: object) -> None:
        done, value = await self._manager.ask(resource, operation, *arguments)
        if not done:
            kind, _, name = resource.partition(".")
            self.problems.append(f"{kind} {name}: {operation} was refused: {value}")

    async def disable(self, names: Collection[str]) -> None:
        """Let these queues take no more messages."""
        for name in names:
            await self._also(f"queue.{name}", "disable")
