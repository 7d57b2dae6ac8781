"""Checks of views, the queues with an ``underlying-address``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from artemis_py.config.draft import Draft
from artemis_py.config.matching import WildcardSyntax
from artemis_py.config.settings import SettingsRepository
from artemis_py.config.tables.declarations import AddressConfig, QueueConfig
from artemis_py.config.tables.views import View, addresses_in, is_published_to, view_of
from artemis_py.config.wildcards import is_wildcard

_PLACE = "underlying_address"


def check_views(
    draft: Draft, addresses: Sequence[AddressConfig], settings: SettingsRepository, syntax: WildcardSyntax
) -> None:
    """Refuse views that cannot get or publish messages, and warn of those to whose addresses nobody can send."""
    diverting = _diverting(addresses)
    declared = {address.name for address in addresses}
    declared.update(divert.written.values.get("address", "") for divert in draft.diverts.values())
    for address in addresses:
        for queue in address.queues:
            if queue.underlying_address is not None and not addresses_in(queue.underlying_address):
                draft.problems.error(
                    queue.origin_of(_PLACE),
                    f"underlying-address of queue {queue.name!r} names no address",
                    allowed="addresses and wildcards, separated by commas",
                )
                continue
            view = view_of(queue.underlying_address, queue.default_publish_target, address.name)
            if view is None:
                _check_no_view(draft, queue)
                continue
            _check_home(draft, address, queue, view, syntax)
            _check_target(draft, queue, view, syntax)
            _check_underlying(draft, queue, view, diverting)
            _warn_of_missing(draft, queue, view, settings, syntax, declared)
    for divert in draft.diverts.values():
        name = divert.written.values.get("address", "")
        if name in diverting:
            draft.problems.warning(
                "doubtful-value",
                divert.origin,
                f"divert {divert.name!r} sees no message: {name!r} is the address of a view, and what is sent there "
                f"goes to {diverting[name] or 'an underlying address'!r}",
                allowed="an underlying address",
            )


def _diverting(addresses: Sequence[AddressConfig]) -> dict[str, str]:
    """Addresses on which nothing is published, because they are those of views: with the addresses to which messages
    go that are sent there.
    """
    return {
        address.name: view.target
        for address in addresses
        for queue in address.queues
        if (view := view_of(queue.underlying_address, queue.default_publish_target, address.name)) is not None
        and view.target != address.name
    }


def _check_no_view(draft: Draft, queue: QueueConfig) -> None:
    if queue.default_publish_target not in (None, queue.address):
        draft.problems.warning(
            "doubtful-value",
            queue.origin_of("default_publish_target"),
            f"queue {queue.name!r} has default-publish-target and reads only its own address: it has no effect",
            allowed="underlying-address",
        )


def _check_home(draft: Draft, address: AddressConfig, queue: QueueConfig, view: View, syntax: WildcardSyntax) -> None:
    """The view itself must be in the journal, on an address of its own."""
    subject = f"queue {queue.name!r} has underlying-address"
    if not draft.core.values.get("persistence_enabled", True):
        draft.problems.error(
            queue.origin_of(_PLACE),
            f"{subject} without persistence-enabled: what it is a view of is the journal",
            allowed="persistence-enabled true",
        )
    if is_wildcard(address.name, syntax):
        draft.problems.error(
            queue.origin_of(_PLACE),
            f"{subject} on a wildcard address, where it gets the messages of all addresses that match anyway",
            allowed="an address without a wildcard, or no underlying-address",
        )
    others = [other.name for other in address.queues if other is not queue]
    if others and view.target != address.name:
        draft.problems.error(
            queue.origin_of(_PLACE),
            f"{subject} and shares its address with queue {others[0]!r}, which gets nothing: what is sent there goes "
            f"to {view.target or 'an underlying address'!r}",
            allowed="an address of its own",
        )


def _check_target(draft: Draft, queue: QueueConfig, view: View, syntax: WildcardSyntax) -> None:
    """Where do the messages go that are sent to the queue itself?"""
    written = queue.default_publish_target
    if written is None:
        if not view.target or is_wildcard(view.target, syntax):
            many = "several underlying addresses" if len(view.underlying) > 1 else "a wildcard for underlying-address"
            draft.problems.error(
                queue.origin_of(_PLACE),
                f"queue {queue.name!r} has {many} and no default-publish-target: where would messages go that are "
                "sent to the queue?",
                allowed="default-publish-target, one of the underlying addresses",
            )
    elif not is_published_to(view, view.target, syntax):
        draft.problems.error(
            queue.origin_of("default_publish_target"),
            f"default-publish-target of queue {queue.name!r} is not one of its underlying addresses: the queue would "
            "not get what is sent to it",
            value=written,
            allowed=f"an address that matches {' or '.join(view.underlying)}",
        )


def _check_underlying(draft: Draft, queue: QueueConfig, view: View, diverting: Mapping[str, str]) -> None:
    """A view over a view would wait for ever, because nothing is published on the address of one; and two that publish
    to each other would be a circle.
    """
    for name in dict.fromkeys((*view.underlying, view.target)):
        if name in diverting:
            place = _PLACE if name in view.underlying else "default_publish_target"
            draft.problems.error(
                queue.origin_of(place),
                f"queue {queue.name!r} reads {name!r}, where nothing is published: it is the address of a view, and "
                f"what is sent there goes to {diverting[name] or 'an underlying address'!r}",
                allowed="the addresses under that view",
            )


def _warn_of_missing(
    draft: Draft,
    queue: QueueConfig,
    view: View,
    settings: SettingsRepository,
    syntax: WildcardSyntax,
    declared: Collection[str],
) -> None:
    for name in dict.fromkeys((*view.underlying, view.target)):
        exact = name and not is_wildcard(name, syntax)
        if exact and name not in declared and not settings.settings_for(name).auto_create_addresses:
            draft.problems.warning(
                "doubtful-value",
                queue.origin_of(_PLACE if name in view.underlying else "default_publish_target"),
                f"queue {queue.name!r} reads {name!r}, which is not declared, and auto-create-addresses is false for "
                "it: nobody can send there",
                allowed=f"an address {name}, or auto-create-addresses true",
            )
