"""An Artemis instance directory: finds its files, and lays over a draft what only they say.

``etc/bootstrap.xml`` names broker.xml, the domain in ``etc/login.config`` and the web bindings; ``etc/artemis.profile``
has properties. Relative directories in broker.xml are relative to the instance, as in Artemis, wherever the broker is
started. Nothing is written into ``etc``, and Artemis' own data files stay untouched beside ours.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final
from urllib.parse import unquote, urlsplit

from artemis_py.config.draft import AcceptorDraft, Draft, SecurityDraft
from artemis_py.config.problems import Problems, nearest
from artemis_py.config.properties_file import read_properties
from artemis_py.config.tables.core_settings import CoreSettings
from artemis_py.config.tables.declarations import (
    NOWHERE,
    AuthenticatorConfig,
    BootstrapUsers,
    JaasConfig,
    Origin,
    WebAccess,
)
from artemis_py.config.tables.fields import names_of
from artemis_py.config.xml.source import Element, Source, load_text, local_name, parse

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
        return [*(os.path.join(self.directory, "etc", name) for name in names), self._oidc_file]

    @property
    def _oidc_file(self) -> str:
        """As Hawtio finds it: a path, or a URL, also in the class path, of which ``etc`` is a part."""
        named = unquote(urlsplit(self.properties.get("hawtio.oidcConfig", "")).path)
        return os.path.join(self.directory, "etc", named or "hawtio-oidc.properties")

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
        _add_web_acceptors(draft, bootstrap.bindings)
        access = os.path.join(self.directory, "etc", "jolokia-access.xml")
        if os.path.isfile(access):
            draft.web_access = read_jolokia_access(access, self.properties, draft.problems)
        oidc = _read_hawtio_oidc(self._oidc_file, draft.problems) if os.path.isfile(self._oidc_file) else None
        known = {each.options.get("issuer") for each in draft.authenticators}
        if oidc is not None and oidc.options["issuer"] not in known:
            draft.authenticators.append(oidc)

    def grant_management(self, draft: Draft) -> None:
        """Grant what management.xml does, as far as it can; for a draft that is complete."""
        path = os.path.join(self.directory, "etc", "management.xml")
        if os.path.isfile(path):
            _grant_management(path, self.properties, draft)

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
        problems.error(
            Origin(directory, 0), f"this folder is not an Artemis instance: it has no etc/bootstrap.xml{hint}"
        )
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
    found = _read_profile(profile, variables, problems) if os.path.isfile(profile) else {}
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


# ---- bootstrap.xml: which broker.xml, who checks users, which bindings of the web server ---------

_BASIC_MANAGER: Final = "org.apache.activemq.artemis.spi.core.security.ActiveMQBasicSecurityManager"
_USER_PROPERTIES: Final = {
    "bootstrapUser": "user",
    "bootstrapPassword": "password",
    "bootstrapRole": "role",
    "bootstrapUserFile": "user_file",
    "bootstrapRoleFile": "role_file",
}
_CHILDREN: Final = ("jaas-security", "security-manager", "server", "web")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A port of Artemis' web server; ``attributes`` are all as written, passwords too, so no ``repr`` has them.

    ``apps`` are the names of its applications.
    """

    uri: str
    attributes: Mapping[str, str] = field(repr=False)
    apps: tuple[str, ...]
    origin: Origin


@final
@dataclass(slots=True, kw_only=True)
class Bootstrap:
    """What the file says. ``domain`` is None without ``jaas-security``, ``configuration`` without ``server``."""

    domain: str | None = None
    certificate_domain: str | None = None
    security_origin: Origin = NOWHERE
    users: BootstrapUsers | None = None
    configuration: str | None = None
    bindings: list[Binding] = field(default_factory=list)


def read_bootstrap(path: str, properties: Mapping[str, str], problems: Problems) -> Bootstrap:
    """Read the file; ``properties`` are the values of ``${name}`` in it. Problems are added to ``problems``."""
    found, source = Bootstrap(), Source(path)
    text = load_text(path, Origin(path, 0), problems)
    root = parse(text, path, properties, source, problems) if text is not None else None
    if root is None:
        return found
    source.root = root
    if local_name(root) != "broker":
        problems.error(source.origin(root), "wrong root element; <broker> is expected", value=local_name(root))
        return found
    for child in root:
        _read_child(found, child, source, problems)
    if found.domain is None and found.users is None and not problems.has_errors:
        problems.error(source.origin(root), "it says nobody who checks users", allowed='<jaas-security domain="…"/>')
    return found


def _read_child(found: Bootstrap, child: Element, source: Source, problems: Problems) -> None:
    name, origin = local_name(child), source.origin(child)
    if name == "jaas-security":
        found.domain, found.security_origin = str(child.get("domain") or ""), origin
        found.certificate_domain = str(child.get("certificate-domain") or "") or None
        if not found.domain:
            problems.error(origin, "jaas-security has no domain", allowed="the name of a domain in login.config")
            found.domain = None
    elif name == "security-manager":
        _read_manager(found, child, origin, problems)
    elif name == "server":
        found.configuration = str(child.get("configuration") or "")
    elif name == "web":
        _read_web(found, child, source)
    else:
        problems.error(origin, f"broker has no element {name}", suggestion=nearest(name, _CHILDREN))


def _read_manager(found: Bootstrap, element: Element, origin: Origin, problems: Problems) -> None:
    class_name = str(element.get("class-name") or "")
    if class_name != _BASIC_MANAGER:
        problems.error(
            origin,
            f"the security manager {class_name} is a Java class and cannot run here; use jaas-security, or write an "
            "authenticator in Python (docs/security.md)",
        )
        return
    values: dict[str, str] = {}
    for each in element.iterchildren("{*}property"):
        name = _USER_PROPERTIES.get(str(each.get("key")))
        if name is not None:
            values[name] = str(each.get("value") or "")
    has_user, has_files = {"user", "password", "role"} <= values.keys(), {"user_file", "role_file"} <= values.keys()
    if not has_user and not has_files:
        problems.error(
            origin,
            "the basic security manager names no first user, and the users that Artemis has stored cannot be read",
            allowed="bootstrapUser, bootstrapPassword and bootstrapRole, or bootstrapUserFile and bootstrapRoleFile",
        )
        return
    found.users = BootstrapUsers(**values, origin=origin)
    problems.note(
        "instance",
        origin,
        "of the basic security manager only the first users named here are known; those that were added while Artemis "
        "ran are in its journal, which is not read",
    )


def _read_web(found: Bootstrap, web: Element, source: Source) -> None:
    """Read bindings; the old form has one, as attributes of ``web`` itself."""
    bindings = list(web.iterchildren("{*}binding"))
    for element in bindings or ([web] if web.get("bind") else []):
        attributes = {str(name): str(value) for name, value in element.attrib.items()}
        apps = tuple(str(app.get("name")) for app in element.iterchildren("{*}app"))
        uri = attributes.get("uri") or attributes.get("bind") or ""
        found.bindings.append(Binding(uri=uri, attributes=attributes, apps=apps, origin=source.origin(element)))


# ---- a binding of the web server as an HTTP acceptor ---------------------------------------------

_PORTS: Final = {"http": 80, "https": 443}
_TLS_PARAMETERS: Final = {
    "keyStorePath": "keyStorePath",
    "keyStorePassword": "keyStorePassword",
    "keyStoreType": "keyStoreType",
    "trustStorePath": "trustStorePath",
    "trustStorePassword": "trustStorePassword",
    "trustStoreType": "trustStoreType",
    "clientAuth": "needClientAuth",
    "includedTLSProtocols": "enabledProtocols",
    "includedCipherSuites": "enabledCipherSuites",
    "sslAutoReload": "sslAutoReload",
    "passwordCodec": "activemq.passwordcodec",
}
"""Attributes of a binding, and the acceptor parameters that mean the same."""


def _add_web_acceptors(draft: Draft, bindings: list[Binding]) -> None:
    """Add an acceptor for each binding whose port no acceptor of broker.xml has."""
    for binding in bindings:
        acceptor = _acceptor(draft, binding, f"web-{number}" if (number := _count(draft)) else "web")
        if acceptor is None:
            continue
        taken = next((each for each in draft.acceptors if each.port == acceptor.port and each.port), None)
        if taken is not None:
            draft.problems.note(
                "instance", binding.origin, f"this binding is left to acceptor {taken.name!r}, which has the port"
            )
            continue
        draft.acceptors.append(acceptor)
        apps = f"; Artemis' applications do not run here: {', '.join(binding.apps)}" if binding.apps else ""
        draft.problems.note(
            "instance",
            binding.origin,
            f"this binding is the HTTP acceptor {acceptor.name!r}, with a console at /ui/, /metrics and /health{apps}",
        )


def _count(draft: Draft) -> int:
    return sum(each.name == "web" or each.name.startswith("web-") for each in draft.acceptors)


def _acceptor(draft: Draft, binding: Binding, name: str) -> AcceptorDraft | None:
    try:
        parts = urlsplit(binding.uri.strip())
        port, host = parts.port, parts.hostname
    except ValueError:
        port = host = None
        parts = urlsplit("")
    if parts.scheme not in _PORTS or not host:
        draft.problems.error(binding.origin, "wrong uri of a binding", value=binding.uri, allowed="http://host:port")
        return None
    params = {"protocols": "HTTP"}
    if parts.scheme == "https":
        params["sslEnabled"] = "true"
        params |= {_TLS_PARAMETERS[key]: value for key, value in binding.attributes.items() if key in _TLS_PARAMETERS}
    port = _PORTS[parts.scheme] if port is None else port
    return AcceptorDraft(name, binding.origin, "tcp", host, port, params, dict.fromkeys(params, binding.origin))


# ---- artemis.profile -----------------------------------------------------------------------------
#
# A shell script that sets variables, and so Java's system properties, to which ``${name}`` in the other files refers.
# No shell runs here: only plain assignments are read, in the order of the file, whatever stands around them.

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_VALUE_LENGTH_MAX: Final = 65536
_HOME: Final = "artemis.home"
_WITH_PROPERTIES: Final = ("JAVA_ARGS", "ARTEMIS_CLUSTER_PROPS", "JAVA_ARGS_APPEND", "DEBUG_ARGS")


def _read_profile(path: str, variables: Mapping[str, str], problems: Problems) -> dict[str, str]:
    """Return the properties that the file passes to Java (``-Dname=value``), and ``artemis.home``, which Artemis' start
    script makes of a variable in it. ``variables`` are the shell's before it.

    A file that cannot be read as said is a warning: the properties in it are missing, and a placeholder that wants one
    says so itself.
    """
    text = load_text(path, Origin(path, 0), problems)
    if text is None:
        return {}
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        problems.warning("instance", Origin(path, 0), f"its properties are not read: {str(error).lower()}")
        return {}
    known = dict(variables)
    for word in words:
        found = _ASSIGNMENT.fullmatch(word)
        if found is not None:
            known[found[1]] = _expanded(found[2], known)
    home = {_HOME: known["ARTEMIS_HOME"]} if "ARTEMIS_HOME" in known else {}
    return {**home, **_properties_in(" ".join(known.get(name, "") for name in _WITH_PROPERTIES))}


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Replace variables by their values; an unknown one by nothing, as a shell does. The result stays short."""
    return _VARIABLE.sub(lambda each: known.get(each[1] or each[2], ""), text)[:_VALUE_LENGTH_MAX]


def _properties_in(arguments: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    for word in arguments.split():
        if word.startswith("-D"):
            name, _, value = word[2:].partition("=")
            properties[name] = value
    return properties


# ---- jolokia-access.xml: which web pages may use Jolokia -----------------------------------------

_JOLOKIA_UNUSED: Final = {
    "remote": "let a firewall say which hosts reach the acceptor",
    "http": "permissions say who may use which method",
    "commands": "permissions of security-settings say who may do what",
    "allow": "permissions of security-settings say who may do what",
    "deny": "permissions of security-settings say who may do what",
    "filter": "there are only beans of the broker",
    "allow-object-name-patterns": "there are only beans of the broker",
}
"""The other parts of Jolokia's policy, and what there is instead."""
_JOLOKIA_PARTS: Final = ("allow-origin", "strict-checking", "ignore-scheme")


def read_jolokia_access(path: str, properties: Mapping[str, str], problems: Problems) -> WebAccess | None:
    """Read the file; None after adding an error."""
    source = Source(path)
    text = load_text(path, Origin(path, 0), problems)
    root = parse(text, path, properties, source, problems) if text is not None else None
    if root is None:
        return None
    source.root = root
    origins: list[str] = []
    is_strict = False
    for part in root:
        name = local_name(part)
        if name != "cors":
            advice = _JOLOKIA_UNUSED.get(name)
            reason = f"{name} is not used: {advice}" if advice else f"a policy of Jolokia has no {name}"
            meant = nearest(name, ("cors", *_JOLOKIA_UNUSED))
            problems.warning("left-out", source.origin(part), reason, suggestion=meant)
            continue
        for rule in part:
            kind = local_name(rule)
            if kind == "allow-origin":
                origins.append((rule.text or "").strip().lower())
            elif kind == "strict-checking":
                is_strict = True
            elif kind == "ignore-scheme":
                problems.note("left-out", source.origin(rule), "ignore-scheme is not used: write *:// in allow-origin")
            else:
                problems.warning(
                    "left-out", source.origin(rule), f"cors has no {kind}", suggestion=nearest(kind, _JOLOKIA_PARTS)
                )
    return WebAccess(origins=tuple(filter(None, origins)), is_strict=is_strict, origin=source.origin(root))


# ---- management.xml, which has no effect here ----------------------------------------------------

_GRANTS: Final = {"view", "edit"}
_DOMAIN: Final = "org.apache.activemq.artemis"
_READING: Final = ("list", "get", "is", "count", "browse", "query")


def _grant_management(path: str, properties: Mapping[str, str], draft: Draft) -> None:
    """Grant the roles that the file lets call everything, as those of ``artemis create``, the same here, unless
    broker.xml grants permissions of management itself. Add to the draft's problems which permissions let the other
    roles do what they could.
    """
    source = Source(path)
    untold = Problems()  # nothing depends on the file
    text = load_text(path, Origin(path, 0), untold)
    root = parse(text, path, properties, source, untold) if text is not None else None
    if root is None:
        draft.problems.note("instance", Origin(path, 0), "management.xml cannot be read, and has no effect anyway")
        return
    source.root = root
    place = source.origin(root)
    for element in root.iter("{*}connector"):
        reason = "there is no JMX here, so no connector for it is opened"
        draft.problems.note("instance", source.origin(element), reason)
    viewers, editors = _roles(root)
    prefix = draft.core.values.get("management_rbac_prefix", "mops")
    says = "management.xml has no effect: permissions say who may see and change things by Jolokia and the console"
    if any(_GRANTS & setting.roles.keys() for setting in draft.security.values()):
        draft.problems.note("instance", place, says)
        return
    whole = _whole_roles(root)
    match = f"{prefix}.#"
    if whole and match not in draft.security:
        draft.security[match] = SecurityDraft(match, place, dict.fromkeys(("view", "edit"), whole))
    if whole and not {*viewers, *editors} - {*whole}:
        text = f"{','.join(whole)} may see and change everything by Jolokia and the console, as with Artemis"
        draft.problems.note(
            "instance", place, f"{text}: permissions view and edit on {match} in broker.xml say otherwise"
        )
        return
    wanted = "".join(
        f'<permission type="{kind}" roles="{",".join(roles)}"/>'
        for kind, roles in (("view", viewers), ("edit", editors))
        if roles
    )
    draft.problems.warning(
        "instance",
        place,
        f"{says}, and broker.xml grants none, so {'only ' + ','.join(whole) if whole else 'nobody'} may; to let the "
        f'roles of this file do what they could, add: <security-setting match="{match}">{wanted}</security-setting>',
    )


def _roles(root: Element) -> tuple[list[str], list[str]]:
    """Those that may call something that reads, and those that may call something else, in their order."""
    viewers: dict[str, None] = {}
    editors: dict[str, None] = {}
    for element in root.iter("{*}access"):
        reads = str(element.get("method") or "").startswith(_READING)
        found = viewers if reads else editors
        found.update(dict.fromkeys(_names(element)))
    return [*viewers], [*editors]


def _whole_roles(root: Element) -> list[str]:
    """Those that may call everything of Artemis' beans: by a rule for all of them, else by the default."""
    rules = [one for one in root.iter("{*}match") if one.get("domain") == _DOMAIN and not one.get("key")]
    found: dict[str, None] = {}
    for rule in rules or root.iter("{*}default-access"):
        for element in rule.iter("{*}access"):
            if element.get("method") == "*":
                found.update(dict.fromkeys(_names(element)))
    return list(found)


def _names(element: Element) -> Iterator[str]:
    for name in str(element.get("roles") or "").split(","):
        if name.strip():
            yield name.strip()


# ---- hawtio-oidc.properties: the OpenID provider at which people log in for the console ----------
#
# ``artemis create`` writes the file without a ``provider``; then nobody does.

_PLACEHOLDER: Final = re.compile(r"\$\{([^}]+)\}")
_ROLE_MAPPING: Final = "roleMapping."
_OIDC_OPTIONS: Final = {"name": "name", "scope": "scope", "redirect_uri": "redirect-uri"}
"""Properties that are options of the authenticator ``oidc`` as they are."""
_OIDC_UNUSED: Final = ("ssl.truststore", "ssl.keystore", "http.proxyURL")
"""Properties without which the provider may not be reached."""


def _read_hawtio_oidc(path: str, problems: Problems) -> AuthenticatorConfig | None:
    """Read the file; None if it names no provider. Defaults are those of Hawtio."""
    found = {each.key: each for each in read_properties(path, problems)}
    values = {key: each.value.strip() for key, each in found.items()}
    if not values.get("provider"):
        return None
    roles_path = values.get("oidc.rolesPath") or "roles"
    mapped = {key.removeprefix(_ROLE_MAPPING): role for key, role in values.items() if key.startswith(_ROLE_MAPPING)}
    options = {
        "issuer": values["provider"],
        "client-id": values.get("client_id", ""),
        "user-claim": values.get("oidc.userPath") or "preferred_username",
        "roles-claim": _PLACEHOLDER.sub(lambda each: values.get(each[1], each[0]), roles_path),
        "role-mapping": ",".join(f"{outside}={inside}" for outside, inside in mapped.items()),
        **{option: values[key] for key, option in _OIDC_OPTIONS.items() if values.get(key)},
    }
    for key in _OIDC_UNUSED:
        if values.get(key):
            problems.warning(
                "left-out",
                found[key].origin,
                f'{key} is not used: write <authenticator name="oidc"> in broker.xml, with the option ca-file if the '
                "provider has a certificate of your own (docs/oidc.md)",
            )
    origin = found["provider"].origin
    problems.note(
        "instance",
        origin,
        "people log in at the console with this provider; STOMP clients, too, may send its tokens as passwords",
    )
    return AuthenticatorConfig(name="oidc", options=options, origin=origin)
