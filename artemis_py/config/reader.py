"""Reads broker.xml into a :class:`~artemis_py.config.settings.BrokerConfig`, or reports everything that is wrong with
it.

The steps in order: the text with its placeholders and includes, the XSD, the values, the overriding properties, and the
checks that need the whole. A valid file takes only the fast path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from artemis_py.config.checks.acceptors import make_acceptors, sources_of
from artemis_py.config.checks.addresses import Readers, check_addresses, check_limits, check_no_route
from artemis_py.config.checks.bridges import make_bridges
from artemis_py.config.checks.diverts import check_circles, check_diverts
from artemis_py.config.checks.queues import cases, check_filters, check_queues, check_recovery_points, check_rings
from artemis_py.config.checks.views import check_views
from artemis_py.config.draft import Draft, NamedDraft
from artemis_py.config.elements import (
    USERS_FILE,
    Reading,
    read_acceptors,
    read_address_settings,
    read_addresses,
    read_authentication,
    read_bridges,
    read_connectors,
    read_diverts,
    read_ha_policy,
    read_old_queues,
    read_retention,
    read_security,
    read_user_limits,
    read_users_file,
    read_wildcards,
)
from artemis_py.config.matching import WildcardSyntax, check_literal_markers, check_match, check_setting_match
from artemis_py.config.problems import Problems
from artemis_py.config.security_settings import SecurityConfig, SecuritySetting
from artemis_py.config.settings import BrokerConfig, SettingsEntry, SettingsRepository
from artemis_py.config.tables.acceptor import AcceptorConfig
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import AddressConfig, DivertConfig, Origin, QueueConfig
from artemis_py.config.tables.fields import names_of
from artemis_py.config.tables.structured_elements import PARTS
from artemis_py.config.xml.document import core_of, read_file, read_text, validate
from artemis_py.config.xml.source import Element, Source, local_name
from artemis_py.errors import ConfigError, MatchError

if TYPE_CHECKING:
    from artemis_py.config.instance import Instance

PROPERTIES_FILE: Final = "broker.properties"

_READERS: Final[dict[str, Callable[[Reading, Element], None]]] = {
    "acceptors": read_acceptors,
    "address-settings": read_address_settings,
    "addresses": read_addresses,
    "authentication": read_authentication,
    "bridges": read_bridges,
    "connectors": read_connectors,
    "diverts": read_diverts,
    "ha-policy": read_ha_policy,
    "journal-retention-directory": read_retention,
    "queues": read_old_queues,
    "resource-limit-settings": read_user_limits,
    "security-settings": read_security,
    "users-file": read_users_file,
    "wildcard-addresses": read_wildcards,
}


def load(
    path: str | os.PathLike[str],
    *,
    properties: Sequence[str | os.PathLike[str]] = (),
    environ: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """Read a configuration file, or an Artemis instance if ``path`` is its directory.

    ``properties`` are files, folders of files, or comma-separated lists of them, applied in that order; without any, a
    ``broker.properties`` next to the file is used. ``environ`` (default: the process' environment) provides the values
    of ``${name}``. Raises ConfigError with every problem found; warnings alone are in the result's ``notices``.
    """
    file = os.fspath(path)
    known = os.environ if environ is None else environ
    problems = Problems()
    instance: Instance | None = None
    if os.path.isdir(file):
        from artemis_py.config.instance import read_instance

        instance = read_instance(file, known, problems)
        if instance is None:
            raise ConfigError(problems.in_order(file))
        file, known = instance.broker_xml, {**known, **instance.properties}
    overlays = [os.fspath(each) for each in properties]
    if not overlays:
        beside = os.path.join(os.path.dirname(file), PROPERTIES_FILE)
        overlays = [beside] if os.path.isfile(beside) else []
    return _finish(read_file(file, known, problems), problems, overlays, known, _Around(file, instance))


def loads(
    text: str,
    file: str = "broker.xml",
    *,
    properties: Sequence[str | os.PathLike[str]] = (),
    environ: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """Like :func:`load` for a text; ``file`` is its name in messages and the base of relative includes."""
    known = os.environ if environ is None else environ
    problems = Problems()
    return _finish(read_text(text, file, known, problems), problems, [os.fspath(each) for each in properties], known)


@final
class _Around:
    """What stands around a file: users beside it, or an Artemis instance."""

    def __init__(self, file: str, instance: Instance | None) -> None:
        self.instance: Final = instance
        self._has_users: Final = os.path.isfile(os.path.join(os.path.dirname(file), USERS_FILE))

    def lay_over(self, draft: Draft) -> None:
        draft.has_users_beside = self._has_users
        if self.instance is not None:
            self.instance.lay_over(draft)
            draft.files.update(dict.fromkeys(self.instance.files))


def _finish(
    source: Source,
    problems: Problems,
    overlays: Sequence[str],
    environ: Mapping[str, str],
    around: _Around | None = None,
) -> BrokerConfig:
    core, file = core_of(source, problems), source.file
    config: BrokerConfig | None = None
    if core is not None:
        draft = Draft(file, problems, source.origin(core))
        draft.files = dict.fromkeys((file, *(each.name for each in source.files.values())))
        _read_core(Reading(source, draft, validate(source, core, problems)), core)
        del source, core  # the tree takes as much memory as what is made of it
        if around is not None:
            around.lay_over(draft)
        if overlays:
            from artemis_py.config.properties import lay_over

            lay_over(draft, overlays, environ)
            draft.files.update(dict.fromkeys(overlays))
        if around is not None and around.instance is not None:
            around.instance.settle_directories(draft)
            around.instance.grant_management(draft)
        config = assemble(draft)
    if config is None or problems.has_errors:
        raise ConfigError(problems.in_order(file))
    return config


def _read_core(reading: Reading, core: Element) -> None:
    """Read every child of ``core`` into the reading's draft."""
    rows = names_of(CoreSettings)
    for child in core:
        name = local_name(child)
        if name in rows:
            reading.element(rows[name], child, reading.draft.core)
        elif name in _READERS:
            _READERS[name](reading, child)
        elif name in PARTS:
            reading.ignore_part(PARTS[name], child)


# ---- from a draft to settings ----------------------------------------------------------------------------------------


def assemble(draft: Draft) -> BrokerConfig:
    """Freeze a draft. Problems are added to the draft's; if there are errors, the result must not be used."""
    core = _core_values(draft)
    syntax = _wildcards(draft)
    markers = core.get("literal_match_markers")
    uuid_namespace = core.get("uuid_namespace", "")
    settings = _address_settings(draft, syntax, markers, uuid_namespace)
    security = _security(draft, syntax, uuid_namespace)
    addresses = tuple(
        AddressConfig(
            name=address.name,
            routing_types=tuple(address.routing_types),
            queues=tuple(_queue(draft, name) for name in address.queues),
            origin=address.origin,
        )
        for address in draft.addresses.values()
    )
    diverts = tuple(filter(None, (_divert(draft, divert) for divert in draft.diverts.values())))
    logins = sources_of(draft)
    acceptors = make_acceptors(draft, logins)
    check_addresses(draft, settings, syntax)
    check_no_route(draft, settings)
    check_filters(draft)
    check_limits(draft, settings)
    _check_persistence(draft)
    readers = Readers(addresses, settings, syntax)
    check_rings(draft, addresses, settings, readers)
    check_queues(draft, list(cases(addresses, settings.entries, settings, readers)))
    check_views(draft, addresses, settings, syntax)
    check_recovery_points(draft, addresses)
    bridges = make_bridges(draft, addresses, settings)
    check_circles(draft, readers, diverts, bridges, acceptors, settings)
    management_address = core.get("management_address", CoreSettings().management_address)
    check_diverts(draft, diverts, addresses, settings, readers, syntax, management_address)
    if not draft.problems.has_errors:
        _add_notices(draft)
        _check_that_somebody_can_connect(draft, acceptors)
    return BrokerConfig(
        file=draft.file,
        addresses=addresses,
        diverts=diverts,
        bridges=bridges,
        acceptors=acceptors,
        wildcards=syntax,
        address_settings=settings,
        security=security,
        logins=logins,
        properties=dict(draft.properties),
        user_limits=dict(draft.user_limits),
        journal_retention=draft.retention,
        users_file=draft.users_file,
        shared_store=draft.shared_store,
        web_access=draft.web_access,
        files=tuple(draft.files),
        notices=tuple(draft.problems.in_order(draft.file)),
        origins=dict(draft.core.origins),
        **core,
    )


def _core_values(draft: Draft) -> dict[str, Any]:
    values = dict(draft.core.values)
    markers = values.get("literal_match_markers")
    if markers is not None:
        try:
            check_literal_markers(markers)
        except MatchError as error:
            draft.problems.error(draft.core.origins["literal_match_markers"], str(error))
            del values["literal_match_markers"]
    return values


def _wildcards(draft: Draft) -> WildcardSyntax:
    try:
        return WildcardSyntax(**draft.wildcards.values)
    except MatchError as error:
        place = max(draft.wildcards.origins.values(), key=lambda origin: origin.line, default=draft.origin)
        draft.problems.error(place, str(error))
        return WildcardSyntax()


def _address_settings(
    draft: Draft, syntax: WildcardSyntax, markers: str | None, uuid_namespace: str
) -> SettingsRepository:
    entries: list[SettingsEntry] = []
    for each in draft.entries.values():
        try:
            check_setting_match(each.name, syntax, markers)
        except MatchError as error:
            draft.problems.error(each.origin, str(error))
            continue
        written = each.written
        entries.append(
            SettingsEntry(match=each.name, values=written.values, origins=written.origins, origin=each.origin)
        )
    return SettingsRepository(entries, syntax, literal_match_markers=markers, uuid_namespace=uuid_namespace)


def _security(draft: Draft, syntax: WildcardSyntax, uuid_namespace: str) -> SecurityConfig:
    mappings: dict[str, list[str]] = {}
    for outside, inside in draft.role_mappings:
        for role in inside:
            mappings.setdefault(role, []).append(outside)
    settings: list[SecuritySetting] = []
    for each in draft.security.values():
        try:
            check_match(each.match, syntax)
        except MatchError as error:
            draft.problems.error(each.origin, str(error))
            continue
        roles = {
            permission: tuple(dict.fromkeys(name for role in given for name in (role, *mappings.get(role, ()))))
            for permission, given in each.roles.items()
        }
        settings.append(SecuritySetting(match=each.match, roles=roles, origin=each.origin))
    return SecurityConfig(
        settings,
        syntax,
        role_mappings={role: tuple(outside) for role, outside in mappings.items()},
        uuid_namespace=uuid_namespace,
    )


def _queue(draft: Draft, name: str) -> QueueConfig:
    queue = draft.queues[name]
    return QueueConfig(
        name=queue.name,
        address=queue.address,
        routing_type=queue.routing_type,
        origin=queue.origin,
        origins=tuple(queue.written.origins.items()),
        **queue.written.values,
    )


def _divert(draft: Draft, divert: NamedDraft) -> DivertConfig | None:
    values = dict(divert.written.values)
    forwarding = values.pop("forwarding_addresses", "") or ""
    targets = tuple(part.strip() for part in forwarding.split(",") if part.strip())
    if not values.get("address") or not targets:
        missing = "forwarding-address" if values.get("address") else "address"
        if not draft.problems.has_error_at(divert.origin):
            draft.problems.error(divert.origin, f"divert {divert.name!r} has no {missing}")
        return None
    values["routing_name"] = values.get("routing_name") or divert.name
    return DivertConfig(name=divert.name, forwarding_addresses=targets, origin=divert.origin, **values)


def _add_notices(draft: Draft) -> None:
    for name, (origin, reason) in draft.ignored.items():
        draft.problems.warning("no-effect", origin, f"{name} is ignored: {reason}")
    if draft.tuning:
        draft.problems.note("tuning", *_note_of_tuning(draft))


def _check_that_somebody_can_connect(draft: Draft, acceptors: Sequence[AcceptorConfig]) -> None:
    if any(each.is_opened and "STOMP" in each.protocols for each in acceptors):
        return
    closed = ", ".join(f"{each.name!r} ({each.origin.line})" for each in acceptors if not each.is_opened)
    why = f"not opened: {closed}" if closed else "the file has no STOMP acceptor"
    draft.problems.warning(
        "no-port",
        next((each.origin for each in acceptors), draft.origin),
        f"NO PORT IS OPENED FOR STOMP, so no client can send or receive; {why}",
        allowed='<acceptor name="stomp">tcp://127.0.0.1:61613?protocols=STOMP</acceptor> inside acceptors',
    )


def _check_persistence(draft: Draft) -> None:
    """Find settings that have no meaning without a journal."""
    if draft.core.values.get("persistence_enabled", True):
        return
    if draft.retention is not None:
        draft.problems.warning(
            "no-effect",
            draft.retention_origin,
            "journal-retention-directory without persistence-enabled: there is no journal, so nothing is retained",
        )
    if draft.shared_store is not None:
        draft.problems.error(
            draft.shared_store.origin,
            "shared-store without persistence-enabled: there is no store to share, so no broker could take over",
            allowed="persistence-enabled true, or no ha-policy",
        )


def _note_of_tuning(draft: Draft) -> tuple[Origin, str]:
    """Put all settings for the internals of Artemis into one note, at the place of the first. The reference has the
    reasons.
    """
    places = sorted(draft.tuning.items(), key=lambda item: (item[1].file != draft.file, item[1].file, item[1].line))
    first = places[0][1]
    shown = [f"{name} ({origin.line if origin.file == first.file else origin})" for name, origin in places]
    what, have = ("1 setting tunes", "has") if len(shown) == 1 else (f"{len(shown)} settings tune", "have")
    return first, f"{what} the internals of Artemis and {have} no effect here: {', '.join(shown)}"
