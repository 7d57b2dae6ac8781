"""``etc/bootstrap.xml`` of an Artemis instance: which broker.xml, who checks users, and the bindings of its web server,
which are HTTP acceptors here (metrics, health, and the console that they name).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final
from urllib.parse import urlsplit

from artemis_py.config.draft import AcceptorDraft, Draft
from artemis_py.config.problems import Problems, nearest
from artemis_py.config.tables.entities import NOWHERE, BootstrapUsers, Origin
from artemis_py.config.xml.source import Element, Source, load_text, local_name, parse

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


def add_web_acceptors(draft: Draft, bindings: list[Binding]) -> None:
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
            f"this binding is the HTTP acceptor {acceptor.name!r}: with a console at /ui/, /metrics and /health{apps}",
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
