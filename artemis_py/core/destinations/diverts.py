"""The diverts of a broker: those that broker.xml declares, and those that operators make while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any, Final, final

from artemis_py.config.checks.diverts import doubts_of, makes_queue, why_never
from artemis_py.config.settings import NOWHERE, DivertConfig
from artemis_py.core.addresses.address import MULTICAST, Address, Divert
from artemis_py.core.destinations.registry import Registry
from artemis_py.core.events import OPERATION
from artemis_py.core.queue_host import QueueHost
from artemis_py.errors import BadRequestError, BrokerError, NotFoundError, SelectorError
from artemis_py.selector import compile_selector

# ---- changes ---------------------------------------------------------------------------------------------------------
#
# What a reload changes about an address that is there.


def narrow_routing_types(address: Address, routing_types: Iterable[str]) -> frozenset[str]:
    """The address has only these routing types from now on, and those of its queues. Returns what it has beside the
    wanted ones.
    """
    wanted = frozenset(routing_types)
    if address.routing_types == wanted:
        return frozenset()
    used = frozenset({queue.routing_type for queue in address.queues.values()})
    address.routing_types = frozenset()
    address.add_routing_types(wanted | used)
    return used - wanted


# ---- diverts ---------------------------------------------------------------------------------------------------------
#
# The diverts of a broker: those that broker.xml declares, and those that operators make while it runs.


KIND: Final = "divert"
"""What the log calls them."""
_APART: Final = ("name", "origin")
_KEPT: Final = tuple(each.name for each in fields_of(DivertConfig) if each.name not in _APART)


@final
class Diverts:
    """What is in force, by name, and what operators made of it.

    A divert that an operator made is there again after a restart, and stays at a reload. One that broker.xml declares
    is what the file says after both, also where an operator has made one of that name: that one counts again when the
    file declares it no more.
    """

    __slots__ = ("_host", "_made", "_registry", "in_force")

    def __init__(self, host: QueueHost, registry: Registry, kept: Iterable[dict[str, Any]]) -> None:
        self._host = host
        self._registry = registry
        self.in_force: dict[str, DivertConfig] = {}
        self._made: dict[str, DivertConfig] = {}
        """Those of operators, by name."""
        for fields in kept:
            if fields["kind"] == KIND:
                self._made[fields["name"]] = _of_fields(fields)

    def wanted(self, declared: Iterable[DivertConfig]) -> dict[str, DivertConfig]:
        """What is to be in force, by name, where the file declares these."""
        return {**self._made, **{config.name: config for config in declared}}

    def put(self, config: DivertConfig) -> None:
        """Bring a divert into force; it replaces one of the same name. Raises SelectorError."""
        divert, known = divert_of(config), self.in_force.get(config.name)
        if known is not None and known.address != config.address:
            self.drop(config.name)
            known = None
        bindings, registry = self._registry.bindings, self._registry
        address = bindings.addresses.get(config.address)
        if address is None:
            address = registry.create_address(config.address, auto_created=False)
        self.in_force[config.name] = config
        if known is None:
            address.add_divert(divert)
            registry.note_listeners(address)
        elif replace(known, origin=config.origin) != config:
            address.use_diverts([divert if each.name == config.name else each for each in address.diverts])
        else:
            for each in address.diverts:
                if each.name == config.name:
                    each.origin = divert.origin

    def drop(self, name: str) -> None:
        """Take a divert out of force."""
        config = self.in_force.pop(name, None)
        address = None if config is None else self._registry.bindings.addresses.get(config.address)
        if address is not None:
            address.use_diverts([each for each in address.diverts if each.name != name])
            self._registry.note_listeners(address)

    # ---- for operators ---------------------------------------------------------------------------

    def create(self, config: DivertConfig) -> None:
        """A new divert. Raises BrokerError if there is one of this name, BadRequestError for what makes no sense."""
        if config.name in self.in_force:
            raise BrokerError(f"Divert {config.name} already exists on address {self.in_force[config.name].address}")
        self._check(config)
        self._keep(config, "create")

    def update(self, name: str, changes: dict[str, Any]) -> None:
        """Change these attributes of a divert, all of them or none. Raises NotFoundError, BadRequestError."""
        config = replace(self._found(name), **changes)
        self._check(config)
        self._keep(config, "update")

    def destroy(self, name: str) -> None:
        """Remove a divert. What it has forwarded stays where it is. Raises NotFoundError."""
        config = self._found(name)
        if self._made.pop(name, None) is not None:
            self._host.log.configured({"kind": KIND, "name": name, "deleted": True})
        self.drop(name)
        self._tell(config, "destroy")

    def doubts_of(self, name: str) -> list[str]:
        """What a divert does, as things are now, that may not be meant. Raises NotFoundError."""
        config, registry = self._found(name), self._registry
        addresses = registry.bindings.addresses

        def has_taker(target: str) -> bool:
            address = addresses.get(target)
            if address is not None:
                if address.diverts or registry.bindings.has_queues(address):
                    return True
                if MULTICAST in address.routing_types and not address.auto_created:
                    return True  # subscribers come and go
            settings = registry.config.settings_for(target)
            if address is None and registry.bindings.will_have_queues(target):
                return True
            if address is None:
                return settings.auto_create_addresses and makes_queue(
                    config, settings, (settings.default_address_routing_type,)
                )
            return makes_queue(config, settings, address.routing_types)

        doubts = [text for _, text in doubts_of(config, registry.config.wildcards, has_taker)]
        if config.address in config.forwarding_addresses:
            doubts.append(f"divert {name!r} forwards to its own address: what is sent there comes twice")
        return doubts

    def _found(self, name: str) -> DivertConfig:
        config = self.in_force.get(name)
        if config is None:
            raise NotFoundError(f"there is no divert {name}")
        return config

    def _check(self, config: DivertConfig) -> None:
        """Raises BadRequestError."""
        if not config.name or not config.address or not all(config.forwarding_addresses):
            raise BadRequestError("a divert needs a name, an address and an address to forward to")
        never = why_never(config, self._registry.config.management_address)
        if never:
            raise BadRequestError(never)
        address = self._registry.bindings.addresses.get(config.address)
        if address is not None and address.view is not None:
            raise BadRequestError(
                f"a divert sees no message on {address.name}: it is the address of the view {address.view.name}"
            )
        try:
            divert_of(config)
        except SelectorError as error:
            raise BadRequestError(f"the filter is not a valid selector: {error.reason}") from None

    def _keep(self, config: DivertConfig, operation: str) -> None:
        """Bring into force what an operator wants. One that the file declares is not remembered: a restart has what the
        file says.
        """
        known = self.in_force.get(config.name)
        is_declared = known is not None and known is not self._made.get(config.name)
        registry = self._registry
        address = registry.bindings.addresses.get(config.address)
        if address is None:
            address = registry.create_address(config.address, auto_created=True)
        if address.origin is None:
            registry.note_address(address)
        self.put(config)
        if not is_declared:
            self._made[config.name] = config
            self._host.log.configured(_fields(config))
        self._tell(config, operation)

    def _tell(self, config: DivertConfig, operation: str) -> None:
        told: dict[str, str | int] = {"operation": f"{operation} divert {config.name}"}
        self._host.events.note(OPERATION, config.address, told, kind=f"{operation} divert")


def divert_of(config: DivertConfig) -> Divert:
    """A divert as declared. Raises SelectorError."""
    return Divert(
        config.name,
        config.routing_name or config.name,
        config.forwarding_addresses,
        exclusive=config.exclusive,
        selector=compile_selector(config.filter) if config.filter else None,
        routing_type=config.routing_type,
        origin=None if config.origin is NOWHERE else config.origin,
    )


def _fields(config: DivertConfig) -> dict[str, Any]:
    """What a restart must know of a divert."""
    return {"kind": KIND, "name": config.name, **{name: getattr(config, name) for name in _KEPT}}


def _of_fields(fields: dict[str, Any]) -> DivertConfig:
    values = {name: fields[name] for name in _KEPT if name in fields}
    values["forwarding_addresses"] = tuple(values["forwarding_addresses"])
    return DivertConfig(name=fields["name"], **values)
