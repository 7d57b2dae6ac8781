"""An Artemis instance directory: finds its files, and lays over a draft what only they say.

``etc/bootstrap.xml`` names broker.xml, the domain in ``etc/login.config`` and the web bindings; ``etc/artemis.profile``
has properties. Relative directories in broker.xml are relative to the instance, as in Artemis, wherever the broker is
started. Nothing is written into ``etc``, and Artemis' own data files stay untouched beside ours.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final
from urllib.parse import unquote, urlsplit

from artemis_py.config.draft import Draft
from artemis_py.config.instance.bootstrap import Bootstrap, read_bootstrap
from artemis_py.config.instance.jolokia_access import read_jolokia_access
from artemis_py.config.instance.management import tell_of_management
from artemis_py.config.instance.profile import read_profile
from artemis_py.config.instance.web import add_web_acceptors
from artemis_py.config.problems import Problems
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.entities import Origin
from artemis_py.config.tables.fields import names_of
from artemis_py.config.tables.logins import BootstrapUsers, JaasConfig

_DIRECTORIES: Final = ("journal-directory", "paging-directory", "large-messages-directory", "bindings-directory")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """``broker_xml`` is the path of its configuration; ``properties`` are Java's system properties, as Artemis' start
    script and profile set them. They may be secret: no ``repr`` has them.
    """

    directory: str
    broker_xml: str
    properties: Mapping[str, str] = field(repr=False)
    bootstrap: Bootstrap

    @property
    def files(self) -> list[str]:
        """The files beside broker.xml that count. Some may not exist yet, and be created later."""
        names = ("bootstrap.xml", "artemis.profile", "login.config", "jolokia-access.xml", "management.xml")
        return [os.path.join(self.directory, "etc", name) for name in names]

    def lay_over(self, draft: Draft) -> None:
        """Put into a draft, read from broker.xml, what the other files say."""
        bootstrap = self.bootstrap
        draft.properties = dict(self.properties)
        if bootstrap.domain is not None and draft.jaas is None:
            draft.jaas = JaasConfig(
                file=os.path.join(self.directory, "etc", "login.config"),
                domain=bootstrap.domain,
                certificate_domain=bootstrap.certificate_domain,
                origin=bootstrap.security_origin,
            )
        if bootstrap.users is not None:
            draft.bootstrap = self._with_paths(bootstrap.users)
        add_web_acceptors(draft, bootstrap.bindings)
        access = os.path.join(self.directory, "etc", "jolokia-access.xml")
        if os.path.isfile(access):
            draft.web_access = read_jolokia_access(access, self.properties, draft.problems)

    def tell_of_management(self, draft: Draft) -> None:
        """Tell what has no effect of management.xml; for a draft that is complete."""
        path = os.path.join(self.directory, "etc", "management.xml")
        if os.path.isfile(path):
            tell_of_management(path, self.properties, draft)

    def settle_directories(self, draft: Draft) -> None:
        """Make relative directories absolute; for a draft that is complete, its overriding properties included."""
        rows = names_of(CoreSettings)
        for row in map(rows.__getitem__, _DIRECTORIES):
            written = draft.core.values.get(row.attribute, row.default)
            draft.core.values[row.attribute] = os.path.join(self.directory, written)
        if draft.retention is not None:
            directory = os.path.join(self.directory, draft.retention.directory)
            draft.retention = replace(draft.retention, directory=directory)

    def _with_paths(self, users: BootstrapUsers) -> BootstrapUsers:
        """Artemis looks for these files in its class path, of which ``etc`` is a part."""
        etc = os.path.join(self.directory, "etc")
        return replace(
            users,
            user_file=users.user_file and os.path.join(etc, users.user_file),
            role_file=users.role_file and os.path.join(etc, users.role_file),
        )


def read_instance(directory: str, environ: Mapping[str, str], problems: Problems) -> Instance | None:
    """Read the files around broker.xml. Returns None after adding problems."""
    etc = os.path.join(directory, "etc")
    bootstrap_xml = os.path.join(etc, "bootstrap.xml")
    if not os.path.isfile(bootstrap_xml):
        beside = os.path.join(directory, "broker.xml")
        hint = f"; to run the file in it, name it: {beside}" if os.path.isfile(beside) else ""
        problems.error(Origin(directory, 0), f"this folder is no Artemis instance: it has no etc/bootstrap.xml{hint}")
        return None
    properties = _properties(os.path.abspath(directory), environ, problems)
    bootstrap = read_bootstrap(bootstrap_xml, {**environ, **properties}, problems)
    if problems.has_errors:
        return None
    broker_xml = _broker_xml(directory, bootstrap.configuration, bootstrap_xml, problems)
    return Instance(
        directory=os.path.abspath(directory), broker_xml=broker_xml, properties=properties, bootstrap=bootstrap
    )


def _properties(directory: str, environ: Mapping[str, str], problems: Problems) -> dict[str, str]:
    """Return what Artemis' start script defines, and the profile, and Java itself; the script has the last word."""
    etc = os.path.join(directory, "etc")
    script = {
        "artemis.instance": directory,
        "artemis.instance.etc": etc,
        "artemis.instance.uri": f"file:{directory}/",
        "artemis.instance.etc.uri": f"file:{etc}/",
        "data.dir": os.path.join(directory, "data"),
        "java.io.tmpdir": os.path.join(directory, "tmp"),
        "java.security.auth.login.config": os.path.join(etc, "login.config"),
    }
    java = {"user.dir": os.getcwd(), "user.home": os.path.expanduser("~"), "java.io.tmpdir": tempfile.gettempdir()}
    variables = {**environ, "ARTEMIS_INSTANCE": directory, "ARTEMIS_INSTANCE_ETC": etc}
    profile = os.path.join(etc, "artemis.profile")
    found = read_profile(profile, variables, problems) if os.path.isfile(profile) else {}
    return {**java, **found, **script}


def _broker_xml(directory: str, configuration: str | None, bootstrap_xml: str, problems: Problems) -> str:
    """Return the path behind ``file:/…/broker.xml``; if the instance was moved, the file of that name in its etc."""
    named = unquote(urlsplit(configuration or "").path)
    own = os.path.join(directory, "etc", os.path.basename(named) or "broker.xml")
    if not named or os.path.normpath(os.path.abspath(named)) == os.path.abspath(own):
        return own
    path = os.path.normpath(os.path.join(directory, named))
    if not os.path.isfile(path) and os.path.isfile(own):
        problems.note("instance", Origin(bootstrap_xml, 0), f"{named} does not exist; {own} is read instead")
        return own
    return path
