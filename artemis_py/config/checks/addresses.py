"""Which queues get what is sent to an address, as far as the file tells: its own, and views. And checks of
address-settings that need the rest of the file: addresses for dead and expired messages, and limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from artemis_py.config.draft import Draft, QueueDraft
from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.settings import SettingsEntry, SettingsRepository
from artemis_py.config.tables.address_settings import AddressSettings
from artemis_py.config.tables.declarations import AddressConfig, Origin, QueueConfig
from artemis_py.config.tables.views import View, view_of
from artemis_py.config.wildcards import WildcardIndex, is_wildcard


class Readers:
    """The declared queues by what they read."""

    def __init__(
        self, addresses: Sequence[AddressConfig], settings: SettingsRepository, syntax: WildcardSyntax
    ) -> None:
        self.own = {address.name: address.queues for address in addresses}
        self._settings = settings
        self._index = WildcardIndex(syntax)
        self._views: dict[str, list[QueueConfig]] = {}
        self._targets: dict[str, tuple[QueueConfig, str]] = {}
        for queue in (queue for address in addresses for queue in address.queues):
            view = view_of(queue.underlying_address, queue.default_publish_target, queue.address)
            if view is not None:
                self._add(queue, view)

    def _add(self, queue: QueueConfig, view: View) -> None:
        for pattern in view.underlying:
            self._index.add(pattern)
            self._views.setdefault(pattern, []).append(queue)
        if view.target != queue.address:
            self._targets[queue.address] = queue, view.target

    @property
    def names(self) -> list[str]:
        """The addresses with queues, and those that views name."""
        return [*self.own, *self._views]

    def passed_on(self, name: str) -> tuple[QueueConfig, str] | None:
        """The view on whose address nothing is published, and the address to which it passes on what is sent there; "":
        it is not known to which.
        """
        return self._targets.get(name)

    def of(self, name: str) -> list[QueueConfig]:
        """The queues that get what is sent to an address."""
        views = [queue for pattern in self._index.matching(name) for queue in self._views[pattern]]
        return list({queue.name: queue for queue in (*self.own.get(name, ()), *views)}.values())

    @cached_property
    def _sources(self) -> dict[str, dict[str, None]]:
        """For each view the addresses that it names, and those that it matches and that the file names elsewhere."""
        found: dict[str, dict[str, None]] = {}
        if not self._views:
            return found
        for name in dict.fromkeys((*self.names, *(entry.match for entry in self._settings.entries))):
            for pattern in self._index.matching(name):
                for queue in self._views[pattern]:
                    found.setdefault(queue.name, {})[name] = None
        return found

    def sources_of(self, queue: QueueConfig) -> list[str]:
        """The addresses whose messages a queue gets."""
        return list(self._sources.get(queue.name, ())) or [queue.address]

    def has_neighbours(self, queue: QueueConfig) -> bool:
        """Do other queues get messages of the same addresses?"""
        return any(
            other.name != queue.name
            for name in self.sources_of(queue)
            for others in (self.own.get(name, ()), *(self._views[pattern] for pattern in self._index.matching(name)))
            for other in others
        )

    def pages_at(self, address: str) -> bool:
        """Does the file ask for paging on an address, or set the limit of one that pages? Otherwise the address pages
        only when all memory is full.
        """
        merged = self._settings.settings_for(address)
        asked_for = self._settings.decided_by(address, "address_full_policy") is not None
        return merged.address_full_policy == "PAGE" and (asked_for or merged.limits_memory)

    def pages_under(self, queue: QueueConfig) -> bool:
        """Does the file ask for paging on an address whose messages the queue gets?"""
        return any(self.pages_at(name) for name in self.sources_of(queue))


_LIMITS: Final = ("max_size_bytes", "max_size_messages")


def check_addresses(draft: Draft, settings: SettingsRepository, syntax: WildcardSyntax) -> None:
    """Find dead-letter and expiry addresses without a declared queue or divert and without auto-creation. A queue on a
    wildcard address may serve any of them, and so may a view.
    """
    taken = {name for name, address in draft.addresses.items() if address.queues}
    taken.update(divert.written.values.get("address", "") for divert in draft.diverts.values())
    if any(is_wildcard(name, syntax) for name in taken):
        return
    places: dict[tuple[str, str], Origin] = {}  # where the first of each is
    for entry in settings.entries:
        merged = settings.settings_for(entry.match)
        for attribute, flag in (
            ("dead_letter_address", "auto_create_dead_letter_resources"),
            ("expiry_address", "auto_create_expiry_resources"),
        ):
            target = entry.values.get(attribute)
            if target and not getattr(merged, flag):
                places.setdefault((attribute, target), entry.origins[attribute])
    for queue in draft.queues.values():
        target = queue.written.values.get("dead_letter_address")
        if target and not settings.settings_for(queue.address).auto_create_dead_letter_resources:
            places.setdefault(("dead_letter_address", target), queue.written.origins["dead_letter_address"])
    views = [view for queue in draft.queues.values() if (view := _view_of(queue)) is not None]
    for (attribute, target), origin in places.items():
        if target not in taken and not any(view.covers(target, syntax) for view in views):
            name = attribute.replace("_", "-")
            draft.problems.warning(
                "loses-messages",
                origin,
                f"{name} {target!r} has no queue in addresses: messages sent there are lost unless a consumer has "
                "created one",
                allowed=f"an address with a queue, or auto-create-{name.removesuffix('-address')}-resources",
            )


def _view_of(queue: QueueDraft) -> View | None:
    written = queue.written.values
    return view_of(written.get("underlying_address"), written.get("default_publish_target"), queue.address)


def check_no_route(draft: Draft, settings: SettingsRepository) -> None:
    """Find ``send-to-dla-on-no-route`` without a dead-letter address."""
    for entry in settings.entries:
        if entry.values.get("send_to_dla_on_no_route") and not settings.settings_for(entry.match).dead_letter_address:
            what = "send-to-dla-on-no-route without dead-letter-address: messages that reach no queue are discarded"
            draft.problems.warning("loses-messages", entry.origins["send_to_dla_on_no_route"], what)


def check_limits(draft: Draft, settings: SettingsRepository) -> None:
    """Find full policies without a limit, and incomplete page limits."""
    deciders = _deciders_of_limited(settings)
    for entry in settings.entries:
        policy = entry.values.get("address_full_policy")
        has_limit = entry.match in deciders or settings.settings_for(entry.match).limits_memory
        if policy in ("BLOCK", "FAIL", "DROP") and not has_limit:
            draft.problems.warning(
                "without-limit",
                entry.origins["address_full_policy"],
                f"address-full-policy {policy} without max-size-bytes or max-size-messages: the address is full only"
                " when global-max-size is reached",
            )
        _check_page_limit(draft, entry, settings.settings_for(entry.match))


def _check_page_limit(draft: Draft, entry: SettingsEntry, merged: AddressSettings) -> None:
    """Artemis needs both a limit and a policy and ignores one without the other; so does this broker."""
    if "page_full_policy" in entry.origins and not merged.limits_pages:
        what = "page-full-policy without page-limit-bytes or page-limit-messages: pages have no limit"
        draft.problems.warning("without-limit", entry.origins["page_full_policy"], what)
    for name in ("page_limit_bytes", "page_limit_messages"):
        if entry.values.get(name, -1) > 0 and merged.page_full_policy is None:
            what = f"{name.replace('_', '-')} without page-full-policy (DROP or FAIL): the limit has no effect"
            draft.problems.warning("without-limit", entry.origins[name], what)


def _deciders_of_limited(settings: SettingsRepository) -> set[str | None]:
    """Return the matches that set the full policy of addresses with a limit of their own."""
    return {
        settings.decided_by(entry.match, "address_full_policy")
        for entry in settings.entries
        if any(entry.values.get(name, -1) > -1 for name in _LIMITS)
    }
