"""Checks of groups: attributes that contradict each other or cancel each other's effect.

If all of them exist in Artemis, Artemis accepts the file; then it is only a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from artemis_py.config.draft import Draft
from artemis_py.config.merging import SettingsEntry, SettingsRepository
from artemis_py.config.tables.entities import QUEUE_DEFAULTS, AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.queue_settings import QueueSettings, queue_settings

_OURS: Final = ("group_type", "group_key", "fallback_group")
_ARTEMIS: Final = ("group_rebalance", "group_rebalance_pause_dispatch", "group_buckets", "group_first_key")
_GROUPING: Final = (*_OURS, *_ARTEMIS)
_STICKY: Final = "STANDARD"
_SHARED: Final = "SHARED_GROUPS"
_NONE: Final = "NONE"
_OF_MESSAGES: Final = frozenset(
    {
        "ack", "content-length", "destination", "expires", "message-id", "persistent", "priority", "redelivered",
        "subscription", "timestamp",
    }
)  # fmt: skip
"""Headers that the broker itself sets in every MESSAGE."""


def check_groups(
    draft: Draft, addresses: Sequence[AddressConfig], entries: Sequence[SettingsEntry], settings: SettingsRepository
) -> None:
    """Refuse combinations that make no sense, on queues and in these address-settings; warn of those without effect."""
    for address in addresses:
        for queue in address.queues:
            written = {name: getattr(queue, name) for name in _GROUPING if getattr(queue, name) is not None}
            places = {name: queue.origin_of(name) for name in written}
            own = queue_settings(queue, settings.settings_for(queue.address))
            _Check(draft, f"queue {queue.name!r}", written, places, own, default=False).run()
    for entry in entries:
        _check_entry(draft, entry, settings)


def _check_entry(draft: Draft, entry: SettingsEntry, settings: SettingsRepository) -> None:
    names = {name: QUEUE_DEFAULTS[name] for name in _GROUPING if QUEUE_DEFAULTS[name] in entry.values}
    written = {name: entry.values[default] for name, default in names.items()}
    places = {name: entry.origins[default] for name, default in names.items()}
    nobody = QueueConfig(name=entry.match, address=entry.match, routing_type="ANYCAST")
    own = queue_settings(nobody, settings.settings_for(entry.match))
    _Check(draft, f"each queue of {entry.match!r}", written, places, own, default=True).run()


class _Check:
    """One place of the file: what is written there, and the effective values."""

    def __init__(
        self,
        draft: Draft,
        subject: str,
        written: Mapping[str, Any],
        places: Mapping[str, Origin],
        own: QueueSettings,
        *,
        default: bool,
    ) -> None:
        self._problems = draft.problems
        self._subject = subject
        self._written = written
        self._places = places
        self._own = own
        self._default = default

    def run(self) -> None:
        """Run all checks."""
        grouping = [name for name in _GROUPING if name in self._written and self._asks(name)]
        if grouping:
            self._check_effect(grouping)
            self._check_shared()
            self._check_rebalance()
            self._check_first_key()

    def _asks(self, name: str) -> bool:
        """Does the written value of the attribute ask for anything?"""
        value = self._written[name]
        return value not in (False, _NONE, "") and not (name == "group_buckets" and value <= 0)

    def _name(self, attribute: str) -> str:
        return (QUEUE_DEFAULTS[attribute] if self._default else attribute).replace("_", "-")

    def _check_effect(self, grouping: list[str]) -> None:
        """Check for group attributes on a queue without groups."""
        own, reason = self._own, ""
        if own.exclusive:
            reason = "is exclusive, so one consumer gets every group"
        elif own.non_destructive:
            reason = "is non-destructive, so every consumer gets every message"
        elif own.group_type == _NONE:
            reason = "has group-type NONE"
        elif own.group_buckets == 0:
            reason = "has group-buckets 0, which switches groups off"
        if not reason:
            return
        chosen = next((name for name in grouping if name in _OURS), grouping[0])
        what = f"{self._subject} has {self._name(chosen)}, but {reason}: it has no effect"
        if chosen in _OURS:
            self._problems.error(self._places[chosen], what, allowed="either groups or the setting that excludes them")
        else:
            self._problems.warning("no-effect", self._places[chosen], what)

    def _check_shared(self) -> None:
        own = self._own
        if own.group_type == _SHARED:
            for name in ("group_buckets", "group_rebalance", "group_first_key"):
                if name in self._written and self._asks(name):
                    self._problems.error(
                        self._places[name],
                        f"{self._subject} has {self._name(name)} with shared groups, which do not stay with a consumer",
                        allowed=f"group-type {_STICKY} for it",
                    )
        elif "fallback_group" in self._written and own.group_type == _STICKY and not self._default:
            self._problems.error(
                self._places["fallback_group"],
                f"{self._subject} has {self._name('fallback_group')} without shared groups: a message without a "
                "group belongs to none",
                allowed=f"group-type {_SHARED} for it",
            )

    def _check_rebalance(self) -> None:
        name = "group_rebalance_pause_dispatch"
        if self._written.get(name) and not self._own.group_rebalance:
            what = f"{self._subject} has {self._name(name)} without group-rebalance: it has no effect"
            self._problems.warning("no-effect", self._places[name], what)

    def _check_first_key(self) -> None:
        name = "group_first_key"
        if name in self._written and self._own.group_first_key in _OF_MESSAGES:
            self._problems.error(
                self._places[name],
                f"{self._subject} has {self._name(name)} {self._own.group_first_key!r}, which every MESSAGE already "
                "has",
                allowed="a header of your own",
            )
