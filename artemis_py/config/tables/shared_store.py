"""``ha-policy/shared-store``: two brokers on one data directory, of which one works and the other waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from artemis_py.config.tables.entities import NOWHERE, Origin
from artemis_py.config.tables.fields import NO_EFFECT, NOT_NEGATIVE, boolean, int64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStoreConfig:
    """What a broker of a pair does. A primary takes the lock whenever it is free; a backup takes it when the primary
    died, and gives it back when a primary waits for it.
    """

    is_backup: bool
    failover_on_shutdown: bool = boolean(
        False, "after an orderly stop the other broker takes over; false: it waits until this one, or a primary, starts"
    )
    wait_for_activation: bool = boolean(
        True,
        "the start ends when the broker has the lock",
        tuning="HTTP answers while a broker waits, in either case",
    )
    allow_failback: bool = boolean(True, "a backup that took over gives the lock to a primary that waits for it")
    restart_backup: bool = boolean(True, "after that it waits as a backup again; false: it ends")
    failback_delay: int = int64(5000, "delay before a failback", unit="ms", check=NOT_NEGATIVE, tuning=NO_EFFECT)
    origin: Origin = NOWHERE


PRIMARY_ELEMENTS: Final = ("failback-delay", "failover-on-shutdown", "wait-for-activation")
BACKUP_ELEMENTS: Final = ("allow-failback", "failback-delay", "failover-on-shutdown", "restart-backup")
ROLES: Final = {"primary": False, "master": False, "backup": True, "slave": True}
"""The elements in ``shared-store``; true: a backup."""
