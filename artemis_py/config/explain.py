"""Where the settings of one address or queue come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

from artemis_py.config.security_settings import PERMISSIONS, SecuritySetting
from artemis_py.config.settings import AddressSettings, BrokerConfig, Traced
from artemis_py.config.tables.declarations import AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.fields import Setting, settings_of, show
from artemis_py.config.tables.queue_settings import QueueSettings, queue_settings, source_of
from artemis_py.config.tables.views import view_of


@final
@dataclass(frozen=True, slots=True)
class Explained:
    """One setting with its effective value.

    ``match`` is that of the address-setting that decided, or None if a queue attribute or a default did. ``origin`` is
    None for defaults.
    """

    setting: Setting
    value: Any
    match: str | None
    origin: Origin | None

    @property
    def value_text(self) -> str:
        """The value with its unit."""
        text = show(self.value)
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        return f"{text} {self.setting.unit}" if number and self.setting.unit and self.value != -1 else text


@final
@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything known about an address, and about a queue if one was asked for.

    ``views`` are the declared queues that read the address beside its own. ``is_secured`` says whether the file asks
    for permissions at all. ``queue_config`` is what the queue is made from,
    ``queue_settings`` its effective settings. ``queue_declared`` says whether the file declares it.
    """

    address: str
    address_config: AddressConfig | None
    address_settings: AddressSettings
    settings: list[Explained]
    queue_config: QueueConfig | None
    queue_settings: QueueSettings | None
    queue_declared: bool
    queue_attributes: list[Explained]
    views: list[QueueConfig]
    is_secured: bool
    security: SecuritySetting | None
    permissions: dict[str, tuple[str, ...]]


def explain(config: BrokerConfig, name: str) -> Explanation:
    """Explain ``name``, which is an address or ``address::queue``; neither needs to be declared."""
    address, _, queue_name = name.partition("::")
    traced = config.address_settings.trace(address)
    settings = config.settings_for(address)
    queue = _find_queue(config, address, queue_name) if queue_name else None
    declared = queue is not None
    if queue_name and queue is None:
        queue = QueueConfig(name=queue_name, address=address, routing_type=settings.default_queue_routing_type)
    effective = queue_settings(queue, settings, declared=declared) if queue is not None else None
    rows = settings_of(AddressSettings).values()
    return Explanation(
        address=address,
        address_config=next((each for each in config.addresses if each.name == address), None),
        address_settings=settings,
        settings=[_explain_setting(row, traced[row.attribute], config) for row in rows],
        queue_config=queue,
        queue_settings=effective,
        queue_declared=declared,
        queue_attributes=_explain_queue(queue, effective, traced, declared=declared) if queue and effective else [],
        views=list(_views_over(config, address)),
        is_secured=config.security_enabled,
        security=config.security.setting_for(name),
        permissions={each: config.security.roles_for(name, each) for each in PERMISSIONS},
    )


def explain_address(config: BrokerConfig, address: str) -> list[Explained]:
    """Each setting of an address, which need not be declared."""
    traced = config.address_settings.trace(address)
    return [_explain_setting(row, traced[row.attribute], config) for row in settings_of(AddressSettings).values()]


def explain_queue_config(config: BrokerConfig, queue: QueueConfig, *, declared: bool) -> list[Explained]:
    """Each attribute of a queue that is made from ``queue``; ``declared`` means not auto-created."""
    traced, settings = config.address_settings.trace(queue.address), config.settings_for(queue.address)
    return _explain_queue(queue, queue_settings(queue, settings, declared=declared), traced, declared=declared)


def _views_over(config: BrokerConfig, address: str) -> Iterator[QueueConfig]:
    for each in config.addresses:
        for queue in each.queues:
            view = view_of(queue.underlying_address, queue.default_publish_target, queue.address)
            if view is not None and view.covers(address, config.wildcards):
                yield queue


def _find_queue(config: BrokerConfig, address: str, name: str) -> QueueConfig | None:
    for each in config.addresses:
        for queue in each.queues if each.name == address else ():
            if queue.name == name:
                return queue
    return None


def _explain_setting(row: Setting, traced: Traced, config: BrokerConfig) -> Explained:
    if row.attribute == "id_cache_size" and traced.value is None:
        return Explained(row, config.id_cache_size, None, config.origins.get("id_cache_size"))
    return Explained(row, *traced)


def _explain_queue(
    queue: QueueConfig, effective: QueueSettings, traced: dict[str, Traced], *, declared: bool
) -> list[Explained]:
    """The queue's attribute beats the address-setting, which beats the default."""
    written = dict(queue.origins)
    explained: list[Explained] = []
    for row in settings_of(QueueConfig).values():
        source = source_of(row.attribute, declared=declared)
        if row.attribute not in written and source is not None:
            explained.append(Explained(row, *traced[source]))
        else:
            value = getattr(effective, row.attribute)
            explained.append(Explained(row, value, None, written.get(row.attribute)))
    return explained
