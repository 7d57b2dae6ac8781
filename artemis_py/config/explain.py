"""Where the settings of one address or queue come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from artemis_py.config.entities import QUEUE_CONSTANTS, QUEUE_DEFAULTS, AddressConfig, Origin, QueueConfig
from artemis_py.config.fields import Setting, settings_of, show
from artemis_py.config.merging import Traced
from artemis_py.config.security_settings import PERMISSIONS, SecuritySetting
from artemis_py.config.settings import AddressSettings, BrokerConfig


@final
@dataclass(frozen=True, slots=True)
class Explained:
    """One setting with its effective value.

    ``match`` is that of the address-setting that decided, None where a queue attribute or a default did; ``origin`` is
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
    """Everything that is known of an address, and of a queue when one was asked for.

    ``queue_config`` is what the queue is made from; it is declared only if ``queue_declared``.
    """

    address: str
    address_config: AddressConfig | None
    address_settings: AddressSettings
    settings: list[Explained]
    queue_config: QueueConfig | None
    queue_declared: bool
    queue_attributes: list[Explained]
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
    rows = settings_of(AddressSettings).values()
    return Explanation(
        address=address,
        address_config=next((each for each in config.addresses if each.name == address), None),
        address_settings=settings,
        settings=[_explain_setting(row, traced[row.attribute], config) for row in rows],
        queue_config=queue,
        queue_declared=declared,
        queue_attributes=_explain_queue(queue, traced, declared=declared) if queue else [],
        security=config.security.setting_for(name),
        permissions={each: config.security.roles_for(name, each) for each in PERMISSIONS},
    )


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


def _explain_queue(queue: QueueConfig, traced: dict[str, Traced], *, declared: bool) -> list[Explained]:
    """The queue's attribute beats the address-setting, which beats the default."""
    written = dict(queue.origins)
    explained: list[Explained] = []
    for row in settings_of(QueueConfig).values():
        value = getattr(queue, row.attribute)
        source = QUEUE_DEFAULTS.get(row.attribute)
        if row.attribute == "purge_on_no_consumers" and not declared:
            source = "default_purge_on_no_consumers"
        if row.attribute in written:
            explained.append(Explained(row, value, None, written[row.attribute]))
        elif source is not None:
            explained.append(Explained(row, *traced[source]))
        else:
            constant = QUEUE_CONSTANTS.get(row.attribute, value)
            explained.append(Explained(row, constant, None, None))
    return explained
