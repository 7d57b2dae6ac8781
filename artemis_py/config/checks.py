"""Checks that need more than one element: what the XSD and a single value cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from artemis_py.config.address_settings import AddressSettings
from artemis_py.config.draft import Draft, Values
from artemis_py.config.entities import AddressConfig, Origin
from artemis_py.config.merging import SettingsEntry, SettingsRepository
from artemis_py.errors import SelectorError

_LIMITS: Final = ("max_size_bytes", "max_size_messages")


def check_addresses(draft: Draft, settings: SettingsRepository) -> None:
    """Look for dead-letter and expiry addresses where nothing is declared and nothing will be created."""
    for entry in settings.entries:
        for attribute, flag, name in (
            ("dead_letter_address", "auto_create_dead_letter_resources", "dead-letter-address"),
            ("expiry_address", "auto_create_expiry_resources", "expiry-address"),
        ):
            target = entry.values.get(attribute)
            if target is None or target in draft.addresses:
                continue
            merged = settings.settings_for(entry.match)
            if not getattr(merged, flag) and not settings.settings_for(target).auto_create_addresses:
                draft.problems.warning(
                    entry.origins.get(attribute, entry.origin),
                    f"{name} {target!r} is not declared in addresses and nothing creates it: messages sent there "
                    "are lost",
                )


def check_filters(draft: Draft) -> None:
    """Parse every selector of queues, diverts and address-settings."""
    for queue in draft.queues.values():
        _check_selector(draft, queue.written, "filter", f"filter of queue {queue.name!r}")
        _check_selector(draft, queue.written, "consumer_selector", f"consumer-selector of queue {queue.name!r}")
    for divert in draft.diverts.values():
        _check_selector(draft, divert.written, "filter", f"filter of divert {divert.name!r}")
    for entry in draft.entries.values():
        name = f"default-consumer-selector of {entry.name!r}"
        _check_selector(draft, entry.written, "default_consumer_selector", name)


def _check_selector(draft: Draft, written: Values, attribute: str, name: str) -> None:
    text = written.values.get(attribute)
    if text is None:
        return
    from artemis_py.selector import compile_selector

    try:
        compile_selector(text)
    except SelectorError as error:
        draft.problems.error(written.origins[attribute], f"{name} does not parse: {error}", value=text)


def check_limits(draft: Draft, settings: SettingsRepository) -> None:
    """Look for full policies without a limit, and for page limits that are not whole."""
    for entry in settings.entries:
        policy = entry.values.get("address_full_policy")
        if policy in ("BLOCK", "FAIL", "DROP") and not _limits_reached_by(entry, settings):
            draft.problems.warning(
                entry.origins["address_full_policy"],
                f"address-full-policy {policy} without max-size-bytes or max-size-messages: the address is full only"
                " when global-max-size is reached",
            )
        _check_page_limit(draft, entry, settings.settings_for(entry.match))


def _check_page_limit(draft: Draft, entry: SettingsEntry, merged: AddressSettings) -> None:
    """Artemis needs both a limit and a policy, and ignores one without the other; so does this broker."""
    if "page_full_policy" in entry.origins and not merged.limits_pages:
        what = "page-full-policy without page-limit-bytes or page-limit-messages: pages have no limit"
        draft.problems.warning(entry.origins["page_full_policy"], what)
    for name in ("page_limit_bytes", "page_limit_messages"):
        if entry.values.get(name, -1) > 0 and merged.page_full_policy is None:
            what = f"{name.replace('_', '-')} without page-full-policy (DROP or FAIL): the limit has no effect"
            draft.problems.warning(entry.origins[name], what)


def check_persistence(draft: Draft) -> None:
    """Look for what means nothing without a journal."""
    if draft.core.values.get("persistence_enabled", True):
        return
    if draft.retention is not None:
        draft.problems.warning(
            draft.retention_origin,
            "journal-retention-directory without persistence-enabled: there is no journal, and nothing is retained",
        )


def _has_limit(settings: AddressSettings) -> bool:
    return settings.max_size_bytes > -1 or settings.max_size_messages > -1


def _limits_reached_by(entry: SettingsEntry, settings: SettingsRepository) -> bool:
    """Say whether some address that gets its full policy from ``entry`` has a limit."""
    if _has_limit(settings.settings_for(entry.match)):
        return True
    return any(
        settings.trace(other.match)["address_full_policy"].match == entry.match
        for other in settings.entries
        if any(other.values.get(name, -1) > -1 for name in _LIMITS)
    )


def check_rings(draft: Draft, addresses: Sequence[AddressConfig], settings: SettingsRepository) -> None:
    """Advise against rings that keep nothing and against rings on addresses that page."""
    for address in addresses:
        merged = settings.settings_for(address.name)
        for queue in address.queues:
            ring = merged.default_ring_size if queue.ring_size is None else queue.ring_size
            _check_ring(draft, ring, queue.origin_of("ring_size"), f"queue {queue.name!r}", address.name, settings)
    for entry in settings.entries:
        ring = entry.values.get("default_ring_size", -1)
        origin = entry.origins.get("default_ring_size", entry.origin)
        _check_ring(draft, ring, origin, f"each queue of {entry.match!r}", entry.match, settings)


def _check_ring(
    draft: Draft, ring: int, origin: Origin, subject: str, address: str, settings: SettingsRepository
) -> None:
    if ring == 0:
        draft.problems.warning(origin, f"{subject} is a ring of size 0, which keeps no message; -1 means no ring")
    elif ring > 0 and is_meant_to_page(settings, address):
        draft.problems.warning(
            origin,
            f"{subject} is a ring on an address with address-full-policy PAGE: in Artemis, paged messages do not "
            "count against a ring",
            allowed="DROP, FAIL or BLOCK go well with rings",
        )


def is_meant_to_page(settings: SettingsRepository, address: str) -> bool:
    """Say whether somebody asked for paging on an address, or gave it a limit; else it pages only when all memory is
    full.
    """
    merged = settings.settings_for(address)
    asked_for = settings.trace(address)["address_full_policy"].match is not None
    return merged.address_full_policy == "PAGE" and (asked_for or _has_limit(merged))
