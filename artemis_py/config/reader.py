"""Reads broker.xml into a :class:`~artemis_py.config.settings.BrokerConfig`, or reports everything that is wrong with
it.

The steps in order: the text with its placeholders and includes, the XSD, the values, the overriding properties, and the
checks that need the whole. A valid file takes only the fast path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

from artemis_py.config.assemble import assemble
from artemis_py.config.draft import Draft
from artemis_py.config.problems import Problems
from artemis_py.config.read.addresses import read_address_settings, read_addresses, read_diverts, read_old_queues
from artemis_py.config.read.element import Reading
from artemis_py.config.read.server import (
    USERS_FILE,
    read_acceptors,
    read_authentication,
    read_ha_policy,
    read_retention,
    read_security,
    read_user_limits,
    read_users_file,
    read_wildcards,
)
from artemis_py.config.settings import BrokerConfig
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.fields import names_of
from artemis_py.config.tables.structured_elements import PARTS
from artemis_py.config.xml.document import core_of, read_file, read_text, validate
from artemis_py.config.xml.source import Element, Source, local_name
from artemis_py.errors import ConfigError

if TYPE_CHECKING:
    from artemis_py.config.instance import Instance

PROPERTIES_FILE: Final = "broker.properties"

_READERS: Final[dict[str, Callable[[Reading, Element], None]]] = {
    "acceptors": read_acceptors,
    "address-settings": read_address_settings,
    "addresses": read_addresses,
    "authentication": read_authentication,
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
            from artemis_py.config.overlay.properties import lay_over

            lay_over(draft, overlays, environ)
            draft.files.update(dict.fromkeys(overlays))
        if around is not None and around.instance is not None:
            around.instance.settle_directories(draft)
            around.instance.tell_of_management(draft)
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
